"""What `ifqa stats` counts. Each module has `measure`, `stats_json` for --json, and `tables` for the screen."""

from collections.abc import Iterable, Mapping

from rich.console import Console

from ifqa.report.table import Table
from ifqa.scoring.statistics import Interval

_NARROW = 6  # columns; with more there is one blank between two of them, so that 80 characters are enough


def show(tables: Iterable[Table]) -> None:
    """Print tables, with a blank line between two."""
    console = Console(highlight=False)
    for number, table in enumerate(tables):
        if number:
            console.print()
        table.show(console, gap=2 if len(table.columns) <= _NARROW else 1)


def summary(histogram: Mapping[int, int]) -> dict[str, float]:
    """Mean, median, least and most of a histogram, size -> how many have it; {} if it is empty."""
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


def interval_cell(share: Interval | None) -> str:
    """A share from 0 to 1 with its interval, for a table."""
    return "-" if share is None else "{:.2f} [{:.2f}, {:.2f}]".format(*share)
