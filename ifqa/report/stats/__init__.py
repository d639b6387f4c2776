"""What `ifqa stats` counts. Each module has `measure`, which counts, and `tables` of the counts for the screen."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from rich.console import Console
from typing_extensions import TypedDict

from ifqa.errors import IfqaError, unknown_name
from ifqa.protocols import Benchmark
from ifqa.report.table import Table
from ifqa.scoring.statistics import Interval

_NARROW = 6  # columns; wider tables have one blank between columns, to fit 80 characters


class Summary(TypedDict, total=False):
    """A summary of a histogram (size -> count); empty for an empty one."""

    mean: float
    median: float
    least: float
    most: float


def show_tables(tables: Iterable[Table]) -> None:
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
    reached, middle = 0, [(number - 1) // 2, number // 2]  # the middle position, or both
    median = 0.0
    for size, count in sorted(histogram.items()):
        median += size / 2 * sum(reached <= place < reached + count for place in middle)
        reached += count
    return {"mean": total / number, "median": median, "least": min(histogram), "most": max(histogram)}


def select_splits(benchmark: Benchmark, named: Sequence[str] = ()) -> Sequence[str]:
    """The named splits of a benchmark; without names, the splits whose files exist."""
    if wrong := [split for split in named if benchmark.splits and split not in benchmark.splits]:
        raise unknown_name(f"split of {benchmark.name}", wrong[0], benchmark.splits)
    present = []
    for split in () if named else benchmark.splits:
        with suppress(IfqaError):
            benchmark.files(split)
            present.append(split)
    if not (named or present):
        name = benchmark.name
        raise IfqaError(f"{name}: no split in {benchmark.folder}; run: ifqa data {name}, or name a split: {name}:SPLIT")
    return named or present


def percent_cell(share: float | None, sign: str = "") -> str:
    """A share in percent as the text of a cell."""
    return "-" if share is None else f"{share:.1f}{sign}"


def interval_cell(share: Interval | None) -> str:
    """A share from 0 to 1 with its interval, for a table."""
    return "-" if share is None else "{:.2f} [{:.2f}, {:.2f}]".format(*share)
