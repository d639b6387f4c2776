"""Exact search: every query against every vector, block by block, by inner product (what DPR calls a flat index).

Scores are sums in float32. Two vectors that are the same may still score the last bit apart where a matrix product sums
its edges in another order; where the scores are equal, the lower row comes first, at the k-th place too.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.retrieval.vectors.store import Vectors
from ifqa.workers.machine import free_memory

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

BLOCK = 64 << 20  # bytes: 21,845 vectors of 768 numbers, and the scores of 768 questions with them
_SHARE = 0.7  # of the memory that is free that vectors may take; the rest is for queries, blocks and scores


class Exact:
    """Finds the nearest of all vectors, without an index."""

    def __init__(self, vectors: Vectors, device: str = "cpu", block: int = BLOCK) -> None:
        """On a GPU the vectors are kept there in half precision if they fit, else sent there anew for each search.

        Args:
            vectors: what is searched, mapped and not read.
            device: "cpu" (numpy) or "cuda" (torch).
            block: bytes of vectors in float32 that are taken at a time, and of their scores.

        Raises:
            IfqaError: another device, or a GPU that is not there.
        """
        self._vectors, self._device, self._block = vectors, device, block
        self._kept: list[tuple[int, torch.Tensor]] = []
        if check_device(device) == "cuda":
            self._require_gpu()
            self._keep(device)

    def search(self, queries: "NDArray[np.float32]", k: int) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        """Scores and rows, [questions, min(k, vectors)] both, of the k best vectors, best first.

        Args:
            queries: [questions, dimension].
            k: how many are wanted, at least 1.

        Raises:
            IfqaError: queries of another dimension than the vectors, or with something in them that is no number.
        """
        queries = check_queries(queries, self._vectors.dimension, k)
        return self._search_numpy(queries, k) if self._device == "cpu" else self._search_torch(queries, k, self._device)

    def _search_numpy(self, queries: "NDArray[np.float32]", k: int) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        import numpy as np

        size, batch = min(k, len(self._vectors)), self._batch()
        scores = np.full((len(queries), size), -np.inf, np.float32)
        rows = np.full((len(queries), size), -1, np.int64)
        for first, half in blocks(self._vectors.shards(), self._block):
            block = half.astype(np.float32).T
            for start in range(0, len(queries), batch):
                new = queries[start : start + batch] @ block
                # A later row that only equals the worst of those found does not displace it; rows come in order.
                better = new > scores[start : start + batch, -1:]
                for one in np.flatnonzero(better.any(axis=1)):
                    at = np.flatnonzero(better[one])
                    if len(at) > size:
                        at = at[new[one, at] >= np.partition(new[one, at], -size)[-size]]
                    all_scores = np.concatenate([scores[start + one], new[one, at]])
                    all_rows = np.concatenate([rows[start + one], at + first])
                    order = np.lexsort((all_rows, -all_scores))[:size]
                    scores[start + one], rows[start + one] = all_scores[order], all_rows[order]
        return scores, rows

    def _search_torch(
        self, queries: "NDArray[np.float32]", k: int, device: str
    ) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        import torch

        matmul, batch = torch.backends.cuda.matmul, self._batch()
        asked = torch.from_numpy(queries).to(device)
        wanted = [asked[start : start + batch] for start in range(0, max(1, len(asked)), batch)]
        best = [(one.new_empty(len(one), 0), torch.empty(len(one), 0, dtype=torch.int64, device=device))
                for one in wanted]  # fmt: skip
        before, matmul.fp32_precision = matmul.fp32_precision, "ieee"  # TF32 keeps ten bits of each number
        try:
            for first, half in blocks(self._kept or self._vectors.shards(), self._block):
                block = (half if isinstance(half, torch.Tensor) else _tensor(half, device)).float().T
                best = [_merge(old, one @ block, first, k) for old, one in zip(best, wanted, strict=True)]
        finally:
            matmul.fp32_precision = before
        return torch.cat([one for one, _ in best]).cpu().numpy(), torch.cat([one for _, one in best]).cpu().numpy()

    def _batch(self) -> int:
        """Queries at a time, so that their scores with a block take no more bytes than the block."""
        return max(1, self._block // 4 // _length(self._vectors.dimension, self._block))

    def _keep(self, device: str) -> None:
        """Put the vectors on a device, if they fit there."""
        size = 2 * len(self._vectors) * self._vectors.dimension
        if size < room_for_vectors(device):
            self._kept = [(first, _tensor(shard, device)) for first, shard in self._vectors.shards()]

    def _require_gpu(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise IfqaError(
                'device = "cuda" was asked for, and torch finds no GPU here; set device = "cpu", or install a torch '
                "with CUDA and look whether nvidia-smi lists the GPU"
            )


def blocks(shards: Iterable[tuple[int, Any]], size: int) -> Iterator[tuple[int, Any]]:
    """(first row, vectors in half precision) of blocks of shards, `size` bytes in float32 at the most, in order."""
    for first, shard in shards:
        length = _length(shard.shape[1], size)
        for start in range(0, len(shard), length):
            yield first + start, shard[start : start + length]


def _length(dimension: int, size: int) -> int:
    return max(1, size // (4 * dimension))


def room_for_vectors(device: str) -> float:
    """Bytes that vectors may take of a GPU's memory ("cuda") or of this machine's; 0 where the system does not tell."""
    if device == "cuda":
        import torch

        return _SHARE * torch.cuda.mem_get_info()[0]
    return _SHARE * (free_memory() or 0.0)


def check_device(device: str) -> str:
    """The name of a device, if it is one.

    Raises:
        IfqaError: it is not.
    """
    if device not in ("cpu", "cuda"):
        raise IfqaError(f'device must be "cpu" or "cuda", found {device!r}')
    return device


def check_queries(queries: "NDArray[np.float32]", dimension: int, k: int) -> "NDArray[np.float32]":
    """Queries in float32, rows without gaps between them.

    Raises:
        IfqaError: they are no vectors of `dimension` numbers, not all numbers are finite, or k is not positive.
    """
    import numpy as np

    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise IfqaError(
            f"queries of shape {list(queries.shape)} do not fit vectors of {dimension} numbers; take the encoder that "
            "the index was built with, or build the index again with this one"
        )
    if wrong := np.flatnonzero(~np.isfinite(queries).all(axis=1)).tolist():
        raise IfqaError(
            f"the vector of query {wrong[0]} (from 0) holds NaN or infinity, one of {len(wrong):,}; the model is damaged, "
            "or its numbers are too large for its precision"
        )
    if k < 1:
        raise IfqaError(f"k must be 1 or more, found {k}; it is how many passages are wanted for a question")
    return np.ascontiguousarray(queries, dtype=np.float32)


def _tensor(half: "NDArray[np.float16]", device: str) -> "torch.Tensor":
    import numpy as np
    import torch

    return torch.from_numpy(np.array(half)).to(device)  # a copy: torch wants what can be written to


def _merge(
    old: "tuple[torch.Tensor, torch.Tensor]", scores: "torch.Tensor", first: int, k: int
) -> "tuple[torch.Tensor, torch.Tensor]":
    """The best k of those found before and of a block's scores [queries, vectors], whose rows begin with `first`."""
    import torch

    size = min(k, scores.shape[1])
    # topk picks any of those that are equal at the last place; wanted are those above it and the first of the equal.
    last = scores.topk(size).values[:, -1:]
    above, equal = scores > last, scores == last
    chosen = above | (equal & (equal.cumsum(1, dtype=torch.int32) <= size - above.sum(1, keepdim=True)))
    at = chosen.nonzero()[:, 1].view(len(scores), size)
    both = torch.cat([old[0], scores.gather(1, at)], 1)
    rows = torch.cat([old[1], at + first], 1)
    order = both.sort(dim=1, descending=True, stable=True).indices[:, :k]  # stable: rows of equal score stay in order
    return both.gather(1, order), rows.gather(1, order)
