"""Experiments over the same questions: the difference in each measure with its interval and p-value."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from string import ascii_uppercase

from rich.console import Console

from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError, unknown_name
from ifqa.pipeline.run import Run
from ifqa.pipeline.stage_inputs import predictions_of
from ifqa.records import Prediction, Question
from ifqa.report.table import Table, p_cell, render_text, sanitize
from ifqa.scoring.aggregation import QuestionSample, aggregate_rows
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.score_files import QuestionRow, read_rows, row_score
from ifqa.scoring.statistics import holm_correction


@dataclass(frozen=True)
class Difference:
    """The difference of two experiments in one measure, over the questions that both scored.

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


@dataclass(frozen=True)
class Comparison:
    """Two experiments side by side: every shared measure, and the questions with the largest differences.

    Attributes:
        first, second: names of the experiments.
        scheme: the scoring scheme of the first.
        questions: the number of questions compared.
        differences: a difference for each measure.
        measure: the measure by which `largest` was chosen; empty if no measure scores single questions.
        largest: questions with both rows of `per_question.jsonl`.
        of: the number of questions of each experiment.
    """

    first: str
    second: str
    scheme: ScoringScheme
    questions: int
    differences: list[Difference]
    measure: str
    largest: list[tuple[Question, QuestionRow, QuestionRow]]
    of: tuple[int, int]

    def __getitem__(self, measure: str) -> Difference:
        known = {difference.measure: difference for difference in self.differences}
        if measure not in known:
            raise unknown_name("measure of both experiments", measure, [*known])
        return known[measure]

    def to_dict(self) -> dict[str, object]:
        """The comparison as plain data."""
        return {
            "a": self.first,
            "b": self.second,
            "questions": {"compared": self.questions, "a": self.of[0], "b": self.of[1]},
            "measures": [asdict(difference) for difference in self.differences],
            "largest": {
                "measure": self.measure,
                "questions": [{"id": question.id, "a": row, "b": other} for question, row, other in self.largest],
            },
        }

    def table(self) -> Table:
        """A row for each measure."""
        columns = ("measure", "A", "B", "B - A", "95% interval", "p", "B won", "lost", "tied")
        rows = tuple(
            (self.scheme.display_name(difference.measure), *_cells(difference)) for difference in self.differences
        )
        return Table(f"A: {self.first}\nB: {self.second}", "", columns, rows)

    def show(self, console: Console) -> None:
        """Print the table and the questions."""
        self.table().show(console)
        of_a, of_b = self.of
        shared = "" if of_a == of_b == self.questions else f" that both have, of {of_a:,} of A and {of_b:,} of B"
        note = f"{self.questions:,} questions{shared}; p of a paired randomisation test, intervals by bootstrap."
        console.print(note, soft_wrap=True)
        for question, row, other in self.largest:
            gold = f"[dim]{sanitize(question.id)}, wanted: {sanitize(' / '.join(question.answers))}[/dim]"
            console.print(f"\n{sanitize(question.text)}  {gold}", soft_wrap=True)
            for letter, scores in zip("AB", (row, other), strict=True):
                answer = f"  {sanitize(str(scores['answer'])) or '(none)'}" if "answer" in scores else ""
                score = row_score(scores, self.measure) or 0.0
                console.print(f"  {letter} {sanitize(self.measure)} {100 * score:.0f}{answer}", soft_wrap=True)

    def __str__(self) -> str:
        return render_text(self.show)

    def _repr_html_(self) -> str:
        return f"<p>A: {escape(self.first)}<br>B: {escape(self.second)}</p>{self.table()._repr_html_()}"


@dataclass(frozen=True)
class Comparisons:
    """Experiments compared with a first one.

    Attributes:
        first: name of the first.
        scheme: its scoring scheme.
        differences: measure -> experiment -> difference. `p` is corrected by Holm's method over these experiments: if
            none of them really differs, the chance of any p below 0.05 is at most 5%.
    """

    first: str
    scheme: ScoringScheme
    differences: dict[str, dict[str, Difference]]

    def to_dict(self) -> dict[str, object]:
        """The differences as plain data."""
        rows = [
            {"experiment": name, **asdict(difference)}
            for differences in self.differences.values()
            for name, difference in differences.items()
        ]
        return {"a": self.first, "p": "corrected by Holm's method within each measure", "differences": rows}

    def show(self, console: Console) -> None:
        """Print a table with a row for each measure and experiment."""
        names = [self.first, *dict.fromkeys(name for every in self.differences.values() for name in every)]
        letters = dict(zip(names, ascii_uppercase, strict=False))
        rows: list[tuple[str, ...]] = []
        for measure, differences in self.differences.items():
            first, *_ = differences.values()
            rows.append((self.scheme.display_name(measure), "A", f"{first.first:.1f}", *[""] * 6))
            rows += [("", letters[name], *_cells(difference)[1:]) for name, difference in differences.items()]
        title = "\n".join(f"{letter}: {name}" for name, letter in letters.items())
        note = (
            "p of a paired randomisation test, corrected by Holm's method over the experiments of a measure; "
            "intervals by bootstrap, not corrected."
        )
        columns = ("measure", "", "score", "less A", "95% interval", "p", "won", "lost", "tied")
        Table(title, note, columns, tuple(rows), left=(0, 1)).show(console)


def _cells(difference: Difference) -> list[str]:
    """Both scores, the difference with its interval and p, and how often the second won, lost, tied."""
    scores = [f"{difference.first:.1f}", f"{difference.second:.1f}", f"{difference.more:+.1f}"]
    counts = [f"{'-' if n is None else n}" for n in (difference.won, difference.lost, difference.tied)]
    return [*scores, f"{difference.low:+.1f} to {difference.high:+.1f}", p_cell(difference.p), *counts]


def compare_pair(
    first: Experiment, second: Experiment, measure: str = "", count: int = 5, common: bool = False
) -> Comparison:
    """Compare two experiments; list the `count` questions that differ most in a measure (the headline if empty).

    With `common`, compare the questions that both have; without it, their questions must be the same.
    """
    first_scores, second_scores = _ScoredExperiment(first), _ScoredExperiment(second)
    questions = _comparable_questions(first_scores, second_scores, common)
    differences = _differences(first_scores, second_scores, questions)
    # the headline among the measures that score single questions
    single = [difference.measure for difference in differences if difference.won is not None]
    chosen = measure or first.scheme.headline(single)
    largest = _largest_differences(first_scores, second_scores, questions, chosen, count) if chosen else []
    sizes = len(first_scores.run.questions), len(second_scores.run.questions)
    return Comparison(first.name, second.name, first.scheme, len(questions), differences, chosen, largest, sizes)


def compare_to_first(
    first: Experiment, others: Sequence[Experiment], measure: str = "", common: bool = False
) -> Comparisons:
    """Compare each of the others with the first, in one measure or (if empty) in all shared ones."""
    if len(others) >= len(ascii_uppercase):
        raise IfqaError(f"found {len(others) + 1} experiments; wanted at most {len(ascii_uppercase)}")
    names = [experiment.name for experiment in (first, *others)]
    if duplicate := next((name for name in names if names.count(name) > 1), ""):
        raise IfqaError(f"experiment {duplicate} is named twice; name different experiments")
    differences: dict[str, dict[str, Difference]] = {}
    scored = _ScoredExperiment(first)
    for other in map(_ScoredExperiment, others):
        for difference in _differences(scored, other, _comparable_questions(scored, other, common)):
            differences.setdefault(difference.measure, {})[other.experiment.name] = difference
    if measure and measure not in differences:
        raise unknown_name("measure of these experiments", measure, [*differences])
    corrected: dict[str, dict[str, Difference]] = {}
    for key in [measure] if measure else first.scheme.keys([*differences]):
        of_others = differences[key]
        ps = holm_correction([difference.p for difference in of_others.values()])
        corrected[key] = {name: replace(old, p=p) for (name, old), p in zip(of_others.items(), ps, strict=True)}
    return Comparisons(first.name, first.scheme, corrected)


class _ScoredExperiment:
    """A scored experiment, with its rows by question id."""

    def __init__(self, experiment: Experiment) -> None:
        self.run, self.experiment, command = Run(experiment), experiment, f"ifqa run {experiment.name}"
        scores = self.run.artifact("score")
        scores.require(command)
        if not scores.is_current_for(self.run.inputs("score")):
            raise IfqaError(
                f"{scores.folder} is older than the settings or inputs of {experiment.name}; run it again: {command}"
            )
        self.rows = {row["id"]: row for row in read_rows(scores.folder)}

    def sample(self, questions: Sequence[Question], scheme: ScoringScheme, reads: bool) -> QuestionSample:
        """The scores of some questions; `reads`: whether measures over sets of answers get the answers."""
        predictions: list[Prediction] = []
        if scheme.sets and reads:
            answers = predictions_of(self.experiment, self.run.questions)
            of_question = {prediction.question_id: prediction for prediction in answers}
            predictions = [of_question[question.id] for question in questions]
        rows = [self.rows[question.id] for question in questions]
        return aggregate_rows(rows, questions, scheme, None, predictions).sample()


def _comparable_questions(first: _ScoredExperiment, second: _ScoredExperiment, common: bool) -> list[Question]:
    """The questions that both have, in the first's order; questions with the same id may differ."""
    there = {question.id: question for question in second.run.questions}
    questions = [question for question in first.run.questions if there.get(question.id) == question]
    same, sizes = len(questions), (len(first.rows), len(second.rows))
    if not same or not (common or {same} == {*sizes}):
        few = ", or those that both have: --common" if same else ""
        raise IfqaError(
            f"{first.experiment.name} has {sizes[0]:,} questions, {second.experiment.name} {sizes[1]:,}, {same:,} of them "
            f"the same; compare two experiments over the same questions{few}"
        )
    return questions


def _differences(
    first: _ScoredExperiment, second: _ScoredExperiment, questions: Sequence[Question]
) -> list[Difference]:
    """The difference in every shared measure, in display order."""
    first_experiment, other, scheme = first.experiment, second.experiment, first.experiment.scheme
    reads = bool(first_experiment.reader and other.reader)
    first_scores, second_scores = (scored.sample(questions, scheme, reads) for scored in (first, second))
    differences = []
    for key, _, paired in first_scores.differences(
        second_scores, scheme.keys(other.scheme.keys(first_scores.keys())), first_experiment.seed
    ):
        a, b, more, low, high = paired.percents()
        differences.append(Difference(key, a, b, more, low, high, paired.p, *(paired.counts or (None,) * 3)))
    if not differences:
        raise IfqaError(
            f"{first_experiment.name} and {other.name} have no measure in common; compare two with readers, "
            "or two without"
        )
    return differences


def _largest_differences(
    first: _ScoredExperiment, second: _ScoredExperiment, questions: Sequence[Question], measure: str, count: int
) -> list[tuple[Question, QuestionRow, QuestionRow]]:
    """The questions with the largest differences in a measure, with both rows; ties are in the questions' order."""
    rows = [(first.rows[question.id], second.rows[question.id]) for question in questions]
    first_keys, second_keys = ({key for pair in rows for key in pair[side]} for side in (0, 1))
    if measure not in (known := first.experiment.scheme.keys(first_keys & second_keys)):
        raise unknown_name("measure of both experiments", measure, known)
    ranked = []
    for question, (row, other) in zip(questions, rows, strict=True):
        a, b = row_score(row, measure), row_score(other, measure)
        if a is not None and b is not None and a != b:
            ranked.append((abs(b - a), question, row, other))
    return [(question, row, other) for _, question, row, other in sorted(ranked, key=lambda line: -line[0])[:count]]
