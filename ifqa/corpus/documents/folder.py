"""The files of a folder of documents, and what is left out. Nothing is written into the folder, and no link is followed."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISREG

from ifqa.corpus.documents.readers import READERS
from ifqa.errors import IfqaError
from ifqa.storage.artifacts import MANIFEST
from ifqa.storage.files import read_json

_MB = 1_000_000
_LONGEST_MANIFEST = 64 * _MB  # a corpus of documents lists its files there
_REPORTS = {("experiments", name) for name in ("RESULTS.md", "RESULTS.jsonl", "report.html")}


@dataclass(frozen=True, slots=True)
class File:
    """A file of a folder, or, with a reason, a file or folder that is left out.

    Attributes:
        path: where it is.
        name: its path below the folder, with slashes.
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


def scan(top: Path, include: Sequence[str], exclude: Sequence[str], max_mb: float) -> Iterator[File]:
    """The files of a folder in the order of their paths, and what is left out; a folder that is left out is not looked into.

    Args:
        top: a folder, or a single file.
        include, exclude: patterns of files that are read, or not; of both, and of folders.
        max_mb: megabytes of the largest file that is read.
    """
    resolved = top.resolve()
    if any(_is_artifact(folder) for folder in (resolved, *resolved.parents)):
        yield File(str(top), top.name, kind="ifqa", reason="written by ifqa")
        return
    if not top.is_dir():
        yield _judged(str(top), top.name, top.stat(), max_mb, named=True)
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
            yield File(place, below or ".", kind="closed", reason=f"cannot be read ({error.strerror})")
            continue
        if (stat.st_dev, stat.st_ino) in seen:
            yield File(place, below, kind="loop", reason="a folder that was read by another path")
            continue
        seen.add((stat.st_dev, stat.st_ino))
        folders = []
        for entry in entries:
            name = f"{below}{entry.name}"
            if any(_fits(name, pattern) for pattern in exclude):
                continue
            if entry.is_symlink():
                yield File(entry.path, name, kind="link", reason="a link; links are not followed")
            elif entry.is_dir(follow_symlinks=False):
                if entry.name.startswith("."):
                    yield File(entry.path, name, kind="hidden", reason="a hidden folder")
                elif _is_artifact(Path(entry.path)):
                    yield File(entry.path, name, kind="ifqa", reason="a folder that ifqa wrote")
                else:
                    folders.append((entry.path, f"{name}/"))
            else:
                try:
                    file = _judged(entry.path, name, entry.stat(follow_symlinks=False), max_mb)
                except OSError as error:
                    file = File(entry.path, name, kind="closed", reason=f"cannot be read ({error.strerror})")
                if not include or any(_fits(name, pattern) for pattern in include):
                    yield file
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


def _judged(path: str, name: str, stat: os.stat_result, max_mb: float, named: bool = False) -> File:
    kind = reason = ""
    suffix = suffix_of(name)
    if not named and name.rpartition("/")[2].startswith((".", "~$")):
        kind, reason = "hidden", "a hidden file"
    elif not S_ISREG(stat.st_mode):
        kind, reason = "special", "a pipe or a device; wanted a file"
    elif tuple(Path(path).parts[-2:]) in _REPORTS:
        kind, reason = "ifqa", "a report that ifqa wrote"
    elif suffix not in READERS:
        kind, reason = "other", f"no kind of document that is read ({suffix or 'no ending'})"
    elif stat.st_size > max_mb * _MB:
        kind = "large"
        reason = f"{stat.st_size / _MB:,.0f} MB, more than max_mb = {max_mb:g}"
    elif not os.access(path, os.R_OK):
        kind, reason = "closed", "no permission to read it"
    return File(path, name, stat.st_size, stat.st_mtime_ns, kind, reason)


def _fits(name: str, pattern: str) -> bool:
    """Whether a path below the folder fits a pattern; one without a slash is held against the last part of the path."""
    pattern = pattern.rstrip("/")
    return fnmatchcase(name if "/" in pattern else name.rpartition("/")[2], pattern)


def suffix_of(name: str) -> str:
    """The end of a file's name from its last dot on, in lower case."""
    _, dot, suffix = name.rpartition("/")[2].rpartition(".")
    return (dot + suffix).lower()
