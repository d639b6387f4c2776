"""Arrays of passages on disk: a model makes them in shards, and a searcher maps these into memory.

`vectors-00000.npy` is a float16 array [passages, dimension]; an index of another kind has arrays of other names.
`ids-00000.npy` has the passages' ids as bytes, in the same order. `vectors.jsonl` has a line for each finished shard, with the
hash of the passages and of all that decides the arrays, and the files' SHA-256: what an interrupted build finished is reused.
"""

import hashlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifqa.corpus.passage_store import count_passages, parse_passage
from ifqa.errors import IfqaError
from ifqa.progress import bar
from ifqa.records import BuildCost, Hit, Passage, SearchResult
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.append_log import truncate_log
from ifqa.storage.files import atomic_write, json_line, read_jsonl, require_file, sha256, write_bytes, write_jsonl
from ifqa.workers.pool import Engine, map_tasks

logger = logging.getLogger(__name__)

VERSION = 1  # raised when the same piece is encoded to other vectors
SHARDS_FILE = "vectors.jsonl"
SHARD_PASSAGES = 4096  # passages in a shard of vectors: the work that a kill can lose, and 6 MB at 768 dimensions
ID_BYTES = 16  # of a passage's id on disk
_MEND = "build the index again: ifqa index CORPUS"
_SAMPLE_PASSAGES = 96  # passages encoded to measure the speed
_LINE_BYTES = 2000  # of a passage in memory, as line, text and tokens
_SAMPLE_WORDS = (  # of an ordinary sentence
    "the old bridge across the river was built in 1874 by an engineer who had come north from Leeds to find work"
).split()

Arrays = tuple[NDArray[Any], ...]
Encode = Callable[[Sequence[Passage]], Arrays]


class _ShardRecord(StoredModel):
    """A line of `vectors.jsonl`."""

    shard: int
    key: str
    passages: int
    sha256: list[str]


def array_path(folder: Path, kind: str, number: int) -> Path:
    """The file of an array of shard `number`."""
    return folder / f"{kind}-{number:05d}.npy"


class Shards:
    """The shards of a finished folder. Row numbers run through all shards, in their order."""

    def __init__(self, folder: Path) -> None:
        """Read the list of shards. Files are opened on demand, since there may be thousands.

        Raises:
            IfqaError: the list is missing or empty, or has another line.
        """
        self.folder, path = folder, require_file(folder / SHARDS_FILE, "list of vector shards")
        lines = [parse_stored(_ShardRecord, line, f"{path}:{number}", _MEND) for number, line in read_jsonl(path)]
        if not lines:
            raise IfqaError(f"{folder} holds no vectors; {_MEND}")
        self.numbers = [line.shard for line in lines]
        self.starts: NDArray[np.int64] = np.cumsum([0, *(line.passages for line in lines)])
        self._rows: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return int(self.starts[-1])

    def bounds(self) -> list[tuple[int, int]]:
        """(first row, row after the last) of each shard."""
        return list(pairwise(self.starts.tolist()))

    def array(self, kind: str, place: int) -> NDArray[Any]:
        """An array of the shard at a place in the list, mapped and not read.

        Raises:
            IfqaError: the file is missing or damaged.
        """
        path = require_file(array_path(self.folder, kind, self.numbers[place]), "vectors")
        try:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise IfqaError(f"{path} is damaged ({error}); {_MEND}") from error
        return array

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of each row's shard."""
        return np.searchsorted(self.starts, rows, "right") - 1

    def ids(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """The ids of rows; each shard is opened once, so ask for many rows at once."""
        rows, ids = np.asarray(rows, np.int64), np.empty(len(rows), object)
        places = self.places(rows)
        for place in np.unique(places).tolist():
            there = places == place
            ids[there] = self.array("ids", place)[rows[there] - self.starts[place]].tolist()
        return [passage_id.decode("utf-8", "surrogatepass") for passage_id in ids]

    def results(self, scores: NDArray[np.float32], rows: NDArray[np.int64]) -> list[SearchResult]:
        """Rankings of scores and rows, both [questions, k], best first; row -1 stands for no passage."""
        there = rows >= 0
        hits = map(Hit, self.ids(rows[there]), scores[there].tolist())
        return [SearchResult(list(islice(hits, int(count)))) for count in there.sum(1)]

    def rows(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The rows of ids; all ids of the folder are read at the first call.

        Raises:
            IfqaError: the folder has no passage of an id.
        """
        if self._rows is None:
            every = (
                passage_id for place in range(len(self.numbers)) for passage_id in self.array("ids", place).tolist()
            )
            self._rows = {passage_id: row for row, passage_id in enumerate(every)}
        rows = [self._rows.get(passage_id.encode("utf-8", "surrogatepass"), -1) for passage_id in ids]
        if -1 in rows:
            raise IfqaError(f"{self.folder} has no passage {ids[rows.index(-1)]}; {_MEND}")
        return np.array(rows, np.int64)

    def dimension(self) -> int:
        """The dimension of the vectors, after a look at the shape of every file.

        Raises:
            IfqaError: a file is missing, damaged, or of another dimension than the others.
        """
        dimension = self.array("vectors", 0).shape[-1]
        for place, (first, last) in enumerate(self.bounds()):
            vectors = self.array("vectors", place)
            if vectors.shape != (last - first, dimension) or vectors.dtype != np.float16:
                raise IfqaError(
                    f"{array_path(self.folder, 'vectors', self.numbers[place])}: wanted float16 {(last - first, dimension)}, "
                    f"found {vectors.dtype} {vectors.shape}; {_MEND}"
                )
        return int(dimension)

    def vectors(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, NDArray[np.float16]]]:
        """(first row, vectors [passages, dimension] in float16) of the shards between two rows, mapped and not read."""
        for place, (first, last) in enumerate(self.bounds()):
            if first >= start and (stop is None or last <= stop):
                yield first, self.array("vectors", place)


class ShardWriter:
    """A folder of arrays while it is filled; whole shards of an interrupted build are reused.

    A shard is a file of ids and one for each of `kinds`, named as `array_path` says.
    """

    def __init__(self, folder: Path, kinds: Sequence[str] = ("vectors",)) -> None:
        """Read which shards are there."""
        self.folder, self._kinds = folder, (*kinds, "ids")
        truncate_log(folder / SHARDS_FILE)
        self._lines: dict[int, _ShardRecord] = {}
        for _, line in read_jsonl(folder / SHARDS_FILE) if (folder / SHARDS_FILE).exists() else ():
            with suppress(IfqaError):  # other lines are ignored, and their shards encoded again
                checked = parse_stored(_ShardRecord, line, SHARDS_FILE)
                self._lines[checked.shard] = checked

    def has(self, number: int, key: str) -> int | None:
        """The number of passages of shard `number`, if it is whole and was made with the same `key`; else None."""
        line, paths = self._lines.get(number), self._paths(number)
        if line is None or line.key != key or not all(path.exists() for path in paths):
            return None
        return line.passages if [sha256(path) for path in paths] == line.sha256 else None

    def add(self, number: int, key: str, ids: Sequence[str], *arrays: NDArray[Any]) -> None:
        """Write a shard, one array for each kind, then its line in the log."""
        encoded = np.array([text.encode("utf-8", "surrogatepass") for text in ids], dtype=np.bytes_)
        if self._lines.pop(number, None):  # else a kill leaves the new arrays under the old key
            self._write_log()
        for path, array in zip(self._paths(number), (*arrays, encoded), strict=True):
            with atomic_write(path) as handle:
                np.save(handle, array, allow_pickle=False)
        hashes = [sha256(path) for path in self._paths(number)]
        self._lines[number] = _ShardRecord(shard=number, key=key, passages=len(ids), sha256=hashes)
        with open(self.folder / SHARDS_FILE, "ab") as handle:
            write_bytes(handle, json_line(self._lines[number].model_dump()))
            handle.flush()
            os.fsync(handle.fileno())

    def finish(self, keys: dict[int, str]) -> int:
        """Sort the log, and remove the files of other shards than those in `keys`. Returns the number of passages."""
        self._lines = {number: self._lines[number] for number in sorted(keys)}
        kept = {path for number in keys for path in self._paths(number)}
        for path in {path for kind in self._kinds for path in self.folder.glob(f"{kind}-*.npy")} - kept:
            path.unlink()
        self._write_log()
        return sum(line.passages for line in self._lines.values())

    def _write_log(self) -> None:
        write_jsonl(self.folder / SHARDS_FILE, [line.model_dump() for line in self._lines.values()])

    def _paths(self, number: int) -> list[Path]:
        return [array_path(self.folder, kind, number) for kind in self._kinds]


def to_float16(numbers: NDArray[np.float32], ids: Sequence[str] | NDArray[np.str_]) -> NDArray[np.float16]:
    """Numbers in half precision; `ids` has the passage of each row.

    Raises:
        IfqaError: a number is NaN or infinity, or too large for half precision.
    """
    with np.errstate(over="ignore"):
        halves = numbers.astype(np.float16)
    if wrong := np.flatnonzero(~np.isfinite(halves).reshape(len(halves), -1).all(axis=1)).tolist():
        raise IfqaError(
            f"the vector of passage {ids[wrong[0]]} holds NaN or infinity (one of {len(wrong):,}): "
            'the model is damaged, or its numbers are too large for half precision; try precision = "float32"'
        )
    return halves


@dataclass(frozen=True)
class EncodingTask:
    """Lines of a shard of passages, the `number` of the resulting shard of arrays, and what makes these."""

    number: int
    lines: bytes
    where: str
    encode: Encode

    def __str__(self) -> str:
        return self.where


def encode_task(piece: EncodingTask) -> tuple[list[str], Arrays]:
    """The ids and the arrays of a piece's passages."""
    path, _, first = piece.where.rpartition(":")
    lines = enumerate(piece.lines.splitlines(), start=int(first))
    passages = [parse_passage(line, f"{path}:{number}") for number, line in lines if line.strip()]
    return [passage.id for passage in passages], piece.encode(passages)


def encode_corpus(
    passages: Path,
    folder: Path,
    kinds: Sequence[str],
    made_with: str,
    encode: Encode,
    *,
    engine: Engine = "local",
    workers: int = 1,
    gpus: int = 0,
) -> int:
    """Encode a folder of passages into a folder of arrays, and return the number of passages.

    Args:
        passages: a folder with `passages-*.jsonl`.
        folder: gets a file of ids and of each kind of array for each shard, and the list of them.
        kinds: the names of the arrays that `encode` gives.
        made_with: hash of the model and the settings; shards that were made with another are made again.
        encode: makes the arrays of a shard; with several workers it is sent to them.
        engine: "local", or "ray" for a cluster.
        workers: processes; with Ray, 0 for as many as the cluster has room for.
        gpus: GPUs of this machine that the workers share.

    Raises:
        IfqaError: there are no passages, or a vector holds NaN or infinity.
    """
    shards, count = count_passages(passages)
    filling, keys, reused = ShardWriter(folder, kinds), dict[int, str](), 0
    with bar("vectors", count) as advance:

        def unfinished() -> Iterator[EncodingTask]:
            nonlocal reused
            for piece in _iter_tasks(shards, encode):
                keys[piece.number] = hashlib.sha256(made_with.encode() + piece.lines).hexdigest()
                there = filling.has(piece.number, keys[piece.number])
                if there is None:
                    yield piece
                else:
                    reused += there
                    advance(there)

        done = map_tasks(encode_task, unfinished(), workers=workers, engine=engine, gpus=gpus)
        for piece, (ids, arrays) in done:
            filling.add(piece.number, keys[piece.number], ids, *arrays)
            advance(len(ids))
    if reused:
        logger.info(f"{reused:,} passages had been encoded by an earlier build")
    return filling.finish(keys)


def _iter_tasks(shards: dict[int, Path], encode: Encode) -> Iterator[EncodingTask]:
    """The shards' passages in pieces of `SHARD_PASSAGES`; a piece never spans two shards."""
    number = 0
    for path in shards.values():
        with open(path, "rb") as handle:
            lines: list[bytes] = []
            first = 0
            for at, line in enumerate(handle, start=1):
                if not lines and not line.strip():
                    continue
                first = first or at
                lines.append(line)
                if len(lines) == SHARD_PASSAGES:
                    yield EncodingTask(number, b"".join(lines), f"{path}:{first}", encode)
                    number, lines, first = number + 1, [], 0
            if lines:
                yield EncodingTask(number, b"".join(lines), f"{path}:{first}", encode)
                number += 1


def estimate_encoding(passages: int, encode: Encode, device: str, *, gpus: int = 1, once: int = 0) -> BuildCost:
    """What the encoding of some passages will take, measured by encoding a few.

    Args:
        passages: how many.
        encode: makes the arrays of passages.
        device: that of the model.
        gpus: that work at once.
        once: of the arrays, the number of the first ones that a shard has once, whatever its passages.
    """
    sample = sample_passages(device)
    encode(sample[:8])  # warm-up
    started = time.perf_counter()
    arrays = encode(sample)
    per_second = len(sample) / (time.perf_counter() - started) * gpus
    sizes = [array.nbytes for array in arrays]
    each = sum(sizes[once:]) / len(sample)
    shards = -(-passages // SHARD_PASSAGES)
    disk = passages * (each + ID_BYTES) + shards * sum(sizes[:once])
    about = f" at {per_second:,.0f} passages a second, measured now"
    return BuildCost(passages / per_second, disk, _peak_memory() + 3 * SHARD_PASSAGES * (each + _LINE_BYTES), about)


def sample_passages(device: str) -> list[Passage]:
    """Passages of 100 words on average, as many as show the speed of a device."""
    texts = [" ".join((_SAMPLE_WORDS * 8)[: 52 + number]) for number in range(_SAMPLE_PASSAGES)]
    return [Passage("", "A title", text) for text in texts] * (1 if device == "cpu" else 64)


def _peak_memory() -> float:
    """Peak memory of this process in bytes; on Windows, which does not report it, that of the default encoder."""
    if sys.platform == "win32":
        return 1e9
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)
