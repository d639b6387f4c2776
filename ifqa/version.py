"""The version, alone: whoever names it imports nothing else."""

__version__ = "0.1.0"
