"""The reader 'agent': a language model that may search and compute before it answers."""
