"""Nearest-neighbour search by inner product: exactly, or with FAISS.

A FAISS index may be larger than memory, so it is split: each part, `faiss-00000.index` and so on,
holds the vectors of consecutive shards, and `faiss.json` lists the parts.
"""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import psutil
from numpy.typing import NDArray
from pydantic import Field

from ifqa.errors import ConfigError, DamagedArtifact, MissingInput
from ifqa.progress import bar
from ifqa.retrieval.vectors.vector_store import Shards
from ifqa.settings import Natural, StoredModel, parse_stored
from ifqa.storage.files import atomic_write, read_json, require_file, write_bytes, write_json

if TYPE_CHECKING:
    import faiss

logger = logging.getLogger(__name__)

# bytes: 21,845 vectors of 768 numbers, and the scores of 768 questions with them
BLOCK_BYTES = 64 << 20
PARTS_FILE = "faiss.json"
PART_VECTORS = 500_000  # vectors in a part: 1.5 GB for "Flat" at 768 dimensions
# HNSW's settings, as in DPR (dpr/indexer/faiss_indexers.py)
_EF_SEARCH, _EF_CONSTRUCTION = 128, 200
_NPROBE = 64  # search at least 64 lists and 1/64 of all: 64 for IVF4096, 1,024 for IVF65536
_PER_CENTROID = 64  # training vectors per centroid: FAISS warns below 39 and ignores more than 256
_MEMORY_SHARE = 0.7  # share of the free memory that an index may take
_MIN_SAMPLE = 10_000  # training vectors for an index without centroids (the ranges of "SQ8")


class FlatIndex:
    """Exact search: compares every query with every vector, block by block.

    Scores are float32. Ties are ranked by row, even at rank k. The scores of two equal vectors may
    differ in the last bit, because a matrix product may add up in a different order at its edges.
    """

    def __init__(self, shards: Shards, block: int = BLOCK_BYTES) -> None:
        """Check the memory-mapped vectors, which are searched in blocks of `block` bytes."""
        self._shards = shards
        self._length = max(1, block // (4 * shards.dimension()))  # vectors per block
        # Queries whose scores take as much memory as a block
        self._batch = max(1, block // 4 // self._length)

    def search(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, both [questions, min(k, vectors)], best first.

        `queries` are [questions, dimension].
        """
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


def keep_best(
    scores: NDArray[np.float32], rows: NDArray[np.int64], new: NDArray[np.float32], first: int
) -> None:
    """Merge a block's scores, `new` [queries, vectors], into the best so far, `scores` and `rows`
    [queries, k], in place.

    `first` is the row of the block's first vector; blocks must come in row order.
    """
    size = scores.shape[1]
    better = new > scores[:, -1:]  # a later row must beat the k-th score; a tie is not enough
    for query in np.flatnonzero(better.any(axis=1)):
        columns = np.flatnonzero(better[query])
        if len(columns) > size:
            columns = columns[
                new[query, columns] >= np.partition(new[query, columns], -size)[-size]
            ]
        merged = np.concatenate([scores[query], new[query, columns]])
        merged_rows = np.concatenate([rows[query], columns + first])
        order = np.lexsort((merged_rows, -merged))[:size]
        scores[query] = merged[order]
        rows[query] = merged_rows[order]


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
    part_size: int = PART_VECTORS,
    seed: int = 0,
) -> dict[str, object]:
    """Build an index of the vectors of `shards` in `folder`, and remove the files of earlier
    builds.

    Returns the `factory`, the number of training vectors (`trained_on`), the number of `parts`, and
    their `bytes`. Raises IfqaError if FAISS is missing, does not know the factory, or needs more
    vectors for training.

    Args:
        factory: a FAISS index_factory string, such as "Flat", "SQ8", "OPQ48,IVF4096,PQ48",
            "HNSW32".
        train_sample: number of vectors to train on, sampled evenly from all shards; 0 for 64 per
            centroid.
        part_size: maximum number of vectors in a part; only a larger shard makes a larger part.
        seed: chooses the sample.
    """
    faiss = load_faiss()
    dimension = shards.dimension()
    index = _create_index(factory, dimension)
    sample = 0
    parts = list[_IndexPart]()
    for path in folder.glob("faiss*"):
        path.unlink()
    if not index.is_trained:  # enough vectors for each centroid and for a transform's dimensions
        lists = re.search(r"IVF(\d+)", factory)
        transformed = bool(re.match("OPQ|PCA|ITQ", factory))
        centroids = max(
            int(lists[1]) if lists else 0, 256 * ("PQ" in factory), dimension * transformed
        )
        sample = min(len(shards), train_sample or max(_PER_CENTROID * centroids, _MIN_SAMPLE))
        logger.info(f"index {factory}: training on {sample:,} of {len(shards):,} vectors")
        with _report_factory_errors(factory):
            index.train(sample_vectors(shards, sample, seed))
    trained = faiss.serialize_index(index)
    with bar(f"index {factory}", len(shards)) as advance:
        for number, (first, last) in enumerate(_split_parts(shards, part_size)):
            index = faiss.deserialize_index(trained)
            path = folder / f"faiss-{number:05d}.index"
            with _report_factory_errors(factory):
                for _, vectors in shards.vectors(first, last):
                    index.add(vectors.astype(np.float32))
                    advance(len(vectors))
            with atomic_write(path) as handle:
                faiss.write_index(index, faiss.PyCallbackIOWriter(partial(write_bytes, handle)))
            parts.append(
                _IndexPart(
                    file=path.name, first=first, passages=last - first, bytes=path.stat().st_size
                )
            )
    write_json(folder / PARTS_FILE, _PartList(parts=parts).model_dump())
    total = sum(part.bytes for part in parts)
    return {"factory": factory, "trained_on": sample, "parts": len(parts), "bytes": total}


class FaissIndex:
    """Searches a FAISS index."""

    def __init__(
        self,
        folder: Path,
        shape: tuple[int, int],
        nprobe: int = 0,
        ef_search: int = 0,
        device: str = "cpu",
        memory_gb: float = 0,
    ) -> None:
        """Open an index from `build_index`.

        Raises IfqaError if FAISS or the GPU is missing, the index is damaged or was built from
        other vectors, or a setting does not apply.

        Args:
            shape: number and dimension of the indexed vectors.
            nprobe: lists of an IVF index to search; 0 for 1/64 of all lists, and at least 64.
            ef_search: candidates kept by an HNSW search; 0 for 128.
            device: "cpu", or "cuda" for all GPUs.
            memory_gb: memory for all parts together, in 10^9 bytes; 0 for 70% of the free memory.
        """
        self._folder = folder
        self._shape = shape
        self._device = device
        self._nprobe = nprobe
        self._ef_search = ef_search
        faiss = load_faiss()
        if device == "cuda" and not faiss.get_num_gpus():
            raise ConfigError(
                "faiss finds no GPU; set device = \"cpu\", or, on Linux: pip install 'ifqa[gpu]'"
            )
        path = require_file(folder / PARTS_FILE, "FAISS index")
        self._parts = parse_stored(
            _PartList, read_json(path), str(path), "build the index again"
        ).parts
        if sum(part.passages for part in self._parts) != shape[0]:
            raise DamagedArtifact(
                f"{folder / PARTS_FILE}: not an index of {shape[0]:,} vectors; "
                "build the index again"
            )
        budget = memory_gb * 1e9 or _MEMORY_SHARE * _free_memory(device)
        # Else parts are read in each search
        fits = sum(part.bytes for part in self._parts) <= budget
        self._loaded = [self._open(part) for part in self._parts] if fits else []

    def search(
        self, queries: NDArray[np.float32], k: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, both [questions, min(k, vectors)], best first.

        Missing hits have row -1 and score -inf.

        Scores are those of the compressed vectors. Ties are in row order. Search all questions in
        one call, because an index that does not fit in memory is read again in every call.
        """
        scores = np.empty((len(queries), 0), np.float32)
        rows = np.empty((len(queries), 0), np.int64)
        for number, part in enumerate(self._parts):
            index = self._loaded[number] if self._loaded else self._open(part)
            new_scores, positions = index.search(queries, min(k, part.passages))
            del index  # frees its memory before the next part is read
            scores = np.concatenate(
                [scores, np.where(positions < 0, np.float32(-np.inf), new_scores)], 1
            )
            rows = np.concatenate([rows, np.where(positions < 0, -1, positions + part.first)], 1)
            order = np.lexsort((rows, -scores), axis=-1)[:, :k]
            scores = np.take_along_axis(scores, order, 1)
            rows = np.take_along_axis(rows, order, 1)
        return scores, rows

    def _open(self, part: _IndexPart) -> "faiss.Index":
        path = require_file(self._folder / part.file, "FAISS index")
        try:
            index: faiss.Index = load_faiss().read_index(str(path))
        except (RuntimeError, MemoryError) as error:
            fault = f"{path} is damaged or too large ({_error_reason(error)})"
            raise DamagedArtifact(f"{fault}; build the index again") from error
        shape = (index.ntotal, index.d)
        expected = (part.passages, self._shape[1])
        if shape != expected:
            raise DamagedArtifact(
                f"{path}: found vectors of shape {shape}, wanted {expected}; build the index again"
            )
        self._tune(index)
        try:
            if self._device != "cpu":
                index = load_faiss().index_cpu_to_all_gpus(index)
        except RuntimeError as error:
            raise ConfigError(
                f'{path} cannot be moved to a GPU ({_error_reason(error)}); set device = "cpu"'
            ) from error
        return index

    def _tune(self, index: "faiss.Index") -> None:
        if lists := load_faiss().try_extract_index_ivf(index):
            lists.nprobe = min(lists.nlist, self._nprobe or max(_NPROBE, lists.nlist // _NPROBE))
        graph = not lists and _set_parameter(index, "efSearch", self._ef_search or _EF_SEARCH)
        for name, setting, applies in (
            ("nprobe", self._nprobe, lists),
            ("ef_search", self._ef_search, graph),
        ):
            if setting and not applies:
                raise ConfigError(
                    f"{name} = {setting}: the index in {self._folder} has no such setting; "
                    "set it to 0"
                )


def _free_memory(device: str) -> float:
    """Free bytes of the GPU's memory or this machine's."""
    if device == "cuda":
        import torch

        return float(torch.cuda.mem_get_info()[0])
    return float(psutil.virtual_memory().available)


def load_faiss() -> Any:
    """The module `faiss`; raises MissingInput if it is not installed."""
    if sys.platform == "darwin":
        import torch  # noqa: F401 - torch and faiss each load a libomp; that works only if torch is imported first
    try:
        import faiss
    except ImportError as error:
        mend = (
            "pip install 'ifqa[cpu]' (or 'ifqa[gpu]' on Linux with a GPU); or search exactly: "
            'factory = ""'
        )
        raise MissingInput(f"approximate search needs faiss: {mend} ({error})") from error
    if sys.platform == "darwin":
        faiss.omp_set_num_threads(1)  # two libomps in a process crash with threads
    return faiss


def estimate_bytes(factory: str, passages: int, dimension: int) -> int:
    """An upper estimate of the bytes of an index, on disk and in memory.

    Raises as `build_index` does.
    """
    index = _create_index(factory, dimension)
    try:
        code = int(index.sa_code_size())
    except RuntimeError:  # HNSW: vectors and links
        code = 4 * dimension
    links = re.match(r"HNSW(\d+)", factory)
    return passages * (code + 8 + (8 * int(links[1]) + 12 if links else 0))


def _split_parts(shards: Shards, size: int) -> list[tuple[int, int]]:
    """(first row, end row) of parts of whole shards.

    Only a part of a single shard may exceed `size`.
    """
    parts: list[tuple[int, int]] = []
    for first, last in shards.bounds():
        if parts and last - parts[-1][0] <= size:
            first, _ = parts.pop()
        parts.append((first, last))
    return parts


def sample_vectors(shards: Shards, size: int, seed: int) -> NDArray[np.float32]:
    """Vectors [size, dimension], sampled without replacement and in proportion from each shard.

    The same seed always gives the same sample.
    """
    rng = np.random.default_rng(seed)
    sample = np.empty((size, shards.dimension()), np.float32)
    for first, vectors in shards.vectors():
        start, stop = (row * size // len(shards) for row in (first, first + len(vectors)))
        sample[start:stop] = vectors[np.sort(rng.choice(len(vectors), stop - start, replace=False))]
    return sample


def _create_index(factory: str, dimension: int) -> Any:
    faiss = load_faiss()
    if re.search(r"(?:HNSW[01]|IVF0|x0)(?!\d)", factory):  # FAISS would crash later
        wanted = "at least HNSW2, and at least 1 elsewhere"
        raise ConfigError(f'factory = "{factory}": a number is too small; wanted {wanted}')
    with _report_factory_errors(factory):
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    if not faiss.try_extract_index_ivf(index):
        _set_parameter(index, "efConstruction", _EF_CONSTRUCTION)
    return index


def _set_parameter(index: "faiss.Index", name: str, number: int) -> bool:
    """Set a parameter of an index or of its inner index; return whether it has this parameter."""
    try:
        load_faiss().ParameterSpace().set_index_parameter(index, name, number)
    except RuntimeError:
        return False
    return True


@contextmanager
def _report_factory_errors(factory: str) -> Iterator[None]:
    """Raise FAISS's errors about a factory as ConfigError."""
    try:
        yield
    except RuntimeError as error:
        fault = (
            f'factory = "{factory}": faiss cannot build it for inner product '
            f"({_error_reason(error)})"
        )
        mend = (
            'use a factory such as "Flat", "SQ8", "IVF4096,PQ48x8", "HNSW32"; or search exactly: '
            'factory = ""'
        )
        raise ConfigError(f"{fault}; {mend}") from error


def _error_reason(error: Exception) -> str:
    """FAISS's message without its source location."""
    return " ".join(re.sub(r"^.*\.(cpp|h|cu|cuh):\d+: ", "", str(error), flags=re.DOTALL).split())
