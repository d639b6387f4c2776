"""A function over many tasks: processes here, or a Ray cluster."""
