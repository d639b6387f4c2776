"""What the layouts of the ten datasets share: the parts of a folder, opened and counted, and the questions they give."""

import json
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, cast

from ifqa.errors import IfqaError
from ifqa.storage.files import read_lines, unpack
from ifqa.storage.json_stream import JsonStream

_SUFFIXES = re.compile(r"\.(gz|bz2|xz)$")
_LEFT_OUT = {"evidence", "__MACOSX"}  # TriviaQA's documents are 650,000 files, opened by name


class Rest(NamedTuple):
    """What belongs to a question. `split` is "train", "valid" or "both", the publisher's; empty if it is of neither.

    "both": the publisher gives no split, so the random one stands for it.
    """

    id: str
    context: str
    answers: Sequence[str]
    split: str


class Found(NamedTuple):
    """A question and a function that gives the rest. Only causal questions are asked for it."""

    question: str
    rest: Callable[[], Rest]


#: A piece of a file that was not parsed yet. A build that goes on passes over units without parsing them.
Unit = Callable[[], Iterable[Found]]
Causal = Callable[[str], bool]


@dataclass(frozen=True)
class Part:
    """A file of a publisher, or a member of a zip archive.

    `name` is its path below the dataset's folder without the suffix of a packer; for a member of NAME.zip, NAME/MEMBER.
    """

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


class Layout(NamedTuple):
    """How one publisher lays out a dataset.

    Attributes:
        title: the dataset's name in the paper.
        wanted: the files' names, for messages.
        choose: of the parts of a folder, those that are read; empty if the dataset is not there.
        units: the pieces of these parts, always in the same order.
        aside: lines for the identity of what is read beside the parts.
    """

    title: str
    wanted: str
    choose: Callable[[Sequence[Part]], list[Part]]
    units: Callable[["Reading", Sequence[Part], Causal], Iterator[Unit]]
    aside: Callable[[Path], Iterable[str]] = lambda folder: ()


def parts(folder: Path) -> list[Part]:
    """All files below a folder, and the members of its zip archives, by name; without hidden files.

    Raises:
        IfqaError: an archive is damaged.
    """
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT and not name.startswith("."))
        for file in files:
            path = Path(place, file)
            if not file.startswith(".") and path.is_file():
                found += list(_members(path, folder)) if file.endswith(".zip") else [_part(path, folder)]
    return sorted(found, key=lambda part: part.name)


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


def matching(found: Sequence[Part], *patterns: str) -> list[Part]:
    """The parts whose last piece fits the first pattern that any of them fits.

    Raises:
        IfqaError: two of them have the same name, so that its questions would count twice.
    """
    for pattern in patterns:
        chosen = [part for part in found if re.fullmatch(pattern, part.base)]
        names = [part.base for part in chosen]
        for one, other in zip(chosen, chosen[1:], strict=False):
            if names.count(one.base) > 1:
                raise IfqaError(f"{one} and {other}: two files of one name; keep one of them")
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
                share = part.size / max(self._length(part), 1)
                self._now = lambda: handle.tell() * share
                yield handle
        except zipfile.BadZipFile as error:
            raise IfqaError(f"{part}: the archive is damaged ({error}); fetch it again") from error
        finally:
            self._now = lambda: 0
            self._done += part.size

    def _handle(self, part: Part) -> BufferedReader:
        if not part.member:
            return open(part.path, "rb")
        if part.path not in self._archives:
            self._archives[part.path] = self._stack.enter_context(zipfile.ZipFile(part.path))
        try:
            return cast(BufferedReader, self._archives[part.path].open(part.member))
        except (RuntimeError, NotImplementedError) as error:  # encrypted, or another kind of packing
            raise IfqaError(f"{part}: cannot be read ({error}); unpack the archive and remove it") from error

    def _length(self, part: Part) -> int:
        return self._archives[part.path].getinfo(part.member).file_size if part.member else part.size

    def lines(self, part: Part) -> Iterator[tuple[int, str]]:
        """Number and text of each line of a part, packed or not.

        Raises:
            IfqaError: as `read_lines`.
        """
        with self.open(part) as handle:
            yield from read_lines(Path(str(part)), handle)

    @contextmanager
    def json(self, part: Part) -> Iterator[JsonStream]:
        """A cursor in a part that is one JSON document, packed or not.

        Raises:
            IfqaError: the file is damaged.
        """
        with self.open(part) as handle, unpack(handle) as unpacked:
            try:
                yield JsonStream(Path(str(part)), unpacked)
            except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
                if isinstance(error, OSError) and error.errno is not None:  # not the data's fault
                    raise
                raise IfqaError(f"{part}: compressed data ends or breaks ({error}); fetch it again") from error


Parse = Callable[[dict[str, Any], str], Iterable[Found]]  # of a record and its place, "file:line"


def json_lines(reading: Reading, chosen: Sequence[Part], parse: Callable[[Part], Parse]) -> Iterator[Unit]:
    """A unit for each line of parts in JSON lines; `parse` gives the function for a part's records."""
    for part in chosen:
        function, name = parse(part), str(part)
        for number, line in reading.lines(part):
            if line and not line.isspace():
                yield partial(_parsed, function, line, name, number)


def _parsed(parse: Parse, line: str, name: str, number: int) -> Iterable[Found]:
    where = f"{name}:{number}"
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise IfqaError(f"{where}: not JSON ({error.msg} at column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise IfqaError(f"{where}: not JSON that can be read ({error})") from error
    return parse(mapping(record, where), where)


def json_elements(stream: JsonStream, part: Part, parse: Parse) -> Iterator[Unit]:
    """A unit for each element of the array at the stream's cursor."""
    for _ in stream.elements():
        where = f"{part}:{stream.line}"
        yield partial(_element, parse, stream.value(), where)


def _element(parse: Parse, record: object, where: str) -> Iterable[Found]:
    return parse(mapping(record, where), where)


def in_member(stream: JsonStream, part: Part, key: str) -> Iterator[None]:
    """Go into the document's member `key`.

    Raises:
        IfqaError: there is no such member.
    """
    keys = []
    for name in stream.members():
        keys.append(name)
        if name == key:
            yield
    if key not in keys:
        raise IfqaError(f"{part}: key {key!r} is missing; found {', '.join(map(repr, keys[:9])) or 'no keys'}")


def mapping(record: object, where: str) -> dict[str, Any]:
    """A record, if it is an object.

    Raises:
        IfqaError: it is something else.
    """
    if not isinstance(record, dict):
        raise IfqaError(f"{where}: wanted a JSON object, found {type(record).__name__}")
    return record


def any_text(record: dict[str, Any], key: str, where: str) -> str:
    """`record[key]` as text; empty if it is null or missing.

    Raises:
        IfqaError: it is neither text nor null.
    """
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise IfqaError(f"{where}: {key!r} must be a string, found {type(value).__name__}")
    return value or ""


def identifier(record: dict[str, Any], key: str, where: str) -> str:
    """`record[key]` as an id: a string that is not empty, or a whole number.

    Raises:
        IfqaError: it is missing or something else.
    """
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise IfqaError(f"{where}: {key!r} must be an id, a string or a whole number; found {value!r:.40}")
    return str(value)


def objects(record: dict[str, Any], key: str, where: str) -> list[dict[str, Any]]:
    """`record[key]`, which must be a list of objects.

    Raises:
        IfqaError: it is missing or something else.
    """
    value = record.get(key)
    if not isinstance(value, list):
        raise IfqaError(f"{where}: {key!r} must be a list of objects, found {type(value).__name__}")
    return [mapping(one, f"{where}: {key!r}") for one in value]


def strings(record: dict[str, Any], key: str, where: str) -> list[str]:
    """`record[key]`, which must be a list of strings; empty ones may be among them.

    Raises:
        IfqaError: it is missing or something else.
    """
    value = record.get(key)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise IfqaError(f"{where}: {key!r} must be a list of strings, found {value!r:.60}")
    return value


def split_of(name: str) -> str:
    """The split that a file's name tells: "train", "valid", or empty (a test file)."""
    if re.search(r"train", name):
        return "train"
    return "valid" if re.search(r"dev|val", name) else ""
