"""A stage that fails before it has a result leaves nothing: neither an empty draft nor a folder that it made."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError
from ifqa.storage.artifacts import lock
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
                    _tidy(experiment.folder, whole=not was_there)

    return tidied


def _tidy(folder: Path, whole: bool) -> None:
    for draft in (partial(folder / stage) for stage in _STAGES):
        if draft.is_dir() and not draft.is_symlink() and all(map(_is_nothing, draft.iterdir())):
            shutil.rmtree(draft)
    if whole and {path.name for path in folder.iterdir()} <= _NO_RESULT:
        shutil.rmtree(folder)


def _is_nothing(path: Path) -> bool:
    """Whether a file of a draft holds no result yet."""
    return path.is_file() and not path.is_symlink() and (path.name == INPUTS or not path.stat().st_size)
