"""Files that stages meet on: JSON, JSON lines, TREC runs, TOML, bundled resources.

Reading streams and names the file and line of whatever is wrong. Writing goes aside and is renamed into place, so a
file that has its name is whole.
"""

import bz2
import gzip
import hashlib
import json
import lzma
import math
import os
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ifqa.errors import IfqaError
from ifqa.records import Hit

_OPENERS: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open, ".xz": lzma.open}


def require(path: Path, what: str) -> Path:
    """`path` if it is there, else one line saying `what` was looked for.

    Raises:
        IfqaError: nothing is at `path`.
    """
    if not path.exists():
        raise IfqaError(f"{what} not found: {path} does not exist")
    return path


def open_read(path: Path) -> IO[bytes]:
    """Open a plain, .bz2 (multistream too), .gz or .xz file for reading bytes."""
    opened: IO[bytes] = _OPENERS.get(path.suffix, open)(path, "rb")
    return opened


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Line number (from 1) and text of each line, without its newline, of a text file, compressed or not.

    Raises:
        IfqaError: the file is missing, cut short or not UTF-8.
    """
    number = 0
    try:
        with open_read(require(path, "file")) as handle:
            for number, raw in enumerate(handle, start=1):
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise IfqaError(f"{path}:{number}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not the data's fault
            raise
        raise IfqaError(
            f"{path}: compressed data ends or breaks after line {number} ({error}); fetch it again"
        ) from error


def read_jsonl(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and object of each line of a JSON-lines file; blank lines are passed over.

    Raises:
        IfqaError: the file is missing, or a line is not a JSON object (named as file:line).
    """
    for number, line in read_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise IfqaError(f"{path}:{number}: not JSON ({error.msg} at column {error.colno})") from error
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets in brackets
            raise IfqaError(f"{path}:{number}: not JSON that can be read ({error})") from error
        if not isinstance(record, dict):
            raise IfqaError(f"{path}:{number}: wanted a JSON object, found {type(record).__name__}")
        yield number, record


def field(record: dict[str, Any], key: str, kind: type, where: str) -> Any:
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


def text_field(record: dict[str, Any], key: str, where: str) -> str:
    """`record[key]`, which must be a string with something in it.

    Raises:
        IfqaError: the key is missing, not a string, or blank.
    """
    value: str = field(record, key, str, where)
    if not value.strip():
        raise IfqaError(f"{where}: {key!r} is empty; wanted text")
    return unicode_text(value, key, where)


def texts_field(record: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
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
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise IfqaError(f"{where}: {key!r} holds half a surrogate pair (\\ud800 to \\udfff), which is no character")
    return text


def write(handle: IO[bytes], data: bytes) -> None:
    """Every byte of every artifact this program writes itself goes through here (the crash tests cut it)."""
    handle.write(data)


@contextmanager
def create(path: Path) -> Iterator[IO[bytes]]:
    """A handle on a temporary sibling of `path`, flushed to disk and renamed to `path` on leaving without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.tmp")
    with open(aside, "wb") as handle:
        yield handle
        handle.flush()
        os.fsync(handle.fileno())
    os.replace(aside, path)


def json_line(record: dict[str, Any]) -> bytes:
    """A record as one line of JSON, the same bytes for the same content."""
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def write_jsonl(path: Path, records: Iterable[dict[str, Any]]) -> int:
    """Write records as JSON lines, atomically; returns how many."""
    count = 0
    with create(path) as handle:
        for record in records:
            write(handle, json_line(record))
            count += 1
    return count


def keep_whole_lines(path: Path, multiple_of: int = 1) -> int:
    """Cut a file of JSON lines that a killed process left behind to its whole lines, a multiple of so many; how many."""
    if not path.exists():
        return 0
    with open(path, "r+b") as handle:
        ends = [0]
        for line in handle:
            if line.endswith(b"\n"):
                ends.append(ends[-1] + len(line))
        kept = (len(ends) - 1) // multiple_of * multiple_of
        handle.truncate(ends[kept])
    return kept


def write_json(path: Path, value: Any) -> None:
    """Write one indented JSON file, atomically."""
    with create(path) as handle:
        write(handle, json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n")


def read_json(path: Path) -> Any:
    """The value of a JSON file.

    Raises:
        IfqaError: the file is missing or not JSON (named as file:line).
    """
    try:
        return json.loads(require(path, "file").read_bytes())
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
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError
        raise IfqaError(f"{path}: not TOML: {error}") from error


def write_run(path: Path, rankings: dict[str, list[Hit]], tag: str) -> None:
    """Write a TREC run: `question Q0 passage rank score tag`, rank from 1, best first.

    Scores are written with `repr`, so that reading them back gives the same floats. trec_eval sorts by score and not by
    rank, so scores may not rise from one rank to the next.

    Raises:
        IfqaError: they do, or a passage stands twice in a ranking.
    """
    with create(path) as handle:
        for question_id, hits in rankings.items():
            scores = [float(hit.score) for hit in hits]  # a plug's may be numpy's
            if scores != sorted(scores, reverse=True) or len({hit.passage_id for hit in hits}) < len(hits):
                raise IfqaError(
                    f"ranking of {question_id}: scores rise, or a passage stands twice; wanted the best first, once"
                )
            for rank, (hit, score) in enumerate(zip(hits, scores, strict=True), start=1):
                write(handle, f"{question_id} Q0 {hit.passage_id} {rank} {score!r} {tag}\n".encode())


def read_run(path: Path) -> dict[str, list[Hit]]:
    """A TREC run as rankings by question, ordered by score as trec_eval does; equal scores keep the order of the file.

    Raises:
        IfqaError: a line has not six fields, a score is no number, or a passage stands twice in a ranking.
    """
    rankings: dict[str, dict[str, float]] = {}
    for number, line in read_lines(path):
        if not line.strip():
            continue
        fields = line.split()
        if len(fields) != 6:
            raise IfqaError(
                f"{path}:{number}: wanted 6 fields (question Q0 passage rank score tag), found {len(fields)}"
            )
        question_id, _, passage_id, _, score, _ = fields
        ranking = rankings.setdefault(question_id, {})
        if passage_id in ranking:
            raise IfqaError(f"{path}:{number}: passage {passage_id} stands twice in the ranking of {question_id}")
        try:
            ranking[passage_id] = float(score)
        except ValueError:
            ranking[passage_id] = math.nan
        if not math.isfinite(ranking[passage_id]):
            raise IfqaError(f"{path}:{number}: score {score!r} is not a number")
    return {
        question_id: sorted((Hit(*pair) for pair in ranking.items()), key=lambda hit: -hit.score)
        for question_id, ranking in rankings.items()
    }


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def find_resource(name: str) -> Path | None:
    """A tracked file such as `experiments/sample.toml`: in the working directory, then the repository, then the package.

    The repository is where an editable install or a checkout runs from; a wheel carries the same files inside the
    package under `bundled/`. None when it is in none of them.
    """
    return next((root / name for root in _roots() if (root / name).is_file()), None)


def list_resources(folder: str, suffix: str) -> dict[str, Path]:
    """Name without suffix -> path of every tracked file of a folder, the nearer place hiding the farther."""
    found: dict[str, Path] = {}
    for root in reversed(_roots()):
        found |= {path.name.removesuffix(suffix): path for path in sorted((root / folder).glob(f"*{suffix}"))}
    return found


def _roots() -> list[Path]:
    package = Path(__file__).parent
    checkout = [package.parent] if (package.parent / "pyproject.toml").is_file() else []
    return [Path.cwd(), *checkout, package, package / "bundled"]
