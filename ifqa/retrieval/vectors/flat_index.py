"""Exact search by inner product: every query against every vector, block by block (DPR calls this a flat index).

Scores are sums in float32. A matrix product may sum its edges in another order, so the scores of two equal vectors may
differ in the last bit. Where scores are equal, the lower row comes first, at the k-th place too.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError
from ifqa.retrieval.vectors.vector_store import Vectors
from ifqa.workers.machine import free_memory

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

BLOCK = 64 << 20  # bytes: 21,845 vectors of 768 numbers, and the scores of 768 questions with them
_SHARE = 0.7  # of the free memory is for vectors; the rest is for queries, blocks and scores


class FlatIndex:
    """Finds the nearest of all vectors, without an index."""

    def __init__(self, vectors: Vectors, device: str = "cpu", block: int = BLOCK) -> None:
        """A GPU keeps the vectors in half precision if they fit into its memory, else each search copies them there.

        Args:
            vectors: the vectors to search, mapped into memory and not read.
            device: "cpu" (numpy) or "cuda" (torch).
            block: bytes of vectors in float32 that are searched at a time; their scores take as many at most.

        Raises:
            IfqaError: `device` is neither, or there is no GPU.
        """
        self._vectors, self._device, self._block = vectors, device, block
        self._kept: list[tuple[int, torch.Tensor]] = []
        if check_device(device) == "cuda":
            self._require_gpu()
            self._keep(device)

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, both [questions, min(k, vectors)], of the k best vectors, best first.

        Args:
            queries: [questions, dimension].
            k: number of vectors to find for each query, at least 1.

        Raises:
            IfqaError: queries have another dimension than the vectors, or hold NaN or infinity; or k is below 1.
        """
        queries = check_queries(queries, self._vectors.dimension, k)
        return self._search_numpy(queries, k) if self._device == "cpu" else self._search_torch(queries, k, self._device)

    def _search_numpy(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        size, batch = min(k, len(self._vectors)), self._batch()
        scores = np.full((len(queries), size), -np.inf, np.float32)
        rows = np.full((len(queries), size), -1, np.int64)
        for first, half in blocks(self._vectors.shards(), self._block):
            block = half.astype(np.float32).T
            for start in range(0, len(queries), batch):
                chosen = slice(start, start + batch)
                keep_best(scores[chosen], rows[chosen], queries[chosen] @ block, first)
        return scores, rows

    def _search_torch(
        self, queries: NDArray[np.float32], k: int, device: str
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        import torch

        matmul, batch = torch.backends.cuda.matmul, self._batch()
        asked = torch.from_numpy(queries).to(device)
        batches = [asked[start : start + batch] for start in range(0, max(1, len(asked)), batch)]
        best = [(some.new_empty(len(some), 0), torch.empty(len(some), 0, dtype=torch.int64, device=device))
                for some in batches]  # fmt: skip
        before, matmul.fp32_precision = matmul.fp32_precision, "ieee"  # TF32 keeps only ten bits of the mantissa
        try:
            for first, half in blocks(self._kept or self._vectors.shards(), self._block):
                block = (half if isinstance(half, torch.Tensor) else _tensor(half, device)).float().T
                best = [_merge(old, some @ block, first, k) for old, some in zip(best, batches, strict=True)]
        finally:
            matmul.fp32_precision = before
        return torch.cat([scores for scores, _ in best]).cpu().numpy(), torch.cat(
            [rows for _, rows in best]
        ).cpu().numpy()

    def _batch(self) -> int:
        """Number of queries at a time; their scores with a block take no more bytes than the block."""
        return max(1, self._block // 4 // _length(self._vectors.dimension, self._block))

    def _keep(self, device: str) -> None:
        """Copy the vectors to a device if they fit into its memory."""
        size = 2 * len(self._vectors) * self._vectors.dimension
        if size < room_for_vectors(device):
            self._kept = [(first, _tensor(shard, device)) for first, shard in self._vectors.shards()]

    def _require_gpu(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise IfqaError(
                'device = "cuda" was asked for, and torch finds no GPU here; set device = "cpu", or install a torch '
                "with CUDA and check that nvidia-smi lists the GPU"
            )


def keep_best(scores: NDArray[np.float32], rows: NDArray[np.int64], new: NDArray[np.float32], first: int) -> None:
    """Put a block's better scores among the best so far, in place; blocks must come in the order of their rows.

    Args:
        scores, rows: the best so far, [queries, k], best first.
        new: the scores of the block, [queries, vectors].
        first: the row of the block's first vector.
    """
    size = scores.shape[1]
    # A later row must beat the worst found score; an equal score is not enough.
    better = new > scores[:, -1:]
    for one in np.flatnonzero(better.any(axis=1)):
        at = np.flatnonzero(better[one])
        if len(at) > size:
            at = at[new[one, at] >= np.partition(new[one, at], -size)[-size]]
        all_scores = np.concatenate([scores[one], new[one, at]])
        all_rows = np.concatenate([rows[one], at + first])
        order = np.lexsort((all_rows, -all_scores))[:size]
        scores[one], rows[one] = all_scores[order], all_rows[order]


def blocks(shards: Iterable[tuple[int, Any]], size: int) -> Iterator[tuple[int, Any]]:
    """(first row, vectors in half precision) of each block, in order; a block takes at most `size` bytes in float32."""
    for first, shard in shards:
        length = _length(shard.shape[1], size)
        for start in range(0, len(shard), length):
            yield first + start, shard[start : start + length]


def _length(dimension: int, size: int) -> int:
    return max(1, size // (4 * dimension))


def room_for_vectors(device: str) -> float:
    """Bytes of a GPU's memory ("cuda") or of this machine's that vectors may take; 0 where the system reports none."""
    if device == "cuda":
        import torch

        return _SHARE * torch.cuda.mem_get_info()[0]
    return _SHARE * (free_memory() or 0.0)


def check_device(device: str) -> str:
    """`device`, if it is "cpu" or "cuda".

    Raises:
        IfqaError: it is neither.
    """
    if device not in ("cpu", "cuda"):
        raise IfqaError(f'device must be "cpu" or "cuda", found {device!r}')
    return device


def check_queries(queries: NDArray[np.float32], dimension: int, k: int) -> NDArray[np.float32]:
    """The queries as a contiguous array of float32.

    Raises:
        IfqaError: the dimension is not `dimension`, a number is not finite, or k is below 1.
    """
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise IfqaError(
            f"queries of shape {list(queries.shape)} do not fit vectors of {dimension} numbers; use the encoder that "
            "the index was built with, or build the index again with this one"
        )
    if wrong := np.flatnonzero(~np.isfinite(queries).all(axis=1)).tolist():
        raise IfqaError(
            f"the vector of query {wrong[0]} (from 0) holds NaN or infinity, one of {len(wrong):,}; the model is damaged, "
            "or its numbers are too large for its precision"
        )
    if k < 1:
        raise IfqaError(f"k must be 1 or more, found {k}; k is the number of passages to find for each question")
    return np.ascontiguousarray(queries, dtype=np.float32)


def _tensor(half: NDArray[np.float16], device: str) -> "torch.Tensor":
    import torch

    return torch.from_numpy(np.array(half)).to(device)  # a copy, for torch wants a writable array


def _merge(
    old: "tuple[torch.Tensor, torch.Tensor]", scores: "torch.Tensor", first: int, k: int
) -> "tuple[torch.Tensor, torch.Tensor]":
    """The best k of `old` and of a block's scores [queries, vectors]; the block's rows begin with `first`."""
    import torch

    size = min(k, scores.shape[1])
    # topk chooses freely among equal scores at the k-th place. The lowest rows are wanted: all above, then the first equal.
    last = scores.topk(size).values[:, -1:]
    above, equal = scores > last, scores == last
    chosen = above | (equal & (equal.cumsum(1, dtype=torch.int32) <= size - above.sum(1, keepdim=True)))
    at = chosen.nonzero()[:, 1].view(len(scores), size)
    both = torch.cat([old[0], scores.gather(1, at)], 1)
    rows = torch.cat([old[1], at + first], 1)
    order = both.sort(dim=1, descending=True, stable=True).indices[:, :k]  # stable: rows of equal score stay in order
    return both.gather(1, order), rows.gather(1, order)
