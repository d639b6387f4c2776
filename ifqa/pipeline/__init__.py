"""The main path, stage by stage, and what is done beside it with the same files."""
