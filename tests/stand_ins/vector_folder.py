"""Vectors on disk, in the format of an index."""

import json

import numpy as np

from ifqa.retrieval.vectors.vector_store import Shards, ShardWriter


def folder_of(folder, *shards):
    filling = ShardWriter(folder)
    keys = {}
    folder.mkdir(parents=True, exist_ok=True)
    for number, shard in enumerate(shards):
        keys[number] = "key"
        filling.add(
            number,
            "key",
            [f"{number}-{row}" for row in range(len(shard))],
            {"vectors": np.asarray(shard, np.float16)},
        )
    filling.finish(keys)
    return Shards(folder)


def all_vectors(folder):
    return np.concatenate([vectors for _, vectors in Shards(folder).vectors()])


def write_passages(folder, texts):
    """Write passages "p0", "p1", ... of the title "gold" into two files, in turn."""
    folder.mkdir()
    for shard in range(2):
        lines = [
            {"id": f"p{n}", "title": "gold", "contents": text}
            for n, text in enumerate(texts)
            if n % 2 == shard
        ]
        (folder / f"passages-0000{shard}.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
        )
    return folder
