"""Compares experiments over the same questions: the difference in each measure with its interval
and p-value.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from html import escape
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, cast

from rich.console import Console

from ifqa.config.experiment import Experiment, base_experiments
from ifqa.errors import ConfigError, DamagedArtifact, MissingInput, unknown_name
from ifqa.formatting import one_decimal, pluralize
from ifqa.pipeline.read import READ
from ifqa.pipeline.run import Run
from ifqa.pipeline.score import SCORE
from ifqa.pipeline.stage_outputs import predictions_of
from ifqa.protocols import SetMeasure
from ifqa.records import Prediction, Question
from ifqa.report.exposure import exposure_mark, seen_mark
from ifqa.report.scores import read_content
from ifqa.report.table import Table, make_frame, p_cell, render_text, sanitize
from ifqa.scoring.aggregation import QuestionSample, aggregate_rows
from ifqa.scoring.intervals import report_interval
from ifqa.scoring.measures.judged import is_judged
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.statistics import holm_correction, indexes_by_name, to_percent
from ifqa.scoring.stored_scores import (
    QuestionRow,
    partial_notice,
    read_rows,
    read_scores,
    row_score,
)
from ifqa.storage.artifacts import Artifact, warn_of_failures

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Difference:
    """The difference between two experiments in a measure, over the questions that both scored.

    `first`, `second`, `delta` (second - first) and the ends `low` and `high` of its 95% bootstrap
    interval are in percent; the ends are None where a score would have no interval either, or if it
    has no width. `p` is the two-sided p-value of a paired randomisation test. The
    bootstrap and the test both resample the measure's units. `won`, `lost` and `tied` count the
    questions on which the second is better, worse and equally good, or units of questions if `unit`
    names another, such as "pair"; None for a measure of sets that is no mean over units.
    """

    measure: str
    first: float
    second: float
    delta: float
    low: float | None
    high: float | None
    p: float
    won: int | None
    lost: int | None
    tied: int | None
    unit: str = "question"

    def to_dict(self) -> dict[str, object]:
        """The difference as plain data; `delta` is called "more"."""
        return {"more" if key == "delta" else key: number for key, number in asdict(self).items()}

    def cells(self) -> list[str]:
        """Both scores, the difference with its interval and p, and how often the second won, lost,
        tied.
        """
        scores = [one_decimal(self.first), one_decimal(self.second), one_decimal(self.delta, "+")]
        counts = [f"{'-' if n is None else n}" for n in (self.won, self.lost, self.tied)]
        interval = "-"
        if self.low is not None and self.high is not None:
            interval = f"{one_decimal(self.low, '+')} to {one_decimal(self.high, '+')}"
        return [*scores, interval, p_cell(self.p), *counts]


def count_note(differences: Iterable[Difference]) -> str:
    """A sentence that says which measures count other units than questions; empty for none."""
    counted: dict[str, list[str]] = {}
    for difference in differences:
        counts = (difference.won, difference.lost, difference.tied)
        if difference.unit != "question" and difference.won is not None:
            count = pluralize(sum(number or 0 for number in counts), difference.unit)
            counted.setdefault(count, []).append(difference.measure)
    notes = [f"{', '.join(names)}: counted by {count}" for count, names in counted.items()]
    return f"{'; '.join(notes)}." if notes else ""


@dataclass(frozen=True)
class Comparison:
    """Two experiments side by side: every shared measure, and the questions with the largest
    differences.

    Attributes:
        first, second: names of the experiments.
        scheme: the scoring scheme of the first.
        questions: the number of questions compared.
        differences: one for each measure.
        measure: the measure by which `largest` was chosen; empty if no measure scores single
            questions.
        largest: questions, each with both experiments' rows of `per_question.jsonl`.
        sizes: the number of questions in each experiment.
        marks: what each experiment's models have seen of the benchmark (`ifqa.models.ledger`), and
            whether its reader was trained on these questions; empty for nothing.
        notices: what part of its split each experiment asked; empty for all of it.
    """

    first: str
    second: str
    scheme: ScoringScheme
    questions: int
    differences: list[Difference]
    measure: str
    largest: list[tuple[Question, QuestionRow, QuestionRow]]
    sizes: tuple[int, int]
    marks: tuple[str, str] = ("", "")
    notices: tuple[str, str] = ("", "")

    def __getitem__(self, measure: str) -> Difference:
        known = {difference.measure: difference for difference in self.differences}
        if measure not in known:
            raise unknown_name("measure of both experiments", measure, [*known])
        return known[measure]

    def to_dict(self) -> dict[str, object]:
        """The comparison as plain data."""
        largest = [
            {"id": question.id, "a": row, "b": other} for question, row, other in self.largest
        ]
        return {
            "a": self.first,
            "b": self.second,
            "questions": {"compared": self.questions, "a": self.sizes[0], "b": self.sizes[1]},
            "measures": [difference.to_dict() for difference in self.differences],
            "largest": {"measure": self.measure, "questions": largest},
            "seen": dict(zip("ab", self.marks, strict=True)),
            "partial": dict(zip("ab", self.notices, strict=True)),
        }

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame with a row for each measure, as in `to_dict`."""
        return make_frame([difference.to_dict() for difference in self.differences])

    def table(self) -> Table:
        """A row for each measure."""
        columns = ("measure", "A", "B", "B - A", "95% interval", "p", "B won", "lost", "tied")
        rows = [
            (self.scheme.display_name(difference.measure), *difference.cells())
            for difference in self.differences
        ]
        lines = [
            f"{letter}: {name}  {notice}".rstrip()
            for letter, name, notice in zip(
                "AB", (self.first, self.second), self.notices, strict=True
            )
        ]
        return Table("\n".join(lines), "", columns, tuple(rows))

    def show(self, console: Console) -> None:
        """Print the table and the questions."""
        self.table().show(console)
        of_a, of_b = self.sizes
        shared = (
            ""
            if of_a == of_b == self.questions
            else f" that both have (A has {of_a:,}, B has {of_b:,})"
        )
        note = (
            f"{pluralize(self.questions, 'question')}{shared}; p from a paired "
            "randomisation test, intervals by bootstrap."
        )
        console.print(note, soft_wrap=True)
        if note := count_note(self.differences):
            console.print(sanitize(note), soft_wrap=True)
        show_marks(console, dict(zip("AB", self.marks, strict=True)))
        for question, row, other in self.largest:
            gold = (
                f"[dim]{sanitize(question.id)}, wanted: "
                f"{sanitize(' / '.join(question.answers))}[/dim]"
            )
            console.print(f"\n{sanitize(question.text)}  {gold}", soft_wrap=True)
            for letter, scores in zip("AB", (row, other), strict=True):
                answer = (
                    f"  {sanitize(str(scores['answer'])) or '(none)'}" if "answer" in scores else ""
                )
                score = row_score(scores, self.measure) or 0.0
                console.print(
                    f"  {letter} {sanitize(self.measure)} {100 * score:.0f}{answer}", soft_wrap=True
                )

    def __str__(self) -> str:
        return render_text(self.show)

    def _repr_html_(self) -> str:
        table = self.table()
        title = "<br>".join(map(escape, table.title.splitlines()))
        return f"<p>{title}</p>{table._repr_html_()}"


def show_marks(console: Console, marks: Mapping[str, str]) -> None:
    """Print a line for each letter of an experiment that has a mark."""
    for letter, mark in marks.items():
        if mark:
            console.print(f"{letter}: {sanitize(mark)}.", soft_wrap=True)


@dataclass(frozen=True)
class Comparisons:
    """Experiments compared with the first one.

    `differences`: measure -> experiment -> difference. `p` is corrected by Holm's method over the
    experiments: if none of them really differs, the chance of any p below 0.05 is at most 5%.
    """

    first: str  # its name
    scheme: ScoringScheme
    differences: dict[str, dict[str, Difference]]
    questions: int  # that all experiments share; each difference is over these
    sizes: dict[str, int]  # experiment -> the number of its questions
    # Experiment -> what part of its split it asked; empty for all of it
    notices: dict[str, str] = field(default_factory=dict)
    # Experiment -> what `Comparison.marks` has
    marks: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """The differences as plain data."""
        rows: list[dict[str, object]] = []
        for differences in self.differences.values():
            rows += [
                {"experiment": name, **difference.to_dict()}
                for name, difference in differences.items()
            ]
        return {
            "a": self.first,
            "questions": {"compared": self.questions, "experiments": self.sizes},
            "p": "corrected by Holm's method within each measure",
            "differences": rows,
            "seen": self.marks,
            "partial": self.notices,
        }

    def show(self, console: Console) -> None:
        names = [
            self.first,
            *dict.fromkeys(
                name for differences in self.differences.values() for name in differences
            ),
        ]
        letters = dict(zip(names, ascii_uppercase, strict=False))
        rows: list[tuple[str, ...]] = []
        for measure, differences in self.differences.items():
            first, *_ = differences.values()
            rows.append(
                (self.scheme.display_name(measure), "A", one_decimal(first.first), *[""] * 6)
            )
            rows += [
                ("", letters[name], *difference.cells()[1:])
                for name, difference in differences.items()
            ]
        title = "\n".join(
            f"{letter}: {name}  {self.notices.get(name, '')}".rstrip()
            for name, letter in letters.items()
        )
        note = (
            f"{self._counts(letters)}; p from a paired randomisation test, corrected by Holm's "
            "method over the experiments of a measure; intervals by bootstrap, not corrected."
        )
        firsts = [next(iter(differences.values())) for differences in self.differences.values()]
        note = f"{note} {count_note(firsts)}".rstrip()
        columns = ("measure", "", "score", "minus A", "95% interval", "p", "won", "lost", "tied")
        Table(title, note, columns, tuple(rows), left=(0, 1)).show(console)
        show_marks(console, {letter: self.marks.get(name, "") for name, letter in letters.items()})

    def _counts(self, letters: Mapping[str, str]) -> str:
        """How many questions are compared, and of how many."""
        counts = pluralize(self.questions, "question")
        if {*self.sizes.values()} == {self.questions}:
            return counts
        sizes = [f"{letter} has {self.sizes[name]:,}" for name, letter in letters.items()]
        return f"{counts} that all have ({', '.join(sizes)})"


def compare_pair(
    first: Experiment, second: Experiment, measure: str = "", count: int = 5, common: bool = False
) -> Comparison:
    """Compare two experiments.

    List the `count` questions that differ most in `measure` (if empty, the headline).

    With `common`, compare over the questions that both have; otherwise their questions must be the
    same.
    """
    a = ScoredExperiment(first)
    b = ScoredExperiment(second)
    questions = comparable_questions(a, b, common)
    differences = measure_differences(a, b, questions)
    known = [difference.measure for difference in differences]
    if measure and measure not in known:
        raise unknown_name("measure of both experiments", measure, known)
    of_questions = [difference.measure for difference in differences if difference.won is not None]
    measure = measure or first.scheme.headline(of_questions)
    largest = _largest_differences(a, b, questions, measure, count) if measure else []
    sizes = (len(a.run.questions), len(b.run.questions))
    return Comparison(
        first.name,
        second.name,
        first.scheme,
        len(questions),
        differences,
        measure,
        largest,
        sizes,
        ("; ".join(a.marks), "; ".join(b.marks)),
        (a.notice, b.notice),
    )


def compare_to_first(
    first: Experiment, others: Sequence[Experiment], measure: str = "", common: bool = False
) -> Comparisons:
    """Compare each of the others with the first, in one measure or (if empty) in all shared
    ones.

    With `common`, compare over the questions that all of them have; otherwise their questions must
    be the same.
    """
    if len(others) >= len(ascii_uppercase):
        raise ConfigError(
            f"found {len(others) + 1} experiments; wanted at most {len(ascii_uppercase)}"
        )
    names = [experiment.name for experiment in (first, *others)]
    if duplicate := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(f"experiment {duplicate} is named twice; name different experiments")
    differences: dict[str, dict[str, Difference]] = {}
    a = ScoredExperiment(first)
    scored = [ScoredExperiment(experiment) for experiment in others]
    questions = _shared_by_all(a, scored, common)
    for b in scored:
        for difference in measure_differences(a, b, questions):
            differences.setdefault(difference.measure, {})[b.experiment.name] = difference
    if measure and measure not in differences:
        raise unknown_name("measure of these experiments", measure, [*differences])
    if missing := [b.name for b in scored if measure and b.name not in differences[measure]]:
        raise ConfigError(
            f"{', '.join(missing)} has no scores in {measure}; leave it out, or compare in a "
            "measure that all experiments have"
        )
    corrected: dict[str, dict[str, Difference]] = {}
    for key in [measure] if measure else first.scheme.keys([*differences]):
        ps = holm_correction([difference.p for difference in differences[key].values()])
        pairs = zip(differences[key].items(), ps, strict=True)
        corrected[key] = {name: replace(difference, p=p) for (name, difference), p in pairs}
    return Comparisons(
        first.name,
        first.scheme,
        corrected,
        len(questions),
        {each.name: len(each.rows) for each in (a, *scored)},
        {each.name: each.notice for each in (a, *scored)},
        {each.name: "; ".join(each.marks) for each in (a, *scored)},
    )


class ScoredExperiment:
    """An experiment with the rows of its questions.

    IfqaError if it was not scored, or its settings or inputs changed since.
    """

    def __init__(self, experiment: Experiment) -> None:
        self.run = Run(experiment)
        self.experiment = experiment
        bases = base_experiments(experiment.name, experiment.root)
        command = f"ifqa run {experiment.name}"
        if bases and not experiment.folder.is_dir():  # no command finds the variant by its name yet
            command = f"ifqa run {bases[-1]}, with the same flags"
        scores = self.run.artifact(SCORE.name)
        scores.require(command)
        self.inputs = scores.require(command, self.run.inputs(SCORE))["inputs"]
        self.scores = read_content(experiment, scores.folder)
        warn_of_failures(scores.folder, self.scores)
        self.notice = partial_notice(self.scores)
        self.name = experiment.name
        self.rows = {row["id"]: row for row in read_rows(scores.folder)}

    @property
    def reads(self) -> bool:
        return self.experiment.reader is not None

    @property
    def marks(self) -> list[str]:
        """What its models have seen of the benchmark, and whether its reader was trained on these
        questions, or its confidence fitted on them.
        """
        reading = self.run.artifact(READ.name).manifest if self.reads else None
        seen = seen_mark(reading["record"]) if reading else ""
        return [*filter(None, (exposure_mark(self.run), seen))]

    def predictions(self) -> Iterable[Prediction]:
        return predictions_of(self.experiment, self.run.questions)


class StoredScores:
    """A copy of an experiment's score folder, such as one from an earlier commit, to hold an
    experiment against.
    """

    def __init__(self, folder: Path) -> None:
        """Read the folder, or its `score`.

        IfqaError if it holds no scores, or they were changed.
        """
        scores = Artifact(folder / "score" if (folder / "score").is_dir() else folder)
        if scores.manifest is None or scores.manifest["inputs"].get("stage") != "score":
            raise MissingInput(f"{folder} has no scores; wanted a copy of experiments/NAME/score")
        if scores.damage:
            raise DamagedArtifact(
                f"{folder}: {scores.damage} is missing or was changed; copy the score folder again"
            )
        warn_of_failures(scores.folder, read_scores(scores.folder))
        self.inputs = scores.manifest["inputs"]
        self.name = str(folder)
        self.rows = {row["id"]: row for row in read_rows(scores.folder)}

    @property
    def reads(self) -> bool:
        return any("answer" in row for row in self.rows.values())

    @property
    def marks(self) -> list[str]:
        """None: a score folder does not name its models."""
        return []

    def predictions(self) -> Iterable[Prediction]:
        return [_prediction_of(row) for row in self.rows.values()]


def _prediction_of(row: QuestionRow) -> Prediction:
    """What a row says of the prediction that it scores; it does not say why one failed."""
    candidate = row.get("candidate", "")
    return Prediction(
        row["id"],
        row.get("answer", ""),
        error="failed" if row.get("failed") else "",
        factual=row.get("factual", ""),
        confidence=row.get("confidence"),
        candidate=candidate,
        abstention="abstained" if row.get("abstained") and not candidate else "",
    )


def _sample(
    scored: ScoredExperiment | StoredScores,
    questions: Sequence[Question],
    scheme: ScoringScheme,
    reads: bool,
) -> QuestionSample:
    """The scores of some questions; `reads`: whether measures of sets get the answers."""
    by_id = (
        {prediction.question_id: prediction for prediction in scored.predictions()}
        if scheme.sets and reads
        else {}
    )
    predictions = [by_id[question.id] for question in questions] if by_id else []
    return aggregate_rows(
        [scored.rows[question.id] for question in questions], questions, scheme, None, predictions
    ).sample()


def comparable_questions(
    a: ScoredExperiment, b: ScoredExperiment, common: bool | None = None
) -> list[Question]:
    """The questions that both have, in the first's order.

    Questions that share only an id do not count. Unless `common`, ConfigError if the two have
    different questions; None: where there is no --common.
    """
    by_id = {question.id: question for question in b.run.questions}
    questions = [question for question in a.run.questions if by_id.get(question.id) == question]
    same = len(questions)
    sizes = (len(a.rows), len(b.rows))
    if not same or not (common or {same} == {*sizes}):
        offers_common = same and common is not None
        hint = ", or compare only the shared ones: --common" if offers_common else ""
        raise ConfigError(
            f"{a.experiment.name} has {sizes[0]:,} questions and {b.experiment.name} has "
            f"{sizes[1]:,}; they share {same:,}. "
            f"Compare experiments over the same questions{hint}"
        )
    return questions


def _shared_by_all(
    a: ScoredExperiment, others: Sequence[ScoredExperiment], common: bool
) -> list[Question]:
    """The questions that all have, in the first's order; raises like `comparable_questions`."""
    shared = [comparable_questions(a, b, common) for b in others]
    ids = set.intersection(*({question.id for question in questions} for questions in shared))
    if not ids:
        raise ConfigError(
            f"{', '.join([a.name, *(b.name for b in others)])} share no question; "
            "compare experiments over the same questions"
        )
    return [question for question in shared[0] if question.id in ids]


def measure_differences(
    a: ScoredExperiment | StoredScores,
    b: ScoredExperiment,
    questions: Sequence[Question],
    only: Sequence[str] = (),
) -> list[Difference]:
    """The difference in every shared measure, or in `only` those, in display order.

    A language model's verdicts are shared only if the judges are the same: model, settings, prompt.

    ConfigError if they share no measure.
    """
    first = b.experiment if isinstance(a, StoredScores) else a.experiment
    scheme = first.scheme
    reads = a.reads and b.reads
    first_sample, second_sample = (_sample(scored, questions, scheme, reads) for scored in (a, b))
    keys = scheme.keys(b.experiment.scheme.keys(first_sample.keys()))
    if only:
        keys = [key for key in keys if key in only]
    if a.inputs.get("judge") != b.inputs.get("judge"):
        keys = [key for key in keys if not is_judged(key)]
    differences = []
    for key, _, paired in first_sample.differences(second_sample, keys, first.seed):
        first_score, second_score = map(to_percent, (paired.first, paired.second))
        _, *ends = report_interval(paired.interval, paired.units, is_share=False)
        low, high = (None if math.isnan(end) else to_percent(end) for end in ends)
        won, lost, tied = paired.counts or (None, None, None)
        differences.append(
            Difference(
                key,
                first_score,
                second_score,
                to_percent(paired.delta),
                low,
                high,
                paired.p,
                won,
                lost,
                tied,
                scheme.measure(key).unit if _is_mean_of_units(scheme, key) else "question",
            )
        )
    if not differences and not only:
        names = f"{a.name} and {b.name}"
        raise ConfigError(
            f"{names} have no measure in common; compare two with readers, or two without"
        )
    return differences


def measured_keys(
    a: ScoredExperiment | StoredScores, b: ScoredExperiment, questions: Sequence[Question]
) -> tuple[list[str], list[str]]:
    """The measures that each of two systems has scores in, in display order."""
    scheme = b.experiment.scheme
    first, second = (
        scheme.keys(_sample(scored, questions, scheme, scored.reads).keys()) for scored in (a, b)
    )
    return first, second


def question_changes(
    a: ScoredExperiment | StoredScores,
    b: ScoredExperiment,
    questions: Sequence[Question],
    measure: str,
) -> list[tuple[float, tuple[Question, QuestionRow, QuestionRow]]]:
    """By how much each question's score in a measure rose, with both rows.

    A measure that is a mean over units, such as pairs of questions, scores units: each is listed
    once, as its first question, whose rows then hold the unit's score. Questions without a score
    are left out.
    """
    rows_of = [_rows_with_units(scored, b, questions, measure) for scored in (a, b)]
    changes = []
    for question, *rows in zip(questions, *rows_of, strict=True):
        first, second = (row_score(row, measure) for row in rows)
        if first is not None and second is not None:
            changes.append((second - first, (question, rows[0], rows[1])))
    return changes


def _is_mean_of_units(scheme: ScoringScheme, key: str) -> bool:
    measure = scheme.measure(key)
    return isinstance(measure, SetMeasure) and measure.mean_of_units


def _rows_with_units(
    scored: ScoredExperiment | StoredScores,
    b: ScoredExperiment,
    questions: Sequence[Question],
    measure: str,
) -> list[QuestionRow]:
    """The questions' rows; for a mean over units, the first row of each unit has the unit's score
    in every mean over these units.
    """
    rows = [scored.rows[question.id] for question in questions]
    scheme = b.experiment.scheme
    if not _is_mean_of_units(scheme, measure):
        return rows
    sample = _sample(scored, questions, scheme, scored.reads)
    units = sample.aggregator.unit_names(scheme.measure(measure), range(len(questions)))
    keys = [key for key in sample.columns if key in scheme.keys([key])]
    keys = [key for key in keys if _is_mean_of_units(scheme, key)]
    keys = [key for key in keys if scheme.measure(key).unit == scheme.measure(measure).unit]
    for members in indexes_by_name(units or [question.id for question in questions]).values():
        first = members[0]
        scores = {key: float(sample.columns[key][first]) for key in keys}
        known = {key: score for key, score in scores.items() if not math.isnan(score)}
        rows[first] = cast("QuestionRow", {**rows[first], **known})
    return rows


def _largest_differences(
    a: ScoredExperiment,
    b: ScoredExperiment,
    questions: Sequence[Question],
    measure: str,
    count: int,
) -> list[tuple[Question, QuestionRow, QuestionRow]]:
    """The questions with the largest differences in a measure, with both rows.

    Ties are in the questions' order.
    """
    changes = [change for change in question_changes(a, b, questions, measure) if change[0]]
    return [entry for _, entry in sorted(changes, key=lambda change: -abs(change[0]))[:count]]
