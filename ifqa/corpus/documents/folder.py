"""Lists the files of a folder of documents, and those to skip. It writes nothing into the folder
and follows no links.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from stat import S_ISLNK, S_ISREG

from ifqa.corpus.documents.decoding import is_binary
from ifqa.corpus.documents.readers import READERS, suffix_of
from ifqa.errors import ConfigError, IfqaError, MissingInput
from ifqa.storage.artifacts import MANIFEST
from ifqa.storage.files import read_json

_MB = 1_000_000
_SNIFFED = 4096  # bytes of a file without an ending
_LONGEST_MANIFEST = 64 * _MB  # a corpus of documents lists its files there
_REPORTS = {("experiments", name) for name in ("RESULTS.md", "RESULTS.jsonl", "report.html")}


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file to read, or, with a `kind` and a `reason`, a file or folder to skip."""

    path: str
    name: str  # its path relative to the folder, with slashes
    size: int = 0
    modified: int = 0  # time of change (ns), also of one that kept the modification time
    # "hidden", "link", "large", "other" (type), "closed" (no permission), "special" (a pipe, a
    # device) or "ifqa"
    kind: str = ""
    reason: str = ""


def require_documents(docs: str | Path, root: Path = Path()) -> Path:
    """The folder or file of `--docs`, relative to `root`."""
    path = root / os.path.expanduser(docs)  # noqa: PTH111 - Path's own raises an error for an unknown user
    if not path.exists():
        raise MissingInput(
            f"--docs {docs}: there is no {path.absolute()}; name a folder of documents, or a file"
        )
    try:
        str(path.resolve()).encode()
    except UnicodeEncodeError as error:
        message = (
            f"--docs {docs}: its path is not UTF-8, so a settings file cannot contain it; rename it"
        )
        raise ConfigError(message) from error
    return path


def scan_folder(
    top: Path, include: Sequence[str], exclude: Sequence[str], max_mb: float
) -> Iterator[FolderFile]:
    """The files of a folder (or the single file `top`) in path order, with those to skip.

    A skipped folder is not entered.

    Only files that match `include` (empty for all) are read; files and folders that match `exclude`
    are not listed.
    """
    resolved = top.resolve()
    if any(_is_artifact(folder) for folder in (resolved, *resolved.parents)):
        yield FolderFile(str(top), top.name, kind="ifqa", reason="written by ifqa")
        return
    if not top.is_dir():
        yield _classify_file(str(top), top.name, max_mb, named=True)
        return
    errors: list[OSError] = []
    for parent, folders, names in os.walk(top, onerror=errors.append):
        below = "" if parent == str(top) else f"{Path(parent).relative_to(top).as_posix()}/"
        entered = []
        for name in sorted(folders):
            path = os.path.join(parent, name)  # noqa: PTH118 - a Path costs more than the rest
            if _matches_any(below + name, exclude):
                continue
            if exclusion := _folder_exclusion(path, name):
                yield FolderFile(path, below + name, kind=exclusion[0], reason=exclusion[1])
            else:
                entered.append(name)
        folders[:] = entered
        for name in sorted(names):
            if not _matches_any(below + name, exclude):
                file = _classify_file(os.path.join(parent, name), below + name, max_mb)  # noqa: PTH118
                if not include or file.kind == "link" or _matches_any(file.name, include):
                    yield file
    for error in errors:
        name = Path(error.filename).relative_to(top).as_posix()
        yield FolderFile(
            str(error.filename), name, kind="closed", reason=f"cannot be read ({error.strerror})"
        )


def _folder_exclusion(path: str, name: str) -> tuple[str, str] | None:
    """Kind and reason of a folder to skip; None for one to enter."""
    if os.path.islink(path):  # noqa: PTH114 - Path's own raises an error for a path that is too long
        return "link", "a link; links are not followed"
    if name.startswith("."):
        return "hidden", "a hidden folder"
    return ("ifqa", "a folder that ifqa wrote") if _is_artifact(Path(path)) else None


def _is_artifact(folder: Path) -> bool:
    """Whether ifqa wrote a folder: its manifest has `inputs` and a `record`."""
    path = folder / MANIFEST
    try:
        if not path.is_file() or path.stat().st_size > _LONGEST_MANIFEST:
            return False
        manifest = read_json(path)
    except (IfqaError, OSError):  # another program's manifest, or an unreadable one
        return False
    return isinstance(manifest, dict) and all(
        isinstance(manifest.get(key), dict) for key in ("inputs", "record")
    )


def _classify_file(path: str, name: str, max_mb: float, named: bool = False) -> FolderFile:
    suffix = suffix_of(name)
    kind = ""
    reason = ""
    try:
        stat = os.stat(path, follow_symlinks=named)  # noqa: PTH116
    except OSError as error:
        return FolderFile(path, name, kind="closed", reason=f"cannot be read ({error.strerror})")
    if S_ISLNK(stat.st_mode):
        kind, reason = "link", "a link; links are not followed"
    elif not named and name.rpartition("/")[2].startswith((".", "~$")):
        kind, reason = "hidden", "a hidden file"
    elif not S_ISREG(stat.st_mode):
        kind, reason = "special", "a pipe or a device; wanted a file"
    elif tuple(Path(path).parts[-2:]) in _REPORTS:
        kind, reason = "ifqa", "a report that ifqa wrote"
    elif suffix == ".toml" and Path(path).parent.name == "indexes":
        kind, reason = "ifqa", "a corpus file of ifqa"
    elif suffix not in READERS:
        kind = "other"
        reason = f"no kind of document that is read ({suffix})"
    elif stat.st_size > max_mb * _MB:
        kind = "large"
        reason = f"{stat.st_size / _MB:,.0f} MB, more than max_mb = {max_mb:g}"
    elif not os.access(path, os.R_OK):
        kind, reason = "closed", "no permission to read it"
    elif not suffix and is_binary(_first_bytes(path)):
        kind, reason = "other", "no kind of document that is read (no ending)"
    return FolderFile(
        path, name, stat.st_size, max(stat.st_mtime_ns, stat.st_ctime_ns), kind, reason
    )


def _first_bytes(path: str) -> bytes:
    """The first bytes of a file.

    None if it cannot be read, for the reason that its reader reports.
    """
    try:
        with open(path, "rb") as handle:
            return handle.read(_SNIFFED)
    except OSError:
        return b""


def _matches_any(name: str, patterns: Sequence[str]) -> bool:
    """Whether a relative path matches a pattern, in any case.

    One without a slash is matched against the path's last part.
    """
    stripped = [pattern.rstrip("/").lower() for pattern in patterns]
    name = name.lower()
    last = name.rpartition("/")[2]
    return any(fnmatchcase(name if "/" in pattern else last, pattern) for pattern in stripped)
