"""Sources of passages, and their units of work; a unit becomes the same shard on every machine."""

import hashlib
import json
import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

from ifqa.corpus.passage_store import passage_line
from ifqa.corpus.wikipedia.dump_download import fetch_hint
from ifqa.errors import ConfigError, MissingInput
from ifqa.formatting import pluralize
from ifqa.protocols import PassageSource
from ifqa.records import Passage, Question
from ifqa.settings import PluginSettings, as_section, setting_fields
from ifqa.storage.files import cached_sha256
from ifqa.storage.resources import find_resource

# Raise it when a unit yields other passages, so that older shards and corpora are not reused
VERSION = 3
PASSAGES = 20_000  # passages in a unit of a source that is split already
_UNREADABLE = (".7z", ".zst", ".zip", ".rar")  # endings of archives
# bytes: a source of at most this size is hashed by every command, like a small artifact
_SMALL = 64_000_000
_SAMPLED = 12  # files of a source that are sampled

#: Path, or key of a document -> bytes, time of change (ns) and SHA-256 at the last build.
KnownFiles = Mapping[str, Sequence[int | str]]
#: Benchmark and splits -> the questions of each split.
QuestionLoader = Callable[[str, Sequence[str]], Sequence[Sequence[Question]]]


@dataclass
class SkippedPages:
    """The skipped pages or files: their number by reason, and the id, title and reason of each bad
    one.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, str]] = field(default_factory=list)

    def leave_out(self, page_id: str, title: str, reason: str, kind: str = "") -> None:
        """Count and list a bad page, or a skipped file with its kind."""
        self.left_out[kind or "bad"] += 1
        self.bad.append(
            {"id": page_id, "title": title} | ({"kind": kind} if kind else {}) | {"reason": reason}
        )

    def copy(self) -> "SkippedPages":
        return SkippedPages(Counter(self.left_out), list(self.bad))


@dataclass(frozen=True)
class FileRecord:
    """A document in a build: its fingerprint, and its passages.

    `reason` says why it was skipped, if so.
    """

    key: str  # a hash of its folder and of the source's settings, and its name
    bytes: int
    modified: int  # time of change (ns)
    sha256: str
    length: int  # bytes of its passages in the shard
    passages: int
    words: int
    reason: str
    shard: Path | None = None  # the file of its passages, once they are written
    start: int = 0
    unread: str = ""  # parts of a read file that were left out, in words

    @property
    def facts(self) -> tuple[int, int, str]:
        """Its entry in `KnownFiles`."""
        return self.bytes, self.modified, self.sha256


#: Key -> record of each document in a build.
FileRecords = Mapping[str, FileRecord]


@dataclass(frozen=True)
class BuildReport:
    """The facts that a build's messages report."""

    corpus: str
    left_out: Mapping[str, int]  # number of skipped pages and files, by reason
    # id, title and reason of each unreadable page, or of each skipped file
    bad: Sequence[Mapping[str, str]]
    listed: Path  # the file that lists them
    before: FileRecords  # the documents of the previous build
    after: FileRecords  # the documents of this build


@dataclass(frozen=True)
class Shard:
    """The passages of a unit as lines of JSON, their counts, and the skipped pages."""

    lines: bytes
    pages: int
    passages: int
    words: int
    tally: SkippedPages
    files: tuple[FileRecord, ...] = ()  # of documents, in the order of their passages
    revisions: bytes = b""  # of a dump's pages (`ifqa.corpus.repeated_pages`)


@dataclass(frozen=True, kw_only=True)
class WorkUnit(ABC):
    """A piece of a source that becomes a shard."""

    where: str  # the file and the byte offset of the unit; opens error messages
    read: int  # bytes of input
    settings: Mapping[str, Any] = field(default_factory=dict)  # how its content becomes passages
    # Pages skipped while the unit was read
    tally: SkippedPages = field(default_factory=SkippedPages)
    number: int = 0  # of its shard

    def __str__(self) -> str:
        return self.where

    @property
    def is_current(self) -> bool:
        """Whether all its passages can be copied from an earlier build."""
        return False

    def key(self) -> str:
        """Hex SHA-256 of everything that decides the unit's passages."""
        header = [VERSION, self.settings, self.tally.left_out, self.tally.bad]
        digest = hashlib.sha256(json.dumps(header).encode())
        for chunk in self.content_to_hash():
            digest.update(chunk)
        return digest.hexdigest()

    @abstractmethod
    def content_to_hash(self) -> Iterator[bytes]:
        """The content that `key` hashes."""

    @abstractmethod
    def make_shard(self) -> Shard:
        """Make its passages.

        Raises IfqaError if the input is damaged, unpacks to too much, or changed during the build.
        """


def make_shard(unit: WorkUnit) -> Shard:
    """Make the shard of a unit; a function of a module, so that another process can call it."""
    return unit.make_shard()


@dataclass(frozen=True, kw_only=True)
class PassageUnit(WorkUnit):
    """Passages of a source that is split already."""

    content: Sequence[Passage]

    def content_to_hash(self) -> Iterator[bytes]:
        return (text_to_hash(passage.id, passage.title, passage.text) for passage in self.content)

    def make_shard(self) -> Shard:
        lines = [passage_line(passage.id, passage.title, passage.text) for passage in self.content]
        words = sum(len(passage.text.split()) for passage in self.content)
        return Shard(b"".join(lines), 0, len(lines), words, self.tally)


def passage_units(passages: Iterable[tuple[Passage, int]], where: str) -> Iterator[PassageUnit]:
    """Units of 20,000 passages; each passage comes with the bytes read so far."""
    iterator = iter(passages)
    start = 0
    while pairs := list(islice(iterator, PASSAGES)):
        end = pairs[-1][1]
        content = [passage for passage, _ in pairs]
        yield PassageUnit(content=content, where=f"{where}, from byte {start:,}", read=end - start)
        start = end


def text_to_hash(text_id: str, title: str, text: str) -> bytes:
    """The bytes that stand for a page or a passage in the key of its unit."""
    return f"{text_id}\n{title}\n{len(text)}\n{text}\n".encode()


class Source(PassageSource, ABC):
    """A source whose input is cut into units, each of which becomes a shard."""

    format: ClassVar[str]  # the name by which corpus files know it
    settings: PluginSettings  # of its section [[passages.sources]]

    def identity_settings(self) -> dict[str, object]:
        """The format, and the settings with a default: a part of the identity.

        The others say where the input is.
        """
        optional = {
            name: value
            for name, value in as_section(self.settings).items()
            if not setting_fields(type(self.settings))[name].is_required()
        }
        return optional | {"format": self.format}

    def check(self) -> None:
        """Raise an error if a file is missing or settings contradict each other."""
        self.files()

    @abstractmethod
    def work_units(self, earlier: FileRecords | None = None) -> Iterator[WorkUnit]:
        """The units of the source, in order.

        `earlier` has documents of the previous build, whose passages can be reused.
        """

    def sample(self) -> Iterator[WorkUnit]:
        """Units from which the size of the whole source is estimated; by default the first."""
        return islice(self.work_units(), 1)

    @abstractmethod
    def identity(self, known: KnownFiles) -> dict[str, object]:
        """The settings and the input's hashes, but not its place.

        `known` has hashes of an earlier build, for large files.
        """

    def files(self) -> list[Path]:
        """Its files, in reading order; empty for documents, which may be many."""
        return []

    def hashes(self, known: KnownFiles) -> dict[str, str]:
        """Key -> SHA-256 of each of a user's documents; `known` as above."""
        return {}

    def size(self) -> int:
        """Bytes of its input."""
        return 0

    def facts(self) -> dict[str, tuple[int, int, str]]:
        """The `KnownFiles` entry of each of `files`, for the manifest."""
        return {}

    def summary(self, build: BuildReport) -> Iterator[str]:
        """The lines to log after a build."""
        if bad := sum("kind" not in page for page in build.bad):
            yield f"{pluralize(bad, 'bad page')}: {build.listed}"

    def explain_empty(self, build: BuildReport) -> str:
        """Why a build of this source yielded no passage."""
        if not build.left_out:
            return "check the sources in its file"
        counts = ", ".join(
            f"{count:,} {reason}" for reason, count in sorted(build.left_out.items())
        )
        example = (
            f"; for example {build.bad[0]['title']!r}: {build.bad[0]['reason']}"
            if build.bad
            else ""
        )
        return f"pages left out: {counts}{example}"


class FileSettings(PluginSettings):
    """The settings of a source of files."""

    path: str
    """A file, a folder, or a pattern; a relative one starts at the root."""


class FileSource(Source):
    """A source of a few files, ordered by the numbers in their names: part 2 before part 10.

    A pattern has `*`, `?` or `[...]`, or `**` for all subfolders; a file or folder of exactly that
    name takes precedence.
    """

    takes = ("root",)
    names: ClassVar[re.Pattern[str]]  # the files to read in a folder
    # For messages; begins with "no", as a folder without such files holds none
    wanted: ClassVar[str]

    def __init__(self, settings: FileSettings, *, root: Path = Path()) -> None:
        self.settings = settings
        self.path = find_input(settings.path, root)

    @abstractmethod
    def read_units(self, file: Path) -> Iterator[WorkUnit]:
        """The units of a file."""

    def work_units(self, earlier: FileRecords | None = None) -> Iterator[WorkUnit]:
        return chain.from_iterable(map(self.read_units, self.files()))

    def sample(self) -> Iterator[WorkUnit]:
        """The first unit of each of about a dozen files."""
        step = max(1, len(self.files()) // _SAMPLED)
        return chain.from_iterable(
            islice(self.read_units(file), 1) for file in self.files()[::step]
        )

    def identity(self, known: KnownFiles) -> dict[str, object]:
        """The settings, and the files' hashes.

        Only sources over 64 MB use `known`: hashing 20 GB takes a minute.
        """
        known = known if self.size() > _SMALL else {}
        return self.identity_settings() | {
            "files": [_describe_file(path, known)[2] for path in self.files()]
        }

    def files(self) -> list[Path]:
        return self._files

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.files())

    def facts(self) -> dict[str, tuple[int, int, str]]:
        return {str(path): _describe_file(path, {}) for path in self.files()}

    @cached_property
    def _files(self) -> list[Path]:
        path = self.path
        if re.search(r"[*?\[]", path) and not Path(path).exists():
            files = sort_files(_glob_files(path))
        else:
            existing = find_resource(path) or (Path(path) if Path(path).is_dir() else None)
            if existing is None:
                where = "does not exist" if Path(path).is_absolute() else f"is not in {Path.cwd()}"
                raise MissingInput(f"passage source not found: {path} {where}; {fetch_hint(path)}")
            files = self.list_folder(existing) if existing.is_dir() else [existing]
        beside = sorted(Path(path).iterdir()) if not files and Path(path).is_dir() else []
        if packed := next(
            (file for file in [*files, *beside] if file.suffix.lower() in _UNREADABLE), None
        ):
            raise MissingInput(
                f"{packed} is packed in a way that ifqa does not read; unpack it, and name "
                "the file inside"
            )
        if not files:
            raise MissingInput(
                f"passage source not found: {path} holds {self.wanted}; {fetch_hint(path)}"
            )
        return files

    def list_folder(self, folder: Path) -> list[Path]:
        """The files to read in a folder, in order."""
        return sort_files(file for file in walk_files(folder) if self.names.fullmatch(file.name))


def find_input(path: str, root: Path) -> str:
    """A path of a corpus file: as it is below the working directory, else below `root`.

    What ships with ifqa is found, too.
    """
    if root == Path() or Path(path).is_absolute():
        return path
    return str(find_resource(path, root) or root / path)


def _glob_files(pattern: str) -> Iterator[Path]:
    top = Path(Path(pattern).anchor or ".")
    # A ValueError of pathlib up to Python 3.12
    if any("**" in part and part != "**" for part in Path(pattern).parts):
        raise ConfigError(
            f"passage source {pattern!r} is not a pattern: wanted * in a "
            "name, or ** for all subfolders"
        )
    return top.glob(str(Path(pattern).relative_to(top)) if top.anchor else pattern)


def sort_files(candidates: Iterable[Path]) -> list[Path]:
    """The files among the candidates, ordered by the numbers in their names."""

    def numbers(name: str) -> list[tuple[int, str]]:
        return [(len(part), part) for part in re.findall(r"\d+|\D+", name)]

    files = (path for path in candidates if path.is_file())
    return sorted(files, key=lambda file: (numbers(file.name), numbers(str(file.parent))))


def walk_files(path: Path) -> Iterator[Path]:
    """The files of a folder and its subfolders, following links; each folder is read once."""
    # Two links to a parent folder make 2^40 paths before the system stops
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(path, onerror=_raise_error, followlinks=True):
        stat = Path(folder).stat()
        if (stat.st_dev, stat.st_ino) in seen:
            folders.clear()
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders.sort()  # so that the first path is the same on every machine
        yield from (Path(folder, name) for name in names)


def _raise_error(error: OSError) -> None:
    raise error  # by default, os.walk skips folders that it may not read


def _describe_file(path: Path, known: KnownFiles) -> tuple[int, int, str]:
    """Bytes, time of change (ns) and SHA-256 of a file.

    The hash comes from `known` if the other two are the same there.
    """
    stat = path.stat()
    earlier = known.get(str(path))
    if earlier and earlier[:2] == [stat.st_size, stat.st_mtime_ns]:
        return stat.st_size, stat.st_mtime_ns, str(earlier[2])
    return stat.st_size, stat.st_mtime_ns, cached_sha256(path)
