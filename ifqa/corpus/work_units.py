"""The role of a source of passages, and the units of work that it gives: a unit becomes the same shard on every machine."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from ifqa.corpus.store import passage_line
from ifqa.progress import counted
from ifqa.records import Passage, Question
from ifqa.storage.resources import find_resource

VERSION = 3  # raised when a unit becomes other passages, so that older shards and corpora are not used again
PASSAGES = 20_000  # passages in a unit, where the source is cut already

#: Path, or key of a file of documents -> bytes, time of change (ns) and SHA-256, as an earlier build found them.
Known = Mapping[str, Sequence[int | str]]
#: Benchmark and splits -> the questions of each split.
QuestionsOf = Callable[[str, Sequence[str]], Sequence[Sequence[Question]]]


@dataclass
class Tally:
    """The pages or files that were left out: their number by reason, and id, title and reason of each bad one."""

    left_out: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, str]] = field(default_factory=list)

    def note(self, page_id: str, title: str, reason: str, **more: str) -> None:
        """List a bad page or file; `more` of a file says of which kind it is."""
        self.bad.append({"id": page_id, "title": title, **more, "reason": reason})

    def copy(self) -> "Tally":
        """The tally so far."""
        return Tally(Counter(self.left_out), list(self.bad))


@dataclass(frozen=True)
class FileRecord:
    """A file of documents in a build: its identity, and its passages; `reason` if it was left out.

    Attributes:
        key: a hash of its folder and of the settings that it is read with, and its name.
        bytes, modified, sha256: its size, its time of change (ns), and the hash of its bytes.
        length: bytes of the shard that are its passages.
        passages, words: how many it has.
        shard, start: where its passages are, once the shard is written.
    """

    key: str
    bytes: int
    modified: int
    sha256: str
    length: int
    passages: int
    words: int
    reason: str
    shard: Path | None = None
    start: int = 0

    @property
    def facts(self) -> tuple[int, int, str]:
        """Bytes, time of change and SHA-256, as in `Known`."""
        return self.bytes, self.modified, self.sha256


def lines_of(file: FileRecord) -> bytes:
    """The passages of a file, as they are in its shard."""
    if file.shard is None:
        return b""
    with open(file.shard, "rb") as shard:
        shard.seek(file.start)
        return shard.read(file.length)


#: Key -> record of each file of documents in a build.
FileRecords = Mapping[str, FileRecord]
NO_FILES: FileRecords = {}


@dataclass(frozen=True)
class FinishedBuild:
    """What a build's messages are about.

    Attributes:
        corpus: its name.
        left_out: number of pages and files that were left out, by reason.
        bad: id, title and reason of each that could not be read, or of each file that was left out.
        listed: the file that lists them.
        before, after: the files of documents of the build before, and of this one.
    """

    corpus: str
    left_out: Mapping[str, int]
    bad: Sequence[Mapping[str, str]]
    listed: Path
    before: FileRecords
    after: FileRecords


@dataclass(frozen=True)
class Shard:
    """The passages of a unit as lines of JSON, with counts of pages, passages and words, and what was left out.

    `files` has a record of each file of documents, in the order of their passages; it is empty for other units.
    """

    data: bytes
    pages: int
    passages: int
    words: int
    tally: Tally
    files: tuple[FileRecord, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkUnit(ABC):
    """A piece of a source that becomes a shard.

    Attributes:
        where: the file and the byte at which the unit begins; opens error messages.
        read: bytes of input in the unit.
        settings: how its content becomes passages.
        tally: what was left out while the unit was read.
        number: the number of its shard.
    """

    where: str
    read: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally)
    number: int = 0

    def __str__(self) -> str:
        return self.where

    @property
    def is_made(self) -> bool:
        """Whether it takes no work, since an earlier build made all of its passages."""
        return False

    def key(self) -> str:
        """Hex SHA-256 of everything that decides the unit's passages."""
        beside = [VERSION, self.settings, self.tally.left_out, self.tally.bad]
        digest = hashlib.sha256(json.dumps(beside).encode())
        for piece in self.hashed():
            digest.update(piece)
        return digest.hexdigest()

    @abstractmethod
    def hashed(self) -> Iterator[bytes]:
        """The content that `key` hashes."""

    @abstractmethod
    def make_shard(self) -> Shard:
        """Make the unit's passages.

        Raises:
            IfqaError: the unit is damaged or unpacks to too much, or a file changed meanwhile.
        """


def make_shard(unit: WorkUnit) -> Shard:
    """Make the passages of a unit: `WorkUnit.make_shard` as a function that another process can import."""
    return unit.make_shard()


@dataclass(frozen=True, kw_only=True)
class PassageUnit(WorkUnit):
    """Passages that are cut already."""

    content: Sequence[Passage]

    def hashed(self) -> Iterator[bytes]:
        return (hashed_text(passage.id, passage.title, passage.text) for passage in self.content)

    def make_shard(self) -> Shard:
        lines = [passage_line(passage.id, passage.title, passage.text) for passage in self.content]
        return Shard(b"".join(lines), 0, len(lines), sum(len(text.text.split()) for text in self.content), self.tally)


def passage_units(passages: Iterable[tuple[Passage, int]], where: str) -> Iterator[PassageUnit]:
    """Units of 20,000 passages; each passage comes with the bytes read so far."""
    rest, start = iter(passages), 0
    while pairs := list(islice(rest, PASSAGES)):
        end = pairs[-1][1]
        content = [passage for passage, _ in pairs]
        yield PassageUnit(content=content, where=f"{where}, from byte {start:,}", read=end - start)
        start = end


def hashed_text(text_id: str, title: str, text: str) -> bytes:
    """The bytes of a page or a passage that the key of its unit hashes."""
    return f"{text_id}\n{title}\n{len(text)}\n{text}\n".encode()


@dataclass
class Source(ABC):
    """A source of passages. Its constructor's arguments are the settings of a table [[passages.sources]]."""

    format: ClassVar[str]
    unit: ClassVar[str] = "page"  # what is counted of it
    needs: ClassVar[str] = ""  # what a run with it needs, in a table of results
    is_users_folder: ClassVar[bool] = False  # whether answers name it as the place that was searched

    @classmethod
    def open(cls, settings: Mapping[str, Any], root: Path, questions_of: QuestionsOf) -> "Source":
        """The source of checked settings; relative paths count from `root`.

        Raises:
            IfqaError: a benchmark or a split that it names is not there.
        """
        if "path" in settings and root != Path() and not Path(settings["path"]).is_absolute():
            settings = {**settings, "path": str(find_resource(settings["path"], root) or root / settings["path"])}
        return cls(**settings)

    @classmethod
    def splits_of(cls, settings: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Benchmark and split of the questions that a source of these settings reads."""
        return []

    def settings(self) -> dict[str, object]:
        """Its settings that have a default, and its format: with what it reads, its fingerprint."""
        names = (setting.name for setting in fields(self) if setting.init and setting.default is not MISSING)
        return {name: getattr(self, name) for name in names} | {"format": self.format}

    def check(self) -> None:
        """Refuse a source that cannot be read, before any work is done.

        Raises:
            IfqaError: a file is missing, or settings do not fit together.
        """
        self.files()

    @abstractmethod
    def work_units(self, earlier: FileRecords = NO_FILES) -> Iterator[WorkUnit]:
        """The units of the source, in its order.

        Args:
            earlier: files of documents in the build before, whose passages can be used again.
        """

    def sample(self) -> Iterator[WorkUnit]:
        """Units by which the passages of all are estimated; by default the first."""
        return islice(self.work_units(), 1)

    @abstractmethod
    def fingerprint(self, known: Known) -> dict[str, object]:
        """The settings and the hash of all that is read; where the files are does not matter.

        Args:
            known: hashes of an earlier build, used where hashing takes long.
        """

    def files(self) -> list[Path]:
        """Its few files in the order in which they are read."""
        return []

    def size(self) -> int:
        """Bytes of all that it reads."""
        return 0

    def facts(self) -> dict[str, tuple[int, int, str]]:
        """Of each of its few files what `Known` holds, for the manifest."""
        return {}

    def summary(self, build: FinishedBuild) -> Iterator[str]:
        """What is said of a build."""
        bad = sum("kind" not in page for page in build.bad)
        if bad:
            yield f"{counted(bad, 'bad page')}: {build.listed}"

    def why_empty(self, build: FinishedBuild) -> str:
        """Why a build of this source gave no passage."""
        if not build.left_out:
            return "check the sources in its file"
        counts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(build.left_out.items()))
        first = f"; the first bad one, {build.bad[0]['title']!r}: {build.bad[0]['reason']}" if build.bad else ""
        return f"pages left out: {counts}{first}"
