"""The splits of a benchmark that a command takes: the named ones, or all that are there."""

from collections.abc import Sequence
from contextlib import suppress

from ifqa.errors import IfqaError, MissingInput, unknown_name
from ifqa.protocols import Benchmark


def select_splits(benchmark: Benchmark, named: Sequence[str] = ()) -> Sequence[str]:
    """The named splits of a benchmark; without names, the splits whose files exist."""
    if wrong := [split for split in named if benchmark.splits and split not in benchmark.splits]:
        raise unknown_name(f"split of {benchmark.name}", wrong[0], benchmark.splits)
    splits = list(named)
    for split in () if named else benchmark.splits:
        with suppress(IfqaError):
            benchmark.files(split)
            splits.append(split)
    if not splits:
        name = benchmark.name
        folder = benchmark.folder
        raise MissingInput(
            f"{name}: no split in {folder}; run: ifqa data {name}, or name a split: {name}:SPLIT"
        )
    return splits
