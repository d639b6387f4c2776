"""The main path, stage by stage, and the commands that work on its files."""
