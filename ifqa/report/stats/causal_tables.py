"""Prints the counts of causal questions as tables, and the questions on which two readings of the rules differ."""

from typing import TYPE_CHECKING

from ifqa.benchmarks.causalqa.rules import TABLE
from ifqa.progress import counted
from ifqa.report.sanitize import plain
from ifqa.report.stats.causal import (
    ANY,
    NAMES,
    PAPER_DATASETS,
    PAPER_PRECISION,
    PAPER_READ,
    PAPER_RECALL,
    PAPER_RULES,
    Measured,
    judged,
)
from ifqa.scoring.statistics import Interval

if TYPE_CHECKING:
    from rich.table import Table

_TITLES = {ANY: "any rule"} | {rule.name: f"{rule.name} {rule.short}" for rule in TABLE}


def show(found: Measured) -> None:
    """Print how many questions each rule matches, with the paper's values for its datasets, and what was asked for besides."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print(f"[italic]{plain(found.source)}: {counted(found.total, 'question')}, matched by each rule[/italic]")
    console.print(_rules(found))
    if any(found.questions):
        console.print("\n[italic]By dataset: causal questions, in %[/italic]")
        console.print(_datasets(found))
    if found.labelled:
        console.print(f"\n[italic]Of {found.labelled:,} labelled questions, {found.positive:,} of them causal[/italic]")
        for one in found.tallies:
            console.print(_judged(found, one))
            console.print()
        console.print(
            f"In brackets: 95% intervals. The paper, on 1,000 questions: {PAPER_PRECISION:.2f} and {PAPER_RECALL:.2f}."
        )
    if found.pair:
        console.print(
            f"\n[italic]{counted(found.differing, 'question')} on which {' and '.join(found.pair)} differ[/italic]"
        )
        for question, *rules in found.shown:
            told = " | ".join(" ".join(one) or "none" for one in rules)
            console.print(f"{plain(question.id)}  {told}  {plain(' '.join(question.text.split()))}", soft_wrap=True)


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column else "left", no_wrap=not column)
    return table


def _rules(found: Measured) -> "Table":
    table = _table("", *found.tallies, *(["the paper"] if found.in_paper else []))
    for name in NAMES:
        cells = [_cell(tally.matched[name], found.total) for tally in found.tallies.values()]
        table.add_row(_TITLES[name], *cells, *([_cell(PAPER_RULES[name], PAPER_READ)] if found.in_paper else []))
    return table


def _cell(matched: int, of: int) -> str:
    return f"{matched:,} {100 * matched / of:.2f}%"


def _datasets(found: Measured) -> "Table":
    table = _table("", "questions", *found.tallies, "the paper's", "percent")
    for dataset, number in found.questions.items():
        shares = [f"{100 * found.causal[one][dataset] / number:.2f}" for one in found.tallies]
        read, percent = PAPER_DATASETS.get(dataset, (None, None))
        paper = ["-", "-"] if read is None else [f"{read:,}", f"{percent:.1f}"]
        table.add_row(plain(dataset) or "(none named)", f"{number:,}", *shares, *paper)
    return table


def _judged(found: Measured, reading: str) -> "Table":
    table = _table("", "matched", "precision", "recall")
    tally = found.tallies[reading]
    for name, one in judged(found, tally).items():
        title = f"{reading}, any rule" if name == ANY else f"  {_TITLES[name]}"
        table.add_row(title, f"{tally.judged[name]:,}", *map(interval_cell, (one["precision"], one["recall"])))
    return table


def interval_cell(share: Interval | None) -> str:
    """A share from 0 to 1 with its interval, for a table."""
    return "-" if share is None else "{:.2f} [{:.2f}, {:.2f}]".format(*share)
