"""What `ifqa stats` counts. Each module has `measure`, which counts, and `tables` of the counts for the screen."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from rich.console import Console
from typing_extensions import TypedDict

from ifqa.errors import IfqaError, unknown_name
from ifqa.protocols import Benchmark
from ifqa.report.table import Table
from ifqa.scoring.statistics import Interval

_NARROW = 6  # columns; with more there is one blank between two of them, so that 80 characters are enough


class Summary(TypedDict, total=False):
    """Of a histogram, size -> how many have it; empty if it is."""

    mean: float
    median: float
    least: float
    most: float


def show(tables: Iterable[Table]) -> None:
    """Print tables, with a blank line between two."""
    console = Console(highlight=False)
    for number, table in enumerate(tables):
        if number:
            console.print()
        table.show(console, gap=2 if len(table.columns) <= _NARROW else 1)


def summary(histogram: Mapping[int, int]) -> Summary:
    """Mean, median, least and most of a histogram."""
    if not histogram:
        return {}
    number = sum(histogram.values())
    total = sum(size * count for size, count in histogram.items())
    reached, middle = 0, [(number - 1) // 2, number // 2]  # the middle place, or both
    median = 0.0
    for size, count in sorted(histogram.items()):
        median += size / 2 * sum(reached <= place < reached + count for place in middle)
        reached += count
    return {"mean": total / number, "median": median, "least": min(histogram), "most": max(histogram)}


def splits_of(benchmark: Benchmark, named: Sequence[str] = ()) -> Sequence[str]:
    """The named splits of a benchmark; if none is named, those whose files are there."""
    if wrong := [split for split in named if benchmark.splits and split not in benchmark.splits]:
        raise unknown_name(f"split of {benchmark.name}", wrong[0], benchmark.splits)
    there = []
    for split in () if named else benchmark.splits:
        with suppress(IfqaError):
            benchmark.files(split)
            there.append(split)
    if not (named or there):
        name = benchmark.name
        raise IfqaError(
            f"{name}: none of its splits is in {benchmark.folder}; run: ifqa data {name}, or name one: {name}:SPLIT"
        )
    return named or there


def cell(share: float | None, sign: str = "") -> str:
    """A share in percent as the text of a cell."""
    return "-" if share is None else f"{share:.1f}{sign}"


def interval_cell(share: Interval | None) -> str:
    """A share from 0 to 1 with its interval, for a table."""
    return "-" if share is None else "{:.2f} [{:.2f}, {:.2f}]".format(*share)
