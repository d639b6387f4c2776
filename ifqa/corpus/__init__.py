"""Sources to passages: blocks, shards, a store of passages by id."""
