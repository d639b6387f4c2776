"""Prompts: what a language model is shown, and the answer in what it writes."""
