"""A user's own documents: the files of a folder, their text, and passages that know their file and page."""
