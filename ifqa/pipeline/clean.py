"""Lists and removes the folders of variants, experiments/NAME+KEY=VALUE/, which flags and limits made."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from ifqa.config.experiment import bases
from ifqa.pipeline.probe import FOLDER as PROBED
from ifqa.pipeline.probe import LOSSES, PROBES, SCORE
from ifqa.storage.artifacts import MANIFEST, lock
from ifqa.storage.replacing import ONLY_THERE

_STAGES = {name for stage in ("retrieve", "read", "score") for name in (stage, f".{stage}.partial", f".{stage}.old")}
_PROBES = {name for one in (*PROBES, SCORE) for name in (one, f".{one}.partial", f".{one}.old")}
_BESIDE = {"experiment.toml", ".experiment.toml.tmp", ".lock"}
_FILES = {
    MANIFEST,
    *ONLY_THERE,
    "run.trec",
    "passages.jsonl",
    "predictions.jsonl",
    "scores.json",
    "per_question.jsonl",
    LOSSES,
}
_FILES |= {f".{name}.tmp" for name in _FILES}  # left by a killed run


@dataclass(frozen=True)
class Variant:
    """A variant's folder, its size in bytes, and why it must be kept; empty if it may be removed."""

    folder: Path
    size: int
    kept: str = ""


def variants(experiments: Path = Path("experiments")) -> list[Variant]:
    """All variants, by name. An experiment with a file of its own is no variant."""
    folders = [folder for folder in sorted(experiments.glob("*+*")) if folder.is_dir()]
    return [_variant(folder) for folder in folders if bases(folder.name, experiments.parent)]


def _variant(folder: Path) -> Variant:
    if folder.is_symlink():
        return Variant(folder, 0, "a link, whose target may be anything")
    if not (folder / "experiment.toml").is_file():
        return Variant(folder, _size(folder), "no experiment.toml: not made by a flag")
    strange = sorted(path.relative_to(folder) for path in folder.rglob("*") if not _is_ours(path, folder))
    return Variant(folder, _size(folder), f"holds {strange[0]}, which no stage makes" if strange else "")


def _is_ours(path: Path, folder: Path) -> bool:
    """Whether a run writes such a file, or such a folder, into the folder of a variant."""
    if path.is_symlink():
        return False
    if path.parent == folder:
        return path.name in (_STAGES | {PROBED} if path.is_dir() else _BESIDE)
    probed = folder / PROBED
    if path.parent == probed:
        return path.name in _PROBES if path.is_dir() else path.name == ".lock"
    of_stage = path.parent.parent == folder and path.parent.name in _STAGES
    of_probe = path.parent.parent == probed and path.parent.name in _PROBES
    return (of_stage or of_probe) and path.name in _FILES and path.is_file()


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def remove(variant: Variant) -> Variant:
    """Remove a variant's folder, unless it must be kept; gives the variant, with the reason if it is kept.

    Raises:
        IfqaError: another process is at work in it.
    """
    if variant.kept:
        return variant
    with lock(variant.folder):
        now = _variant(variant.folder)
        if not now.kept:
            shutil.rmtree(variant.folder)
    return now
