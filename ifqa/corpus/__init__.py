"""Turns sources into passages: blocks, shards, and a store of passages by id."""
