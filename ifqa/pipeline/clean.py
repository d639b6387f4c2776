"""What flags and limits left behind: the folders of variants, `experiments/NAME+CHANGE/`."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.storage.artifacts import lock

# All that a run leaves in the folder of a variant.
_OURS = {"experiment.toml", ".lock"} | {
    name for stage in ("retrieve", "read", "score") for name in (stage, f".{stage}.partial", f".{stage}.old")
}


@dataclass(frozen=True)
class Variant:
    """A variant's folder, its size in bytes, and why it is kept; empty where nothing speaks for that."""

    folder: Path
    size: int
    kept: str = ""


def variants(experiments: Path = Path("experiments")) -> list[Variant]:
    """The folders of all variants, by name."""
    return [_variant(folder) for folder in sorted(experiments.glob("*+*")) if folder.is_dir()]


def _variant(folder: Path) -> Variant:
    if folder.is_symlink():
        return Variant(folder, 0, "a link, whose target may be anything")
    if not (folder / "experiment.toml").is_file():
        return Variant(folder, _size(folder), "no experiment.toml: not made by a flag")
    strange = sorted(path.name for path in folder.iterdir() if path.name not in _OURS or path.is_symlink())
    return Variant(folder, _size(folder), f"holds {strange[0]}, which no stage makes" if strange else "")


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def remove(variant: Variant) -> None:
    """Remove a variant's folder, unless something speaks for keeping it.

    Raises:
        IfqaError: another process is at work in it, or something else lies in it by now.
    """
    if variant.kept:
        return
    with lock(variant.folder):
        if (now := _variant(variant.folder)).kept:
            raise IfqaError(f"{variant.folder} is left as it is: {now.kept}")
        shutil.rmtree(variant.folder)
