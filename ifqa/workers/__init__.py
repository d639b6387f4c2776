"""Maps a function over tasks, on local processes or a Ray cluster."""
