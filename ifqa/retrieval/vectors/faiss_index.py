"""Approximate search with FAISS indexes by inner product, split into parts so that an index may exceed the memory.

`trained.index` is the trained index without vectors. Each part, `faiss-00000.index` and so on, is a copy of it with the
vectors of consecutive shards added. `faiss.json` lists the parts and the hash of what they were made from.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.progress import bar, say
from ifqa.retrieval.vectors.flat_index import BLOCK, blocks, check_device, check_queries, room_for_vectors
from ifqa.retrieval.vectors.vector_store import Vectors, draw, parts_of
from ifqa.settings import Natural, Stored, check_stored
from ifqa.storage.files import create, read_json, require, write, write_json

LOG, TRAINED = "faiss.json", "trained.index"
_EF_SEARCH = 128  # of HNSW, as DPR sets it (dpr/indexer/faiss_indexers.py)
_NPROBE = 64  # at least 64 lists, and at least 1/64 of all lists: 64 for IVF4096, 1,024 for IVF65536
PART = (
    500_000  # vectors in a part of an index: "Flat" at 768 dimensions is 1.5 GB, which any machine with an encoder has
)
_LEAST, _PER_CENTROID = 39, 64  # vectors to train a centroid on: FAISS warns below 39 and ignores those above 256
_SAMPLE = 10_000  # vectors at least, to train an index without centroids (the ranges of "SQ8")
_OPQ = 256  # centroids: OPQ trains a product quantizer of its own, with 8 bits
_EF_CONSTRUCTION = 200  # of HNSW, as DPR sets it (dpr/indexer/faiss_indexers.py)


class _Part(Stored, extra="forbid"):
    file: Annotated[str, Field(pattern=r"^faiss-\d{5,}\.index$")]
    first: Natural
    passages: Natural
    bytes: Natural


class _Log(Stored):
    key: str
    dimension: Natural
    trained_on: Natural
    parts: list[_Part]


def build(
    vectors: Vectors,
    folder: Path,
    factory: str,
    *,
    train_sample: int = 0,
    part_passages: int = PART,
    seed: int = 0,
    key: str,
) -> dict[str, object]:
    """Build an index in a folder, and reuse the parts that an earlier attempt at the same index left there.

    A part that is built again is the same, except the links of an HNSW, which depend on the order of its threads. Memory: a
    single part (twice its size while it grows), or the training sample (`train_bytes`).

    Args:
        vectors: the vectors to index.
        folder: gets the index; files of another build are removed.
        factory: a string of faiss.index_factory, such as "Flat", "SQ8", "OPQ48,IVF4096,PQ48", "HNSW32".
        train_sample: vectors to train on, drawn evenly from all shards; 0 for 64 per centroid.
        part_passages: maximal number of vectors in a part; only a shard with more vectors makes a larger part.
        seed: of the draw.
        key: hash of the vectors and of all settings. Parts made with another key are made again.

    Returns:
        `factory`, `trained_on` (number of vectors), `parts` (number of parts) and `bytes` (of all parts).

    Raises:
        IfqaError: FAISS is missing, does not know the factory, or has too few vectors to train it.
    """
    faiss = load_faiss()
    index = create_index(faiss, factory, vectors.dimension)
    sample = sample_size(faiss, index, factory, len(vectors), train_sample)
    log: _Log | None = None
    with suppress(IfqaError):  # missing or damaged: nothing can be reused
        log = _read_log(folder)
    if log is None or log.key != key or not (folder / TRAINED).exists():
        for path in (*folder.glob("faiss-*.index"), folder / TRAINED, folder / LOG):
            path.unlink(missing_ok=True)
        if sample:
            say(f"index {factory}: training on {sample:,} of {len(vectors):,} vectors")
            with in_one_line(factory):
                index.train(draw(vectors, sample, seed))
        log = _Log(key=key, dimension=vectors.dimension, trained_on=sample, parts=[])
        _write(faiss, index, folder / TRAINED)
        write_json(folder / LOG, log.model_dump())
    parts = {part.file: part for part in log.parts}
    plan = {folder / f"faiss-{number:05d}.index": part for number, part in enumerate(parts_of(vectors, part_passages))}
    with bar(f"index {factory}", len(vectors)) as advance:
        for path, (first, last) in plan.items():
            size = path.stat().st_size if path.exists() else 0
            part = _Part(file=path.name, first=first, passages=last - first, bytes=size)
            if size and parts.get(path.name) == part:
                advance(part.passages)
                continue
            index = _read(faiss, folder / TRAINED)
            with in_one_line(factory):
                for _, block in blocks(vectors.shards(first, last), BLOCK):
                    index.add(block.astype("float32"))
                    advance(len(block))
            parts[path.name] = part.model_copy(update={"bytes": _write(faiss, index, path)})
            write_json(folder / LOG, log.model_copy(update={"parts": list(parts.values())}).model_dump())
    for path in {*folder.glob("faiss-*.index")} - set(plan):
        path.unlink()
    log.parts = [parts[path.name] for path in plan]
    write_json(folder / LOG, log.model_dump())
    facts = {"factory": factory, "trained_on": log.trained_on, "parts": len(plan)}
    return facts | {"bytes": sum(part.bytes for part in log.parts)}


def _read_log(folder: Path) -> _Log:
    path = require(folder / LOG, "FAISS index")
    return check_stored(_Log, read_json(path), str(path), "build the index again")


class FaissIndex:
    """Finds near vectors with an index. If its parts do not all fit into memory, each search reads them in turn."""

    def __init__(
        self,
        folder: Path,
        shape: tuple[int, int],
        *,
        nprobe: int = 0,
        ef_search: int = 0,
        device: str = "cpu",
        memory_gb: float = 0,
    ) -> None:
        """Open an index.

        Args:
            folder: the folder that `build` filled.
            shape: number and dimension of the vectors that the index was built from.
            nprobe: lists of an IVF that are searched; 0 for 1/64 of all lists, and at least 64.
            ef_search: candidates that the search of an HNSW keeps; 0 for 128.
            device: "cpu", or "cuda" for all GPUs.
            memory_gb: memory that all parts may take together, in 10^9 bytes; 0 for 70% of the free memory.

        Raises:
            IfqaError: FAISS or the GPU is missing; the index is damaged or of other vectors; the index is of a kind that
                has no such setting.
        """
        self._faiss, self._folder, self._shape = load_faiss(), folder, shape
        self._nprobe, self._ef_search, self._device = nprobe, ef_search, device
        if check_device(device) == "cuda" and not self._faiss.get_num_gpus():
            raise IfqaError(
                'device = "cuda" was asked for, and faiss finds no GPU: none is here, or faiss-cpu is installed; set device = '
                "\"cpu\", or, on Linux: pip uninstall faiss-cpu, then pip install 'ifqa[gpu]'"
            )
        log = _read_log(folder)
        self._parts = log.parts
        found = (sum(part.passages for part in self._parts), log.dimension)
        _check(folder / LOG, found, shape)
        self._tune(_read(self._faiss, folder / TRAINED))
        fits = sum(part.bytes for part in self._parts) <= (memory_gb * 1e9 or room_for_vectors(device))
        self._kept = [self._open(part) for part in self._parts] if fits else []

    def search(self, queries: NDArray[np.float32], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Scores and rows, both [questions, min(k, vectors)], best first; where fewer are found, row -1 and score -inf.

        Scores are of the vectors as the index compresses them. Where several vectors score the same, the index decides
        which of them it finds. Found rows of equal score are in ascending order. Ask all questions in a single call, for
        parts that do not fit into memory are read at each call. Arguments and errors are those of `FlatIndex.search`.
        """
        queries = check_queries(queries, self._shape[1], k)
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

    def _open(self, part: _Part) -> Any:
        path = self._folder / part.file
        index = _read(self._faiss, path)
        _check(path, (index.ntotal, index.d), (part.passages, self._shape[1]))
        self._tune(index)
        if self._device == "cpu":
            return index
        try:
            return self._faiss.index_cpu_to_all_gpus(index)
        except RuntimeError as error:
            raise IfqaError(f'{path} cannot go to a GPU ({reason(error)}); set device = "cpu"') from error

    def _tune(self, index: Any) -> None:
        every = list(pieces(self._faiss, index))
        lists = [piece for piece in every if hasattr(piece, "nprobe")]
        graphs = [piece.hnsw for piece in every if hasattr(piece, "hnsw")]
        for name, value, has in (("nprobe", self._nprobe, lists), ("ef_search", self._ef_search, graphs)):
            if value < 0 or (value and not has):
                wanted = "0 (the default) or more" if has else "0, for the index has no such setting"
                raise IfqaError(f"{name} = {value} for {self._folder}; wanted {wanted}")
        for piece in lists:
            piece.nprobe = min(piece.nlist, self._nprobe or max(_NPROBE, piece.nlist // _NPROBE))
        for graph in graphs:
            graph.efSearch = self._ef_search or _EF_SEARCH


def _write(faiss: Any, index: Any, path: Path) -> int:
    with create(path) as handle:
        faiss.write_index(index, faiss.PyCallbackIOWriter(lambda data: write(handle, data)))
    return path.stat().st_size


def _read(faiss: Any, path: Path) -> Any:
    try:
        return faiss.read_index(str(require(path, "FAISS index")))
    except (RuntimeError, MemoryError) as error:
        raise IfqaError(f"{path} is damaged or too large ({reason(error)}); build the index again") from error


def _check(path: Path, found: tuple[int, int], wanted: tuple[int, int]) -> None:
    if found != wanted:
        raise IfqaError(
            f"{path}: {found[0]:,} vectors of {found[1]} numbers, wanted {wanted[0]:,} of {wanted[1]}; build the index again"
        )


def index_bytes(factory: str, passages: int, dimension: int, part_passages: int = PART) -> int | None:
    """Estimated bytes of an index, on disk and in memory; None where its kind is unknown. Raises the errors of `build`."""
    faiss = load_faiss()
    sizes = _sizes(faiss, create_index(faiss, factory, dimension))
    return None if sizes is None else int(sizes[0] * passages + sizes[1] * -(-passages // part_passages))


def train_bytes(factory: str, passages: int, dimension: int, train_sample: int = 0) -> int:
    """Estimated bytes of memory of an index's training vectors. Raises the errors of `build`."""
    faiss = load_faiss()
    index = create_index(faiss, factory, dimension)
    copies = 2 if hasattr(index, "chain") else 1  # the vectors, and the transformed vectors
    return 4 * copies * dimension * sample_size(faiss, index, factory, passages, train_sample)


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


def create_index(faiss: Any, factory: str, dimension: int) -> Any:
    """An empty index for inner products.

    Raises:
        IfqaError: FAISS does not know the factory.
    """
    with in_one_line(factory):
        index = faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
    for piece in pieces(faiss, index):
        graph, quantizer = getattr(piece, "hnsw", None), getattr(piece, "pq", None)
        small = getattr(piece, "nlist", 1) < 1 or (quantizer and not quantizer.nbits)
        if small or (graph and graph.cum_nneighbor_per_level.size() < 3):  # FAISS would crash, later
            raise IfqaError(f'factory = "{factory}": a number in it is too small; wanted HNSW2 or more, all else 1')
        if graph:
            graph.efConstruction = _EF_CONSTRUCTION
    return index


@contextmanager
def in_one_line(factory: str) -> Iterator[None]:
    """Turn FAISS's errors about a factory into one-line messages."""
    try:
        yield
    except RuntimeError as error:
        raise IfqaError(
            f'factory = "{factory}": faiss cannot build it for inner product ({reason(error)}); wanted a factory such as '
            '"Flat", "SQ8", "IVF4096,PQ48x8", "HNSW32"; or search exactly: factory = ""'
        ) from error


def reason(error: Exception) -> str:
    """FAISS's message without the place in its source."""
    return " ".join(re.sub(r"^.*\.(cpp|h|cu|cuh):\d+: ", "", str(error), flags=re.DOTALL).split())


def pieces(faiss: Any, index: Any) -> Iterator[Any]:
    """An index, its transforms and inner indexes, but not coarse quantizers. Use them only while the index is alive."""
    yield index
    if chain := getattr(index, "chain", None):
        yield from (faiss.downcast_VectorTransform(chain.at(at)) for at in range(chain.size()))
    for name in ("index", "base_index", "refine_index", "storage"):
        if inner := getattr(index, name, None):
            yield from pieces(faiss, faiss.downcast_index(inner))


def sample_size(faiss: Any, index: Any, factory: str, passages: int, train_sample: int) -> int:
    """How many vectors to train on: `train_sample`, or enough for each centroid; 0 for an index that needs no training."""
    if index.is_trained:
        return 0
    centroids, dimensions = 0, 0
    for piece in pieces(faiss, index):
        product = _OPQ if isinstance(piece, faiss.OPQMatrix) else getattr(getattr(piece, "pq", None), "ksub", 0)
        centroids = max(centroids, getattr(piece, "nlist", 0), product)
        dimensions = max(dimensions, 0 if piece.is_trained else getattr(piece, "d_in", 0))
    least = max(_LEAST * centroids, dimensions, 1)
    size = min(passages, train_sample or max(_PER_CENTROID * max(centroids, dimensions), _SAMPLE))
    if size < least:
        smaller = 'take a factory with fewer centroids, or search exactly: factory = ""'
        raise IfqaError(
            f'factory = "{factory}" is trained on {least:,} vectors or more ({_LEAST} for each centroid), '
            f"found {size:,} of {passages:,}; {smaller if passages < least else f'set train_sample to 0 or {least:,}'}"
        )
    return size


def _sizes(faiss: Any, index: Any) -> tuple[float, float] | None:
    """(bytes for each vector of an index, bytes that it learns in training); None for an unknown kind of index."""
    each, once = 0.0, 0.0
    for piece in pieces(faiss, index):
        if (graph := getattr(piece, "hnsw", None)) is not None:
            links = graph.nb_neighbors(0) / 2  # per level; the lowest level has twice as many
            # one vector in `links` is on the next level; 8 bytes of offset, 4 of level
            each += 4 * (2 * links + links / (links - 1)) + 8 + 4
        elif hasattr(piece, "code_size"):
            each += piece.code_size
        elif hasattr(piece, "d_in"):
            once += 4 * piece.d_in * piece.d_out
        elif not hasattr(piece, "index") and not hasattr(piece, "base_index"):
            return None
        if lists := getattr(piece, "nlist", 0):
            each, once = each + 8, once + lists * (4 * piece.d + 8)
        if quantizer := getattr(piece, "pq", None):
            once += 4 * quantizer.ksub * quantizer.d
    return each, once
