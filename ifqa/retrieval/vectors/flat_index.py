"""Exact search by inner product: every query against every vector, block by block (DPR calls this a flat index).

Scores are sums in float32. A matrix product may sum its edges in another order, so the scores of two equal vectors may
differ in the last bit. Where scores are equal, the lower row comes first, at the k-th place too.
"""

import numpy as np
from numpy.typing import NDArray

from ifqa.retrieval.vectors.vector_store import Shards

BLOCK = 64 << 20  # bytes: 21,845 vectors of 768 numbers, and the scores of 768 questions with them


class FlatIndex:
    """Finds the nearest of all vectors, without an index."""

    def __init__(self, shards: Shards, block: int = BLOCK) -> None:
        """Check the vectors, which are mapped into memory and not read; `block` bytes of them are searched at a time."""
        self._shards = shards
        self._length = max(1, block // (4 * shards.dimension()))  # vectors of a block
        self._batch = max(1, block // 4 // self._length)  # queries at a time: their scores take as much as the block

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, both [questions, min(k, vectors)], best first; `queries` are [questions, dimension]."""
        size = min(k, len(self._shards))
        scores = np.full((len(queries), size), -np.inf, np.float32)
        rows = np.full((len(queries), size), -1, np.int64)
        for shard, vectors in self._shards.vectors():
            for first in range(0, len(vectors), self._length):
                block = vectors[first : first + self._length].astype(np.float32).T
                for start in range(0, len(queries), self._batch):
                    batch = slice(start, start + self._batch)
                    keep_best(scores[batch], rows[batch], queries[batch] @ block, shard + first)
        return scores, rows


def keep_best(scores: NDArray[np.float32], rows: NDArray[np.int64], new: NDArray[np.float32], first: int) -> None:
    """Put a block's better scores among the best so far, in place; blocks must come in the order of their rows.

    Args:
        scores, rows: the best so far, [queries, k], best first.
        new: the scores of the block, [queries, vectors].
        first: the row of the block's first vector.
    """
    size = scores.shape[1]
    better = new > scores[:, -1:]  # a later row must beat the last of the best; an equal score is not enough
    for query in np.flatnonzero(better.any(axis=1)):
        at = np.flatnonzero(better[query])
        if len(at) > size:
            at = at[new[query, at] >= np.partition(new[query, at], -size)[-size]]
        both = np.concatenate([scores[query], new[query, at]])
        both_rows = np.concatenate([rows[query], at + first])
        order = np.lexsort((both_rows, -both))[:size]
        scores[query], rows[query] = both[order], both_rows[order]
