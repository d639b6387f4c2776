"""Prompts for language models, and parsers of their completions."""
