"""Several experiments, each against the same first one: the p-values are corrected for their number by Holm's method."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from string import ascii_uppercase

from rich.console import Console
from rich.table import Table

from ifqa.config.declared import declared_for
from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError, unknown
from ifqa.report.compare import Difference, compare, difference_cells
from ifqa.report.terminal import plain
from ifqa.scoring.declared import Declared
from ifqa.scoring.statistics import holm


@dataclass(frozen=True)
class Several:
    """Experiments against a first one.

    Attributes:
        first: name of the first.
        by: its measures, subsets and groups.
        differences: for each measure, each experiment that has it by name. `p` is corrected by Holm's method over these
            experiments: if none of them really differs, the chance of any p below 0.05 is at most 5%.
    """

    first: str
    by: Declared
    differences: dict[str, dict[str, Difference]]

    def to_dict(self) -> dict[str, object]:
        """The differences as plain data."""
        rows = [{"experiment": name, **asdict(one)} for of in self.differences.values() for name, one in of.items()]
        return {"a": self.first, "p": "corrected by Holm's method within each measure", "differences": rows}

    def show(self, console: Console) -> None:
        """Print a table with a row for each measure and experiment."""
        others = list(dict.fromkeys(name for of in self.differences.values() for name in of))
        letters = dict(zip(others, ascii_uppercase[1:], strict=False))
        names = "\n".join(f"{letter}: {plain(name)}" for name, letter in ({self.first: "A"} | letters).items())
        table = Table(title=names, title_justify="left", box=None, padding=(0, 1, 0, 0))
        for column in ("measure", "", "score", "less A", "95% interval", "p", "won", "lost", "tied"):
            table.add_column(column, justify="left" if column in ("measure", "") else "right", no_wrap=True)
        for measure, of in self.differences.items():
            for n, (name, one) in enumerate(of.items()):
                first, *cells = difference_cells(one)
                if not n:
                    table.add_row(plain(self.by.marked(measure)), "A", first)
                table.add_row("", letters[name], *cells)
        console.print(table)
        console.print(
            "p of a paired randomisation test, corrected by Holm's method over the experiments of a measure; "
            "intervals by bootstrap, not corrected.",
            soft_wrap=True,
        )


def several(first: Experiment, others: Sequence[Experiment], measure: str = "", common: bool = False) -> Several:
    """Each of the others against the first, in one measure or (empty) in all that they share with it.

    Raises:
        IfqaError: as `compare` for one of them, an experiment is named twice, or none has the measure.
    """
    if len(others) >= len(ascii_uppercase):
        raise IfqaError(f"found {len(others) + 1} experiments; wanted at most {len(ascii_uppercase)}")
    names = [one.name for one in (first, *others)]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise IfqaError(f"experiment {twice} is named twice; wanted different ones")
    by, found = declared_for(first), dict[str, dict[str, Difference]]()
    for other in others:
        for one in compare(first, other, common):
            found.setdefault(one.measure, {})[other.name] = one
    if measure and measure not in found:
        raise unknown("measure of these experiments", measure, [*found])
    wanted = [measure] if measure else by.keys([*found])
    return Several(first.name, by, {key: _corrected(found[key]) for key in wanted})


def _corrected(of: dict[str, Difference]) -> dict[str, Difference]:
    ps = holm([one.p for one in of.values()])
    return {name: replace(one, p=p) for (name, one), p in zip(of.items(), ps, strict=True)}
