"""An experiment's scores from the rows of its questions, of which only the numbers are kept: means, subsets and groups."""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError
from ifqa.protocols import ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.answer_recall import ANSWER, ceiling, chance_floor
from ifqa.scoring.measures.confidence import RIGHT, calibration_curves
from ifqa.scoring.scheme import GOLD_READ, MACRO, ScoringScheme
from ifqa.scoring.score_files import QuestionRow, ScoreInterval, ScoreIntervals, ScoresJson, SubsetScores, row_score
from ifqa.scoring.statistics import (
    ColumnStatistic,
    Counts,
    Interval,
    MeanStatistic,
    Numbers,
    PairedDifference,
    SetStatistic,
    Statistic,
    places_of,
)


class Aggregator:
    """The numbers of rows, added one by one; `k` passages were retrieved, None or 0 without a run."""

    def __init__(self, by: ScoringScheme, k: int | None) -> None:
        self.by = by
        self.ids: list[str] = []
        self.pairs: list[tuple[Question, Prediction]] = []  # for measures over sets, where one is declared
        units = {measure.unit for measure in by.measures} | ({"group"} if by.groups else set())
        self.units = {unit: list[str]() for unit in units - {"question"}}  # of each question; empty for none
        scored = [key for measure in by.measures for key in measure.keys] + ["failed", "abstained"]
        scored += [column for measure in by.columns for column in measure.columns]
        self._columns = {key: array("d") for key in scored}  # NaN where a question has no score
        self._subsets: dict[str, list[int]] = {}  # places of the questions of each subset that can be told
        recalls_answers = ANSWER.score in [measure.score for measure in by.rankings]
        self._depths = [depth for depth in ANSWER.depths if depth <= k] if k and recalls_answers else []
        self._annotated: list[Question] = []

    def add(self, row: QuestionRow, question: Question, prediction: Prediction | None = None) -> None:
        """Add the row of a question. Rows with a prediction are not mixed with others."""
        for key, column in self._columns.items():
            score = row_score(row, key)
            column.append(math.nan if score is None else score)
        for subset in self.by.subsets:
            if subset.name not in self._subsets and subset.holds(question) is not None:
                self._subsets[subset.name] = []
        if GOLD_READ in row:
            self._subsets.setdefault(GOLD_READ, [])
        for name in row["subsets"]:
            if name in self._subsets:
                self._subsets[name].append(len(self.ids))
        for unit, names in self.units.items():
            names.append(question.group if unit == "group" else question.label(unit))
        if self.by.sets and prediction:
            self.pairs.append((question, prediction))
        if self._depths and question.gold_passages:
            self._annotated.append(question)
        self.ids.append(question.id)

    def sample(self) -> "Sample":
        """All questions; no row is added afterwards."""
        columns = {key: np.array(column) for key, column in self._columns.items()}  # (questions,) each
        return Sample(self, columns, np.arange(len(self.ids)))

    def scores(self, seed: int) -> ScoresJson:
        """Scores over all questions and over parts of them, with bootstrap intervals drawn from the seed.

        The subsets are those that can be told and, if passages were read, "gold_read", the questions with a gold passage among
        these. "macro" is the mean over groups. If a run is scored by answer recall, "ceiling" and "chance" are the answer recall
        of the gold passages, and of K random gold passages of other questions.
        """
        every = self.sample()
        told = [*(subset.name for subset in self.by.subsets), GOLD_READ]
        scores: ScoresJson = {
            "questions": len(self.ids),
            "n_failed": int(np.nansum(every.columns["failed"])),
            "measures": every.means(seed),
            "subsets": every.parts({name: self._subsets[name] for name in told if name in self._subsets}, seed),
        }
        if abstained := int(np.nansum(every.columns["abstained"])):
            scores["n_abstained"] = abstained
        if any(set(RIGHT) <= set(measure.columns) for measure in self.by.columns):
            numbers = every.numbers(RIGHT)
            if not np.isnan(numbers[:, 0]).all():
                scores["sureness"] = calibration_curves(numbers, seed)
        if self.by.groups:
            groups = self.units["group"]
            if "" in groups:
                raise IfqaError(
                    f"{self.ids[groups.index('')]} is of no {self.by.groups}; its benchmark is scored by {self.by.groups}, "
                    "so give it a group"
                )
            scores["groups"] = every.parts(places_of(groups), seed)
            scores[MACRO] = {"measures": every.macro(seed)}
        if self._annotated:
            ceilings = [ceiling(question) for question in self._annotated]
            scores["ceiling"] = round(100 * sum(ceilings) / len(ceilings), 2)
            chance = chance_floor(self._annotated, self._depths)
            scores["chance"] = {name: round(100 * share, 2) for name, share in chance.items()}
        return scores


def aggregate(
    rows: Sequence[QuestionRow],
    questions: Sequence[Question],
    by: ScoringScheme,
    k: int | None,
    predictions: Sequence[Prediction] = (),
) -> Aggregator:
    """The numbers of rows that are there at once; `predictions` are for measures over sets."""
    aggregator = Aggregator(by, k)
    answers: Iterable[Prediction | None] = predictions or [None] * len(rows)
    for row, question, prediction in zip(rows, questions, answers, strict=True):
        aggregator.add(row, question, prediction)
    return aggregator


@dataclass(frozen=True)
class Sample:
    """Some of an aggregator's questions, by their places; `columns` has the scores of all questions, NaN where one has none."""

    all: Aggregator
    columns: Mapping[str, Numbers]
    places: Counts

    def keys(self) -> list[str]:
        """The keys of measures that may be defined here, in the order in which they are shown."""
        known = {key for key, column in self.columns.items() if not np.isnan(column[self.places]).all()}
        known |= {measure.name for measure in self.all.by.sets if self.all.pairs}
        return self.all.by.keys(known | {measure.name for measure in self.all.by.columns})

    def scored(self, key: str) -> NDArray[np.bool_]:
        """For each question here, whether the measure counts it: a mean those with a score, every other measure all."""
        if isinstance(self.all.by.measure(key), SetMeasure | ColumnMeasure):
            return np.ones(len(self.places), bool)
        return ~np.isnan(self.columns[key][self.places])

    def statistic(self, key: str, there: NDArray[np.bool_]) -> Statistic:
        """A measure of the questions that are true in `there`."""
        measure, by, places = self.all.by.measure(key), self.all.by, self.places[there].tolist()
        units = [] if measure.unit == "question" else self._names(measure.unit, places)
        if "" in units:
            what = "group" if measure.unit == "group" else f"label {measure.unit!r}"
            lacking = self.all.ids[places[units.index("")]]
            raise IfqaError(f"measure {measure.name!r} resamples by {measure.unit}, and {lacking} has no {what}")
        if isinstance(measure, SetMeasure):
            return SetStatistic(measure, [self.all.pairs[place] for place in places], units)
        if isinstance(measure, ColumnMeasure):
            return ColumnStatistic(measure, self.numbers(measure.columns)[there], units)
        # A benchmark with groups fixes how many questions each has, and so does a resample of single questions. A larger unit
        # may have questions of several groups.
        strata = self._names("group", places) if by.groups and measure.unit == "question" else []
        return MeanStatistic(measure, self.columns[key][places], units, strata)

    def differences(
        self, other: "Sample", keys: Iterable[str], seed: int
    ) -> Iterator[tuple[str, int, PairedDifference]]:
        """A second system, `other`, against this one, in those measures that are defined for both.

        Yields each one's key, the number of questions that it counts in both, and the difference.
        """
        both = {*self.keys()} & {*other.keys()}
        for key in keys:
            if key in both:
                there = self.scored(key) & other.scored(key)
                if paired := self.statistic(key, there).difference(other.statistic(key, there), seed):
                    yield key, int(there.sum()), paired

    def means(self, seed: int) -> ScoreIntervals:
        """Each measure's value and interval in percent; with the number of questions if not all have a score."""
        means: ScoreIntervals = {}
        for key in self.keys():
            there = self.scored(key)
            if interval := self.statistic(key, there).interval(seed):
                means[key] = _percent(interval)
                if not there.all():  # such as gold recall, of questions without gold passages; IfQA has none
                    means[key]["questions"] = int(there.sum())
        return means

    def macro(self, seed: int) -> ScoreIntervals:
        """Each measure's mean over groups and its interval in percent; with their number if it is not defined for all."""
        means: ScoreIntervals = {}
        groups = np.array(self._names("group", self.places.tolist()))
        for key in self.keys():
            there = self.scored(key)
            if macro := self.statistic(key, there).macro(groups[there].tolist(), seed):
                interval, count = macro
                means[key] = _percent(interval)
                if count < len(set(groups)):
                    means[key]["groups"] = count
        return means

    def parts(self, places: Mapping[str, Sequence[int]], seed: int) -> dict[str, SubsetScores]:
        """The scores of parts of all questions, by name."""
        samples = {name: replace(self, places=np.array(part, np.intp)) for name, part in places.items()}
        return {
            name: {"questions": len(sample.places), "measures": sample.means(seed)} for name, sample in samples.items()
        }

    def numbers(self, keys: Sequence[str]) -> Numbers:
        """Columns of the questions here, (questions, columns); NaN where a question has none."""
        return np.stack([self.columns[key][self.places] for key in keys], axis=1)

    def _names(self, unit: str, places: Sequence[int]) -> list[str]:
        names = self.all.units[unit]
        return [names[place] for place in places]


def _percent(interval: Interval) -> ScoreInterval:
    value, low, high = (round(100 * share, 2) for share in interval)
    return {"value": value, "low": low, "high": high}
