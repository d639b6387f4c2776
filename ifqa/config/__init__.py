"""Experiment and corpus files -> checked settings."""
