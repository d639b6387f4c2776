"""The reader of CausalQA's source datasets: opens their files and checks their records; a subclass knows one dataset's layout.

A file may be compressed, or a member of a zip archive.
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
    """A file of a dataset, or a member of a zip archive; `name`: its path below the folder, without a suffix such as .gz."""

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
    """All visible files below a folder and members of its zip archives, by name; or the members of one archive.

    Raises:
        IfqaError: an archive is damaged.
    """
    if folder.is_file():
        return list(_list_members(folder, folder.parent))
    available = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
        for name in names:
            path = Path(place, name)
            if not name.startswith(".") and path.is_file():
                available += (
                    list(_list_members(path, folder)) if name.endswith(".zip") else [_describe_file(path, folder)]
                )
    return sorted(available, key=lambda file: (file.name, str(file)))


def _describe_file(path: Path, folder: Path) -> DatasetFile:
    return DatasetFile(path, _SUFFIXES.sub("", path.relative_to(folder).as_posix()), path.stat().st_size)


def _list_members(path: Path, folder: Path) -> Iterator[DatasetFile]:
    name = path.relative_to(folder).as_posix().removesuffix(".zip")
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
    """The files whose base name matches the first pattern that matches any.

    Raises:
        IfqaError: two files have the same name, so their questions would count twice.
    """
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
        """Open a file or a member of an archive for reading its bytes.

        Raises:
            IfqaError: the archive is damaged, or its compression is unsupported.
        """
        try:
            with self._handle(file) as handle:
                whole = self._archives[file.path].getinfo(file.member).file_size if file.member else file.size
                share = file.size / max(whole, 1)
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
        """Number and text of each line of a file, compressed or not."""
        with self.open(file) as handle:
            yield from read_lines(Path(str(file)), handle)

    @contextmanager
    def table(self, file: DatasetFile) -> Iterator["csv.DictReader[str]"]:
        """The rows of a CSV file, compressed or not.

        Raises:
            IfqaError: the CSV is invalid.
        """
        csv.field_size_limit(LONGEST_LINE)
        rows = csv.DictReader(f"{line}\n" for _, line in self.lines(file))
        try:
            yield rows
        except csv.Error as error:
            raise FormatError(f"{file}:{rows.line_num}: invalid CSV ({error})") from error

    @contextmanager
    def json(self, file: DatasetFile) -> Iterator[JsonStream]:
        """A cursor in a file that is one JSON document, compressed or not.

        Raises:
            IfqaError: the file is damaged.
        """
        with self.open(file) as handle, open_unpacked(Path(str(file)), handle) as unpacked:
            yield JsonStream(Path(str(file)), unpacked)


class QuestionDetails(NamedTuple):
    """A question's id, context, answers and split.

    `split` is "train" or "valid" as published, empty if the question is in neither, and "both" if the dataset has no split, so
    that the random one replaces it; in the authors' release it is the split's name.
    """

    id: str
    context: str
    answers: Sequence[str]
    split: str


class Candidate(NamedTuple):
    """A question, and a function that reads its details; it is called for causal questions only."""

    question: str
    details: Callable[[], QuestionDetails]


Candidates = Generator[Candidate, None, None]
CausalTest = Callable[[str], bool]


class Record(NamedTuple):
    """A JSON object of a file; messages about its values start with `where` ("file:line")."""

    values: dict[str, object]
    where: str
    file: DatasetFile

    @classmethod
    def of(cls, value: object, where: str, file: DatasetFile) -> "Record":
        """The record of a decoded value, which must be an object."""
        return cls(_require_object(value, where), where, file)

    def text(self, key: str) -> str:
        """The value of a key, which must be text."""
        return typed_field(self.values, key, str, self.where)

    def number(self, key: str) -> int:
        """The value of a key, which must be a whole number."""
        return typed_field(self.values, key, int, self.where)

    def optional(self, key: str) -> str:
        """The value of a key as text; empty if it is null or missing."""
        return "" if self.values.get(key) is None else typed_field(self.values, key, str, self.where)

    def identifier(self, key: str) -> str:
        """The value of a key as an id: a non-empty string or a whole number."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            raise FormatError(f"{self.where}: {key!r} must be an id (a string or a whole number), found {value!r:.40}")
        return str(value)

    def texts(self, key: str) -> list[str]:
        """The value of a key, which must be a list of strings, some of them perhaps empty."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise FormatError(f"{self.where}: {key!r} must be a list of strings, found {value!r:.60}")
        return value

    def record(self, key: str) -> "Record":
        """The value of a key, which must be an object."""
        return self._replace(values=_require_object(self.values.get(key), f"{self.where}: {key!r}"))

    def records(self, key: str) -> list["Record"]:
        """The value of a key, which must be a list of objects."""
        value = self.values.get(key)
        if not isinstance(value, list):
            raise FormatError(f"{self.where}: {key!r} must be a list of objects, found {type(value).__name__}")
        return [self._replace(values=_require_object(element, f"{self.where}: {key!r}")) for element in value]

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
    """One dataset's layout. A subclass names the files and finds the details of a record's question; this class reads the files.

    Attributes:
        wanted: the file names, for messages.
        files: groups of patterns for the files with questions; in each group, the first pattern that matches a file is used.
        lookup_pattern: matches the files for look-ups.
        array: None for JSON lines; else the key of the array of records, empty if the document is that array.
        key: of a record's question.
        reads: how often a file is read, for progress.
    """

    wanted: ClassVar[str]
    files: ClassVar[tuple[tuple[str, ...], ...]] = ()
    lookup_pattern: ClassVar[str] = ""
    array: ClassVar[str | None] = None
    key: ClassVar[str] = "question"
    reads: ClassVar[int] = 1

    def __init__(self, reading: FileReader, lookup_files: Sequence[DatasetFile], causal: CausalTest) -> None:
        """Open the files for look-ups.

        Args:
            reading: opens files.
            lookup_files: files for look-ups.
            causal: whether a question is causal, so that its details will be read.
        """
        self.reading = reading
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
        """Fingerprint lines of the files that are opened by name only."""
        return ()

    @classmethod
    def questions(cls, reading: FileReader, chosen: Sequence[DatasetFile], causal: CausalTest) -> Candidates:
        """The questions of the chosen files, always in the same order."""
        lookup_files = [file for file in chosen if re.fullmatch(cls.lookup_pattern, file.base)]
        publisher = cls(reading, lookup_files, causal)
        for file in chosen:
            if file not in lookup_files:
                for record in publisher.records(file):
                    yield Candidate(publisher.question(record), partial(publisher.details, record))

    def records(self, file: DatasetFile) -> Iterator[Record]:
        """The records of a file, one for each question."""
        if self.array is None:
            for number, line in self.reading.lines(file):
                if line and not line.isspace():
                    yield Record(decode_object(line, f"{file}:{number}", json.loads), f"{file}:{number}", file)
            return
        with self.reading.json(file) as stream:
            for _ in stream.member(self.array) if self.array else (None,):
                for _ in stream.elements():
                    where = f"{file}:{stream.line}"
                    yield Record.of(stream.value(), where, file)

    def question(self, record: Record) -> str:
        """The text of a record's question."""
        return record.text(self.key)

    @abstractmethod
    def details(self, record: Record) -> QuestionDetails:
        """The details of a record's question."""


def parse_split(name: str) -> str:
    """The split in a name: "train", "valid", or empty (a test file)."""
    if "train" in name:
        return "train"
    return "valid" if re.search(r"dev|val", name) else ""
