"""Tracked files that ship with the program, such as `experiments/sample.toml`, and where they are looked for."""

from pathlib import Path

PACKAGE = Path(__file__).parent.parent
BUNDLED = PACKAGE / "bundled"  # the sample, trained weights, prices, recordings; in a wheel also the tracked files


def find_resource(name: str, root: Path = Path()) -> Path | None:
    """A tracked file such as `experiments/sample.toml`: below `root`, then in the repository, then in the package.

    The repository is where an editable install or a checkout runs from; a wheel carries the same files inside the
    package under `bundled/`. None when it is in none of them.
    """
    return next((place / name for place in _places(root) if (place / name).is_file()), None)


def list_resources(folder: str, suffix: str, root: Path = Path()) -> dict[str, Path]:
    """Name without suffix -> path of every tracked file of a folder, the nearer place hiding the farther."""
    found: dict[str, Path] = {}
    for place in reversed(_places(root)):
        found |= {path.name.removesuffix(suffix): path for path in sorted((place / folder).glob(f"*{suffix}"))}
    return found


def _places(root: Path) -> list[Path]:
    checkout = [PACKAGE.parent] if (PACKAGE.parent / "pyproject.toml").is_file() else []
    return [root.absolute(), *checkout, BUNDLED]
