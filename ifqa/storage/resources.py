"""Tracked files that ship with the program, such as `experiments/sample.toml`, and where they are looked for."""

from pathlib import Path

PACKAGE = Path(__file__).parent.parent
BUNDLED = PACKAGE / "bundled"  # the sample, trained weights, prices, recordings; in a wheel also the tracked files


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
    checkout = [PACKAGE.parent] if (PACKAGE.parent / "pyproject.toml").is_file() else []
    return [Path.cwd(), *checkout, BUNDLED]
