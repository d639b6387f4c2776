"""How the files of a publisher are read: one reader and one set of checks for all; a dataset says where a record has what."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from ifqa.errors import IfqaError
from ifqa.formats.publishers.parts import Part, Reading, matching
from ifqa.storage.files import decode_object, field


class Rest(NamedTuple):
    """What belongs to a question.

    `split` is the publisher's, "train" or "valid"; "both" if the publisher has none, so that the random one stands for it;
    empty for a question of neither; of the authors' release, the name of the split.
    """

    id: str
    context: str
    answers: Sequence[str]
    split: str


class Candidate(NamedTuple):
    """A question and a function that gives the rest. Only causal questions are asked for it."""

    question: str
    rest: Callable[[], Rest]


Candidates = Generator[Candidate, None, None]
Causal = Callable[[str], bool]


class Record(NamedTuple):
    """A JSON object of a part; `where` ("file:line") opens the messages about its values."""

    values: dict[str, object]
    where: str
    part: Part

    @classmethod
    def of(cls, value: object, where: str, part: Part) -> "Record":
        """A decoded value, if it is an object."""
        return cls(_object(value, where), where, part)

    def text(self, key: str) -> str:
        """The value of a key, which must be text."""
        return field(self.values, key, str, self.where)

    def number(self, key: str) -> int:
        """The value of a key, which must be a whole number."""
        return field(self.values, key, int, self.where)

    def optional(self, key: str) -> str:
        """The value of a key as text; empty if it is null or missing."""
        return "" if self.values.get(key) is None else field(self.values, key, str, self.where)

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
        return self._replace(values=_object(self.values.get(key), f"{self.where}: {key!r}"))

    def records(self, key: str) -> list["Record"]:
        """The value of a key, which must be a list of objects."""
        value = self.values.get(key)
        if not isinstance(value, list):
            raise IfqaError(f"{self.where}: {key!r} must be a list of objects, found {type(value).__name__}")
        return [self._replace(values=_object(element, f"{self.where}: {key!r}")) for element in value]

    @property
    def split(self) -> str:
        """The split that the name of its file tells."""
        return split_of(self.part.base)


def _object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise IfqaError(f"{where}: wanted a JSON object, found {type(value).__name__}")
    return value


class Publisher(ABC):
    """One dataset's layout. A subclass names the files and gives the questions of a record; this class reads.

    Attributes:
        wanted: the files' names, for messages.
        files: patterns of the files with questions; of each group, the first that fits any file counts.
        beside: the pattern of files that are looked up in.
        array: None for JSON lines; else the member of the document that is the array of records, empty for the document.
        reads: how often a file is read, for the progress.
    """

    wanted: ClassVar[str]
    files: ClassVar[tuple[tuple[str, ...], ...]] = ()
    beside: ClassVar[str] = ""
    array: ClassVar[str | None] = None
    reads: ClassVar[int] = 1

    def __init__(self, reading: Reading, beside: Sequence[Part], causal: Causal) -> None:
        """Open what is looked up in.

        Args:
            reading: opens the parts.
            beside: the parts to look up in.
            causal: whether a question will be asked for its rest.
        """
        self.reading = reading
        self.causal = causal

    @classmethod
    def choose(cls, available: Sequence[Part]) -> list[Part]:
        """Of the parts of a folder, those that are read; empty if the dataset is not there."""
        chosen = [part for patterns in cls.files for part in matching(available, *patterns)]
        return chosen + matching(available, cls.beside) if chosen and cls.beside else chosen

    @classmethod
    def size(cls, chosen: Sequence[Part]) -> int:
        """Bytes that will be read, but for what is looked up in."""
        return sum(part.size * cls.reads for part in chosen if not re.fullmatch(cls.beside, part.base))

    @classmethod
    def identity(cls, folder: Path) -> Iterable[str]:
        """Lines for the identity of what is read beside the parts."""
        return ()

    @classmethod
    def questions(cls, reading: Reading, chosen: Sequence[Part], causal: Causal) -> Candidates:
        """The questions of the chosen parts, always in the same order."""
        beside = [part for part in chosen if re.fullmatch(cls.beside, part.base)]
        publisher = cls(reading, beside, causal)
        for part in chosen:
            if part not in beside:
                for record in publisher.records(part):
                    yield from publisher.candidates(record)

    def records(self, part: Part) -> Iterator[Record]:
        """The records of a part."""
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

    @abstractmethod
    def candidates(self, record: Record) -> Iterable[Candidate]:
        """The questions of a record."""


def split_of(name: str) -> str:
    """The split that a name tells: "train", "valid", or empty (a test file)."""
    if "train" in name:
        return "train"
    return "valid" if re.search(r"dev|val", name) else ""
