"""Exact search by inner product: every query against every vector, block by block (DPR calls this a flat index).

Scores are sums in float32. A matrix product may sum its edges in another order, so the scores of two equal vectors may
differ in the last bit. Where scores are equal, the lower row comes first, at the k-th place too.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from ifqa.retrieval.vectors.vector_store import Shards
from ifqa.workers.machine import free_memory

if TYPE_CHECKING:
    import torch

_Array = TypeVar("_Array", "NDArray[np.float16]", "torch.Tensor")

BLOCK = 64 << 20  # bytes: 21,845 vectors of 768 numbers, and the scores of 768 questions with them
_SHARE = 0.7  # of the free memory is for vectors; the rest is for queries, blocks and scores


class FlatIndex:
    """Finds the nearest of all vectors, without an index."""

    def __init__(self, shards: Shards, device: str = "cpu", block: int = BLOCK) -> None:
        """A GPU keeps the vectors in half precision if they fit into its memory, else each search copies them there.

        Args:
            shards: the vectors to search, mapped into memory and not read.
            device: "cpu" (numpy) or "cuda" (torch).
            block: bytes of vectors in float32 that are searched at a time; their scores take as many at most.
        """
        self._shards, self._device = shards, device
        dimension = shards.dimension()
        self._length = max(1, block // (4 * dimension))  # vectors of a block
        self._batch = max(1, block // 4 // self._length)  # queries at a time
        self._kept: list[tuple[int, torch.Tensor]] = []
        if device == "cuda" and 2 * len(shards) * dimension < room_for_vectors(device):
            self._kept = [(first, _tensor(vectors, device)) for first, vectors in shards.vectors()]

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, both [questions, min(k, vectors)], of the k best vectors, best first.

        Args:
            queries: [questions, dimension].
            k: number of vectors to find for each query.
        """
        if self._device != "cpu":
            return self._search_torch(queries, k)
        size = min(k, len(self._shards))
        scores = np.full((len(queries), size), -np.inf, np.float32)
        rows = np.full((len(queries), size), -1, np.int64)
        for first, halves in blocks(self._shards.vectors(), self._length):
            block = halves.astype(np.float32).T
            for start in range(0, len(queries), self._batch):
                batch = slice(start, start + self._batch)
                keep_best(scores[batch], rows[batch], queries[batch] @ block, first)
        return scores, rows

    def _search_torch(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        import torch

        every = torch.from_numpy(queries).to(self._device)
        batches = [every[start : start + self._batch] for start in range(0, max(1, len(every)), self._batch)]
        best = [
            (batch.new_empty(len(batch), 0), batch.new_empty(len(batch), 0, dtype=torch.int64)) for batch in batches
        ]
        shards = self._kept or ((first, _tensor(halves, self._device)) for first, halves in self._shards.vectors())
        for first, halves in blocks(shards, self._length):
            block, new = halves.float().T, torch.arange(first, first + len(halves), device=self._device)
            for n, (batch, (scores, rows)) in enumerate(zip(batches, best, strict=True)):
                scores = torch.cat([scores, batch @ block], 1)
                rows = torch.cat([rows, new.expand(len(batch), -1)], 1)
                order = scores.sort(dim=1, descending=True, stable=True).indices[:, :k]
                best[n] = scores.gather(1, order), rows.gather(1, order)
        scores, rows = (torch.cat(parts) for parts in zip(*best, strict=True))
        return scores.cpu().numpy(), rows.cpu().numpy()


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


def blocks(shards: Iterable[tuple[int, _Array]], length: int) -> Iterator[tuple[int, _Array]]:
    """(first row, vectors in half precision) of each block of at most `length` vectors, in order."""
    for first, vectors in shards:
        for start in range(0, len(vectors), length):
            yield first + start, vectors[start : start + length]


def room_for_vectors(device: str) -> float:
    """Bytes of a GPU's memory ("cuda") or of this machine's that vectors may take; 0 where the system reports none."""
    if device == "cuda":
        import torch

        return _SHARE * torch.cuda.mem_get_info()[0]
    return _SHARE * (free_memory() or 0.0)


def _tensor(halves: NDArray[np.float16], device: str) -> "torch.Tensor":
    import torch

    return torch.from_numpy(np.array(halves)).to(device)  # a copy, for torch wants a writable array
