"""A user's own documents: the files of a folder, their text, and passages with file and page."""
