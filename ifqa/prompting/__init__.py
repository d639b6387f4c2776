"""Prompts for language models, and how answers are found in their completions."""
