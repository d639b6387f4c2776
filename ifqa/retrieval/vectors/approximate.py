"""Approximate search with FAISS indexes by inner product, split into parts so that an index may exceed the memory.

`trained.index` is the trained index without vectors. Each part, `faiss-00000.index` and so on, is a copy of it with the
vectors of consecutive shards added. `faiss.json` lists the parts and the hash of what they were made from.
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.progress import bar, say
from ifqa.retrieval.vectors.exact import BLOCK, blocks, check_device, check_queries, room_for_vectors
from ifqa.retrieval.vectors.factory import (
    PART,
    create_index,
    in_one_line,
    load_faiss,
    pieces,
    reason,
    sample_size,
)
from ifqa.retrieval.vectors.store import Vectors, draw, parts_of
from ifqa.settings import Natural, Stored, check_stored
from ifqa.storage.files import create, read_json, require, write, write_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOG, TRAINED = "faiss.json", "trained.index"
_EF_SEARCH = 128  # of HNSW, as DPR sets it (dpr/indexer/faiss_indexers.py)
_NPROBE = 64  # at least 64 lists, and at least 1/64 of all lists: 64 for IVF4096, 1,024 for IVF65536


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
    single part (twice its size while it grows), or the training sample (`ifqa.retrieval.vectors.factory.train_bytes`).

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


class Approximate:
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

    def search(self, queries: "NDArray[np.float32]", k: int) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        """Scores and rows, both [questions, min(k, vectors)], best first; where fewer are found, row -1 and score -inf.

        Scores are of the vectors as the index compresses them. Where several vectors score the same, the index decides
        which of them it finds. Found rows of equal score are in ascending order. Ask all questions in a single call, for
        parts that do not fit into memory are read at each call. Arguments and errors are those of `Exact.search`.
        """
        import numpy as np

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
