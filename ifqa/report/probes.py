"""What readers lose under the probes of `ifqa probe`, as a table for the screen and for the page."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from ifqa.config.experiment import Experiment
from ifqa.pipeline.probe import Loss, losses_of
from ifqa.report.table import Grid
from ifqa.report.terminal import plain

NOTE = (
    "The reader read again: without the if-clause, with another question's if-clause, with another question's passages. "
    "Loss: how much the measure falls over the questions that the probe can change, with its 95% bootstrap interval and p of a "
    "paired randomisation test. Questions that do not split into two clauses, and in the last probe those without passages, are "
    "left out before and after alike."
)
_COLUMNS = ("probe", "measure", "questions", "left out", "before", "after", "loss", "p")


def show_losses(name: str, losses: Sequence[Loss]) -> None:
    """Print the losses of an experiment."""
    console = Console(highlight=False)
    table = Table(title=plain(name), title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column in ("probe", "measure") else "right", no_wrap=True)
    for one in losses:
        table.add_row(*map(plain, _cells(one)))
    console.print(table)
    console.print(NOTE, soft_wrap=True)


def losses_grid(experiments: Iterable[Experiment]) -> list[Grid]:
    """A table with a row for each probe and measure of each experiment that was probed here; none without any."""
    rows = tuple((each.name, *_cells(one)) for each in experiments for one in losses_of(each))
    return [Grid("What readers lose without the supposition", NOTE, ("experiment", *_COLUMNS), rows)] if rows else []


def _cells(one: Loss) -> tuple[str, ...]:
    p = f"{one.p:.3f}" if one.p >= 0.001 else "< 0.001"
    loss = f"{one.loss:.1f} [{one.low:.1f}, {one.high:.1f}]"
    counts = (f"{one.questions:,}", f"{one.left_out:,}")
    return (one.probe, one.measure, *counts, f"{one.before:.1f}", f"{one.after:.1f}", loss, p)
