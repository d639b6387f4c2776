"""A folder of documents as a source of passages. Nothing is written into it, and no link is followed."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import Annotated, NamedTuple

from pydantic import Field

from ifqa.corpus.documents import pdf
from ifqa.corpus.documents.reading import READERS, VERSION, Cutting, File, Made
from ifqa.errors import IfqaError
from ifqa.settings import Natural, Positive
from ifqa.storage.artifacts import MANIFEST
from ifqa.storage.files import read_json, sha256

#: Key of a file, `of/name` -> bytes, time of change (ns) and SHA-256, as an earlier build found them.
Known = Mapping[str, Sequence[int | str]]
_MB = 1_000_000
_LONGEST_MANIFEST = 64 * _MB  # a corpus of documents lists its files there
_REPORTS = {("experiments", name) for name in ("RESULTS.md", "RESULTS.jsonl", "report.html")}


class Found(NamedTuple):
    """A file of a folder, or, with a reason, a file or folder that is left out.

    Attributes:
        path: where it is.
        name: its path below the folder.
        size: bytes.
        modified: time of change (ns).
        kind: "hidden", "link", "large", "other" (no kind of document), "closed" (no permission), "special" (a pipe, a device),
            "loop" (a folder that contains itself), "ifqa" (written by this program); empty for a file to read.
        reason: why it is left out.
    """

    path: str
    name: str
    size: int = 0
    modified: int = 0
    kind: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Folder:
    """The settings of a source of format "documents"."""

    path: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    max_mb: float
    cutting: Cutting

    @property
    def of(self) -> str:
        """A hash of all that decides a file's passages beside its bytes and its name."""
        made = json.dumps([VERSION, str(Path(self.path).absolute()), asdict(self.cutting)], sort_keys=True)
        return hashlib.sha256(made.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def folder(
    path: str,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    words: Positive = 100,
    overlap: Natural = 0,
    columns: Sequence[str] = (),
    max_mb: Annotated[float, Field(gt=0)] = 50.0,
) -> Folder:
    """Read a user's own documents: .txt, .md, .rst, .html, .pdf (with pypdfium2), .docx, .epub, .csv, .tsv, .jsonl, .log.

    Args:
        path: a folder, which is read with all folders below it, or a file.
        include: patterns such as "*.pdf" or "reports/*"; a file that fits none is not read. Empty: all.
        exclude: patterns of files and folders that are not read.
        words: words of a passage, about; it ends at the end of a sentence.
        overlap: words of whole sentences that a passage shares with the one before; less than `words`.
        columns: the columns of tables that are read. Empty: all.
        max_mb: megabytes of the largest file that is read.
    """
    return Folder(path, tuple(include), tuple(exclude), max_mb, Cutting(words, overlap, tuple(columns)))


def existing(docs: str | Path, root: Path = Path()) -> Path:
    """The folder or file that `--docs` names, below `root` if it is relative, as a settings file can name it.

    Raises:
        IfqaError: there is none, or its name is not UTF-8.
    """
    try:
        place = root / Path(docs).expanduser()
    except RuntimeError as error:
        raise IfqaError(f"--docs {docs}: there is no such user; name a folder of documents, or a file") from error
    if not place.exists():
        raise IfqaError(f"--docs {docs}: there is no {place.absolute()}; name a folder of documents, or a file")
    try:
        str(place.resolve()).encode()
    except UnicodeEncodeError as error:
        raise IfqaError(
            f"--docs {docs}: its path is not UTF-8, and no file of settings can hold it; rename it"
        ) from error
    return place


def check(source: Folder) -> None:
    """Refuse a folder that is not there, or an overlap as long as a passage.

    Raises:
        IfqaError: it is so.
    """
    if not Path(source.path).exists():
        raise IfqaError(f"documents not found: there is no {Path(source.path).absolute()}; name a folder, or a file")
    if source.cutting.overlap >= source.cutting.words:
        raise IfqaError(
            f"overlap = {source.cutting.overlap}: wanted fewer words than a passage has, {source.cutting.words}"
        )


def found(source: Folder) -> Iterator[Found]:
    """The files of a folder in the order of their paths, and what is left out; a folder that is left out is not looked into."""
    top = Path(source.path)
    resolved = top.resolve()
    if any(_is_artifact(folder) for folder in (resolved, *resolved.parents)):
        yield Found(str(top), top.name, kind="ifqa", reason="written by ifqa")
        return
    if not top.is_dir():
        yield _judged(str(top), top.name, top.stat(), source, named=True)
        return
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[str, str]] = [(str(top), "")]
    while waiting:
        place, below = waiting.pop()
        try:
            stat = Path(place).stat()
            with os.scandir(place) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            yield Found(place, below or ".", kind="closed", reason=f"cannot be read ({error.strerror})")
            continue
        if (stat.st_dev, stat.st_ino) in seen:
            yield Found(place, below, kind="loop", reason="a folder that was read by another path")
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders = []
        for entry in entries:
            name = f"{below}{entry.name}"
            if any(_fits(name, pattern) for pattern in source.exclude):
                continue
            if entry.is_symlink():
                yield Found(entry.path, name, kind="link", reason="a link; links are not followed")
            elif entry.is_dir(follow_symlinks=False):
                if entry.name.startswith("."):
                    yield Found(entry.path, name, kind="hidden", reason="a hidden folder")
                elif _is_artifact(Path(entry.path)):
                    yield Found(entry.path, name, kind="ifqa", reason="a folder that ifqa wrote")
                else:
                    folders.append((entry.path, f"{name}/"))
            else:
                try:
                    yield from _wanted(_judged(entry.path, name, entry.stat(follow_symlinks=False), source), source)
                except OSError as error:
                    yield Found(entry.path, name, kind="closed", reason=f"cannot be read ({error.strerror})")
        waiting += reversed(folders)


def _is_artifact(folder: Path) -> bool:
    """Whether ifqa wrote a folder (an index, a stage, a trained model): its manifest has `inputs` and a `record`."""
    path = folder / MANIFEST
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST_MANIFEST:
            return False
        manifest = read_json(path)
    except (IfqaError, OSError):  # a manifest of another program, or none that can be read
        return False
    return isinstance(manifest, dict) and all(isinstance(manifest.get(key), dict) for key in ("inputs", "record"))


def _wanted(one: Found, source: Folder) -> Iterator[Found]:
    if not source.include or any(_fits(one.name, pattern) for pattern in source.include):
        yield one


def _judged(path: str, name: str, stat: os.stat_result, source: Folder, named: bool = False) -> Found:
    kind = reason = ""
    suffix = _suffix(name)
    if not named and name.rpartition("/")[2].startswith((".", "~$")):
        kind, reason = "hidden", "a hidden file"
    elif not S_ISREG(stat.st_mode):
        kind, reason = "special", "a pipe or a device; wanted a file"
    elif tuple(Path(path).parts[-2:]) in _REPORTS:
        kind, reason = "ifqa", "a report that ifqa wrote"
    elif suffix not in READERS:
        kind, reason = "other", f"no kind of document that is read ({suffix or 'no ending'})"
    elif stat.st_size > source.max_mb * _MB:
        kind = "large"
        reason = f"{stat.st_size / _MB:,.0f} MB, more than max_mb = {source.max_mb:g}"
    elif not os.access(path, os.R_OK):
        kind, reason = "closed", "no permission to read it"
    return Found(path, name, stat.st_size, stat.st_mtime_ns, kind, reason)


def _fits(name: str, pattern: str) -> bool:
    """Whether a path below the folder fits a pattern; one without a slash is held against the last part of the path."""
    pattern = pattern.rstrip("/")
    return fnmatchcase(name if "/" in pattern else name.rpartition("/")[2], pattern)


def files(source: Folder, known: Known, made: Mapping[str, Made] | None = None) -> Iterator[File]:
    """The files to read, with their hashes; those of a known size and time of change are not hashed again.

    Args:
        source: the folder.
        known: the files of an earlier build.
        made: key -> passages that the earlier build made.

    Raises:
        IfqaError: one is a PDF, and pypdfium2 is not installed.
    """
    made = made or {}
    for one, key, digest, known_digest in _digests(source, known):
        passages = made.get(key) if digest and digest == known_digest else None
        yield File(Path(one.path), one.name, one.size, one.modified, digest, key, passages)


def _digests(source: Folder, known: Known) -> Iterator[tuple[Found, str, str, str]]:
    """Each file to read, its key, its SHA-256, and the SHA-256 that an earlier build found; files as known are not hashed.

    The SHA-256 of a file that cannot be read is empty.
    """
    of = source.of
    for one in found(source):
        if one.kind:
            continue
        if _suffix(one.name) == ".pdf":
            pdf.require_library(one.path)
        before = known.get(key := f"{of}/{one.name}") or (0, 0, "")
        same = (one.size, one.modified) == tuple(before[:2]) and before[2]
        try:
            digest = str(before[2]) if same else _sha256(one.path, one.size, one.modified)
        except FileNotFoundError:  # it was removed since the folder was listed
            continue
        except OSError:  # `os.access` does not know of all that forbids reading; its reader says what
            digest = ""
        yield one, key, digest, str(before[2])


def _suffix(name: str) -> str:
    _, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return (dot + suffix).lower()


def left_out(source: Folder) -> Iterator[dict[str, str]]:
    """The name, kind and reason of each file or folder that is left out before it is read."""
    for one in found(source):
        if one.kind:
            yield {"id": one.name, "title": one.name, "kind": one.kind, "reason": one.reason}


def identity(source: Folder, known: Known) -> str:
    """A hash of the names and bytes of the files to read."""
    digest = hashlib.sha256()
    for one, _, sha, _ in _digests(source, known):
        digest.update(f"{sha} {one.name}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def size(source: Folder) -> int:
    """Bytes of all files to read."""
    return sum(one.size for one in found(source) if not one.kind)


@cache
def _sha256(path: str, size: int, modified: int) -> str:
    return sha256(Path(path))
