"""Files that stages meet on: JSON, JSON lines, TOML.

Reading streams and names the file and line of whatever is wrong. Writing goes aside and is renamed into place, so a
file that has its name is whole.
"""

import bz2
import gzip
import hashlib
import json
import lzma
import os
import tomllib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, TypeVar

from ifqa.errors import IfqaError
from ifqa.progress import bar

_T = TypeVar("_T")


def _with_keys_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice")
    return table


_JSON = json.JSONDecoder(object_pairs_hook=_with_keys_once)
_PACKERS: dict[bytes, Any] = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}


# Bytes of a line, unpacked. An article at MediaWiki's limit of 2 MB has 12 MB if JSON escapes all of it; 1 MB of packed
# blanks can be a line of 7 GB.
LONGEST_LINE = 1 << 26


def require(path: Path, what: str) -> Path:
    """`path` if it is there, else one line saying `what` was looked for.

    Raises:
        IfqaError: nothing is at `path`.
    """
    if not path.exists():
        raise IfqaError(f"{what} not found: {path} does not exist")
    return path


def unpack(handle: BufferedReader) -> IO[bytes]:
    """What a handle holds, unpacked as its first bytes ask."""
    first = handle.peek(6)[:6]
    opened: IO[bytes] = next((opener(handle) for magic, opener in _PACKERS.items() if first.startswith(magic)), handle)
    return opened


def read_lines(
    path: Path, opened: BufferedReader | None = None, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, str]]:
    """Line number (from 1) and text of each line, without its newline, of a text file, compressed or not.

    `opened` is the file where it is open already, `longest` the bytes that a line may have.

    Raises:
        IfqaError: the file is missing, cut short or not UTF-8, or a line is too long.
    """
    number = 0
    try:
        with opened or open(require(path, "file"), "rb") as handle, unpack(handle) as lines:
            for number, raw in enumerate(iter(partial(lines.readline, longest + 1), b""), start=1):
                if len(raw) > longest:
                    raise IfqaError(f"{path}:{number}: a line of more than {longest:,} bytes; wanted shorter lines")
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise IfqaError(f"{path}:{number}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not the data's fault
            raise
        raise IfqaError(
            f"{path}: compressed data ends or breaks after line {number} ({error}); fetch it again"
        ) from error


def read_jsonl(path: Path, opened: BufferedReader | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and object of each line of a JSON-lines file; blank lines are passed over.

    Raises:
        IfqaError: the file is missing, or a line is not a JSON object (named as file:line).
    """
    for number, line in read_lines(path, opened):
        if not line.strip():
            continue
        try:
            record = _JSON.decode(line)
        except json.JSONDecodeError as error:
            raise IfqaError(f"{path}:{number}: not JSON ({error.msg} at column {error.colno})") from error
        except (
            ValueError,
            RecursionError,
        ) as error:  # a key twice, a number of thousands of digits, brackets in brackets
            raise IfqaError(f"{path}:{number}: not JSON that can be read ({error})") from error
        if not isinstance(record, dict):
            raise IfqaError(f"{path}:{number}: wanted a JSON object, found {type(record).__name__}")
        yield number, record


def field(record: Mapping[str, object], key: str, kind: type[_T], where: str) -> _T:
    """`record[key]`, checked to be of `kind`.

    Raises:
        IfqaError: the key is missing or of another type; `where` ("file:line") opens the message.
    """
    if key not in record:
        raise IfqaError(f"{where}: key {key!r} is missing; found {', '.join(map(repr, record)) or 'no keys'}")
    value = record[key]
    if not isinstance(value, kind):
        raise IfqaError(f"{where}: {key!r} must be {kind.__name__}, found {type(value).__name__}")
    return value


def text_field(record: Mapping[str, object], key: str, where: str) -> str:
    """`record[key]`, which must be a string with something in it.

    Raises:
        IfqaError: the key is missing, not a string, or blank.
    """
    value = field(record, key, str, where)
    if not value.strip():
        raise IfqaError(f"{where}: {key!r} is empty; wanted text")
    return unicode_text(value, key, where)


def texts_field(record: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    """`record[key]`, which must be a list of strings.

    Raises:
        IfqaError: the key is missing, not a list, or holds something else than strings with something in them.
    """
    values = field(record, key, list, where)
    for value in values:
        if not isinstance(value, str):
            raise IfqaError(f"{where}: {key!r} must be a list of strings, found {type(value).__name__} in it")
        if not value.strip():
            raise IfqaError(f"{where}: {key!r} holds an empty string")
    return tuple(unicode_text(value, key, where) for value in values)


def unicode_text(text: str, key: str, where: str) -> str:
    """The text of a field, if every character of it is one.

    Raises:
        IfqaError: half a surrogate pair is among them, which JSON can write and nothing can encode.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise IfqaError(
            f"{where}: {key!r} holds half a surrogate pair (\\ud800 to \\udfff), which is no character"
        ) from error
    return text


def write(handle: IO[bytes], data: bytes) -> None:
    """Every byte of every artifact this program writes itself goes through here (the crash tests cut it)."""
    handle.write(data)


def open_new(path: Path) -> IO[bytes]:
    """A new file, opened for writing. A file or link that is there is removed first, so a link is never written through."""
    path.unlink(missing_ok=True)
    return open(path, "xb")


@contextmanager
def create(path: Path) -> Iterator[IO[bytes]]:
    """A handle on a temporary sibling of `path`, flushed to disk and renamed to `path` on leaving without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.tmp")
    try:
        with open_new(aside) as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)  # on a full disk it is in the way of everything else
        error.filename = error.filename or str(path)
        raise


def json_line(record: Mapping[str, object]) -> bytes:
    """A record as one line of JSON, the same bytes for the same content."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def write_jsonl(path: Path, records: Iterable[Mapping[str, object]]) -> int:
    """Write records as JSON lines, atomically; returns how many."""
    count = 0
    with create(path) as handle:
        for record in records:
            write(handle, json_line(record))
            count += 1
    return count


def keep_whole_lines(
    path: Path, multiple_of: int = 1, fits: Callable[[int, dict[str, Any]], bool] = lambda number, record: True
) -> int:
    """Cut a file of JSON lines that a killed process left behind to its whole lines, a multiple of so many; how many.

    It ends before the first line that is no JSON object, or does not fit: `fits` is told its number, from 0, and what it holds.
    """
    if not path.exists():
        return 0
    with open(path, "r+b") as handle:
        ends = [0]
        for number, line in enumerate(handle):
            record = _object(line)
            if record is None or not line.endswith(b"\n") or not fits(number, record):
                break
            ends.append(ends[-1] + len(line))
        kept = (len(ends) - 1) // multiple_of * multiple_of
        handle.truncate(ends[kept])
    return kept


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def write_json(path: Path, value: object) -> None:
    """Write one indented JSON file, atomically."""
    with create(path) as handle:
        write(handle, json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        IfqaError: the file is missing or not JSON (named as file:line).
    """
    try:
        data = require(path, "file").read_bytes()
        return _JSON.decode(data.decode(json.detect_encoding(data), "surrogatepass"))
    except json.JSONDecodeError as error:
        raise IfqaError(f"{path}:{error.lineno}: not JSON ({error.msg} at column {error.colno})") from error
    except UnicodeDecodeError as error:
        raise IfqaError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise IfqaError(f"{path}: not JSON that can be read ({error})") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        IfqaError: the file is not TOML; the line is in the message.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise IfqaError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise IfqaError(f"{path}: not TOML: {error}") from error


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes.

    Raises:
        IfqaError: it is a device or a pipe, which may have no end, or a folder.
    """
    _require_regular(path)
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def known_sha256(path: Path) -> str:
    """The same, hashed once in a process while the file keeps its size and time of change; with a bar, for it may be large."""
    _require_regular(path)
    stat = path.stat()
    return _sha256(path, stat.st_size, stat.st_mtime_ns)


def _require_regular(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise IfqaError(f"{path} is not a regular file; wanted a file")


@cache
def _sha256(path: Path, size: int, modified: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as handle, bar(f"SHA-256 of {path.name}", size, unit="bytes") as advance:
        while chunk := handle.read(1 << 22):
            digest.update(chunk)
            advance(len(chunk))
    return digest.hexdigest()
