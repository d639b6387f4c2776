"""Aggregates questions' rows into an experiment's scores: over all questions, subsets and
groups.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import FormatError
from ifqa.protocols import AnyMeasure, ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.intervals import are_large_groups, report_interval
from ifqa.scoring.measures.answer_recall import ANSWER, ceiling, chance_floor
from ifqa.scoring.measures.confidence import CONFIDENCE_COLUMNS, calibration_curves
from ifqa.scoring.scheme import GOLD_READ, MACRO, ScoringScheme
from ifqa.scoring.statistics import (
    ColumnStatistic,
    Counts,
    Interval,
    MeanStatistic,
    Numbers,
    PairedDifference,
    SetStatistic,
    Statistic,
    indexes_by_name,
    to_percent,
)
from ifqa.scoring.stored_scores import (
    QuestionRow,
    ScoreInterval,
    ScoreIntervals,
    ScoresJson,
    SubsetScores,
    row_score,
)


class Aggregator:
    """Collects rows and keeps only their numbers.

    `k` is the number of retrieved passages; None or 0 without a run.
    """

    def __init__(self, scheme: ScoringScheme, k: int | None) -> None:
        self.scheme = scheme
        self.ids: list[str] = []
        # Only if the scheme has a measure of sets
        self.pairs: list[tuple[Question, Prediction]] = []
        units = {measure.unit for measure in scheme.measures} | (
            {"group"} if scheme.groups else set()
        )
        # Each question's unit; "" if it has none
        self.units = {unit: list[str]() for unit in units - {"question"}}
        keys = [key for measure in scheme.measures for key in measure.keys] + [
            "failed",
            "abstained",
        ]
        keys += [column for measure in scheme.columns for column in measure.columns]
        self._columns = {key: array("d") for key in keys}  # NaN where a question has no score
        # Indexes of the questions in each subset, if its members are known
        self._subsets: dict[str, list[int]] = {}
        recalls_answers = ANSWER.score in [measure.score for measure in scheme.rankings]
        self._depths = (
            [depth for depth in ANSWER.depths if depth <= k] if k and recalls_answers else []
        )
        self._annotated: list[Question] = []

    def add(
        self, row: QuestionRow, question: Question, prediction: Prediction | None = None
    ) -> None:
        """Add a question's row; either all rows have a prediction, or none has."""
        for key, column in self._columns.items():
            score = row_score(row, key)
            column.append(math.nan if score is None else score)
        for subset in self.scheme.subsets:
            if subset.name not in self._subsets and subset.holds(question) is not None:
                self._subsets[subset.name] = []
        if GOLD_READ in row:
            self._subsets.setdefault(GOLD_READ, [])
        for name in row["subsets"]:
            if name in self._subsets:
                self._subsets[name].append(len(self.ids))
        for unit, names in self.units.items():
            names.append(question.unit(unit))
        if self.scheme.sets and prediction:
            self.pairs.append((question, prediction))
        if self._depths and question.gold_passages:
            self._annotated.append(question)
        self.ids.append(question.id)

    def sample(self) -> "QuestionSample":
        """All questions; to be called after the last `add`."""
        # (questions,) each
        columns = {key: np.array(column) for key, column in self._columns.items()}
        for measure in self.scheme.sets if self.pairs else ():
            if measure.mean_of_units:
                columns[measure.name] = self._unit_scores(measure)
        return QuestionSample(self, columns, np.arange(len(self.ids)))

    def _unit_scores(self, measure: SetMeasure) -> Numbers:
        """The score of each question's unit, (questions,); NaN where it is undefined.

        Each unit is scored once: resampling 1,500 pairs took four minutes.
        """
        scores = np.full(len(self.ids), math.nan)
        for members in indexes_by_name(self.unit_names(measure, range(len(self.ids)))).values():
            score = measure.score(*zip(*(self.pairs[n] for n in members), strict=True))
            scores[members] = math.nan if score is None else score
        return scores

    def unit_names(self, measure: AnyMeasure, indexes: Iterable[int]) -> list[str]:
        """The unit of each of these questions by which a measure is resampled; empty if that is
        the question.

        Raises FormatError for a question without a unit.
        """
        if measure.unit == "question":
            return []
        names = [self.units[measure.unit][index] for index in indexes]
        if "" in names:
            unit = "group" if measure.unit == "group" else f"label {measure.unit!r}"
            question_id = [self.ids[index] for index in indexes][names.index("")]
            raise FormatError(
                f"measure {measure.name!r} resamples by {measure.unit}, but "
                f"{question_id} has no {unit}"
            )
        return names

    def scores(self, seed: int) -> ScoresJson:
        """Scores over all questions, subsets and groups, with bootstrap intervals.

        If passages were read, the subset "gold_read" has the questions with a gold passage among
        those. "macro" is the mean over groups. If rankings are scored by answer recall, "ceiling"
        is the answer recall of the gold passages, and "chance" that of K random gold passages of
        other questions.
        """
        sample = self.sample()
        subsets = [*(subset.name for subset in self.scheme.subsets), GOLD_READ]
        scores: ScoresJson = {
            "questions": len(self.ids),
            "n_failed": int(np.nansum(sample.columns["failed"])),
            "measures": sample.means(seed),
            "subsets": sample.parts(
                {name: self._subsets[name] for name in subsets if name in self._subsets}, seed
            ),
        }
        if abstained := int(np.nansum(sample.columns["abstained"])):
            scores["n_abstained"] = abstained
        if any(set(CONFIDENCE_COLUMNS) <= set(measure.columns) for measure in self.scheme.columns):
            numbers = sample.numbers(CONFIDENCE_COLUMNS)
            if not np.isnan(numbers[:, 0]).all():
                scores["sureness"] = calibration_curves(numbers, seed)
        if self.scheme.groups:
            groups = self.units["group"]
            kind = self.scheme.groups
            if "" in groups:
                question_id = self.ids[groups.index("")]
                raise FormatError(
                    f"question {question_id} has no {kind}, by which scores are grouped; "
                    "give it a group"
                )
            scores["groups"] = sample.parts(indexes_by_name(groups), seed)
            scores[MACRO] = {"measures": sample.macro(seed)}
        if self._annotated:
            ceilings = [ceiling(question) for question in self._annotated]
            scores["ceiling"] = to_percent(sum(ceilings) / len(ceilings))
            chance = chance_floor(self._annotated, self._depths)
            scores["chance"] = {name: to_percent(share) for name, share in chance.items()}
        return scores


def aggregate_rows(
    rows: Sequence[QuestionRow],
    questions: Sequence[Question],
    scheme: ScoringScheme,
    k: int | None,
    predictions: Sequence[Prediction] = (),
) -> Aggregator:
    """Aggregate all rows at once; measures of sets need `predictions`."""
    aggregator = Aggregator(scheme, k)
    for row, question, prediction in zip(
        rows, questions, predictions or repeat(None, len(rows)), strict=True
    ):
        aggregator.add(row, question, prediction)
    return aggregator


@dataclass(frozen=True)
class QuestionSample:
    """Some of an aggregator's questions, by index.

    `columns` has the scores of all questions, NaN where a score is undefined.
    """

    aggregator: Aggregator
    columns: Mapping[str, Numbers]
    indexes: Counts

    def keys(self) -> list[str]:
        """The keys of measures that may be defined for these questions, in display order."""
        scheme = self.aggregator.scheme
        known = {
            key for key, column in self.columns.items() if not np.isnan(column[self.indexes]).all()
        }
        known |= {
            measure.name
            for measure in scheme.sets
            if self.aggregator.pairs and not measure.mean_of_units
        }
        return scheme.keys(known | {measure.name for measure in scheme.columns})

    def scored(self, key: str) -> NDArray[np.bool_]:
        """Whether the measure counts each question: a mean counts those with a score, other
        measures count all.
        """
        measure = self.aggregator.scheme.measure(key)
        is_mean = isinstance(measure, SetMeasure) and measure.mean_of_units
        if isinstance(measure, SetMeasure | ColumnMeasure) and not is_mean:
            return np.ones(len(self.indexes), bool)
        return ~np.isnan(self.columns[key][self.indexes])

    def statistic(self, key: str, mask: NDArray[np.bool_]) -> Statistic:
        """A measure of the questions where `mask` is true."""
        scheme = self.aggregator.scheme
        indexes = self.indexes[mask].tolist()
        measure = scheme.measure(key)
        units = self.aggregator.unit_names(measure, indexes)
        if isinstance(measure, SetMeasure) and not measure.mean_of_units:
            pairs = [self.aggregator.pairs[index] for index in indexes]
            return SetStatistic(measure, pairs, units)
        if isinstance(measure, ColumnMeasure):
            return ColumnStatistic(measure, self.numbers(measure.columns)[mask], units)
        return MeanStatistic(
            measure, self.columns[key][indexes], units, self._strata(measure, indexes)
        )

    def _strata(self, measure: AnyMeasure, indexes: Sequence[int]) -> list[str]:
        """The groups within which these questions are resampled; empty if they are not.

        A benchmark fixes the number of questions in each group, so questions are resampled within
        their group. A larger unit may have questions from several groups, and a small group has too
        little spread.
        """
        if not self.aggregator.scheme.groups or measure.unit != "question":
            return []
        groups = self._names("group", indexes)
        return groups if are_large_groups(Counter(groups).values()) else []

    def differences(
        self, other: "QuestionSample", keys: Iterable[str], seed: int
    ) -> Iterator[tuple[str, int, PairedDifference]]:
        """Compare a second system, `other`, with this one: yields key, number of questions counted
        in both, and difference.
        """
        both = {*self.keys()} & {*other.keys()}
        for key in keys:
            if key in both:
                mask = self.scored(key) & other.scored(key)
                if paired := self.statistic(key, mask).difference(other.statistic(key, mask), seed):
                    yield key, int(mask.sum()), paired

    def means(self, seed: int) -> ScoreIntervals:
        """Each measure's value and interval in percent, with the number of questions if some have
        no score.
        """
        means: ScoreIntervals = {}
        for key in self.keys():
            mask = self.scored(key)
            statistic = self.statistic(key, mask)
            if interval := statistic.interval(seed):
                is_share = isinstance(statistic, MeanStatistic)
                means[key] = _percent(report_interval(interval, statistic.n_units, is_share))
                if not mask.all():  # such as gold recall, if some questions have no gold passages
                    means[key]["questions"] = int(mask.sum())
        return means

    def macro(self, seed: int) -> ScoreIntervals:
        """Each measure's mean over groups and its interval in percent, with the number of groups if
        some have no value.

        Units are drawn within each group. If a group has too few, groups are drawn as wholes.
        """
        means: ScoreIntervals = {}
        groups = np.array(self._names("group", self.indexes.tolist()))
        for key in self.keys():
            mask = self.scored(key)
            statistic = self.statistic(key, mask)
            names = groups[mask].tolist()
            whole = not are_large_groups(statistic.group_sizes(names))
            if macro := statistic.macro(names, seed, whole):
                interval, count = macro
                units = count if whole else statistic.n_units
                # No share of units: small groups count as much as large ones
                means[key] = _percent(report_interval(interval, units, False))
                if count < len(set(groups)):
                    means[key]["groups"] = count
        return means

    def parts(self, parts: Mapping[str, Sequence[int]], seed: int) -> dict[str, SubsetScores]:
        samples = {
            name: replace(self, indexes=np.array(part, np.intp)) for name, part in parts.items()
        }
        return {
            name: {"questions": len(part.indexes), "measures": part.means(seed)}
            for name, part in samples.items()
        }

    def numbers(self, keys: Sequence[str]) -> Numbers:
        """Columns of these questions, (questions, columns); NaN where a score is undefined."""
        return np.stack([self.columns[key][self.indexes] for key in keys], axis=1)

    def _names(self, unit: str, indexes: Sequence[int]) -> list[str]:
        return [self.aggregator.units[unit][index] for index in indexes]


def _percent(interval: Interval) -> ScoreInterval:
    """A score in percent; without `low` and `high` if it has no interval."""
    mean, low, high = map(to_percent, interval)
    if math.isnan(low):
        return {"value": mean}
    return {"value": mean, "low": low, "high": high}
