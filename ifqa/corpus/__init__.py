"""Turns sources into passages: units of work, shards, and a store of passages by id."""
