"""A stage that fails before it has a result leaves nothing: neither an empty draft nor a folder that it made."""

import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError
from ifqa.storage.artifacts import MANIFEST, lock
from ifqa.storage.replacing import INPUTS, partial

_STAGES = ("retrieve", "read", "score")
_NO_RESULT = {".lock", "experiment.toml"}  # in the folder of an experiment

_P = ParamSpec("_P")
_R = TypeVar("_R")


def tidying(stage: Callable[Concatenate[Experiment, _P], _R]) -> Callable[Concatenate[Experiment, _P], _R]:
    """A decorator for a stage of an experiment, which then tidies up where it fails. What can be resumed is kept."""

    @wraps(stage)
    def tidied(experiment: Experiment, /, *args: _P.args, **named: _P.kwargs) -> _R:
        was_there, done = experiment.folder.exists(), False
        try:
            result = stage(experiment, *args, **named)
            done = True
            return result
        finally:
            if not done and experiment.folder.is_dir():
                with suppress(IfqaError), lock(experiment.folder):  # another process may be at work there
                    _tidy(experiment, whole=not was_there)

    return tidied


def _tidy(experiment: Experiment, whole: bool) -> None:
    folder = experiment.folder
    for draft in (partial(folder / stage) for stage in _STAGES):
        if draft.is_dir() and not draft.is_symlink() and all(map(_is_nothing, draft.iterdir())):
            shutil.rmtree(draft)
    copied = {stage for stage in _STAGES if _is_copy(folder / stage, experiment.relatives(stage))}
    if whole and {path.name for path in folder.iterdir()} <= _NO_RESULT | copied:
        shutil.rmtree(folder)


def _is_copy(stage: Path, others: Sequence[Path]) -> bool:
    """Whether a stage was taken over from another experiment, which still has it."""
    manifests = [(one / MANIFEST).read_bytes() for one in (stage, *others) if (one / MANIFEST).is_file()]
    return (stage / MANIFEST).is_file() and manifests[0] in manifests[1:]


def _is_nothing(path: Path) -> bool:
    """Whether a file of a draft holds no result yet."""
    return path.is_file() and not path.is_symlink() and (path.name == INPUTS or not path.stat().st_size)
