"""The regression gate: fails if a system scores significantly lower than an earlier one on the same
questions and passages.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ifqa.config.experiment import Experiment
from ifqa.errors import ConfigError, DamagedArtifact, unknown_name
from ifqa.formatting import one_decimal, pluralize
from ifqa.records import Question
from ifqa.report.compare import (
    Difference,
    ScoredExperiment,
    StoredScores,
    count_note,
    measure_differences,
    measured_keys,
    question_changes,
    show_marks,
)
from ifqa.report.table import Table, p_cell, sanitize
from ifqa.scoring.intervals import MIN_UNITS
from ifqa.scoring.measures.judged import is_judged
from ifqa.scoring.power import fewest_noticed
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.statistics import holm_correction
from ifqa.scoring.stored_scores import QuestionRow, row_score

LEVEL = 0.05  # the most that the chance of a false alarm is, over all measures of a gate
#: Inputs of scores -> what changed between two scores that differ in it.
_REASONS = {
    "version": "scored by different versions of the scorer",
    "benchmark": "scored by different versions of the benchmark",
    "training": "the training questions, which decide the subsets, changed",
    "passages": "the passages of the corpus changed",
}
#: The same, for an input that only one of two scores has: what that one has.
_HAS = {"training": "training questions, which decide the subsets", "passages": "a corpus"}


@dataclass(frozen=True)
class GateMeasure:
    """A tested measure.

    `difference.p` is two-sided and not corrected; `p` is one-sided, for a loss, and corrected by
    Holm.
    """

    difference: Difference
    p: float
    # Questions on which the second is worse, with both rows
    worse: list[tuple[Question, QuestionRow, QuestionRow]]

    @property
    def failed(self) -> bool:
        return self.p < LEVEL


@dataclass(frozen=True)
class Gate:
    """The verdict on a second system: it fails if any measure got significantly worse."""

    first: str
    second: str
    scheme: ScoringScheme
    questions: int
    measures: list[GateMeasure]
    # The fewest lost answers that fail it 4 times in 5; None if no loss does, or it tests no
    # answers
    noticed: int | None
    untested: list[str]  # measures that only the second has
    # Such as "3 paragraphs", if tests of answers swap so few units as wholes
    few_units: str = ""
    marks: tuple[str, str] = ("", "")  # as `Comparison.marks`; a stored copy has none

    @property
    def failed(self) -> list[str]:
        """The measures that got significantly worse."""
        return [measure.difference.measure for measure in self.measures if measure.failed]

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain data."""
        rows = []
        for measure in self.measures:
            row = measure.difference.to_dict() | {"p": measure.p, "failed": measure.failed}
            rows.append(row | {"worse": [question.id for question, _, _ in measure.worse]})
        about = {"a": self.first, "b": self.second, "questions": self.questions}
        p = "one-sided, for a loss, corrected by Holm's method"
        verdict = {
            "p": p,
            "failed": self.failed,
            "noticed": self.noticed,
            "untested": self.untested,
            "measures": rows,
            "seen": dict(zip("ab", self.marks, strict=True)),
        }
        return about | verdict

    def show(self, console: Console, count: int) -> None:
        """Print the table and, for each measure that got worse, `count` of the questions that lost
        most.
        """
        rows = []
        for measure in self.measures:
            first, second, delta, interval, _, _, lost, _ = measure.difference.cells()
            verdict = "WORSE" if measure.failed else "ok"
            name = self.scheme.display_name(measure.difference.measure)
            rows.append((name, first, second, delta, interval, p_cell(measure.p), lost, verdict))
        columns = ("measure", "A", "B", "B - A", "95% interval", "p", "lost", "")
        Table(f"A: {self.first}\nB: {self.second}", "", columns, tuple(rows)).show(console)
        note = (
            f"{self.questions:,} questions; p of a loss, from a paired randomisation test, "
            f"corrected by Holm's method over {pluralize(len(rows), 'measure')}. {self._power()}"
        )
        console.print(note, soft_wrap=True)
        if note := count_note(measure.difference for measure in self.measures):
            console.print(sanitize(note), soft_wrap=True)
        show_marks(console, dict(zip("AB", self.marks, strict=True)))
        if self.untested:
            names = ", ".join(map(self.scheme.display_name, self.untested))
            console.print(
                f"Not tested, because A has no such scores: {sanitize(names)}.", soft_wrap=True
            )
        worse = {
            question.id: rows
            for measure in self.measures
            if measure.failed
            for question, *rows in measure.worse
        }
        if worse:
            units = {measure.difference.unit for measure in self.measures if measure.failed}
            listed = pluralize(len(worse), units.pop() if len(units) == 1 else "question")
            console.print(
                f"\n{', '.join(self.failed)} got worse on {listed}, A -> B:", soft_wrap=True
            )
        for question_id, (row, other) in list(worse.items())[:count]:
            scores = [
                f"{key} {_percent(row, key)} -> {_percent(other, key)}" for key in self.failed
            ]
            answers = [str(each["answer"]) or "(none)" for each in (row, other) if "answer" in each]
            console.print(
                sanitize(f"  {question_id}  {', '.join(scores)}  {' -> '.join(answers)}"),
                soft_wrap=True,
            )
        if len(worse) > count:
            console.print(
                f"  and {len(worse) - count:,} more; --show {len(worse)} prints all", soft_wrap=True
            )
        console.print(
            f"FAILED: {', '.join(self.failed)} got worse"
            if self.failed
            else "passed: no measure got significantly worse"
        )

    def _power(self) -> str:
        """What loss the gate notices, in a sentence; empty if it tests no answers."""
        if not self._tests_answers:
            return ""
        if self.noticed is None and self.few_units:
            return (
                f"Questions are tested together by unit: with {self.few_units} no loss fails the "
                "gate 4 times in 5."
            )
        if self.noticed is None:
            return "With so few right answers no loss fails the gate 4 times in 5."
        share = 100 * self.noticed / self.questions
        return (
            "Of two equal systems that differ on as many questions, a loss of "
            f"{pluralize(self.noticed, 'answer')} "
            f"({one_decimal(share)}%) fails the gate 4 times in 5; one fewer does so less often."
        )

    @property
    def _tests_answers(self) -> bool:
        return any(
            measure.difference.measure in {each.name for each in self.scheme.answers}
            for measure in self.measures
        )


def _percent(row: QuestionRow, key: str) -> str:
    score = row_score(row, key)
    return "-" if score is None else f"{100 * score:.0f}"


def check_gate(first: Experiment | Path, second: Experiment, measure: str = "") -> Gate:
    """Test whether `second` scores lower than `first`, an experiment or a stored copy of a score
    folder.

    Tests one measure, or (if empty) those that tables of results show. Raises ConfigError if the
    questions, their labels, the corpus or the scorer changed between the two scores.
    """
    b = ScoredExperiment(second)
    a = StoredScores(first) if isinstance(first, Path) else ScoredExperiment(first)
    refuse_changes(a, b)
    marks = ("; ".join(a.marks), "; ".join(b.marks))
    return replace(judge(a, b, measure), marks=marks)


def judge(a: ScoredExperiment | StoredScores, b: ScoredExperiment, measure: str = "") -> Gate:
    """The verdict of `check_gate` on scores of the same questions."""
    questions = b.run.questions
    scheme = b.experiment.scheme
    _refuse_missing_rows(a, questions)
    before, after = measured_keys(a, b, questions)
    tested = _table_keys(scheme, before)
    if is_judged(measure):
        raise ConfigError(
            f"the gate does not test {measure!r}: a model's verdicts decide nothing; wanted "
            "another measure, such as EM"
        )
    if missing := [key for key in tested if key not in after and measure in ("", key)]:
        names = ", ".join(map(scheme.display_name, missing))
        raise ConfigError(
            f"{b.name} has no scores in {names}, which {a.name} has; nothing "
            "says that it did not get worse"
        )
    differences = {
        difference.measure: difference for difference in measure_differences(a, b, questions)
    }
    if measure and measure not in differences:
        raise unknown_name("measure of both", measure, [*differences])
    keys = [measure] if measure else [key for key in tested if key in differences]
    untested = [] if measure else [key for key in _table_keys(scheme, after) if key not in before]
    signs = {key: 1 if scheme.best_value(key) else -1 for key in keys}  # of a gain
    halves = {key: differences[key].p / 2 for key in keys}
    ps = [
        halves[key] if signs[key] * differences[key].delta < 0 else 1 - halves[key] for key in keys
    ]
    measures = []
    for key, p in zip(keys, holm_correction(ps), strict=True):
        changes = question_changes(a, b, questions, key)
        gains = sorted(
            ((signs[key] * change, entry) for change, entry in changes), key=lambda gain: gain[0]
        )
        measures.append(
            GateMeasure(differences[key], p, [entry for gain, entry in gains if gain < 0])
        )
    noticed = _noticed_loss(a, b, questions, scheme, keys)
    few = _few_units(scheme, keys, questions)
    return Gate(a.name, b.name, scheme, len(questions), measures, noticed, untested, few)


def _refuse_missing_rows(a: ScoredExperiment | StoredScores, questions: Sequence[Question]) -> None:
    """Refuse scores that lack the row of a question."""
    if missing := [question.id for question in questions if question.id not in a.rows]:
        lacks = f"has no row of {missing[0]} ({pluralize(len(missing), 'question')} missing)"
        raise DamagedArtifact(f"{a.name} {lacks}; score it again, or copy the score folder again")


def refuse_changes(a: ScoredExperiment | StoredScores, b: ScoredExperiment) -> None:
    """Refuse scores of other questions, labels, passages, or of another scorer, and say which
    changed.
    """
    wanted = f"{b.name} cannot be held against {a.name}"
    if a.inputs.get("questions") != b.inputs.get("questions"):
        ids = {question.id for question in b.run.questions}
        other = len(ids ^ a.rows.keys())
        change = (
            f"{other:,} questions are not in both"
            if other
            else "the texts or labels of their questions changed"
        )
        raise ConfigError(
            f"{wanted}: {change}; score both on the same questions, or "
            "store new scores to compare with"
        )
    modules: list[Any] = [scores.inputs.get("measured_by", {}) for scores in (a, b)]
    if changed := [
        name
        for name in modules[0].keys() & modules[1].keys()
        if modules[0][name] != modules[1][name]
    ]:
        raise ConfigError(
            f"{wanted}: measured by another {min(changed)}; run both again, or store new scores"
        )
    for key, reason in _REASONS.items():
        if key in _HAS and (key in a.inputs) != (key in b.inputs):
            name = a.name if key in a.inputs else b.name
            raise ConfigError(
                f"{wanted}: only {name} has {_HAS[key]}; compare experiments that both have it, or "
                "leave out --fail-if-worse"
            )
        if a.inputs.get(key) != b.inputs.get(key):
            raise ConfigError(
                f"{wanted}: {reason}; run both again, or store new scores to compare with"
            )


def _table_keys(scheme: ScoringScheme, known: Collection[str]) -> list[str]:
    """The measures to test: those of answers that tables show and that are not advisory, and the
    headline of rankings.

    For systems without a reader they are the measures of rankings that tables show.
    """
    rankings = [
        f"{measure.name}@{depth}" for measure in scheme.rankings for depth in measure.tables
    ]
    shown = [key for key in rankings if key in known]
    known = [key for key in known if not scheme.measure(key).advisory]
    answers = scheme.table_keys(known)
    return [*answers, *shown[:1]] if answers else shown or list(known)


def _noticed_loss(
    a: ScoredExperiment | StoredScores,
    b: ScoredExperiment,
    questions: Sequence[Question],
    scheme: ScoringScheme,
    keys: Sequence[str],
) -> int | None:
    """The fewest lost answers that such a gate notices 4 times in 5.

    None if it tests no answers, or notices none so often.
    """
    answers = {measure.name for measure in scheme.answers}
    columns = [key for key in keys if key in answers]
    if not columns:
        return None
    tables = []
    for scored in (a, b):
        rows = [
            [row_score(scored.rows[question.id], key) for key in columns] for question in questions
        ]
        tables.append(np.array(rows, dtype=np.float64))
    units = _units(scheme, columns[0], questions)
    best = [scheme.best_value(key) for key in columns]
    return fewest_noticed(tables[0], tables[1], best, LEVEL, len(keys), units)


def _few_units(scheme: ScoringScheme, keys: Sequence[str], questions: Sequence[Question]) -> str:
    """The number of units in tests of answers; empty if they are many, or questions."""
    answers = {measure.name for measure in scheme.answers}
    key = next((key for key in keys if key in answers), "")
    if not key:
        return ""
    count = len({*_units(scheme, key, questions)})
    unit = scheme.measure(key).unit
    names = {"group": scheme.groups, "passages": "paragraph"}
    return pluralize(count, names.get(unit, unit)) if 0 < count < MIN_UNITS else ""


def _units(scheme: ScoringScheme, key: str, questions: Sequence[Question]) -> list[str]:
    """Each question's unit in the tests of a measure; empty if that is the question."""
    unit = scheme.measure(key).unit
    return [] if unit == "question" else [question.unit(unit) for question in questions]
