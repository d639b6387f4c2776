"""Scores of answers and of retrieval, and statistics over them."""
