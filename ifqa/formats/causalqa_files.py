"""How the files of a publisher are read: one reader and one set of checks for all; a dataset says where a record has what.

A file may be packed, or a member of a zip archive. What is read is counted, for the progress.
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

from ifqa.errors import IfqaError
from ifqa.storage.files import LONGEST_LINE, decode_object, open_unpacked, read_lines, typed_field
from ifqa.storage.json_stream import JsonStream

_SUFFIXES = re.compile(r"\.(gz|bz2|xz)$")
_SKIPPED_FOLDERS = {"evidence", "__MACOSX"}  # TriviaQA's documents are 650,000 files, opened by name


@dataclass(frozen=True)
class DatasetFile:
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


def list_files(folder: Path) -> list[DatasetFile]:
    """All files below a folder, and the members of its zip archives, by name, without hidden files; or of one archive.

    Raises:
        IfqaError: an archive is damaged.
    """
    if folder.is_file():
        return list(_list_members(folder, folder.parent))
    available = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
        for file in files:
            path = Path(place, file)
            if not file.startswith(".") and path.is_file():
                available += (
                    list(_list_members(path, folder)) if file.endswith(".zip") else [_describe_file(path, folder)]
                )
    return sorted(available, key=lambda part: (part.name, str(part)))


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
        raise IfqaError(f"{path}: not a zip archive that can be read ({error}); fetch it again") from error


def match_files(available: Sequence[DatasetFile], *patterns: str) -> list[DatasetFile]:
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


class FileReader(ExitStack):
    """Opens parts, while the `with` block lasts, and counts the bytes of them that were read."""

    def __init__(self) -> None:
        super().__init__()
        self._archives: dict[Path, zipfile.ZipFile] = {}
        self._done = 0
        self._now: Callable[[], float] = lambda: 0

    @property
    def position(self) -> float:
        """Bytes read so far, as they lie on the disk."""
        return self._done + self._now()

    @contextmanager
    def open(self, part: DatasetFile) -> Iterator[BufferedReader]:
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

    def hold_open(self, path: Path) -> BufferedReader:
        """A handle for look-ups in an unpacked file, open until the reading ends; what it reads is not counted."""
        return self.enter_context(open(path, "rb"))

    def _handle(self, part: DatasetFile) -> BufferedReader:
        if not part.member:
            return open(part.path, "rb")
        if part.path not in self._archives:
            self._archives[part.path] = self.enter_context(zipfile.ZipFile(part.path))
        try:
            return BufferedReader(self._archives[part.path].open(part.member))  # type: ignore[arg-type]
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or another kind of packing
            raise IfqaError(f"{part}: cannot be read ({error}); unpack the archive and remove it") from error

    def lines(self, part: DatasetFile) -> Iterator[tuple[int, str]]:
        """Number and text of each line of a part, packed or not."""
        with self.open(part) as handle:
            yield from read_lines(Path(str(part)), handle)

    @contextmanager
    def table(self, part: DatasetFile) -> Iterator["csv.DictReader[str]"]:
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
    def json(self, part: DatasetFile) -> Iterator[JsonStream]:
        """A cursor in a part that is one JSON document, packed or not.

        Raises:
            IfqaError: the file is damaged.
        """
        with self.open(part) as handle, open_unpacked(Path(str(part)), handle) as unpacked:
            yield JsonStream(Path(str(part)), unpacked)


class QuestionDetails(NamedTuple):
    """What belongs to a question.

    `split` is the publisher's, "train" or "valid"; "both" if the publisher has none, so that the random one stands for it;
    empty for a question of neither; of the authors' release, the name of the split.
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
    """A JSON object of a part; `where` ("file:line") opens the messages about its values."""

    values: dict[str, object]
    where: str
    part: DatasetFile

    @classmethod
    def of(cls, value: object, where: str, part: DatasetFile) -> "Record":
        """A decoded value, if it is an object."""
        return cls(_require_object(value, where), where, part)

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
        """The value of a key as an id: a string that is not empty, or a whole number."""
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
            raise IfqaError(f"{self.where}: {key!r} must be an id, a string or a whole number; found {value!r:.40}")
        return str(value)

    def texts(self, key: str) -> list[str]:
        """The value of a key, which must be a list of strings; empty ones may be among them."""
        value = self.values.get(key)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise IfqaError(f"{self.where}: {key!r} must be a list of strings, found {value!r:.60}")
        return value

    def record(self, key: str) -> "Record":
        """The value of a key, which must be an object."""
        return self._replace(values=_require_object(self.values.get(key), f"{self.where}: {key!r}"))

    def records(self, key: str) -> list["Record"]:
        """The value of a key, which must be a list of objects."""
        value = self.values.get(key)
        if not isinstance(value, list):
            raise IfqaError(f"{self.where}: {key!r} must be a list of objects, found {type(value).__name__}")
        return [self._replace(values=_require_object(element, f"{self.where}: {key!r}")) for element in value]

    def extend(self, **values: object) -> "Record":
        """The record with further values, such as those of the record that it stands in."""
        return self._replace(values=self.values | values)

    @property
    def split(self) -> str:
        """The split that the name of its file tells."""
        return parse_split(self.part.base)


def _require_object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise IfqaError(f"{where}: wanted a JSON object, found {type(value).__name__}")
    return value


class Publisher(ABC):
    """One dataset's layout. A subclass names the files, and gives what belongs to the question of a record; this class reads.

    Attributes:
        wanted: the files' names, for messages.
        files: patterns of the files with questions; of each group, the first that fits any file counts.
        beside: the pattern of files that are looked up in.
        array: None for JSON lines; else the member of the document that is the array of records, empty for the document.
        key: of a record's question.
        reads: how often a file is read, for the progress.
    """

    wanted: ClassVar[str]
    files: ClassVar[tuple[tuple[str, ...], ...]] = ()
    beside: ClassVar[str] = ""
    array: ClassVar[str | None] = None
    key: ClassVar[str] = "question"
    reads: ClassVar[int] = 1

    def __init__(self, reading: FileReader, beside: Sequence[DatasetFile], causal: CausalTest) -> None:
        """Open what is looked up in.

        Args:
            reading: opens the parts.
            beside: the parts to look up in.
            causal: whether a question is causal, so that its details will be read.
        """
        self.reading = reading
        self.causal = causal

    @classmethod
    def choose_files(cls, available: Sequence[DatasetFile]) -> list[DatasetFile]:
        """Of the parts of a folder, those that are read; empty if the dataset is not there."""
        chosen = [part for patterns in cls.files for part in match_files(available, *patterns)]
        return chosen + match_files(available, cls.beside) if chosen and cls.beside else chosen

    @classmethod
    def size(cls, chosen: Sequence[DatasetFile]) -> int:
        """Bytes that will be read, but for what is looked up in."""
        return sum(part.size * cls.reads for part in chosen if not re.fullmatch(cls.beside, part.base))

    @classmethod
    def fingerprint_lines(cls, folder: Path) -> Iterable[str]:
        """Lines for the identity of what is read beside the parts."""
        return ()

    @classmethod
    def questions(cls, reading: FileReader, chosen: Sequence[DatasetFile], causal: CausalTest) -> Candidates:
        """The questions of the chosen parts, always in the same order."""
        beside = [part for part in chosen if re.fullmatch(cls.beside, part.base)]
        publisher = cls(reading, beside, causal)
        for part in chosen:
            if part not in beside:
                for record in publisher.records(part):
                    yield Candidate(publisher.question(record), partial(publisher.details, record))

    def records(self, part: DatasetFile) -> Iterator[Record]:
        """The records of a part, one for each question."""
        if self.array is None:
            for number, line in self.reading.lines(part):
                if line and not line.isspace():
                    yield Record(decode_object(line, f"{part}:{number}", json.loads), f"{part}:{number}", part)
            return
        with self.reading.json(part) as stream:
            for _ in stream.member(self.array) if self.array else (None,):
                for _ in stream.elements():
                    where = f"{part}:{stream.line}"
                    yield Record.of(stream.value(), where, part)

    def question(self, record: Record) -> str:
        """The text of a record's question."""
        return record.text(self.key)

    @abstractmethod
    def details(self, record: Record) -> QuestionDetails:
        """What belongs to the question of a record."""


def parse_split(name: str) -> str:
    """The split that a name tells: "train", "valid", or empty (a test file)."""
    if "train" in name:
        return "train"
    return "valid" if re.search(r"dev|val", name) else ""
