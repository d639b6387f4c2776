"""Arrays of passages on disk, in shards that are mapped into memory and not read.

`vectors-00000.npy` is a float16 array [passages, dimension]; an index of another kind has arrays of other names.
`ids-00000.npy` has the passages' ids as bytes, in the same order. `vectors.jsonl` has a line for each finished shard, with the
hash of what it was made from and the files' SHA-256.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError
from ifqa.records import Hit, SearchResult
from ifqa.settings import Stored, check_stored
from ifqa.storage.chunks import keep_whole_lines
from ifqa.storage.files import create, json_line, read_jsonl, require, sha256, write, write_jsonl

LOG = "vectors.jsonl"
_MEND = "build the index again: ifqa index CORPUS"


class _Line(Stored):
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
        self.folder, path = folder, require(folder / LOG, "list of vector shards")
        lines = [check_stored(_Line, line, f"{path}:{number}", _MEND) for number, line in read_jsonl(path)]
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
        path = require(array_path(self.folder, kind, self.numbers[place]), "vectors")
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


class Filling:
    """A folder of arrays while it is filled; whole shards of an interrupted build are reused.

    A shard is a file of ids and one for each of `kinds`, named as `array_path` says.
    """

    def __init__(self, folder: Path, kinds: Sequence[str] = ("vectors",)) -> None:
        """Read which shards are there."""
        self.folder, self._kinds = folder, (*kinds, "ids")
        keep_whole_lines(folder / LOG)
        self._lines: dict[int, _Line] = {}
        for _, line in read_jsonl(folder / LOG) if (folder / LOG).exists() else ():
            with suppress(IfqaError):  # other lines are ignored, and their shards encoded again
                checked = check_stored(_Line, line, LOG)
                self._lines[checked.shard] = checked

    def has(self, number: int, key: str) -> int | None:
        """The number of passages of shard `number`, if it is whole and was made with the same `key`; else None."""
        line, paths = self._lines.get(number), self._paths(number)
        if line is None or line.key != key or not all(path.exists() for path in paths):
            return None
        return line.passages if [sha256(path) for path in paths] == line.sha256 else None

    def add(self, number: int, key: str, ids: Sequence[str], *arrays: NDArray[Any]) -> None:
        """Write a shard, one array for each kind, then its line in the log; real numbers are written in half precision.

        Raises:
            IfqaError: a row of real numbers holds NaN or infinity, or a number too large for half precision.
        """
        written = [half(array, ids) if array.dtype.kind == "f" else array for array in arrays]
        written.append(np.array([text.encode("utf-8", "surrogatepass") for text in ids], dtype=np.bytes_))
        if self._lines.pop(
            number, None
        ):  # else a kill before the new line is written leaves the new vectors under the old key
            self._write_log()
        for path, array in zip(self._paths(number), written, strict=True):
            with create(path) as handle:
                np.save(handle, array, allow_pickle=False)
        hashes = [sha256(path) for path in self._paths(number)]
        self._lines[number] = _Line(shard=number, key=key, passages=len(ids), sha256=hashes)
        with open(self.folder / LOG, "ab") as handle:
            write(handle, json_line(self._lines[number].model_dump()))
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
        write_jsonl(self.folder / LOG, [line.model_dump() for line in self._lines.values()])

    def _paths(self, number: int) -> list[Path]:
        return [array_path(self.folder, kind, number) for kind in self._kinds]


def half(numbers: NDArray[np.float32], ids: Sequence[str] | NDArray[np.str_]) -> NDArray[np.float16]:
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
