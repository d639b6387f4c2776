"""Measures of one question, 0 to 1."""
