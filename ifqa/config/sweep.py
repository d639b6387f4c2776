"""Sweeps: an experiment with every combination of several values, each once or once for each seed.

Each run of a sweep is a variant (`ifqa.config.overrides`) in its own folder, so it is kept, and
found again by its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ifqa.config.experiment import Experiment
from ifqa.config.flags import FLAGS
from ifqa.config.overrides import override
from ifqa.errors import ConfigError

SEED = "{seed}"  # in a text, such as a checkpoint's folder: the seed of the run
_FLAG_OF = {flag.setting: name for name, flag in FLAGS.items()}

Changes = dict[str, object]  # as `override` takes them
Values = Mapping[str, Sequence[object]]  # key of a change -> its values


@dataclass(frozen=True)
class Variation:
    """A row of a sweep: an experiment with one combination of values.

    `label` names the values that vary within the sweep, as in "k=5, prompt=short"; empty if none
    does. `experiments` are its runs, one for each of `seeds`, or one if there are no seeds.
    """

    label: str
    experiments: tuple[Experiment, ...]
    seeds: tuple[int, ...] = ()


def sweep(experiment: Experiment, values: Values, seeds: int = 0) -> list[Variation]:
    """The rows of a sweep, without duplicates: the last key varies fastest.

    With `seeds`, each row has a run for each of that many seeds, from the value of "seed" or 0 on;
    `SEED` in a text is replaced by it. ConfigError for a wrong change, and if nothing that these
    runs do depends on a seed.
    """
    rows: dict[tuple[str, ...], Variation] = {}
    for changes in combinations(values):
        label = ", ".join(
            f"{_FLAG_OF.get(key, key)}={value}"
            for key, value in changes.items()
            if len(values[key]) > 1
        )
        numbers = _seed_numbers(values, seeds)
        runs = [override(experiment, _with_seed(changes, number)) for number in numbers]
        if numbers and not (_names_seed(changes) or any(map(draws_by_seed, runs))):
            raise ConfigError(
                f"experiment {runs[0].name}: --seeds {seeds}, but nothing in it is drawn by a "
                f"seed; wanted --sample N, demonstrations from a split, or {SEED} in a value, such "
                f"as --checkpoint models/fid-{SEED}"
            )
        experiments = tuple(runs) or (override(experiment, changes),)
        names = tuple(run.name for run in experiments)
        rows.setdefault(names, Variation(label, experiments, numbers))
    return list(rows.values())


def sweep_changes(values: Values, seeds: int = 0) -> list[Changes]:
    """The changes of each run of a sweep."""
    numbers = _seed_numbers(values, seeds)
    return [
        changed
        for changes in combinations(values)
        for changed in ([_with_seed(changes, number) for number in numbers] or [changes])
    ]


def combinations(values: Values) -> list[Changes]:
    """Every combination of one value for each key."""
    return [dict(zip(values, combined, strict=True)) for combined in product(*values.values())]


def draws_by_seed(experiment: Experiment) -> bool:
    """Whether an experiment's questions, retriever or reader depend on its seed."""
    return bool(experiment.sample) or any(
        plugin.plugin.draws(plugin.settings) for plugin in experiment.asked
    )


def _seed_numbers(values: Values, seeds: int) -> tuple[int, ...]:
    if not seeds:
        return ()
    first = values.get("seed", [0])
    if len(first) > 1 or not isinstance(first[0], int):
        listed = " ".join(map(str, first))
        raise ConfigError(
            f"--seeds {seeds} and --seed {listed}; wanted one whole number, the first of the seeds"
        )
    return tuple(range(first[0], first[0] + seeds))


def _names_seed(changes: Changes) -> bool:
    return any(isinstance(value, str) and SEED in value for value in changes.values())


def _with_seed(changes: Changes, seed: int) -> Changes:
    replaced = {
        key: value.replace(SEED, str(seed)) if isinstance(value, str) else value
        for key, value in changes.items()
    }
    return replaced | {"seed": seed}
