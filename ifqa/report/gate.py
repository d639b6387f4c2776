"""The regression gate: fails if a system scores significantly lower than an earlier one on the same questions and passages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist, stdev
from typing import Any

from rich.console import Console

from ifqa.config.experiment import Experiment
from ifqa.errors import ConfigError, unknown_name
from ifqa.records import Question
from ifqa.report.compare import Difference, ScoredExperiment, StoredScores, measure_differences, question_changes
from ifqa.report.table import Table, p_cell, sanitize
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


@dataclass(frozen=True)
class GateMeasure:
    """A tested measure. `difference.p` is two-sided and not corrected; `p` is one-sided, for a loss, and corrected by Holm."""

    difference: Difference
    p: float
    noticed: float | None  # the loss that is noticed 4 times in 5, in percent; None without a spread
    worse: list[tuple[Question, QuestionRow, QuestionRow]]  # questions on which the second is worse, with both rows

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

    @property
    def failed(self) -> list[str]:
        """The measures that got significantly worse."""
        return [measure.difference.measure for measure in self.measures if measure.failed]

    def to_dict(self) -> dict[str, object]:
        """The verdict as plain data."""
        rows = []
        for measure in self.measures:
            row = measure.difference.to_dict() | {"p": measure.p, "noticed": measure.noticed, "failed": measure.failed}
            rows.append(row | {"worse": [question.id for question, _, _ in measure.worse]})
        about = {"a": self.first, "b": self.second, "questions": self.questions}
        p = "one-sided, for a loss, corrected by Holm's method"
        return about | {"p": p, "failed": self.failed, "measures": rows}

    def show(self, console: Console, count: int) -> None:
        """Print the table and, for each measure that got worse, `count` of the questions that lost most."""
        rows = []
        for measure in self.measures:
            first, second, delta, interval, _, _, lost, _ = measure.difference.cells()
            noticed = "-" if measure.noticed is None else f"{measure.noticed:.1f}"
            verdict = "WORSE" if measure.failed else "ok"
            name = self.scheme.display_name(measure.difference.measure)
            rows.append((name, first, second, delta, interval, p_cell(measure.p), lost, noticed, verdict))
        columns = ("measure", "A", "B", "B - A", "95% interval", "p", "lost", "noticed", "")
        Table(f"A: {self.first}\nB: {self.second}", "", columns, tuple(rows)).show(console)
        note = (
            f"{self.questions:,} questions; p of a loss, from a paired randomisation test, corrected by Holm's method over "
            f"{len(rows)} measure{'s' * (len(rows) > 1)}. A loss as large as 'noticed' fails the gate 4 times in 5."
        )
        console.print(note, soft_wrap=True)
        worse = {question.id: rows for measure in self.measures if measure.failed for question, *rows in measure.worse}
        if worse:
            console.print(f"\n{', '.join(self.failed)} got worse on {len(worse):,} questions, A -> B:", soft_wrap=True)
        for question_id, (row, other) in list(worse.items())[:count]:
            scores = [f"{key} {_percent(row, key)} -> {_percent(other, key)}" for key in self.failed]
            answers = [str(each["answer"]) or "(none)" for each in (row, other) if "answer" in each]
            console.print(sanitize(f"  {question_id}  {', '.join(scores)}  {' -> '.join(answers)}"), soft_wrap=True)
        if len(worse) > count:
            console.print(f"  and {len(worse) - count:,} more; --show {len(worse)} prints all", soft_wrap=True)
        console.print(
            f"FAILED: {', '.join(self.failed)} got worse"
            if self.failed
            else "passed: no measure got significantly worse"
        )


def _percent(row: QuestionRow, key: str) -> str:
    score = row_score(row, key)
    return "-" if score is None else f"{100 * score:.0f}"


def check_gate(first: Experiment | Path, second: Experiment, measure: str = "") -> Gate:
    """Test whether `second` scores lower than `first`, an experiment or a stored copy of a score folder.

    Tests one measure, or (if empty) those that tables of results show. Raises ConfigError if the questions, their labels, the
    corpus or the scorer changed between the two scores.
    """
    b = ScoredExperiment(second)
    a = StoredScores(first) if isinstance(first, Path) else ScoredExperiment(first)
    _refuse_changes(a, b)
    return judge(a, b, measure)


def judge(a: ScoredExperiment | StoredScores, b: ScoredExperiment, measure: str = "") -> Gate:
    """The verdict of `check_gate` on scores of the same questions."""
    questions, scheme = b.run.questions, b.experiment.scheme
    differences = {difference.measure: difference for difference in measure_differences(a, b, questions)}
    if measure and measure not in differences:
        raise unknown_name("measure of both", measure, [*differences])
    keys = [measure] if measure else _table_keys(scheme, [*differences])
    signs = {key: 1 if scheme.best_value(key) else -1 for key in keys}  # of a gain
    halves = {key: differences[key].p / 2 for key in keys}
    ps = [halves[key] if signs[key] * differences[key].delta < 0 else 1 - halves[key] for key in keys]
    measures = []
    for key, p in zip(keys, holm_correction(ps), strict=True):
        changes = question_changes(a, b, questions, key)
        gains = sorted(((signs[key] * change, entry) for change, entry in changes), key=lambda gain: gain[0])
        noticed = _noticed_loss([gain for gain, _ in gains], LEVEL / len(keys))
        measures.append(GateMeasure(differences[key], p, noticed, [entry for gain, entry in gains if gain < 0]))
    return Gate(a.name, b.name, scheme, len(questions), measures)


def _refuse_changes(a: ScoredExperiment | StoredScores, b: ScoredExperiment) -> None:
    """Refuse scores of other questions, labels, passages, or of another scorer, and say which changed."""
    wanted = f"{b.name} cannot be held against {a.name}"
    if a.inputs.get("questions") != b.inputs.get("questions"):
        ids = {question.id for question in b.run.questions}
        other = len(ids ^ a.rows.keys())
        change = f"{other:,} questions are not in both" if other else "the texts or labels of their questions changed"
        raise ConfigError(f"{wanted}: {change}; score both on the same questions, or store new scores to compare with")
    modules: list[Any] = [scores.inputs.get("measured_by", {}) for scores in (a, b)]
    if changed := [name for name in modules[0].keys() & modules[1].keys() if modules[0][name] != modules[1][name]]:
        raise ConfigError(f"{wanted}: measured by another {min(changed)}; run both again, or store new scores")
    for key, reason in _REASONS.items():
        if a.inputs.get(key) != b.inputs.get(key):
            raise ConfigError(f"{wanted}: {reason}; run both again, or store new scores to compare with")


def _table_keys(scheme: ScoringScheme, known: Sequence[str]) -> list[str]:
    """The measures of answers that tables show; for systems without a reader, those of rankings."""
    rankings = [f"{measure.name}@{depth}" for measure in scheme.rankings for depth in measure.tables]
    return scheme.table_keys(known) or [key for key in rankings if key in known] or list(known)


def _noticed_loss(changes: Sequence[float], level: float) -> float | None:
    """The loss, in percent, that a test at `level` notices 4 times in 5: a normal approximation, with these changes' spread."""
    if len(set(changes)) < 2:
        return None
    quantiles = NormalDist().inv_cdf(1 - level) + NormalDist().inv_cdf(0.8)
    return round(100 * quantiles * stdev(changes) / math.sqrt(len(changes)), 2)
