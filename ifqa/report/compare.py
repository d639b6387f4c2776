"""Two experiments over the same questions: the difference in each measure with its interval and p-value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape

from rich.console import Console
from rich.table import Table

from ifqa.config.declared import declared_for
from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError, unknown
from ifqa.pipeline.provenance import inputs_of_score, require_finished
from ifqa.pipeline.upstream import passages_of, predictions_of, questions_of, rankings_of
from ifqa.protocols import ColumnMeasure, SetMeasure
from ifqa.records import Question
from ifqa.report.scores import html_table
from ifqa.report.terminal import drawn, plain
from ifqa.scoring.columns import column_difference
from ifqa.scoring.declared import Declared, strata, units
from ifqa.scoring.measures.gold_recall import first_rank
from ifqa.scoring.sets import SetDifference, set_difference
from ifqa.scoring.statistics import mean_interval, paired_randomization, won_lost_tied
from ifqa.scoring.stored import read_rows
from ifqa.scoring.summary import Row, score_in
from ifqa.storage.artifacts import is_made

Rows = dict[str, Row]


@dataclass(frozen=True)
class Difference:
    """The difference of two experiments in one measure, over the questions that both have a score for.

    `first`, `second`, `more` (second less first) and the ends `low` and `high` of its 95% bootstrap interval are in
    percent. `p` is the two-sided p-value of a paired randomisation test. Both resample the measure's units. `won`, `lost`
    and `tied` count the questions on which the second is better, worse and equal; None for a measure over sets.
    """

    measure: str
    first: float
    second: float
    more: float
    low: float
    high: float
    p: float
    won: int | None
    lost: int | None
    tied: int | None


def compare(first: Experiment, second: Experiment, common: bool = False) -> list[Difference]:
    """The difference in every measure that both experiments have, in the order of the first experiment.

    With `common`, over the questions that both have; else they must have the same.

    Raises:
        IfqaError: an experiment is not scored, or changed since it was; their questions differ; or they share no measure.
    """
    questions, rows, others = _same_questions(first, second, common)
    by = declared_for(first)
    found = [_difference(key, by, rows, others, questions, first.seed) for key in _shared(by, rows, others)]
    if first.reader and second.reader:
        second_has = declared_for(second).sets
        found += [one for each in by.sets if each in second_has for one in _of_set(each, first, second, questions)]
    second_declares = declared_for(second).columns
    for measure in (one for one in by.columns if one in second_declares):
        found += _of_columns(measure, rows, others, questions, first.seed)
    if not found:
        raise IfqaError(f"{first.name} and {second.name} have no measure in common: one reads, the other retrieves")
    order = by.keys([one.measure for one in found])
    return sorted(found, key=lambda one: order.index(one.measure))


def largest_differences(
    first: Experiment, second: Experiment, measure: str, count: int, common: bool = False
) -> list[tuple[str, Row, Row]]:
    """The questions with the largest differences in a measure: id and both rows; ties are in the questions' order.

    Raises:
        IfqaError: as `compare`, or an experiment lacks the measure.
    """
    _, rows, others = _same_questions(first, second, common)
    known = _shared(declared_for(first), rows, others)
    if measure not in known:
        raise unknown("measure of both experiments", measure, known)
    apart = {one: abs(b - a) for one, a, b in _both(measure, rows, others)}
    largest = sorted((one for one in apart if apart[one]), key=lambda one: -apart[one])[:count]
    return [(one, rows[one], others[one]) for one in largest]


@dataclass(frozen=True)
class Comparison:
    """Two experiments side by side: every measure that both have, and the questions on which they differ most.

    Attributes:
        first, second: names of the experiments.
        by: the measures, subsets and groups of the first.
        questions: the number of questions compared.
        differences: a difference for each measure.
        measure: the measure by which `largest` was chosen; empty if no measure scores single questions.
        largest: questions with both rows of `per_question.jsonl`.
        gold_ranks: for each of `largest`, the rank of the first gold passage in both runs; 0 if none was retrieved, None
            without a run or without gold passages.
        of: the number of questions of each.
    """

    first: str
    second: str
    by: Declared
    questions: int
    differences: list[Difference]
    measure: str
    largest: list[tuple[Question, Row, Row]]
    gold_ranks: list[tuple[int | None, int | None]]
    of: tuple[int, int]

    def __getitem__(self, measure: str) -> Difference:
        for one in self.differences:
            if one.measure == measure:
                return one
        raise unknown("measure of both experiments", measure, [one.measure for one in self.differences])

    def to_dict(self) -> dict[str, object]:
        """The comparison as plain data."""
        return {
            "a": self.first,
            "b": self.second,
            "questions": {"compared": self.questions, "a": self.of[0], "b": self.of[1]},
            "measures": [asdict(one) for one in self.differences],
            "largest": {
                "measure": self.measure,
                "questions": [
                    {"id": question.id, "a": row, "b": other, "gold_rank": {"a": rank, "b": its}}
                    for (question, row, other), (rank, its) in zip(self.largest, self.gold_ranks, strict=True)
                ],
            },
        }

    def table(self) -> Table:
        """A row for each measure."""
        names = f"A: {plain(self.first)}\nB: {plain(self.second)}"
        table = Table(title=names, title_justify="left", box=None, padding=(0, 1, 0, 0))
        for column in ("measure", "A", "B", "B - A", "95% interval", "p", "B won", "lost", "tied"):
            table.add_column(column, justify="left" if column == "measure" else "right", no_wrap=True)
        for one in self.differences:
            table.add_row(plain(self.by.marked(one.measure)), *difference_cells(one))
        return table

    def show(self, console: Console) -> None:
        """Print the table, and the questions."""
        console.print(self.table())
        of_a, of_b = self.of
        shared = "" if of_a == of_b == self.questions else f" that both have, of {of_a:,} of A and {of_b:,} of B"
        note = f"{self.questions:,} questions{shared}; p of a paired randomisation test, intervals by bootstrap."
        console.print(note, soft_wrap=True)
        for (question, row, other), ranks in zip(self.largest, self.gold_ranks, strict=True):
            wanted = f"[dim]{plain(question.id)}, wanted: {plain(' / '.join(question.answers))}[/dim]"
            console.print(f"\n{plain(question.text)}  {wanted}", soft_wrap=True)
            for letter, values, rank in zip("AB", (row, other), ranks, strict=True):
                answer = f"  {plain(str(values['answer'])) or '(none)'}" if "answer" in values else ""
                score = score_in(values, self.measure) or 0.0
                gold = (
                    "" if rank is None else f"  [dim]gold passage: {f'rank {rank}' if rank else 'not retrieved'}[/dim]"
                )
                console.print(f"  {letter} {plain(self.measure)} {100 * score:.0f}{answer}{gold}", soft_wrap=True)

    def __str__(self) -> str:
        return drawn(self.show)

    def _repr_html_(self) -> str:
        return f"<p>A: {escape(self.first)}<br>B: {escape(self.second)}</p>{html_table(self.table())}"


def difference_cells(one: Difference) -> list[str]:
    """A row of a table: both scores, the difference with its interval and p, and how often the second won, lost, tied."""
    p, interval = f"{one.p:.3f}" if one.p >= 0.001 else "< 0.001", f"{one.low:+.1f} to {one.high:+.1f}"
    counts = ["-" if number is None else str(number) for number in (one.won, one.lost, one.tied)]
    return [f"{one.first:.1f}", f"{one.second:.1f}", f"{one.more:+.1f}", interval, p, *counts]


def comparison(
    first: Experiment, second: Experiment, measure: str = "", count: int = 5, common: bool = False
) -> Comparison:
    """Two experiments side by side, with the `count` questions that differ most in a measure (the headline if empty).

    Raises:
        IfqaError: as `compare`, or an experiment lacks the measure.
    """
    differences, by = compare(first, second, common), declared_for(first)
    chosen = measure or _telling(by, differences)
    questions, _, _ = _same_questions(first, second, common)
    shown = largest_differences(first, second, chosen, count, common) if chosen else []
    largest = [(questions[one], row, other) for one, row, other in shown]
    ranks = [_gold_ranks(one, [question for question, _, _ in largest]) for one in (first, second)]
    both, of = list(zip(*ranks, strict=True)), (len(questions_of(first)), len(questions_of(second)))
    return Comparison(first.name, second.name, by, len(questions), differences, chosen, largest, both, of)


def _gold_ranks(experiment: Experiment, questions: Sequence[Question]) -> list[int | None]:
    """The rank of each question's first gold passage in the experiment's run."""
    if not experiment.retriever or not questions:
        return [None for _ in questions]
    every = questions_of(experiment)
    of = dict(zip([one.id for one in every], rankings_of(experiment, every), strict=True))
    passages = passages_of(experiment, (of[question.id] for question in questions))
    return [first_rank(one, [passage.text for passage in own]) for one, own in zip(questions, passages, strict=True)]


def _telling(by: Declared, differences: list[Difference]) -> str:
    """The headline among the measures that score single questions; empty if there is none."""
    return by.headline([one.measure for one in differences if one.won is not None])


def _same_questions(first: Experiment, second: Experiment, common: bool) -> tuple[dict[str, Question], Rows, Rows]:
    """The questions of both experiments, in the first's order, and each one's rows; two of one id may be different questions."""
    rows, others = _rows(first), _rows(second)
    there = {one.id: one for one in questions_of(second)}
    same = {one.id: one for one in questions_of(first) if there.get(one.id) == one}
    if not same or not (common or len(same) == len(rows) == len(others)):
        few = ", or those that both have: --common" if same else ""
        raise IfqaError(
            f"{first.name} has {len(rows):,} questions, {second.name} {len(others):,}, {len(same):,} of them the same; "
            f"compare two experiments over the same questions{few}"
        )
    return same, {one: rows[one] for one in same}, {one: others[one] for one in same}


def _rows(experiment: Experiment) -> Rows:
    """The scores of each question by its id.

    Raises:
        IfqaError: the experiment is not scored, or its settings or an earlier stage changed since it was.
    """
    folder, command = experiment.folder / "score", f"ifqa run {experiment.name}"
    require_finished(folder, command)
    if not is_made(folder, inputs_of_score(experiment)):
        raise IfqaError(
            f"{folder} was made from something else than {experiment.name} says now; run it again: {command}"
        )
    return {row["id"]: row for row in read_rows(folder)}


def _shared(by: Declared, rows: Rows, others: Rows) -> list[str]:
    """The measures of single questions that both sides have."""
    here, there = ({name for row in side.values() for name in row} for side in (rows, others))
    return by.keys(here & there)


def _both(key: str, rows: Rows, others: Rows) -> list[tuple[str, float, float]]:
    """The questions that both sides have a score for: id and both scores."""
    scores = ((one, score_in(rows[one], key), score_in(others[one], key)) for one in rows)
    return [(one, a, b) for one, a, b in scores if a is not None and b is not None]


def _difference(
    key: str, by: Declared, rows: Rows, others: Rows, questions: Mapping[str, Question], seed: int
) -> Difference:
    both = _both(key, rows, others)
    measure, asked = by.measure(key), [questions[one] for one, _, _ in both]
    of, within = units(measure, asked), strata(measure, by, asked)
    first, second = [a for _, a, _ in both], [b for _, _, b in both]
    more, low, high = mean_interval([b - a for a, b in zip(first, second, strict=True)], seed, units=of, strata=within)
    p = paired_randomization(first, second, seed, units=of)
    counts = won_lost_tied(second, first) if by.best(key) else won_lost_tied(first, second)
    a, b, more, low, high = _percents(sum(first) / len(both), sum(second) / len(both), more, low, high)
    return Difference(key, a, b, more, low, high, p, *counts)


def _of_set(
    measure: SetMeasure, first: Experiment, second: Experiment, questions: Mapping[str, Question]
) -> Iterator[Difference]:
    """The difference in a measure over sets; nothing where it is not defined."""
    said = [{one.question_id: one for one in predictions_of(each, questions_of(each))} for each in (first, second)]
    answers, other_answers = ([of[one] for one in questions] for of in said)
    if found := set_difference(measure, list(questions.values()), answers, other_answers, first.seed):
        yield _of_many(measure.name, found)


def _of_columns(
    measure: ColumnMeasure, rows: Rows, others: Rows, questions: Mapping[str, Question], seed: int
) -> Iterator[Difference]:
    """The difference in a measure of numbers in the rows; nothing where it is not defined."""
    import numpy as np

    first, second = (
        np.array([[score_in(side[one], key) for key in measure.columns] for one in rows], dtype=float)
        for side in (rows, others)
    )
    if found := column_difference(measure, first, second, seed, units(measure, [questions[one] for one in rows])):
        yield _of_many(measure.name, found)


def _of_many(name: str, found: SetDifference) -> Difference:
    a, b, more, low, high = _percents(found.first, found.second, found.more, found.low, found.high)
    return Difference(name, a, b, more, low, high, found.p, None, None, None)


def _percents(*shares: float) -> list[float]:
    return [round(100 * share, 2) for share in shares]
