"""Vectors of passages on disk: shards in half precision, mapped into memory and not read.

`vectors-00000.npy` is a float16 array [passages, dimension]. `ids-00000.npy` has the passages' ids as bytes, in the same
order. `vectors.jsonl` has a line for each finished pair, with the hash of what it was made from and the files' SHA-256.
"""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError
from ifqa.storage.chunks import keep_whole_lines
from ifqa.storage.files import create, json_line, read_jsonl, require, sha256, write, write_jsonl

LOG = "vectors.jsonl"
_KINDS = {"shard": int, "key": str, "passages": int, "sha256": list}  # types of a line's values


def array_path(folder: Path, kind: str, number: int) -> Path:
    """The file of an array of shard `number`."""
    return folder / f"{kind}-{number:05d}.npy"


def vectors_path(folder: Path, number: int) -> Path:
    """The file of the vectors of shard `number`."""
    return array_path(folder, "vectors", number)


def ids_path(folder: Path, number: int) -> Path:
    """The file of the ids of shard `number`."""
    return array_path(folder, "ids", number)


class Ids:
    """The passage ids of a finished folder. Row numbers run through all shards, in the order of the shards."""

    def __init__(self, folder: Path) -> None:
        """Read the list of shards. Files are opened on demand, since there may be thousands.

        Raises:
            IfqaError: the list is missing or empty, or has another line.
        """
        self.folder = folder
        lines = [line for _, line in read_jsonl(require(folder / LOG, "list of vector shards"))]
        if not lines:
            raise IfqaError(f"{folder} holds no vectors; build the index again")
        if wrong := next((number for number, line in enumerate(lines, start=1) if not _is_line(line)), 0):
            raise IfqaError(f"{folder / LOG}:{wrong}: not as ifqa writes it; build the index again")
        self.numbers = [line["shard"] for line in lines]
        self.keys = [line["key"] for line in lines]
        self.starts = np.cumsum([0, *(line["passages"] for line in lines)])
        self._open = lru_cache(maxsize=64)(open_array)
        self._sorted: tuple[NDArray[Any], NDArray[np.intp]] | None = None  # ids in order, and their rows

    def __len__(self) -> int:
        return int(self.starts[-1])

    def of(self, rows: Sequence[int]) -> list[str]:
        """The ids of rows.

        Raises:
            IfqaError: a file of ids is missing or damaged.
        """
        found = []
        for owner, row in zip(owners(self.starts, rows), rows, strict=True):
            ids = self._open(ids_path(self.folder, self.numbers[owner]))
            found.append(bytes(ids[row - int(self.starts[owner])]).decode("utf-8", "surrogatepass"))
        return found

    def rows(self, ids: Sequence[str]) -> list[int]:
        """The rows of ids; all ids of the folder are read at the first call.

        Raises:
            IfqaError: the folder has no passage of an id, or a file of ids is missing or damaged.
        """
        if self._sorted is None:
            every = np.concatenate([open_array(ids_path(self.folder, number)) for number in self.numbers])
            order = np.argsort(every, kind="stable")
            self._sorted = every[order], order
        known, order = self._sorted
        asked = np.array([one.encode("utf-8", "surrogatepass") for one in ids], dtype=np.bytes_)
        at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        if wrong := np.flatnonzero(known[at] != asked).tolist():
            raise IfqaError(f"{self.folder} has no passage {ids[wrong[0]]}; build the index again: ifqa index CORPUS")
        return [int(row) for row in order[at]]


class Vectors:
    """The vectors of a finished folder, with the same row numbers as `Ids`."""

    def __init__(self, folder: Path) -> None:
        """Check the shape of every file, and keep none open.

        Raises:
            IfqaError: a file is missing, damaged, or of another dimension than the others.
        """
        self.folder = folder
        ids = Ids(folder)
        self._numbers, self._starts = ids.numbers, ids.starts
        self.keys = ids.keys  # hash of what each shard was made from
        self.dimension = 0
        for number, count in zip(ids.numbers, np.diff(ids.starts).tolist(), strict=True):
            path = vectors_path(folder, number)
            vectors = open_array(path)
            if vectors.ndim != 2 or vectors.dtype != np.float16 or len(vectors) != count:
                raise IfqaError(
                    f"{path}: wanted {count:,} vectors in float16, found {vectors.shape} in {vectors.dtype}; build the "
                    "index again"
                )
            self.dimension = self.dimension or int(vectors.shape[1])
            if vectors.shape[1] != self.dimension:
                raise IfqaError(
                    f"{path}: vectors have {vectors.shape[1]} dimensions, those before {self.dimension}; build the index "
                    "again"
                )

    def __len__(self) -> int:
        return int(self._starts[-1])

    def rows(self) -> list[tuple[int, int]]:
        """(first row, row after the last) of each shard."""
        return list(pairwise(self._starts.tolist()))

    def shards(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, NDArray[np.float16]]]:
        """(first row, vectors [passages, dimension] in float16) of the shards between two rows, mapped and not read."""
        for (first, last), number in zip(self.rows(), self._numbers, strict=True):
            if first >= start and (stop is None or last <= stop):
                yield first, open_array(vectors_path(self.folder, number))

    def at(self, rows: Sequence[int]) -> NDArray[np.float16]:
        """Vectors of rows, [rows, dimension] in float16."""
        found = np.empty((len(rows), self.dimension), np.float16)
        numbers, shards = np.asarray(rows, dtype=np.int64), np.asarray(owners(self._starts, rows))
        for shard in np.unique(shards).tolist():
            own = shards == shard
            found[own] = open_array(vectors_path(self.folder, self._numbers[shard]))[numbers[own] - self._starts[shard]]
        return found


def owners(starts: NDArray[np.int64], rows: Sequence[int]) -> list[int]:
    """The index of each row's shard; `starts` is that of `Ids`."""
    found: list[int] = (np.searchsorted(starts, np.asarray(rows, dtype=np.int64), "right") - 1).tolist()
    return found


def open_array(path: Path) -> NDArray[Any]:
    """An array of a shard, mapped and not read.

    Raises:
        IfqaError: the file is missing or damaged.
    """
    try:
        array: NDArray[Any] = np.load(require(path, "vectors"), mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise IfqaError(f"{path} is damaged ({error}); build the index again") from error
    return array


def parts_of(vectors: Vectors, passages: int) -> list[tuple[int, int]]:
    """(first row, row after the last) of parts of whole shards; only a part of a single shard may exceed `passages`."""
    parts: list[tuple[int, int]] = []
    for first, last in vectors.rows():
        if parts and last - parts[-1][0] <= passages:
            parts[-1] = (parts[-1][0], last)
        else:
            parts.append((first, last))
    return parts


def draw(vectors: Vectors, size: int, seed: int) -> NDArray[np.float32]:
    """Vectors [size, dimension], drawn without replacement from each shard by its share; the same for the same seed."""
    rng, drawn = np.random.default_rng(seed), np.empty((size, vectors.dimension), np.float32)
    for first, shard in vectors.shards():
        start, stop = (row * size // len(vectors) for row in (first, first + len(shard)))
        drawn[start:stop] = shard[np.sort(rng.choice(len(shard), stop - start, replace=False))]
    return drawn


class Filling:
    """A folder of vectors while it is filled; whole shards of an interrupted build are reused.

    A shard is a file of ids and one for each of `kinds`, named as `array_path` says.
    """

    def __init__(self, folder: Path, kinds: Sequence[str] = ("vectors",)) -> None:
        """Read which shards are there."""
        self.folder, self._kinds = folder, (*kinds, "ids")
        keep_whole_lines(folder / LOG)
        lines = read_jsonl(folder / LOG) if (folder / LOG).exists() else ()
        # Other lines are ignored, and their shards encoded again
        self._lines = {line["shard"]: line for _, line in lines if _is_line(line)}

    def has(self, number: int, key: str) -> int | None:
        """The number of passages of shard `number`, if it is whole and was made with the same `key`; else None."""
        line, paths = self._lines.get(number), self._paths(number)
        if line is None or line["key"] != key or not all(path.exists() for path in paths):
            return None
        return int(line["passages"]) if [sha256(path) for path in paths] == line["sha256"] else None

    def add(self, number: int, key: str, ids: Sequence[str], *arrays: NDArray[Any]) -> None:
        """Write a shard, one array for each kind, then its line in the log; real numbers are written in half precision.

        Raises:
            IfqaError: a row of real numbers holds NaN or infinity, or a number too large for half precision.
        """
        written = [half(array, ids, number) if array.dtype.kind == "f" else array for array in arrays]
        written.append(np.array([text.encode("utf-8", "surrogatepass") for text in ids], dtype=np.bytes_))
        if number in self._lines:  # else a kill before the new line is written leaves the new vectors under the old key
            self._lines.pop(number)
            write_jsonl(self.folder / LOG, list(self._lines.values()))
        for path, array in zip(self._paths(number), written, strict=True):
            with create(path) as handle:
                np.save(handle, array, allow_pickle=False)
        hashes = [sha256(path) for path in self._paths(number)]
        line = {"shard": number, "key": key, "passages": len(ids), "sha256": hashes}
        with open(self.folder / LOG, "ab") as handle:
            write(handle, json_line(line))
            handle.flush()
            os.fsync(handle.fileno())
        self._lines[number] = line

    def finish(self, keys: dict[int, str]) -> int:
        """Sort the log, and remove the files of other shards than those in `keys`. Returns the number of passages."""
        lines = [self._lines[number] for number in sorted(keys)]
        kept = {path for number in keys for path in self._paths(number)}
        for kind in self._kinds:
            for path in set(self.folder.glob(f"{kind}-*.npy")) - kept:
                path.unlink()
        write_jsonl(self.folder / LOG, lines)
        return sum(line["passages"] for line in lines)

    def _paths(self, number: int) -> list[Path]:
        return [array_path(self.folder, kind, number) for kind in self._kinds]


def half(numbers: NDArray[np.float32], ids: Sequence[str] | NDArray[Any], shard: int) -> NDArray[np.float16]:
    """Numbers in half precision; `ids` has the passage of each row.

    Raises:
        IfqaError: a number is NaN or infinity, or too large for half precision.
    """
    with np.errstate(over="ignore"):
        found = numbers.astype(np.float16)
    if wrong := np.flatnonzero(~np.isfinite(found).reshape(len(found), -1).all(axis=1)).tolist():
        raise IfqaError(
            f"the vector of passage {ids[wrong[0]]} holds NaN or infinity (one of {len(wrong):,} in shard {shard}): "
            'the model is damaged, or its numbers are too large for half precision; try precision = "float32"'
        )
    return found


def _is_line(line: dict[str, Any]) -> bool:
    return all(type(line.get(key)) is kind for key, kind in _KINDS.items())
