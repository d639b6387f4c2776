"""The counts of `ifqa stats`: those of any benchmark's questions, and the layout of a benchmark's
own.
"""

from collections.abc import Iterable
from dataclasses import asdict

from rich.console import Console

from ifqa.protocols import Counts
from ifqa.report.table import Table

_NARROW = 6  # columns; wider tables have one space between columns, to fit 80 characters


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
