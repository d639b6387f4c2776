"""What `ifqa stats` counts: of a corpus, and of a benchmark's questions."""
