"""The version, in its own module so that reading it imports nothing else."""

__version__ = "0.3.0"
