"""Passage vectors on disk, in shards, which searchers map into memory.

`vectors-00000.npy` is a float16 array [passages, dimension]; learned sparse weights have arrays of
their own (`ifqa.retrieval.sparse`). `ids-00000.npy` has the passage ids as bytes, in the same
order. `vectors.jsonl` has a line for each finished shard: a hash of its passages and of the
encoder, and the SHA-256 of its files. An interrupted build reuses finished shards.
"""

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, dropwhile, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from ifqa.corpus.passage_store import count_passages, parse_passage
from ifqa.errors import DamagedArtifact, FormatError, IfqaError
from ifqa.progress import bar
from ifqa.records import BuildCost, Hit, Passage, SearchResult
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.append_log import truncate_log
from ifqa.storage.files import (
    atomic_write,
    json_line,
    read_jsonl,
    require_file,
    sha256,
    write_bytes,
    write_jsonl,
)
from ifqa.workers.pool import Engine, map_tasks

logger = logging.getLogger(__name__)

VERSION = 1  # raise this when the same passages get different vectors
SHARDS_FILE = "vectors.jsonl"
SHARD_PASSAGES = 4096  # the most work that a kill loses; 6 MB at 768 dimensions
ID_BYTES = 16  # bytes of a passage id on disk
_MEND = "build the index again: ifqa index CORPUS"
DENSE = ("vectors",)  # the arrays of a shard beside its ids
_SAMPLE_PASSAGES = 96  # passages encoded to measure the speed
_LINE_BYTES = 2000  # bytes of a passage in memory: line, text and tokens
_SENTENCE = (
    "the old bridge across the river was built in 1874 by an engineer who had come north from "
    "Leeds to find work"
)

Arrays = Mapping[str, NDArray[Any]]  # kind -> array
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
    """The shards of a finished folder. Rows are numbered across all shards, in order."""

    def __init__(self, folder: Path) -> None:
        """Read the list of shards; their files are opened on demand.

        Raises IfqaError if the list is missing or damaged.
        """
        self.folder = folder
        path = require_file(folder / SHARDS_FILE, "list of vector shards")
        lines = [
            parse_stored(_ShardRecord, line, f"{path}:{number}", _MEND)
            for number, line in read_jsonl(path)
        ]
        if not lines:
            raise DamagedArtifact(f"{folder} holds no vectors; {_MEND}")
        self.numbers = [line.shard for line in lines]
        self.starts: NDArray[np.int64] = np.cumsum([0, *(line.passages for line in lines)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def bounds(self) -> list[tuple[int, int]]:
        """(first row, end row) of each shard."""
        return list(pairwise(self.starts.tolist()))

    def array(self, kind: str, position: int) -> NDArray[Any]:
        """An array of the shard at a position in the list, memory-mapped.

        Raises IfqaError if it is missing or damaged.
        """
        path = require_file(array_path(self.folder, kind, self.numbers[position]), "vectors")
        try:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise DamagedArtifact(f"{path} is damaged ({error}); {_MEND}") from error
        return array

    def ids(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """The ids of rows; each call opens their shards, so look up many rows at once."""
        rows, ids = np.asarray(rows, np.int64), np.empty(len(rows), object)
        positions = np.searchsorted(self.starts, rows, "right") - 1
        for position in np.unique(positions).tolist():
            mask = positions == position
            ids[mask] = self.array("ids", position)[rows[mask] - self.starts[position]].tolist()
        return [passage_id.decode("utf-8", "surrogatepass") for passage_id in ids]

    def to_rankings(
        self, scores: NDArray[np.float32], rows: NDArray[np.int64]
    ) -> list[SearchResult]:
        """The rankings of scores and rows, both [questions, k], best first.

        Row -1 means no passage.
        """
        valid = rows >= 0
        hits = map(Hit, self.ids(rows[valid]), scores[valid].tolist())
        return [SearchResult(list(islice(hits, int(count)))) for count in valid.sum(1)]

    def dimension(self) -> int:
        """The dimension of the vectors.

        Raises IfqaError if a file is missing, damaged or of another shape.
        """
        dimension = self.array("vectors", 0).shape[-1]
        for position, (first, last) in enumerate(self.bounds()):
            vectors = self.array("vectors", position)
            shape = (last - first, dimension)
            if vectors.shape != shape or vectors.dtype != np.float16:
                path = array_path(self.folder, "vectors", self.numbers[position])
                actual = f"found {vectors.dtype} {vectors.shape}"
                raise DamagedArtifact(f"{path}: wanted float16 {shape}, {actual}; {_MEND}")
        return int(dimension)

    def vectors(
        self, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, NDArray[np.float16]]]:
        """(first row, float16 vectors [passages, dimension]) of the shards between two rows,
        memory-mapped.
        """
        for position, (first, last) in enumerate(self.bounds()):
            if first >= start and (stop is None or last <= stop):
                yield first, self.array("vectors", position)


class ShardWriter:
    """Writes a folder's shards, each with an array of every kind and one of ids.

    Reuses those of an interrupted build.
    """

    def __init__(self, folder: Path, kinds: Sequence[str] = DENSE) -> None:
        self.folder = folder
        self._kinds = (*kinds, "ids")
        truncate_log(folder / SHARDS_FILE)
        self._records: dict[int, _ShardRecord] = {}
        for _, line in read_jsonl(folder / SHARDS_FILE) if (folder / SHARDS_FILE).exists() else ():
            with suppress(IfqaError):  # ignore malformed lines; their shards are encoded again
                record = parse_stored(_ShardRecord, line, SHARDS_FILE)
                self._records[record.shard] = record

    def count_finished(self, number: int, key: str) -> int | None:
        """The number of passages of a shard; None if it is incomplete or has another `key`."""
        record = self._records.get(number)
        paths = self._paths(number)
        if record is None or record.key != key or not all(path.exists() for path in paths):
            return None
        return record.passages if [sha256(path) for path in paths] == record.sha256 else None

    def add(self, number: int, key: str, ids: Sequence[str], arrays: Arrays) -> None:
        """Write a shard's arrays, then its line in the list."""
        encoded = np.array([text.encode("utf-8", "surrogatepass") for text in ids], dtype=np.bytes_)
        if self._records.pop(number, None):  # else a kill could leave new arrays under the old key
            self._write_list()
        for kind, array in {**arrays, "ids": encoded}.items():
            with atomic_write(array_path(self.folder, kind, number)) as handle:
                np.save(handle, array, allow_pickle=False)
        hashes = [sha256(path) for path in self._paths(number)]
        self._records[number] = _ShardRecord(
            shard=number, key=key, passages=len(ids), sha256=hashes
        )
        with open(self.folder / SHARDS_FILE, "ab") as handle:
            write_bytes(handle, json_line(self._records[number].model_dump()))
            handle.flush()
            os.fsync(handle.fileno())

    def finish(self, keys: dict[int, str]) -> int:
        """Sort the list, remove the files of shards outside `keys`, and return the number of
        passages.
        """
        self._records = {number: self._records[number] for number in sorted(keys)}
        kept = {path for number in keys for path in self._paths(number)}
        for kind in self._kinds:
            for path in set(self.folder.glob(f"{kind}-*.npy")) - kept:
                path.unlink()
        self._write_list()
        return sum(record.passages for record in self._records.values())

    def _write_list(self) -> None:
        write_jsonl(
            self.folder / SHARDS_FILE, [record.model_dump() for record in self._records.values()]
        )

    def _paths(self, number: int) -> list[Path]:
        return [array_path(self.folder, kind, number) for kind in self._kinds]


def to_float16(
    numbers: NDArray[np.float32], ids: Sequence[str] | NDArray[np.str_]
) -> NDArray[np.float16]:
    """Numbers in half precision.

    Raises FormatError, with the passage's id, for NaN, infinity and overflow.
    """
    with np.errstate(over="ignore"):
        halves = numbers.astype(np.float16)
    if bad_rows := np.flatnonzero(
        ~np.isfinite(halves).reshape(len(halves), -1).all(axis=1)
    ).tolist():
        fault = (
            f"the vector of passage {ids[bad_rows[0]]} holds NaN or infinity (one of "
            f"{len(bad_rows):,})"
        )
        cause = "the model is damaged, or its numbers are too large for half precision"
        raise FormatError(f'{fault}: {cause}; try precision = "float32"')
    return halves


@dataclass(frozen=True)
class EncodingTask:
    """Lines of passages to encode into a shard, and the function that encodes them.

    `where` is the first line's "file:line".
    """

    number: int
    lines: bytes
    where: str
    encode: Encode

    def __str__(self) -> str:
        return self.where


def encode_task(task: EncodingTask) -> tuple[list[str], Arrays]:
    """The ids and arrays of a task's passages."""
    path, _, first = task.where.rpartition(":")
    lines = enumerate(task.lines.splitlines(), start=int(first))
    passages = [parse_passage(line, f"{path}:{number}") for number, line in lines if line.strip()]
    return [passage.id for passage in passages], task.encode(passages)


def encode_corpus(
    passages: Path,
    folder: Path,
    fingerprint: str,
    encode: Encode,
    *,
    kinds: Sequence[str] = DENSE,
    engine: Engine = "local",
    workers: int = 1,
    gpus: int = 0,
) -> int:
    """Encode `passages-*.jsonl` into a folder of shards, and return the number of passages.

    Raises IfqaError if there are no passages, or a vector holds NaN or infinity.

    Args:
        passages, folder: the folders of the passages and of the shards.
        fingerprint: the model's and the settings'; shards with a different fingerprint are encoded
            again.
        encode: returns the arrays of passages; it must be picklable for several workers.
        kinds: of the arrays.
        engine, workers, gpus: see `ifqa.workers.pool.map_tasks`.
    """
    shards, count = count_passages(passages)
    writer = ShardWriter(folder, kinds)
    keys = dict[int, str]()
    reused = 0
    with bar("vectors", count) as advance:

        def unfinished_tasks() -> Iterator[EncodingTask]:
            nonlocal reused
            for task in _iter_tasks(shards, encode):
                keys[task.number] = hashlib.sha256(fingerprint.encode() + task.lines).hexdigest()
                finished = writer.count_finished(task.number, keys[task.number])
                if finished is None:
                    yield task
                else:
                    reused += finished
                    advance(finished)

        tasks = unfinished_tasks()
        for task, (ids, arrays) in map_tasks(
            encode_task, tasks, workers=workers, engine=engine, gpus=gpus
        ):
            writer.add(task.number, keys[task.number], ids, arrays)
            advance(len(ids))
    if reused:
        logger.info(f"{reused:,} passages reused from an earlier build")
    return writer.finish(keys)


def _iter_tasks(shards: dict[int, Path], encode: Encode) -> Iterator[EncodingTask]:
    """Tasks of up to `SHARD_PASSAGES` passages; a task never spans two shards of passages."""
    numbers = count()
    for path in shards.values():
        with open(path, "rb") as handle:
            lines = enumerate(handle, start=1)
            while batch := list(
                islice(dropwhile(lambda line: not line[1].strip(), lines), SHARD_PASSAGES)
            ):
                text = b"".join(line for _, line in batch)
                yield EncodingTask(next(numbers), text, f"{path}:{batch[0][0]}", encode)


def estimate_encoding(passages: int, encode: Encode, device: str, *, gpus: int = 1) -> BuildCost:
    """The cost of encoding passages on `gpus` GPUs in parallel, estimated by encoding a sample on a
    device.
    """
    sample = sample_passages(device)
    encode(sample[:8])  # warm-up
    started = time.perf_counter()
    arrays = encode(sample)
    per_second = len(sample) / (time.perf_counter() - started) * gpus
    per_passage = sum(array.nbytes for array in arrays.values()) / len(sample)
    disk = passages * (per_passage + ID_BYTES)
    memory = psutil.Process().memory_info().rss + 3 * SHARD_PASSAGES * (per_passage + _LINE_BYTES)
    about = f" at {per_second:,.0f} passages a second, measured now"
    return BuildCost(passages / per_second, disk, memory, about)


def sample_passages(device: str) -> list[Passage]:
    """Passages of 100 words on average, enough to measure the speed of a device."""
    texts = [" ".join((_SENTENCE.split() * 8)[: 52 + number]) for number in range(_SAMPLE_PASSAGES)]
    return [Passage("", "A title", text) for text in texts] * (1 if device == "cpu" else 64)
