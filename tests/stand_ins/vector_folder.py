"""Vectors on disk, in the format of an index."""

import numpy as np

from ifqa.retrieval.vectors.vector_store import Filling, Shards


def folder_of(folder, *shards):
    filling, keys = Filling(folder), {}
    folder.mkdir(parents=True, exist_ok=True)
    for number, shard in enumerate(shards):
        keys[number] = "key"
        filling.add(number, "key", [f"{number}-{row}" for row in range(len(shard))], np.asarray(shard, np.float32))
    filling.finish(keys)
    return Shards(folder)


def all_vectors(folder):
    return np.concatenate([vectors for _, vectors in Shards(folder).vectors()])
