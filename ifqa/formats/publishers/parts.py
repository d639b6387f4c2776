"""The files of a publisher and the members of its zip archives: found, opened, and counted while they are read."""

import csv
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path, PurePosixPath

from ifqa.errors import IfqaError
from ifqa.storage.files import LONGEST_LINE, open_unpacked, read_lines
from ifqa.storage.json_stream import JsonStream

_SUFFIXES = re.compile(r"\.(gz|bz2|xz)$")
_LEFT_OUT = {"evidence", "__MACOSX"}  # TriviaQA's documents are 650,000 files, opened by name


@dataclass(frozen=True)
class Part:
    """A file of a publisher, or a member of a zip archive; `name`: its path below the folder, without a packer's suffix."""

    path: Path
    name: str
    size: int
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def base(self) -> str:
        """The last piece of the name."""
        return PurePosixPath(self.name).name


def parts(folder: Path) -> list[Part]:
    """All files below a folder, and the members of its zip archives, by name, without hidden files; or of one archive.

    Raises:
        IfqaError: an archive is damaged.
    """
    if folder.is_file():
        return list(_members(folder, folder.parent))
    available = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        for file in files:
            path = Path(place, file)
            if not file.startswith(".") and path.is_file():
                available += list(_members(path, folder)) if file.endswith(".zip") else [_part(path, folder)]
    return sorted(available, key=lambda part: (part.name, str(part)))


def _part(path: Path, folder: Path) -> Part:
    return Part(path, _SUFFIXES.sub("", path.relative_to(folder).as_posix()), path.stat().st_size)


def _members(path: Path, folder: Path) -> Iterator[Part]:
    name = path.relative_to(folder).as_posix().removesuffix(".zip")
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                hidden = any(piece.startswith((".", "__MACOSX")) for piece in PurePosixPath(info.filename).parts)
                if not info.is_dir() and not hidden:
                    inner = _SUFFIXES.sub("", info.filename)
                    yield Part(path, f"{name}/{inner}", info.compress_size, info.filename)
    except (zipfile.BadZipFile, OSError) as error:
        raise IfqaError(f"{path}: not a zip archive that can be read ({error}); fetch it again") from error


def matching(available: Sequence[Part], *patterns: str) -> list[Part]:
    """The parts whose last piece fits the first pattern that any of them fits.

    Raises:
        IfqaError: two of them have the same name, so that its questions would count twice.
    """
    for pattern in patterns:
        chosen = [part for part in available if re.fullmatch(pattern, part.base)]
        names = [part.base for part in chosen]
        if twice := next((name for name in names if names.count(name) > 1), None):
            first, second, *_ = (part for part in chosen if part.base == twice)
            raise IfqaError(f"{first} and {second}: two files of one name; keep one of them")
        if chosen:
            return chosen
    return []


class Reading:
    """Opens parts, and counts the bytes of them that were read."""

    def __init__(self) -> None:
        self._archives: dict[Path, zipfile.ZipFile] = {}
        self._stack = ExitStack()
        self._done = 0
        self._now: Callable[[], float] = lambda: 0

    def __enter__(self) -> "Reading":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def position(self) -> float:
        """Bytes read so far, as they lie on the disk."""
        return self._done + self._now()

    @contextmanager
    def open(self, part: Part) -> Iterator[BufferedReader]:
        """A handle on a part's bytes, as they lie in the file or the archive.

        Raises:
            IfqaError: the archive is damaged, or packed in a way that cannot be read.
        """
        try:
            with self._handle(part) as handle:
                whole = self._archives[part.path].getinfo(part.member).file_size if part.member else part.size
                share = part.size / max(whole, 1)
                self._now = lambda: handle.tell() * share
                yield handle
        except zipfile.BadZipFile as error:
            raise IfqaError(f"{part}: the archive is damaged ({error}); fetch it again") from error
        finally:
            self._now = lambda: 0
            self._done += part.size

    def hold(self, path: Path) -> BufferedReader:
        """A handle for look-ups in an unpacked file, open until the reading ends; what it reads is not counted."""
        return self._stack.enter_context(open(path, "rb"))

    def _handle(self, part: Part) -> BufferedReader:
        if not part.member:
            return open(part.path, "rb")
        if part.path not in self._archives:
            self._archives[part.path] = self._stack.enter_context(zipfile.ZipFile(part.path))
        try:
            return BufferedReader(self._archives[part.path].open(part.member))  # type: ignore[arg-type]
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or another kind of packing
            raise IfqaError(f"{part}: cannot be read ({error}); unpack the archive and remove it") from error

    def lines(self, part: Part) -> Iterator[tuple[int, str]]:
        """Number and text of each line of a part, packed or not."""
        with self.open(part) as handle:
            yield from read_lines(Path(str(part)), handle)

    @contextmanager
    def table(self, part: Part) -> Iterator["csv.DictReader[str]"]:
        """The rows of a part with comma-separated values, packed or not.

        Raises:
            IfqaError: a row cannot be read.
        """
        csv.field_size_limit(LONGEST_LINE)
        rows = csv.DictReader(f"{line}\n" for _, line in self.lines(part))
        try:
            yield rows
        except csv.Error as error:
            raise IfqaError(f"{part}:{rows.line_num}: not comma-separated values ({error})") from error

    @contextmanager
    def json(self, part: Part) -> Iterator[JsonStream]:
        """A cursor in a part that is one JSON document, packed or not.

        Raises:
            IfqaError: the file is damaged.
        """
        with self.open(part) as handle, open_unpacked(Path(str(part)), handle) as unpacked:
            yield JsonStream(Path(str(part)), unpacked)
