"""The page's files, served as they are."""
