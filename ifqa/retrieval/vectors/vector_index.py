"""Nearest-neighbour search by inner product: exactly, or with FAISS.

A FAISS index is split into parts, so that it may exceed the memory. Each part, `faiss-00000.index` and so on, has the vectors of
consecutive shards; `faiss.json` lists the parts.
"""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.progress import bar
from ifqa.retrieval.vectors.vector_store import Shards
from ifqa.settings import Natural, StoredModel, parse_stored
from ifqa.storage.files import atomic_write, read_json, require_file, write_bytes, write_json
from ifqa.workers.hardware import free_memory

if TYPE_CHECKING:
    import faiss

logger = logging.getLogger(__name__)

BLOCK_BYTES = 64 << 20  # bytes: 21,845 vectors of 768 numbers, and the scores of 768 questions with them
PARTS_FILE = "faiss.json"
PART_VECTORS = 500_000  # vectors in a part: "Flat" at 768 dimensions is 1.5 GB, which any machine with an encoder has
_EF_SEARCH, _EF_CONSTRUCTION = 128, 200  # of HNSW, as DPR sets them (dpr/indexer/faiss_indexers.py)
_NPROBE = 64  # at least 64 lists, and at least 1/64 of all lists: 64 for IVF4096, 1,024 for IVF65536
_PER_CENTROID = 64  # vectors to train a centroid on: FAISS warns below 39 and ignores those above 256
_MEMORY_SHARE = 0.7  # of the free memory is for an index
_MIN_SAMPLE = 10_000  # vectors at least, to train an index without centroids (the ranges of "SQ8")


class FlatIndex:
    """Finds the nearest of all vectors, without an index: every query against every vector, block by block.

    Scores are sums in float32. A matrix product may sum its edges in another order, so the scores of two equal vectors may
    differ in the last bit. Where scores are equal, the lower row comes first, at the k-th place too.
    """

    def __init__(self, shards: Shards, block: int = BLOCK_BYTES) -> None:
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


class _IndexPart(StoredModel, extra="forbid"):
    file: Annotated[str, Field(pattern=r"^faiss-\d{5,}\.index$")]
    first: Natural
    passages: Natural
    bytes: Natural


class _PartList(StoredModel):
    parts: list[_IndexPart]


def build_index(
    shards: Shards,
    folder: Path,
    factory: str,
    *,
    train_sample: int = 0,
    part_passages: int = PART_VECTORS,
    seed: int = 0,
) -> dict[str, object]:
    """Build an index of the vectors of `shards` in `folder`; the files of another build are removed.

    Args:
        shards, folder: see above.
        factory: a string of faiss.index_factory, such as "Flat", "SQ8", "OPQ48,IVF4096,PQ48", "HNSW32".
        train_sample: vectors to train on, drawn evenly from all shards; 0 for 64 per centroid.
        part_passages: maximal number of vectors in a part; only a shard with more vectors makes a larger part.
        seed: of the draw.

    Returns:
        `factory`, `trained_on` (number of vectors), `parts` (number of parts) and `bytes` (of all parts).

    Raises:
        IfqaError: FAISS is missing, does not know the factory, or has too few vectors to train it.
    """
    faiss, dimension = load_faiss(), shards.dimension()
    index, sample, parts = _create_index(factory, dimension), 0, list[_IndexPart]()
    for path in (*folder.glob("faiss*"), *folder.glob("trained.index")):
        path.unlink()
    if not index.is_trained:  # enough vectors for each centroid and each number of a transform
        lists, transformed = re.search(r"IVF(\d+)", factory), bool(re.match("OPQ|PCA|ITQ", factory))
        centroids = max(int(lists[1]) if lists else 0, 256 * ("PQ" in factory), dimension * transformed)
        sample = min(len(shards), train_sample or max(_PER_CENTROID * centroids, _MIN_SAMPLE))
        logger.info(f"index {factory}: training on {sample:,} of {len(shards):,} vectors")
        with _report_factory_errors(factory):
            index.train(sample_vectors(shards, sample, seed))
    trained = faiss.serialize_index(index)
    with bar(f"index {factory}", len(shards)) as advance:
        for number, (first, last) in enumerate(split_parts(shards, part_passages)):
            index, path = faiss.deserialize_index(trained), folder / f"faiss-{number:05d}.index"
            with _report_factory_errors(factory):
                for _, vectors in shards.vectors(first, last):
                    index.add(vectors.astype(np.float32))
                    advance(len(vectors))
            with atomic_write(path) as handle:
                faiss.write_index(
                    index, faiss.PyCallbackIOWriter(lambda chunk, handle=handle: write_bytes(handle, chunk))
                )
            parts.append(_IndexPart(file=path.name, first=first, passages=last - first, bytes=path.stat().st_size))
    write_json(folder / PARTS_FILE, _PartList(parts=parts).model_dump())
    total = sum(part.bytes for part in parts)
    return {"factory": factory, "trained_on": sample, "parts": len(parts), "bytes": total}


class FaissIndex:
    """Finds near vectors with an index."""

    def __init__(
        self,
        folder: Path,
        shape: tuple[int, int],
        nprobe: int = 0,
        ef_search: int = 0,
        device: str = "cpu",
        memory_gb: float = 0,
    ) -> None:
        """Open an index.

        Args:
            folder, shape: what `build` filled; number and dimension of the vectors that it was built from.
            nprobe: lists of an IVF that are searched; 0 for 1/64 of all lists, and at least 64.
            ef_search: candidates that the search of an HNSW keeps; 0 for 128.
            device: "cpu", or "cuda" for all GPUs.
            memory_gb: memory that all parts may take together, in 10^9 bytes; 0 for 70% of the free memory.

        Raises:
            IfqaError: FAISS or the GPU is missing; the index is damaged or of other vectors; the index is of a kind that
                has no such setting.
        """
        self._folder, self._shape, self._device = folder, shape, device
        self._nprobe, self._ef_search = nprobe, ef_search
        faiss = load_faiss()
        if device == "cuda" and not faiss.get_num_gpus():
            raise IfqaError("faiss finds no GPU; set device = \"cpu\", or, on Linux: pip install 'ifqa[gpu]'")
        path = require_file(folder / PARTS_FILE, "FAISS index")
        self._parts = parse_stored(_PartList, read_json(path), str(path), "build the index again").parts
        if sum(part.passages for part in self._parts) != shape[0]:
            raise IfqaError(f"{folder / PARTS_FILE}: not an index of {shape[0]:,} vectors; build the index again")
        room = memory_gb * 1e9 or _MEMORY_SHARE * _free_memory(
            device
        )  # if they do not all fit, each search reads them in turn
        fits = sum(part.bytes for part in self._parts) <= room
        self._kept = [self._open(part) for part in self._parts] if fits else []

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, both [questions, min(k, vectors)], best first; where fewer are found, row -1 and score -inf.

        Scores are of the vectors as the index compresses them. Rows of equal score are in ascending order. Ask all questions
        in a single call, for parts that do not fit into memory are read at each call.
        """
        scores, rows = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
        for number, part in enumerate(self._parts):
            index = self._kept[number] if self._kept else self._open(part)
            new, at = index.search(queries, min(k, part.passages))
            del index  # frees its memory before the next part is read
            scores = np.concatenate([scores, np.where(at < 0, np.float32(-np.inf), new)], 1)
            rows = np.concatenate([rows, np.where(at < 0, -1, at + part.first)], 1)
            order = np.lexsort((rows, -scores), axis=-1)[:, :k]
            scores, rows = np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)
        return scores, rows

    def _open(self, part: _IndexPart) -> "faiss.Index":
        path = self._folder / part.file
        try:
            index: faiss.Index = load_faiss().read_index(str(require_file(path, "FAISS index")))
        except (RuntimeError, MemoryError) as error:
            raise IfqaError(
                f"{path} is damaged or too large ({_error_reason(error)}); build the index again"
            ) from error
        shape, wanted = (index.ntotal, index.d), (part.passages, self._shape[1])
        if shape != wanted:
            raise IfqaError(f"{path}: vectors of shape {shape}, wanted {wanted}; build the index again")
        self._tune(index)
        try:
            if self._device != "cpu":
                index = load_faiss().index_cpu_to_all_gpus(index)
        except RuntimeError as error:
            raise IfqaError(f'{path} cannot go to a GPU ({_error_reason(error)}); set device = "cpu"') from error
        return index

    def _tune(self, index: "faiss.Index") -> None:
        faiss = load_faiss()
        lists = faiss.try_extract_index_ivf(index)
        if lists:
            lists.nprobe = min(lists.nlist, self._nprobe or max(_NPROBE, lists.nlist // _NPROBE))
        graph = not lists and _set_parameter(index, "efSearch", self._ef_search or _EF_SEARCH)
        for name, value, has in (("nprobe", self._nprobe, lists), ("ef_search", self._ef_search, graph)):
            if value and not has:
                raise IfqaError(f"{name} = {value} for {self._folder}; wanted 0, for the index has no such setting")


def _free_memory(device: str) -> float:
    """Free bytes of a GPU's memory or of this machine's; 0 where the system reports none."""
    if device == "cuda":
        import torch

        return float(torch.cuda.mem_get_info()[0])
    return free_memory() or 0.0


def load_faiss() -> Any:
    """The module `faiss`.

    Raises:
        IfqaError: faiss is not installed.
    """
    if sys.platform == "darwin":
        import torch  # noqa: F401 - both bring a libomp, and only torch before faiss is known to work
    try:
        import faiss
    except ImportError as error:
        raise IfqaError(
            "approximate search needs faiss; install it with: pip install 'ifqa[cpu]' (or 'ifqa[gpu]' on Linux with a "
            f'GPU); or search exactly: factory = "" ({error})'
        ) from error
    if sys.platform == "darwin":
        faiss.omp_set_num_threads(1)  # two libomp in a process crash when both use threads
    return faiss


def estimate_bytes(factory: str, passages: int, dimension: int) -> int:
    """Estimated bytes of an index, on disk and in memory, rather too many. Raises the errors of `build`."""
    index = _create_index(factory, dimension)
    try:
        code = int(index.sa_code_size())
    except RuntimeError:  # an HNSW: its vectors and their links
        code = 4 * dimension
    links = re.match(r"HNSW(\d+)", factory)
    return passages * (code + 8 + (8 * int(links[1]) + 12 if links else 0))


def split_parts(shards: Shards, passages: int) -> list[tuple[int, int]]:
    """(first row, row after the last) of parts of whole shards; only a part of a single shard may exceed `passages`."""
    parts: list[tuple[int, int]] = []
    for first, last in shards.bounds():
        if parts and last - parts[-1][0] <= passages:
            parts[-1] = (parts[-1][0], last)
        else:
            parts.append((first, last))
    return parts


def sample_vectors(shards: Shards, size: int, seed: int) -> NDArray[np.float32]:
    """Vectors [size, dimension], drawn without replacement from each shard by its share; the same for the same seed."""
    rng, drawn = np.random.default_rng(seed), np.empty((size, shards.dimension()), np.float32)
    for first, vectors in shards.vectors():
        start, stop = (row * size // len(shards) for row in (first, first + len(vectors)))
        drawn[start:stop] = vectors[np.sort(rng.choice(len(vectors), stop - start, replace=False))]
    return drawn


def _create_index(factory: str, dimension: int) -> Any:
    faiss = load_faiss()
    if re.search(r"(?:HNSW[01]|IVF0|x0)(?!\d)", factory):  # FAISS would crash, later
        raise IfqaError(f'factory = "{factory}": a number in it is too small; wanted HNSW2 or more, all else 1')
    with _report_factory_errors(factory):
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    if not faiss.try_extract_index_ivf(index):
        _set_parameter(index, "efConstruction", _EF_CONSTRUCTION)
    return index


def _set_parameter(index: "faiss.Index", name: str, value: int) -> bool:
    """Set a parameter of an index or of the one inside; whether it has such a parameter."""
    try:
        load_faiss().ParameterSpace().set_index_parameter(index, name, value)
    except RuntimeError:
        return False
    return True


@contextmanager
def _report_factory_errors(factory: str) -> Iterator[None]:
    """Turn FAISS's errors about a factory into one-line messages."""
    try:
        yield
    except RuntimeError as error:
        raise IfqaError(
            f'factory = "{factory}": faiss cannot build it for inner product ({_error_reason(error)}); wanted a factory such as '
            '"Flat", "SQ8", "IVF4096,PQ48x8", "HNSW32"; or search exactly: factory = ""'
        ) from error


def _error_reason(error: Exception) -> str:
    """FAISS's message without the place in its source."""
    return " ".join(re.sub(r"^.*\.(cpp|h|cu|cuh):\d+: ", "", str(error), flags=re.DOTALL).split())
