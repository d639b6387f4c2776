"""Vectors of passages on disk: one shard for each shard of passages, half precision, mapped into memory and not read.

`vectors-00000.npy` is a float16 array [passages, dimension] for `passages-00000.jsonl`; `ids-00000.npy` has the passages'
ids as bytes, in the same order; `vectors.jsonl` a line for each pair that is whole, with the hash of what it was made from.
"""

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.storage.files import create, json_line, read_jsonl, require, write, write_jsonl
from ifqa.storage.torn import keep_whole_lines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOG = "vectors.jsonl"


def vectors_path(folder: Path, number: int) -> Path:
    """Where the vectors of shard `number` stand."""
    return folder / f"vectors-{number:05d}.npy"


def ids_path(folder: Path, number: int) -> Path:
    """Where the ids of shard `number` stand."""
    return folder / f"ids-{number:05d}.npy"


class Ids:
    """Passage ids of a finished folder. Rows are counted through all shards, in the order of their numbers."""

    def __init__(self, folder: Path) -> None:
        """Read the list of shards; a file is opened when it is asked for, since there may be thousands.

        Raises:
            IfqaError: there are none.
        """
        import numpy as np

        self.folder = folder
        lines = [line for _, line in read_jsonl(require(folder / LOG, "list of vector shards"))]
        if not lines:
            raise IfqaError(f"{folder} holds no vectors; build the index again")
        self.numbers = [int(line["shard"]) for line in lines]
        self.keys = [str(line["key"]) for line in lines]
        self.starts = np.cumsum([0, *(int(line["passages"]) for line in lines)])
        self._open = lru_cache(maxsize=64)(_open)

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


class Vectors:
    """The vectors of a finished folder, in the same rows."""

    def __init__(self, folder: Path) -> None:
        """Look into every file, and keep none open.

        Raises:
            IfqaError: a file is missing, damaged, or of another dimension than the rest.
        """
        import numpy as np

        self.folder = folder
        ids = Ids(folder)
        self._numbers, self._starts = ids.numbers, ids.starts
        self.keys = ids.keys  # what each shard was made from
        self.dimension = 0
        for number, count in zip(ids.numbers, np.diff(ids.starts).tolist(), strict=True):
            path = vectors_path(folder, number)
            vectors = _open(path)
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

    def shards(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, "NDArray[np.float16]"]]:
        """(first row, vectors [passages, dimension] in float16) of the shards within rows, mapped and not read."""
        for (first, last), number in zip(self.rows(), self._numbers, strict=True):
            if first >= start and (stop is None or last <= stop):
                yield first, _open(vectors_path(self.folder, number))

    def at(self, rows: Sequence[int]) -> "NDArray[np.float16]":
        """Vectors of rows, [rows, dimension] in float16."""
        import numpy as np

        found = np.empty((len(rows), self.dimension), np.float16)
        wanted, whose = np.asarray(rows, dtype=np.int64), np.asarray(owners(self._starts, rows))
        for owner in np.unique(whose).tolist():
            mine = whose == owner
            found[mine] = _open(vectors_path(self.folder, self._numbers[owner]))[wanted[mine] - self._starts[owner]]
        return found


def owners(starts: "NDArray[np.int64]", rows: Sequence[int]) -> list[int]:
    """For each row, which shard it is in; `starts` as `Ids.starts`."""
    import numpy as np

    found: list[int] = (np.searchsorted(starts, np.asarray(rows, dtype=np.int64), "right") - 1).tolist()
    return found


def _open(path: Path) -> "NDArray[Any]":  # of half floats, or of bytes
    import numpy as np

    try:
        array: NDArray[Any] = np.load(require(path, "vectors"), mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise IfqaError(f"{path} is damaged ({error}); build the index again") from error
    return array


def parts_of(vectors: Vectors, passages: int) -> list[tuple[int, int]]:
    """(first row, row after the last) of parts of whole shards, none but a single shard of more than `passages`."""
    parts: list[tuple[int, int]] = []
    for first, last in vectors.rows():
        if parts and last - parts[-1][0] <= passages:
            parts[-1] = (parts[-1][0], last)
        else:
            parts.append((first, last))
    return parts


def draw(vectors: Vectors, size: int, seed: int) -> "NDArray[np.float32]":
    """Vectors [size, dimension] drawn without return from every shard by its share of all; the same for the same seed."""
    import numpy as np

    rng, drawn = np.random.default_rng(seed), np.empty((size, vectors.dimension), np.float32)
    for first, shard in vectors.shards():
        start, stop = (row * size // len(vectors) for row in (first, first + len(shard)))
        drawn[start:stop] = shard[np.sort(rng.choice(len(shard), stop - start, replace=False))]
    return drawn


class Filling:
    """A folder of vectors while it fills up: what an earlier attempt left there and is still of use stays."""

    def __init__(self, folder: Path) -> None:
        """Takes up what is there."""
        self.folder = folder
        keep_whole_lines(folder / LOG)
        self._lines: dict[int, dict[str, Any]] = {}
        if (folder / LOG).exists():
            self._lines = {line["shard"]: line for _, line in read_jsonl(folder / LOG)}

    def has(self, number: int, key: str) -> int | None:
        """How many passages a shard has that was made from exactly what `key` is the hash of; None where it is not here."""
        line = self._lines.get(number)
        paths = [vectors_path(self.folder, number), ids_path(self.folder, number)]
        if line is None or line["key"] != key:
            return None
        sizes = [path.stat().st_size for path in paths if path.exists()]
        return int(line["passages"]) if sizes == line["bytes"] else None

    def add(self, number: int, key: str, ids: Sequence[str], vectors: "NDArray[np.float32]") -> None:
        """Write a shard, and then that it is there.

        Raises:
            IfqaError: a vector holds something that is no number, or is too large for half precision.
        """
        import numpy as np

        half = vectors.astype(np.float16)
        if wrong := np.flatnonzero(~np.isfinite(half).all(axis=1)).tolist():
            raise IfqaError(
                f"the vector of passage {ids[wrong[0]]} holds NaN or infinity (one of {len(wrong):,} in shard {number}): "
                'the model is damaged, or its numbers are too large for half precision; try precision = "float32"'
            )
        if number in self._lines:  # or a kill before the line below leaves these vectors under the old key
            self._lines.pop(number)
            write_jsonl(self.folder / LOG, list(self._lines.values()))
        encoded = np.array([one.encode("utf-8", "surrogatepass") for one in ids], dtype=np.bytes_)
        for path, array in ((vectors_path(self.folder, number), half), (ids_path(self.folder, number), encoded)):
            with create(path) as handle:
                np.save(handle, array, allow_pickle=False)
        sizes = [path(self.folder, number).stat().st_size for path in (vectors_path, ids_path)]
        line = {"shard": number, "key": key, "passages": len(ids), "bytes": sizes}
        with open(self.folder / LOG, "ab") as handle:
            write(handle, json_line(line))
            handle.flush()
            os.fsync(handle.fileno())
        self._lines[number] = line

    def finish(self, keys: dict[int, str]) -> int:
        """Put the log in order and remove the vectors of shards that are no more; returns how many passages there are."""
        lines = [self._lines[number] for number in sorted(keys)]
        kept = {path(self.folder, number) for number in keys for path in (vectors_path, ids_path)}
        for pattern in ("vectors-*.npy", "ids-*.npy"):
            for path in set(self.folder.glob(pattern)) - kept:
                path.unlink()
        write_jsonl(self.folder / LOG, lines)
        return sum(line["passages"] for line in lines)
