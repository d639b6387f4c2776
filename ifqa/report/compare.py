"""Two experiments over the same questions: who is better at what, how surely, and on which questions."""

from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError, unknown
from ifqa.pipeline.inputs import questions_of
from ifqa.pipeline.provenance import finished
from ifqa.report.screen import plain
from ifqa.scoring.statistics import mean_interval, paired_randomization, won_lost_tied
from ifqa.scoring.summary import NOT_MEASURES
from ifqa.storage.files import read_jsonl

Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Difference:
    """What a second experiment has more than a first in one measure, over the questions both have it for.

    `first`, `second`, `more` and the ends of its 95% bootstrap interval are in percent; `p` is two-sided, of a paired
    randomisation test; `won`, `lost` and `tied` count the second's questions.
    """

    measure: str
    first: float
    second: float
    more: float
    low: float
    high: float
    p: float
    won: int
    lost: int
    tied: int


def compare(first: Experiment, second: Experiment) -> list[Difference]:
    """Every measure that both experiments have, in the first one's order.

    Raises:
        IfqaError: one of them is not scored, their questions are not the same, or they share no measure.
    """
    rows, others = _same_questions(first, second)
    names = [name for name in _measures(rows) if name in _measures(others)]
    if not names:
        raise IfqaError(f"{first.name} and {second.name} have no measure in common: one reads, the other retrieves")
    return [_difference(name, rows, others, first.seed) for name in names]


def largest_differences(
    first: Experiment, second: Experiment, measure: str, count: int
) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The ids of the questions with the largest differences in a measure, with both rows; ties in the questions' order.

    Raises:
        IfqaError: as `compare`, or the measure is not one of both.
    """
    rows, others = _same_questions(first, second)
    known = [name for name in _measures(rows) if name in _measures(others)]
    if measure not in known:
        raise unknown("measure of both experiments", measure, known)
    apart = {one: abs(others[one][measure] - rows[one][measure]) for one in rows if measure in rows[one]}
    largest = sorted((one for one in apart if apart[one]), key=lambda one: -apart[one])[:count]
    return [(one, rows[one], others[one]) for one in largest]


def show_comparison(first: Experiment, second: Experiment, measure: str, count: int) -> None:
    """Print the table, and the questions on which the two differ most in one measure."""
    console = Console(highlight=False)
    differences = compare(first, second)
    shown = largest_differences(first, second, measure or _telling(differences), count)
    table = Table(title=f"A: {first.name}\nB: {second.name}", title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in ("measure", "A", "B", "B - A", "95% interval", "p", "B won", "lost", "tied"):
        table.add_column(column, justify="left" if column == "measure" else "right", no_wrap=True)
    for one in differences:
        p = f"{one.p:.3f}" if one.p >= 0.001 else "< 0.001"
        cells = [f"{one.first:.1f}", f"{one.second:.1f}", f"{one.more:+.1f}", f"{one.low:+.1f} to {one.high:+.1f}", p]
        table.add_row(one.measure, *cells, *map(str, (one.won, one.lost, one.tied)))
    console.print(table)
    total = differences[0].won + differences[0].lost + differences[0].tied
    console.print(f"{total:,} questions; p of a paired randomisation test, intervals by bootstrap.", soft_wrap=True)
    texts = {question.id: question for question in questions_of(first)}
    for question_id, row, other in shown:
        name, question = measure or _telling(differences), texts[question_id]
        wanted = f"[dim]{question_id}, wanted: {plain(' / '.join(question.answers))}[/dim]"
        console.print(f"\n{plain(question.text)}  {wanted}", soft_wrap=True)
        for letter, values in (("A", row), ("B", other)):
            answer = f"  {plain(str(values['answer'])) or '(none)'}" if "answer" in values else ""
            console.print(f"  {letter} {name} {100 * values[name]:.0f}{answer}", soft_wrap=True)


def comparison_json(first: Experiment, second: Experiment, measure: str, count: int) -> dict[str, Any]:
    """The same as JSON has it; of each question its rows of `per_question.jsonl`, the first experiment's as "a"."""
    differences = compare(first, second)
    chosen = measure or _telling(differences)
    shown = largest_differences(first, second, chosen, count)
    return {
        "a": first.name,
        "b": second.name,
        "measures": [asdict(one) for one in differences],
        "largest": {"measure": chosen, "questions": [{"id": one, "a": row, "b": other} for one, row, other in shown]},
    }


def _telling(differences: list[Difference]) -> str:
    names = [one.measure for one in differences]
    return next((name for name in ("F1", "gold_any@5") if name in names), names[0])


def _same_questions(first: Experiment, second: Experiment) -> tuple[Rows, Rows]:
    rows, others = _rows(first), _rows(second)
    if rows.keys() != others.keys():
        same = len(rows.keys() & others.keys())
        raise IfqaError(
            f"{first.name} has {len(rows):,} questions, {second.name} {len(others):,}, {same:,} of them the same; "
            "compare two experiments over the same questions"
        )
    return rows, others


def _rows(experiment: Experiment) -> Rows:
    folder = experiment.folder / "score"
    finished(folder, f"ifqa run {experiment.name}")
    return {row["id"]: row for _, row in read_jsonl(folder / "per_question.jsonl")}


def _measures(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows.values() for name in row if name not in NOT_MEASURES))


def _difference(name: str, rows: Rows, others: Rows, seed: int) -> Difference:
    both = [one for one in rows if name in rows[one] and name in others[one]]
    first, second = ([side[one][name] for one in both] for side in (rows, others))
    more, low, high = mean_interval([b - a for a, b in zip(first, second, strict=True)], seed)
    percents = [round(100 * value, 2) for value in (sum(first) / len(both), sum(second) / len(both), more, low, high)]
    p = paired_randomization(first, second, seed)
    a, b, more, low, high = percents
    won, lost, tied = won_lost_tied(second, first)
    return Difference(name, a, b, more, low, high, p, won, lost, tied)
