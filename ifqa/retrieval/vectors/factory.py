"""FAISS's index factory: the index of a factory string, its training sample, and its size."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ifqa.errors import IfqaError

PART = (
    500_000  # vectors in a part of an index: "Flat" at 768 dimensions is 1.5 GB, which any machine with an encoder has
)
_LEAST, _PER_CENTROID = 39, 64  # vectors to train a centroid on: FAISS warns below 39 and ignores those above 256
_SAMPLE = 10_000  # vectors at least, to train an index without centroids (the ranges of "SQ8")
_OPQ = 256  # centroids: OPQ trains a product quantizer of its own, with 8 bits
_EF_CONSTRUCTION = 200  # of HNSW, as DPR sets it (dpr/indexer/faiss_indexers.py)


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
