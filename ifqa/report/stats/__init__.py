"""The counts of `ifqa stats`.

Each module has `measure`, which counts, and `tables`, which lays them out for the terminal.
"""

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate

from rich.console import Console
from typing_extensions import TypedDict

from ifqa.errors import IfqaError, MissingInput, unknown_name
from ifqa.formatting import one_decimal
from ifqa.protocols import Benchmark
from ifqa.report.table import Table
from ifqa.scoring.statistics import Interval

_NARROW = 6  # columns; wider tables have one space between columns, to fit 80 characters


class Summary(TypedDict, total=False):
    """A summary of a histogram (size -> count); empty for an empty histogram."""

    mean: float
    median: float
    least: float
    most: float


def show_tables(tables: Iterable[Table]) -> None:
    console = Console(highlight=False)
    for number, table in enumerate(tables):
        if number:
            console.print()
        table.show(console, gap=2 if len(table.columns) <= _NARROW else 1)


def summary(histogram: Mapping[int, int]) -> Summary:
    if not histogram:
        return {}
    sizes = sorted(histogram)
    *_, count = ends = [*accumulate(histogram[size] for size in sizes)]
    mean = sum(size * histogram[size] for size in sizes) / count
    low, high = (sizes[bisect(ends, index)] for index in ((count - 1) // 2, count // 2))
    return {"mean": mean, "median": (low + high) / 2, "least": sizes[0], "most": sizes[-1]}


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


def percent_cell(share: float | None, sign: str = "") -> str:
    return "-" if share is None else f"{one_decimal(share)}{sign}"


def interval_cell(share: Interval | None) -> str:
    """A share from 0 to 1 with its interval, as the text of a cell."""
    return "-" if share is None else "{:.2f} [{:.2f}, {:.2f}]".format(*share)
