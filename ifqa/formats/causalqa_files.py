"""Reads the files of CausalQA's source datasets, plain, compressed or in a zip archive, and checks their records.

A subclass of `Publisher` knows the layout of a dataset.
"""

import csv
import json
import os
import re
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import ClassVar, NamedTuple

from ifqa.errors import FormatError
from ifqa.storage.files import LONGEST_LINE, decode_object, open_unpacked, read_lines, typed_field
from ifqa.storage.json_stream import JsonStream

_SUFFIXES = re.compile(r"\.(gz|bz2|xz)$")
_SKIPPED_FOLDERS = {"evidence", "__MACOSX"}  # TriviaQA's documents are 650,000 files, opened by name


@dataclass(frozen=True)
class DatasetFile:
    """A dataset's file, or a member of a zip archive; `name` is its path below the folder, without .gz, .bz2 or .xz."""

    path: Path
    name: str
    size: int
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path}/{self.member}" if self.member else str(self.path)

    @property
    def base(self) -> str:
        """The last component of the name."""
        return PurePosixPath(self.name).name


def list_files(folder: Path) -> list[DatasetFile]:
    """The visible files below a folder and the members of its zip archives, by name; `folder` may be one archive."""
    if folder.is_file():
        return list(_list_members(folder, folder.name.removesuffix(".zip")))
    available: list[DatasetFile] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
        for path in (Path(place, name) for name in names if not name.startswith(".")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and path.suffix == ".zip":
                available += _list_members(path, name.removesuffix(".zip"))
            elif path.is_file():
                available.append(DatasetFile(path, _SUFFIXES.sub("", name), path.stat().st_size))
    return sorted(available, key=lambda file: (file.name, str(file)))


def _list_members(path: Path, name: str) -> Iterator[DatasetFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                hidden = any(piece.startswith((".", "__MACOSX")) for piece in PurePosixPath(info.filename).parts)
                if not info.is_dir() and not hidden:
                    inner = _SUFFIXES.sub("", info.filename)
                    yield DatasetFile(path, f"{name}/{inner}", info.compress_size, info.filename)
    except (zipfile.BadZipFile, OSError) as error:
        raise FormatError(f"{path}: not a readable zip archive ({error}); download it again") from error


def match_files(available: Sequence[DatasetFile], *patterns: str) -> list[DatasetFile]:
    """The files matched by the first pattern that matches any; FormatError if two have the same name, since both would count."""
    for pattern in patterns:
        chosen = [file for file in available if re.fullmatch(pattern, file.base)]
        names = [file.base for file in chosen]
        if duplicate := next((name for name in names if names.count(name) > 1), None):
            first, second, *_ = (file for file in chosen if file.base == duplicate)
            raise FormatError(f"{first} and {second} have the same name; keep one of them")
        if chosen:
            return chosen
    return []


class FileReader(ExitStack):
    """Opens files within a `with` block, and counts the bytes read, for progress."""

    def __init__(self) -> None:
        super().__init__()
        self._archives: dict[Path, zipfile.ZipFile] = {}
        self._done = 0
        self._now: Callable[[], float] = lambda: 0

    @property
    def position(self) -> float:
        """Bytes read so far, as stored on disk."""
        return self._done + self._now()

    @contextmanager
    def open(self, file: DatasetFile) -> Iterator[BufferedReader]:
        """Open a file or a member of an archive; raises FormatError if the archive is damaged or its compression unknown."""
        try:
            with self._handle(file) as handle:
                size = self._archives[file.path].getinfo(file.member).file_size if file.member else file.size
                share = file.size / max(size, 1)
                self._now = lambda: handle.tell() * share
                yield handle
        except zipfile.BadZipFile as error:
            raise FormatError(f"{file}: the archive is damaged ({error}); download it again") from error
        finally:
            self._now = lambda: 0
            self._done += file.size

    def hold_open(self, path: Path) -> BufferedReader:
        """Open an uncompressed file for look-ups until the `with` block ends; its reads are not counted."""
        return self.enter_context(open(path, "rb"))

    def _handle(self, file: DatasetFile) -> BufferedReader:
        if not file.member:
            return open(file.path, "rb")
        if file.path not in self._archives:
            self._archives[file.path] = self.enter_context(zipfile.ZipFile(file.path))
        try:
            return BufferedReader(self._archives[file.path].open(file.member))  # type: ignore[arg-type]
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or an unknown compression
            raise FormatError(f"{file}: cannot be read ({error}); extract the archive and remove it") from error

    def lines(self, file: DatasetFile) -> Iterator[tuple[int, str]]:
        """Number and text of each line of a file."""
        with self.open(file) as handle:
            yield from read_lines(Path(str(file)), handle)

    @contextmanager
    def table(self, file: DatasetFile) -> Iterator["csv.DictReader[str]"]:
        """The rows of a CSV file."""
        csv.field_size_limit(LONGEST_LINE)
        rows = csv.DictReader(f"{line}\n" for _, line in self.lines(file))
        try:
            yield rows
        except csv.Error as error:
            raise FormatError(f"{file}:{rows.line_num}: invalid CSV ({error})") from error

    @contextmanager
    def json(self, file: DatasetFile) -> Iterator[JsonStream]:
        """A cursor in a file that is one JSON document."""
        with self.open(file) as handle, open_unpacked(Path(str(file)), handle) as unpacked:
            yield JsonStream(Path(str(file)), unpacked)


class Details(NamedTuple):
    """A question's id, context, answers and split.

    `split` is "train" or "valid" as published; empty for neither; "both" if the dataset has no original split, so that the random
    one replaces it; and in the authors' release the split's full name.
    """

    id: str
    context: str
    answers: Sequence[str]
    split: str


class Candidate(NamedTuple):
    """A question, and a function that reads its details, for causal questions only."""

    question: str
    details: Callable[[], Details]


Candidates = Generator[Candidate, None, None]
CausalTest = Callable[[str], bool]


class Record(NamedTuple):
    """A JSON object of a file; error messages start with `where` ("file:line")."""

    values: dict[str, object]
    where: str
    file: DatasetFile

    @classmethod
    def of(cls, value: object, where: str, file: DatasetFile) -> "Record":
        """The record of a decoded value, which must be an object."""
        return cls(_require_object(value, where), where, file)

    def text(self, key: str) -> str:
        """The text under a key."""
        return typed_field(self.values, key, str, self.where)

    def number(self, key: str) -> int:
        """The whole number under a key."""
        return typed_field(self.values, key, int, self.where)

    def optional(self, key: str) -> str:
        """The text under a key; empty if it is null or missing."""
        return "" if self.values.get(key) is None else typed_field(self.values, key, str, self.where)

    def identifier(self, key: str) -> str:
        """The id under a key, a non-empty string or a whole number."""
        name = self.values.get(key)
        if isinstance(name, bool) or not isinstance(name, int | str) or name == "":
            raise FormatError(f"{self.where}: {key!r} must be an id (a string or a whole number), found {name!r:.40}")
        return str(name)

    def texts(self, key: str) -> list[str]:
        """The list of strings under a key."""
        texts = self.values.get(key)
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise FormatError(f"{self.where}: {key!r} must be a list of strings, found {texts!r:.60}")
        return texts

    def record(self, key: str) -> "Record":
        """The object under a key."""
        return self._replace(values=_require_object(self.values.get(key), f"{self.where}: {key!r}"))

    def records(self, key: str) -> list["Record"]:
        """The list of objects under a key."""
        elements = self.values.get(key)
        if not isinstance(elements, list):
            raise FormatError(f"{self.where}: {key!r} must be a list of objects, found {type(elements).__name__}")
        return [self._replace(values=_require_object(element, f"{self.where}: {key!r}")) for element in elements]

    def extend(self, **values: object) -> "Record":
        """The record with further values, such as those of its parent."""
        return self._replace(values=self.values | values)

    @property
    def split(self) -> str:
        """The split in its file's name."""
        return parse_split(self.file.base)


def _require_object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise FormatError(f"{where}: wanted a JSON object, found {type(value).__name__}")
    return value


class Publisher(ABC):
    """A dataset's layout. A subclass names the files and finds the details of a record's question; this class reads the files."""

    wanted: ClassVar[str]  # file names, for messages
    files: ClassVar[tuple[tuple[str, ...], ...]] = ()  # in each group, the first pattern that matches a file is used
    lookup_pattern: ClassVar[str] = ""  # matches the files for look-ups
    array: ClassVar[str | None] = None  # key of the array of records, "" for the document itself, None for JSON lines
    key: ClassVar[str] = "question"  # a record's key for its question
    reads: ClassVar[int] = 1  # times a file is read, for progress

    def __init__(self, reader: FileReader, lookup_files: Sequence[DatasetFile], causal: CausalTest) -> None:
        """Open the files for look-ups; `causal` says whether a question's details will be read."""
        self.reader = reader
        self.causal = causal

    @classmethod
    def choose_files(cls, available: Sequence[DatasetFile]) -> list[DatasetFile]:
        """The files to read; empty if the dataset is absent."""
        chosen = [file for patterns in cls.files for file in match_files(available, *patterns)]
        return chosen + match_files(available, cls.lookup_pattern) if chosen and cls.lookup_pattern else chosen

    @classmethod
    def size(cls, chosen: Sequence[DatasetFile]) -> int:
        """Bytes to read, without look-ups."""
        return sum(file.size * cls.reads for file in chosen if not re.fullmatch(cls.lookup_pattern, file.base))

    @classmethod
    def fingerprint_lines(cls, folder: Path) -> Iterable[str]:
        """Lines for the fingerprint that stand for the files opened only by name."""
        return ()

    @classmethod
    def questions(cls, reader: FileReader, chosen: Sequence[DatasetFile], causal: CausalTest) -> Candidates:
        """The questions of the chosen files, always in the same order."""
        lookup_files = [file for file in chosen if re.fullmatch(cls.lookup_pattern, file.base)]
        publisher = cls(reader, lookup_files, causal)
        for file in chosen:
            if file not in lookup_files:
                for record in publisher.records(file):
                    yield Candidate(publisher.question(record), partial(publisher.details, record))

    def records(self, file: DatasetFile) -> Iterator[Record]:
        """The records of a file, one for each question."""
        if self.array is None:
            for number, line in self.reader.lines(file):
                if line and not line.isspace():
                    yield Record(decode_object(line, f"{file}:{number}", json.loads), f"{file}:{number}", file)
            return
        with self.reader.json(file) as stream:
            for _ in stream.member(self.array) if self.array else (None,):
                for _ in stream.elements():
                    where = f"{file}:{stream.line}"
                    yield Record.of(stream.value(), where, file)

    def question(self, record: Record) -> str:
        """The text of a record's question."""
        return record.text(self.key)

    @abstractmethod
    def details(self, record: Record) -> Details:
        """The details of a record's question."""


def parse_split(name: str) -> str:
    """The split in a name: "train", "valid", or empty (a test file)."""
    if "train" in name:
        return "train"
    return "valid" if re.search(r"dev|val", name) else ""
