"""Answers, retrieval and the statistics over both."""
