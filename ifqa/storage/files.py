"""Reads and atomically writes JSON, JSON lines and TOML, and hashes files.

Errors name the file and the line.
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
from functools import partial, wraps
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, Concatenate, ParamSpec, TypeVar

from ifqa.errors import FormatError, IfqaError, MissingInput
from ifqa.progress import bar

_T = TypeVar("_T")
_P = ParamSpec("_P")


def _build_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"the key {next(key for key in keys if keys.count(key) > 1)!r} appears twice"
        )
    return record


_JSON = json.JSONDecoder(object_pairs_hook=_build_object)
_OPENERS: dict[bytes, Any] = {b"BZh": bz2.open, b"\x1f\x8b": gzip.open, b"\xfd7zXZ\x00": lzma.open}

# Bytes of an uncompressed line. The longest MediaWiki article, 2 MB, takes 12 MB if JSON escapes
# every character. A few compressed bytes can unpack to a line of GB, and 3 bytes of JSON ("{},")
# take 72 bytes of memory.
LONGEST_LINE = 1 << 24
LARGEST_JSON = 1 << 31  # bytes of a JSON file that is read as a whole


def require_file(path: Path, what: str) -> Path:
    """`path`; raises MissingInput if it does not exist, with a message that calls it a `what`."""
    if not path.exists():
        raise MissingInput(f"{what} not found: {path} does not exist", wanted=str(path))
    return path


def unpack(handle: BufferedReader) -> IO[bytes]:
    """A handle on the uncompressed bytes of a bz2, gzip, xz or plain file, recognised by its first
    bytes.
    """
    start = handle.peek(6)
    openers = (opener for magic, opener in _OPENERS.items() if start.startswith(magic))
    unpacked: IO[bytes] = next(openers, lambda plain: plain)(handle)
    return unpacked


@contextmanager
def open_unpacked(path: Path, opened: BufferedReader | None = None) -> Iterator[IO[bytes]]:
    """A handle on the uncompressed bytes of a file, which may be `opened` already.

    Raises IfqaError if the file is missing, or its compressed data is truncated or damaged.
    """
    try:
        with opened or open(require_file(path, "file"), "rb") as handle, unpack(handle) as unpacked:
            yield unpacked
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error, OSError) as error:
        # From the system, not the decompressor
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(
            f"{path}: the compressed data is truncated or damaged ({error}); fetch it again"
        ) from error


def read_lines(path: Path, opened: BufferedReader | None = None) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text, without newline, of each line of a text file.

    Opened by `open_unpacked`.

    Raises IfqaError if the file is missing, truncated or not UTF-8, or a line is too long.
    """
    number = 0
    try:
        with open_unpacked(path, opened) as lines:
            for number, raw in enumerate(
                iter(partial(lines.readline, LONGEST_LINE + 1), b""), start=1
            ):
                if len(raw) > LONGEST_LINE:
                    fault = f"a line of more than {LONGEST_LINE:,} bytes"
                    raise FormatError(f"{path}:{number}: {fault}; wanted shorter lines")
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path}:{number}: not UTF-8 ({error.reason}); save the file as UTF-8"
        ) from error


def read_jsonl(
    path: Path, opened: BufferedReader | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number (from 1) and object of each line of a JSON-lines file, without blank lines.

    Raises like `decode_object`.
    """
    for number, line in read_lines(path, opened):
        if line.strip():
            yield number, decode_object(line, f"{path}:{number}")


def decode_object(
    line: str | bytes, where: str, decode: Callable[..., Any] = _JSON.decode
) -> dict[str, Any]:
    """Decode a JSON object.

    Raises FormatError if it is not an object or has a duplicate key; `where` is its "file:line".
    """
    record = _decode(line, where, decode)
    if not isinstance(record, dict):
        raise FormatError(f"{where}: wanted a JSON object, found {type(record).__name__}")
    return record


def _decode(text: str | bytes, where: str, decode: Callable[..., Any] = _JSON.decode) -> Any:
    try:
        return decode(text)
    except (ValueError, RecursionError) as error:
        # also for duplicate keys, huge numbers and deep nesting
        raise FormatError(f"{where}: not JSON ({error})") from error


def typed_field(record: Mapping[str, object], key: str, kind: type[_T], where: str) -> _T:
    """`record[key]`.

    Raises FormatError if it is missing or not of `kind`; `where` ("file:line") opens the message.
    """
    if key not in record:
        raise FormatError(
            f"{where}: key {key!r} is missing; found {', '.join(map(repr, record)) or 'no keys'}"
        )
    value = record[key]
    if not isinstance(value, kind):
        raise FormatError(f"{where}: {key!r} must be {kind.__name__}, found {type(value).__name__}")
    return value


def text_field(record: Mapping[str, object], key: str, where: str) -> str:
    """`record[key]`, a string that is not blank; raises like `typed_field`."""
    value = typed_field(record, key, str, where)
    if not value.strip():
        raise FormatError(f"{where}: {key!r} is empty; wanted text")
    return unicode_text(value, key, where)


def texts_field(record: Mapping[str, object], key: str, where: str) -> tuple[str, ...]:
    """`record[key]`, a list of strings that are not blank; raises like `typed_field`."""
    return tuple(
        text_field({key: value}, key, where) for value in typed_field(record, key, list, where)
    )


def unicode_text(text: str, key: str, where: str) -> str:
    """`text`; raises FormatError for lone surrogates, which JSON can hold and UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = r"half a surrogate pair (\ud800 to \udfff), which is not a character"
        raise FormatError(f"{where}: {key!r} holds {half}") from error
    return text


def write_bytes(handle: IO[bytes], content: bytes) -> None:
    """Write bytes of an artifact.

    All artifacts are written through here, so that tests can interrupt them.
    """
    handle.write(content)


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Yield a handle on a temporary file beside `path`.

    On success it is flushed to disk and renamed to `path`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # it could be a link
        with open(temporary, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)  # the disk may be full
        error.filename = error.filename or str(path)
        raise


def flush_to_disk(path: Path) -> None:
    """Make a file's content survive a power failure; for files that a library wrote."""
    with open(path, "rb+") as handle:
        os.fsync(handle.fileno())


def json_line(record: Mapping[str, object]) -> bytes:
    """A record as a line of JSON; lone surrogates are escaped.

    Raises IfqaError if it is too long for `read_jsonl`.
    """
    line = json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    if len(line) > LONGEST_LINE:
        fault = (
            f"the record {line[:80].decode('utf-8', 'replace')}… has {len(line):,} bytes as a line"
        )
        raise IfqaError(f"{fault}; wanted at most {LONGEST_LINE:,}, the limit for reading")
    return line


def write_jsonl(path: Path, records: Iterable[Mapping[str, object]]) -> int:
    """Write records as JSON lines, atomically; returns their count."""
    count = 0
    with atomic_write(path) as handle:
        for record in records:
            write_bytes(handle, json_line(record))
            count += 1
    return count


def write_json(path: Path, content: object) -> None:
    """Write an indented JSON file, atomically."""
    with atomic_write(path) as handle:
        write_bytes(handle, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises IfqaError if the file is missing, not JSON, or has a duplicate key.
    """
    return _decode_file(require_file(path, "file").read_bytes(), path)


def read_packed_json(path: Path) -> Any:
    """The content of a JSON file, compressed or not.

    Raises also for more than 2 GB, to which a few MB can unpack.
    """
    with open_unpacked(path) as handle:
        content = handle.read(LARGEST_JSON + 1)
    if len(content) > LARGEST_JSON:
        raise FormatError(
            f"{path}: more than {LARGEST_JSON:,} bytes of JSON; wanted "
            "JSON lines, an object in each"
        )
    return _decode_file(content, path)


def _decode_file(content: bytes, path: Path) -> Any:
    try:
        text = content.decode(json.detect_encoding(content), "surrogatepass")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    return _decode(text, str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """The sections of a TOML file.

    Raises FormatError if the file is not TOML (the message names the line) or not UTF-8.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise FormatError(f"{path}: not TOML: {error}") from error


def sha256(path: Path, size: int = -1) -> str:
    """Hex SHA-256 of a file, or of its first `size` bytes, with a progress bar.

    Raises FormatError for a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        raise FormatError(f"{path} is not a regular file; wanted a file")
    digest = hashlib.sha256()
    with (
        open(path, "rb") as handle,
        bar(f"SHA-256 of {path.name}", path.stat().st_size, unit="bytes") as advance,
    ):
        while chunk := handle.read(min(size, 1 << 22) if size >= 0 else 1 << 22):
            digest.update(chunk)
            advance(len(chunk))
            size -= len(chunk)
    return digest.hexdigest()


def cached_by_file(
    limit: int | None = None,
) -> Callable[[Callable[Concatenate[Path, _P], _T]], Callable[Concatenate[Path, _P], _T]]:
    """Cache a function of a file and other arguments until the file's size or mtime changes.

    At most `limit` results.
    """

    def decorate(read: Callable[Concatenate[Path, _P], _T]) -> Callable[Concatenate[Path, _P], _T]:
        results: dict[tuple[object, ...], _T] = {}

        @wraps(read)
        def cached(path: Path, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
            stat = path.stat()
            key = (path.resolve(), stat.st_size, stat.st_mtime_ns, *args, *kwargs.items())
            if key not in results:
                content = read(path, *args, **kwargs)
                if len(results) == limit:
                    del results[next(iter(results))]
                results[key] = content
            return results[key]

        cached.cache_clear = results.clear  # type: ignore[attr-defined]
        return cached

    return decorate


cached_sha256 = cached_by_file()(sha256)
