"""The arguments of the Python functions: the folder that names count from, and an experiment with settings changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ifqa.config.experiment import Experiment, load_experiment
from ifqa.config.variants import FLAGS, Changes, override
from ifqa.errors import IfqaError, unknown

Settings = Mapping[str, Any]


def experiment_from(name: str, root: str | Path, settings: Settings | None, changes: Changes) -> Experiment:
    """The experiment of a name, with settings changed by keyword arguments, as flags change them, and by `settings`.

    Raises:
        IfqaError: there is no such experiment or folder, or an argument or a setting is wrong.
    """
    if strange := changes.keys() - FLAGS:
        raise unknown("argument", min(strange), [*FLAGS, "root", "settings"])
    if settings is not None and not (isinstance(settings, Mapping) and all(isinstance(key, str) for key in settings)):
        raise IfqaError(f'settings: wanted a dictionary such as {{"retriever.k1": 1.2}}, found {settings!r:.80}')
    given = {FLAGS[flag]: value for flag, value in changes.items() if value is not None}
    return override(load_experiment(name, existing_folder(root)), given | dict(settings or {}))


def existing_folder(root: str | Path) -> Path:
    """The folder that names and relative paths count from.

    Raises:
        IfqaError: it is no path, or not there.
    """
    if not isinstance(root, str | Path):
        raise IfqaError(f"root: wanted the path of a folder, found {root!r:.80}")
    if not Path(root).is_dir():
        raise IfqaError(f"root {str(root)!r}: no such folder; make it first")
    return Path(root)
