"""Approximate search: FAISS indexes by inner product, in parts, so that one larger than the memory can be searched too.

`trained.index` is the index before any vector is in it; `faiss-00000.index` and so on have the vectors of consecutive
shards each, added to a copy of it; `faiss.json` says what is there and from what it was made.
"""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

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
from ifqa.storage.files import create, field, read_json, require, write, write_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOG, TRAINED = "faiss.json", "trained.index"
_EF_SEARCH = 128  # of HNSW, as DPR sets it (dpr/indexer/faiss_indexers.py)
_NPROBE = 64  # lists at least, and one in 64: of IVF4096 as many, of IVF65536 1,024


class _Part(TypedDict):
    file: str
    first: int
    passages: int
    bytes: int


class _Log(TypedDict):
    key: str
    dimension: int
    trained_on: int
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
    """Build an index in a folder, going on from what an earlier attempt at the same left there.

    Parts that are there stay. Built anew they would be the same, but for the links of an HNSW, which depend on what its
    threads happen to do first. Memory: one part (twice while it grows), or the sample to train on
    (`ifqa.retrieval.vectors.factory.train_bytes`).

    Args:
        vectors: what is indexed.
        folder: where; files of another build in it are removed.
        factory: as faiss.index_factory reads it, such as "Flat", "SQ8", "OPQ48,IVF4096,PQ48", "HNSW32".
        train_sample, seed: vectors to train on, drawn evenly from all shards (0: 64 for each centroid); of the draw.
        part_passages: vectors in a part at the most; only a shard that has more makes a larger one.
        key: hash of the vectors and of all settings: parts made from another are made again.

    Returns:
        `factory`, `trained_on` (vectors), `parts` (how many) and `bytes` (of the parts).

    Raises:
        IfqaError: FAISS is missing, does not know the factory, or has too few vectors to train it.
    """
    faiss = load_faiss()
    index = create_index(faiss, factory, vectors.dimension)
    sample = sample_size(faiss, index, factory, len(vectors), train_sample)
    log: _Log | None = None
    with suppress(IfqaError):  # none, or damaged: there is nothing to go on from
        log = read_json(folder / LOG)
    if log is None or log.get("key") != key or not (folder / TRAINED).exists():
        for path in (*folder.glob("faiss-*.index"), folder / TRAINED, folder / LOG):
            path.unlink(missing_ok=True)
        if sample:
            say(f"index {factory}: training on {sample:,} of {len(vectors):,} vectors")
            with in_one_line(factory):
                index.train(draw(vectors, sample, seed))
        log = {"key": key, "dimension": vectors.dimension, "trained_on": sample, "parts": []}
        _write(faiss, index, folder / TRAINED)
        write_json(folder / LOG, log)
    parts = {part["file"]: part for part in log["parts"]}
    plan = {folder / f"faiss-{number:05d}.index": part for number, part in enumerate(parts_of(vectors, part_passages))}
    with bar(f"index {factory}", len(vectors)) as advance:
        for path, (first, last) in plan.items():
            part: _Part = {"file": path.name, "first": first, "passages": last - first, "bytes": 0}
            if path.exists() and parts.get(path.name) == {**part, "bytes": path.stat().st_size}:
                advance(part["passages"])
                continue
            index = _read(faiss, folder / TRAINED)
            with in_one_line(factory):
                for _, block in blocks(vectors.shards(first, last), BLOCK):
                    index.add(block.astype("float32"))
                    advance(len(block))
            parts[path.name] = {**part, "bytes": _write(faiss, index, path)}
            write_json(folder / LOG, {**log, "parts": list(parts.values())})
    for path in {*folder.glob("faiss-*.index")} - set(plan):
        path.unlink()
    log["parts"] = [parts[path.name] for path in plan]
    write_json(folder / LOG, log)
    facts = {"factory": factory, "trained_on": log["trained_on"], "parts": len(plan)}
    return facts | {"bytes": sum(part["bytes"] for part in log["parts"])}


class Approximate:
    """Finds near vectors with an index; if not all of its parts fit into memory, each search reads one after the other."""

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
            folder: where `build` has put it.
            shape: how many vectors it was built from, and of how many numbers.
            nprobe: lists of an IVF that are searched; 0 for one in 64, but no fewer than 64.
            ef_search: candidates of an HNSW; 0 for 128.
            device: "cpu" or "cuda", all GPUs.
            memory_gb: what the parts may take together, 10^9 bytes; 0 for 70% of what is free now.

        Raises:
            IfqaError: FAISS or the GPU is missing, the index is damaged, of other vectors, or has no such setting.
        """
        self._faiss, self._folder, self._shape = load_faiss(), folder, shape
        self._nprobe, self._ef_search, self._device = nprobe, ef_search, device
        if check_device(device) == "cuda" and not self._faiss.get_num_gpus():
            raise IfqaError(
                'device = "cuda" was asked for, and faiss finds no GPU: none is here, or faiss-cpu is installed; set it to '
                "\"cpu\", or, on Linux: pip uninstall faiss-cpu, then pip install 'ifqa[gpu]'"
            )
        log = read_json(require(folder / LOG, "FAISS index"))
        self._parts: list[_Part] = field(log, "parts", list, str(folder / LOG))
        found = (sum(part["passages"] for part in self._parts), log["dimension"])
        _check(folder / LOG, found, shape)
        self._tune(_read(self._faiss, folder / TRAINED))
        fits = sum(part["bytes"] for part in self._parts) <= (memory_gb * 1e9 or room_for_vectors(device))
        self._kept = [self._open(part) for part in self._parts] if fits else []

    def search(self, queries: "NDArray[np.float32]", k: int) -> "tuple[NDArray[np.float32], NDArray[np.int64]]":
        """Scores and rows, [questions, min(k, vectors)] both, best first; where fewer are found, row -1 and score -inf.

        Scores are the index's own, of vectors as it has compressed them. Which of several that score the same it finds
        is its own affair; of those found, the lower row comes first. Ask all questions at once: parts that do not fit
        into memory are read for each call. Arguments and errors are those of `Exact.search`.
        """
        import numpy as np

        queries = check_queries(queries, self._shape[1], k)
        scores, rows = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
        for number, part in enumerate(self._parts):
            index = self._kept[number] if self._kept else self._open(part)
            new, at = index.search(queries, min(k, part["passages"]))
            del index  # before the next is read
            scores = np.concatenate([scores, np.where(at < 0, np.float32(-np.inf), new)], 1)
            rows = np.concatenate([rows, np.where(at < 0, -1, at + part["first"])], 1)
            order = np.lexsort((rows, -scores), axis=-1)[:, :k]
            scores, rows = np.take_along_axis(scores, order, 1), np.take_along_axis(rows, order, 1)
        return scores, rows

    def _open(self, part: _Part) -> Any:
        path = self._folder / part["file"]
        index = _read(self._faiss, path)
        _check(path, (index.ntotal, index.d), (part["passages"], self._shape[1]))
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
                wanted = "0 (the default) or more" if has else "0, as the index has no such setting"
                raise IfqaError(f"{name} = {value} for {self._folder}; wanted {wanted}")
        for one in lists:
            one.nprobe = min(one.nlist, self._nprobe or max(_NPROBE, one.nlist // _NPROBE))
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
