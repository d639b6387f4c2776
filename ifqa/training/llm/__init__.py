"""Tuning a language model for the reader 'llm': on answers, or on preferences between them."""
