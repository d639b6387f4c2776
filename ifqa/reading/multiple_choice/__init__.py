"""Readers that choose among the answers a question offers."""
