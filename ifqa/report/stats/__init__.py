"""The counts of `ifqa stats`: of any benchmark's questions, and the layout of a benchmark's own."""

from bisect import bisect
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import accumulate

from rich.console import Console
from typing_extensions import TypedDict

from ifqa.formatting import one_decimal
from ifqa.protocols import Counts
from ifqa.report.table import Table

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


def show_counts(counts: Counts) -> None:
    show_tables(
        Table(
            table.title,
            table.note,
            tuple(table.columns),
            tuple(map(tuple, table.rows)),
            published=table.published,
        )
        for table in counts.tables
    )


def counts_json(counts: Counts) -> object:
    """The counts as JSON data: the benchmark's own, or its tables."""
    if counts.content is not None:
        return counts.content
    return [asdict(table) for table in counts.tables]


def summary(histogram: Mapping[int, int]) -> Summary:
    if not histogram:
        return {}
    sizes = sorted(histogram)
    *_, count = ends = [*accumulate(histogram[size] for size in sizes)]
    mean = sum(size * histogram[size] for size in sizes) / count
    low, high = (sizes[bisect(ends, index)] for index in ((count - 1) // 2, count // 2))
    return {"mean": mean, "median": (low + high) / 2, "least": sizes[0], "most": sizes[-1]}


def percent_cell(share: float | None, sign: str = "") -> str:
    return "-" if share is None else f"{one_decimal(share)}{sign}"
