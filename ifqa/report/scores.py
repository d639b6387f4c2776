"""Scores of an experiment, or of answers from the caller, as a Python object."""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console

from ifqa.config.expected import find_score
from ifqa.config.experiment import Experiment
from ifqa.errors import IfqaError, unknown_name
from ifqa.report.table import Table, render_text, sanitize
from ifqa.scoring.error_types import classify_outcome
from ifqa.scoring.scheme import ScoringScheme
from ifqa.scoring.score_files import (
    QuestionRow,
    ScoreInterval,
    ScoreIntervals,
    ScoresJson,
    SubsetScores,
    partial_notice,
    read_rows,
    read_scores,
)

if TYPE_CHECKING:
    import pandas as pd

#: Below this, an interval says little: if a reader is right 70% of the time, 10 questions all score the same in 3% of samples,
#: which gives zero width; 5 questions do in 17%, 3 in 37%.
MIN_QUESTIONS = 10
_MAX_SUBSET_COLUMNS = 3  # up to this many subsets get columns; more get rows


class Score(NamedTuple):
    """A measure's value and its 95% bootstrap interval, in percent."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.1f} [{self.low:.1f}, {self.high:.1f}]"


@dataclass(frozen=True)
class Scores:
    """Scores over all questions: `scores["EM"]`, and `scores["numeric.EM"]` over a subset or a group.

    Attributes:
        name: of the experiment, or the benchmark and split.
        scheme: the scoring scheme.
        content: the scores as in `scores.json` (`ifqa.scoring.aggregation.Aggregator.scores`).
        rows: a row for each question, in their order, as in `per_question.jsonl` (`ifqa.scoring.per_question.row`): "id",
            "subsets", each measure from 0 to 1 if it is defined; with a reader also "failed" and "answer".
    """

    name: str
    scheme: ScoringScheme
    content: ScoresJson
    rows: Sequence[QuestionRow] = field(default=(), repr=False)

    def __getitem__(self, measure: str) -> Score:
        mean = find_score(self.content, measure)
        if mean is None:
            raise unknown_name(f"measure of {self.name}", measure, [name for _, part in self._parts() for name in part])
        return Score(mean["value"], mean["low"], mean["high"])

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

    def outcomes(self, factual: Mapping[str, str] | None = None, computed: str = "numeric") -> dict[str, str]:
        """Question id -> its outcome by the headline measure: one of `ifqa.scoring.error_types.OUTCOMES`.

        Args:
            factual: question id -> answer in the real world, as another experiment gave it.
            computed: the subset of questions whose answers are mostly computed.
        """
        known = factual or {}
        return {
            row["id"]: classify_outcome(row, self.scheme.headline(row.keys()), computed, known.get(row["id"], ""))
            for row in self.rows
        }

    def to_dict(self) -> dict[str, object]:
        """The scores as plain data, a copy."""
        return {"name": self.name, **deepcopy(self.content)}

    def to_frame(self) -> "pd.DataFrame":
        """A pandas frame with a row for each measure over all questions, each subset and each group."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise IfqaError("a frame needs pandas; install it with: pip install pandas") from error
        rows = [
            {"over": over, "measure": name, **{key: mean[key] for key in ("value", "low", "high")}}
            for over, part in self._parts()
            for name, mean in part.items()
        ]
        return pd.DataFrame(rows, columns=["over", "measure", "value", "low", "high"])

    def tables(self) -> list[Table]:
        """Tables for the screen: the measures, the headline by subset if there are many, and by group."""
        return [*_tables(self.content, self.scheme)]

    def __str__(self) -> str:
        return render_text(self._show)

    def _show(self, console: Console) -> None:
        console.print(f"{sanitize(self.name)}  {partial_notice(self.content)}".rstrip(), soft_wrap=True)
        for table in self.tables():
            table.show(console)
        console.print(self._counts(), soft_wrap=True)

    def _repr_html_(self) -> str:
        note = f"{self._counts()} {partial_notice(self.content)}"
        return (
            f"<p>{escape(self.name)}</p>{''.join(table._repr_html_() for table in self.tables())}<p>{escape(note)}</p>"
        )

    def _counts(self) -> str:
        abstained = f", {self.n_abstained:,} abstained" if self.n_abstained else ""
        return f"{self.questions:,} questions, {self.n_failed:,} failed{abstained}"

    def _parts(self) -> Iterator[tuple[str, ScoreIntervals]]:
        """The measures of all questions, each subset, each group, and the mean over groups."""
        yield "all", self.content["measures"]
        for parts in (self.content["subsets"], self.content.get("groups", {})):
            yield from ((name, part["measures"]) for name, part in parts.items())
        if "macro" in self.content:
            yield "macro", self.content["macro"]["measures"]


def load_scores(experiment: Experiment, folder: Path) -> Scores:
    """The scores of an experiment, from its score folder."""
    scheme = experiment.scheme
    return Scores(experiment.name, scheme, read_scores(folder), read_rows(folder))


def _tables(scores: ScoresJson, scheme: ScoringScheme) -> Iterator[Table]:
    """The measures, with a column per subset or a table of many subsets; and the headline by group, with both averages."""
    subsets = {
        subset.name: scores["subsets"][subset.name] for subset in scheme.subsets if subset.name in scores["subsets"]
    }
    parts = subsets if len(subsets) <= _MAX_SUBSET_COLUMNS else {}
    counted = (f"{name} ({part['questions']})" for name, part in parts.items())
    rows = []
    for key in scheme.keys(scores["measures"]):  # a measure that is no longer declared has no row
        mean = scores["measures"][key]
        over_parts = (score_cell(part["measures"].get(key)) for part in parts.values())
        rows.append((scheme.display_name(key), score_cell(mean), interval_cell(mean, scores["questions"]), *over_parts))
    yield Table("", "", ("measure", f"all ({scores['questions']})", "95% interval", *counted), tuple(rows))
    key, whole = scheme.headline(scores["measures"]), scores["questions"]
    columns = ("questions", scheme.display_name(key), "95% interval")

    def row(name: str, over: str, questions: int, means: ScoreIntervals) -> tuple[str, ...]:
        return name, over, score_cell(means.get(key)), interval_cell(means.get(key), questions)

    def rows_of(parts: Mapping[str, SubsetScores]) -> list[tuple[str, ...]]:
        every = parts.items()
        return [row(name, f"{part['questions']:,}", part["questions"], part["measures"]) for name, part in every]

    if len(subsets) > _MAX_SUBSET_COLUMNS:
        yield Table("", "", ("subset", *columns), tuple(rows_of(subsets)))
    if "groups" in scores:
        number = sum(key in part["measures"] for part in scores["groups"].values())
        macro = row("macro", f"mean of {number}", whole, scores["macro"]["measures"])
        micro = row("micro", f"{whole:,}", whole, scores["measures"])
        yield Table("", "", (scheme.groups, *columns), (*rows_of(scores["groups"]), macro, micro))


def score_cell(mean: ScoreInterval | None) -> str:
    """A score as the text of a cell."""
    return f"{mean['value']:.1f}" if mean else "-"


def interval_cell(mean: ScoreInterval | None, questions: int) -> str:
    """The interval of a score as the text of a cell; "too few" below MIN_QUESTIONS questions."""
    if mean and mean.get("questions", mean.get("groups", questions)) < MIN_QUESTIONS:
        return "too few"
    return f"{mean['low']:.1f} - {mean['high']:.1f}" if mean else "-"
