"""Sources whose passages are in files: a file, the fitting files of a folder, or those that a pattern names."""

import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import ClassVar

from ifqa.corpus.wikipedia.published import how_to_get
from ifqa.corpus.work_units import NO_FILES, FileRecords, Known, Source, WorkUnit
from ifqa.errors import IfqaError
from ifqa.storage.files import cached_sha256
from ifqa.storage.resources import find_resource

_SMALL = 64_000_000  # bytes: a source of at most this size is hashed by every command, like a small artifact
_SAMPLED = 12  # files of a source that are sampled


@dataclass
class FileSource(Source):
    """A source in a few files.

    A pattern has `*`, `?` or `[...]` in its names, or `**` for all folders below; a file or folder of that very name goes
    before it. Its files are ordered by the numbers in their names: part 2 before part 10.
    """

    path: str

    names: ClassVar[re.Pattern[str]]  # of the files that are read of a folder
    wanted: ClassVar[str]  # what a folder without such a file does not hold

    @abstractmethod
    def units_of(self, file: Path) -> Iterator[WorkUnit]:
        """The units of a file."""

    def work_units(self, earlier: FileRecords = NO_FILES) -> Iterator[WorkUnit]:
        return chain.from_iterable(map(self.units_of, self.files()))

    def sample(self) -> Iterator[WorkUnit]:
        """The first unit of up to a dozen files or so."""
        files = self.files()
        return chain.from_iterable(islice(self.units_of(file), 1) for file in files[:: max(1, len(files) // _SAMPLED)])

    def fingerprint(self, known: Known) -> dict[str, object]:
        """As `Source`. Only sources over 64 MB use `known`: hashing 20 GB takes a minute."""
        known = known if self.size() > _SMALL else {}
        return self.settings() | {"files": [file_facts(path, known)[2] for path in self.files()]}

    def files(self) -> list[Path]:
        """As `Source`.

        Raises:
            IfqaError: there is no such file, or the folder or the pattern has none that fits.
        """
        return self._files

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files())

    def facts(self) -> dict[str, tuple[int, int, str]]:
        return {str(path): file_facts(path, {}) for path in self.files()}

    @cached_property
    def _files(self) -> list[Path]:
        path = self.path
        if re.search(r"[*?\[]", path) and not Path(path).exists():
            files = in_order(_matching(path))
        else:
            place = find_resource(path) or (Path(path) if Path(path).is_dir() else None)
            if place is None:
                where = "is not there" if Path(path).is_absolute() else f"is not in {Path.cwd()}"
                raise IfqaError(f"passage source not found: {path} {where}; {how_to_get(path)}")
            files = self.files_in(place) if place.is_dir() else [place]
        if not files:
            raise IfqaError(f"passage source not found: {path} holds {self.wanted}; {how_to_get(path)}")
        return files

    def files_in(self, folder: Path) -> list[Path]:
        """The files that are read of a folder and the folders below it, in their order."""
        return in_order(file for file in files_below(folder) if self.names.fullmatch(file.name))


def _matching(pattern: str) -> Iterator[Path]:
    top = Path(Path(pattern).anchor or ".")
    if any("**" in part and part != "**" for part in Path(pattern).parts):  # a ValueError of pathlib up to Python 3.12
        raise IfqaError(f"passage source {pattern!r} is no pattern: wanted * in a name, or ** for all folders below")
    return top.glob(str(Path(pattern).relative_to(top)) if top.anchor else pattern)


def in_order(candidates: Iterable[Path]) -> list[Path]:
    """The files among paths, ordered by the numbers in their names."""
    files = (path for path in candidates if path.is_file())
    return sorted(files, key=lambda file: (_numbered(file.name), _numbered(str(file.parent))))


def _numbered(name: str) -> list[tuple[int, str]]:
    return [(len(part), part) for part in re.findall(r"\d+|\D+", name)]


def files_below(path: Path) -> Iterator[Path]:
    """The files of a folder and its subfolders; a folder that several links lead to is read by its first path."""
    seen: set[tuple[int, int]] = set()  # two links to a parent folder make 2^40 paths before the system stops
    for folder, folders, names in os.walk(path, onerror=_refuse, followlinks=True):
        stat = Path(folder).stat()
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders.sort()  # so that the first path is the same on every machine
        yield from (Path(folder, name) for name in names)


def _refuse(error: OSError) -> None:
    raise error  # os.walk skips folders that it may not read


def file_facts(path: Path, known: Known) -> tuple[int, int, str]:
    """Bytes, time of change (ns) and SHA-256 of a file; the hash is taken from `known` if the first two are equal."""
    stat = path.stat()
    before = known.get(str(path)) if isinstance(known, Mapping) else None
    if before and before[:2] == [stat.st_size, stat.st_mtime_ns]:
        return stat.st_size, stat.st_mtime_ns, str(before[2])
    return stat.st_size, stat.st_mtime_ns, cached_sha256(path)
