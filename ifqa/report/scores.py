"""Scores of an experiment, or of answers from the caller, as a Python object."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from ifqa.config.expected import count_scored, find_score
from ifqa.config.experiment import Experiment
from ifqa.errors import unknown_name
from ifqa.formatting import one_decimal, printable
from ifqa.pipeline.run import Run
from ifqa.report.exposure import exposure_mark
from ifqa.report.table import Table, make_frame, render_text, sanitize
from ifqa.scoring import stored_scores
from ifqa.scoring.error_types import classify_outcome
from ifqa.scoring.intervals import MIN_UNITS, mend_intervals
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.stored_scores import (
    QuestionRow,
    ScoreInterval,
    ScoreIntervals,
    ScoresJson,
    SubsetScores,
)

if TYPE_CHECKING:
    import pandas as pd

_MAX_SUBSET_COLUMNS = 3  # up to this many subsets get columns; more get rows


class Score(NamedTuple):
    """A measure's value and its 95% interval, in percent.

    There is none over fewer than ten questions, and none of the calibration error.
    """

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return one_decimal(self.value)
        return f"{one_decimal(self.value)} [{one_decimal(self.low)}, {one_decimal(self.high)}]"


@dataclass(frozen=True, repr=False)
class Scores:
    """Scores over all questions: `scores["EM"]`, and `scores["numeric.EM"]` over a subset or a
    group.

    Attributes:
        name: the experiment's name, or the benchmark and split.
        scheme: the scoring scheme.
        content: the scores as in `scores.json`.
        rows: a row for each question, in the questions' order, as in `per_question.jsonl`: "id",
            "subsets", and each defined measure, from 0 to 1; with a reader also "failed" and
            "answer".
        mark: what the experiment's models have seen of the benchmark (`ifqa.models.ledger`); empty
            for nothing.
    """

    name: str
    scheme: ScoringScheme
    content: ScoresJson
    rows: Sequence[QuestionRow] = field(default=(), repr=False)
    mark: str = ""

    def __getitem__(self, measure: str) -> Score:
        mean = find_score(self.content, measure)
        if mean is None:
            raise unknown_name(
                f"measure of {self.name}",
                measure,
                [name for _, part in self._parts() for name in part],
            )
        return Score(mean["value"], mean.get("low"), mean.get("high"))

    def __iter__(self) -> Iterator[str]:
        """The measures over all questions."""
        return iter(self.content["measures"])

    @property
    def questions(self) -> int:
        """The number of scored questions."""
        return int(self.content["questions"])

    @property
    def n_failed(self) -> int:
        """The number of questions without an answer; each counts as wrong."""
        return int(self.content["n_failed"])

    @property
    def n_abstained(self) -> int:
        """The number of questions on which the reader abstained; each scores 0."""
        return int(self.content.get("n_abstained", 0))

    def outcomes(
        self, factual: Mapping[str, str] | None = None, computed: str = "numeric"
    ) -> dict[str, str]:
        """Question id -> its outcome by the headline measure: one of
        `ifqa.scoring.error_types.OUTCOMES`.

        Args:
            factual: question id -> answer in the real world, as another experiment gave it.
            computed: the subset of questions whose answers are mostly computed.
        """
        outcomes = {}
        for row in self.rows:
            measure = self.scheme.headline(row.keys())
            real_answer = (factual or {}).get(row["id"], "")
            outcomes[row["id"]] = classify_outcome(row, measure, computed, real_answer)
        return outcomes

    def to_dict(self) -> dict[str, object]:
        """A copy of the scores as plain data."""
        return {"name": self.name, **deepcopy(self.content)} | (
            {"seen": self.mark} if self.mark else {}
        )

    def to_frame(self) -> "pd.DataFrame":
        """A pandas data frame with a row for each measure over all questions, each subset and each
        group: its value, its interval, and the number n of questions (of "macro", of groups).
        """
        rows: list[tuple[object, ...]] = []
        for over, part in self._parts():
            rows += [
                (over, name, mean["value"], mean.get("low"), mean.get("high"), self._n(over, name))
                for name, mean in part.items()
            ]
        return make_frame(rows, ["over", "measure", "value", "low", "high", "n"])

    def _n(self, over: str, measure: str) -> int:
        return count_scored(self.content, measure if over == "all" else f"{over}.{measure}")

    def tables(self) -> list[Table]:
        """Tables for the terminal: the measures.

        The headline measure by subset, if there are many subsets; and by group.
        """
        return [*_tables(self.content, self.scheme)]

    def __repr__(self) -> str:
        """Two lines: the questions, and the measures that tables of results show."""
        notice = stored_scores.partial_notice(self.content)
        first = f"Scores of {self.name}: {self._counts()}"
        shown = self.scheme.table_keys(self.content["measures"]) or [*self.content["measures"]][:3]
        scores = ", ".join(f"{self.scheme.display_name(key)} {self[key]}" for key in shown)
        return printable(f"{'; '.join(filter(None, (first, notice)))}\n{scores}")

    def __str__(self) -> str:
        return render_text(self._show)

    def _show(self, console: Console) -> None:
        console.print(
            f"{sanitize(self.name)}  {stored_scores.partial_notice(self.content)}".rstrip(),
            soft_wrap=True,
        )
        for table in self.tables():
            table.show(console)
        console.print(self._counts(), soft_wrap=True)
        if notice := stored_scores.judge_notice(self.content):
            console.print(sanitize(notice), soft_wrap=True)

    def _repr_html_(self) -> str:
        tables = "".join(table._repr_html_() for table in self.tables())
        note = f"{self._counts()} {stored_scores.partial_notice(self.content)}"
        return f"<p>{escape(self.name)}</p>{tables}<p>{escape(note)}</p>"

    def _counts(self) -> str:
        abstained = f", {self.n_abstained:,} abstained" if self.n_abstained else ""
        mark = f"; {sanitize(self.mark)}" if self.mark else ""
        return f"{self.questions:,} questions, {self.n_failed:,} failed{abstained}{mark}"

    def _parts(self) -> Iterator[tuple[str, ScoreIntervals]]:
        """The measures of all questions, each subset, each group, and the mean over groups."""
        yield "all", self.content["measures"]
        for parts in (self.content["subsets"], self.content.get("groups", {})):
            yield from ((name, part["measures"]) for name, part in parts.items())
        if "macro" in self.content:
            yield "macro", self.content["macro"]["measures"]


def read_content(experiment: Experiment, folder: Path) -> ScoresJson:
    """The scores in an experiment's score folder, with the intervals that are reported."""
    return mend_intervals(stored_scores.read_scores(folder), experiment.scheme)


def load_scores(run: Run, folder: Path) -> Scores:
    experiment = run.experiment
    content = read_content(experiment, folder)
    rows = stored_scores.read_rows(folder)
    return Scores(experiment.name, experiment.scheme, content, rows, exposure_mark(run))


def _tables(scores: ScoresJson, scheme: ScoringScheme) -> Iterator[Table]:
    """The measures, with a column per subset or a table of many subsets.

    And the headline by group, with both averages.
    """
    names = [subset.name for subset in scheme.subsets]
    subsets = {name: scores["subsets"][name] for name in names if name in scores["subsets"]}
    parts = subsets if len(subsets) <= _MAX_SUBSET_COLUMNS else {}
    count = scores["questions"]
    rows = []
    for key in scheme.keys(scores["measures"]):  # a measure that is no longer declared has no row
        mean = scores["measures"][key]
        cells = (score_cell(part["measures"].get(key)) for part in parts.values())
        rows.append(
            (scheme.display_name(key), score_cell(mean), interval_cell(mean, count), *cells)
        )
    titles = (f"{name} ({part['questions']})" for name, part in parts.items())
    yield Table("", "", ("measure", f"all ({count})", "95% interval", *titles), tuple(rows))
    key = scheme.headline(scores["measures"])
    columns = ("questions", scheme.display_name(key), "95% interval")

    def row(name: str, over: str, questions: int, means: ScoreIntervals) -> tuple[str, ...]:
        return name, over, score_cell(means.get(key)), interval_cell(means.get(key), questions)

    def rows_of(parts: Mapping[str, SubsetScores]) -> list[tuple[str, ...]]:
        counted = [(name, part["questions"], part["measures"]) for name, part in parts.items()]
        return [row(name, f"{questions:,}", questions, means) for name, questions, means in counted]

    if len(subsets) > _MAX_SUBSET_COLUMNS:
        yield Table("", "", ("subset", *columns), tuple(rows_of(subsets)))
    if "groups" in scores:
        number = sum(key in part["measures"] for part in scores["groups"].values())
        macro = row("macro", f"mean of {number}", count, scores["macro"]["measures"])
        micro = row("micro", f"{count:,}", count, scores["measures"])
        yield Table("", "", (scheme.groups, *columns), (*rows_of(scores["groups"]), macro, micro))


def score_cell(mean: ScoreInterval | None) -> str:
    return one_decimal(mean["value"]) if mean else "-"


def is_too_few(mean: ScoreInterval | None, questions: int) -> bool:
    """Whether a score counts too few of these questions for its interval to be shown."""
    if mean is None:
        return False
    return mean.get("questions", mean.get("groups", questions)) < MIN_UNITS


def interval_cell(mean: ScoreInterval | None, questions: int) -> str:
    """The interval of a score as the text of a cell; "too few" below MIN_UNITS questions."""
    if is_too_few(mean, questions):
        return "too few"
    if not mean or "low" not in mean:
        return "-"
    return f"{one_decimal(mean['low'])} - {one_decimal(mean['high'])}"
