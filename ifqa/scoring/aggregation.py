"""An experiment's scores from the rows of its questions, of which only the numbers are kept: means, subsets and groups.

A million questions with twenty measures take some 180 MB. Measures over sets need every question and prediction; these are
kept only where such a measure is declared.
"""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ifqa.errors import IfqaError
from ifqa.protocols import AnyMeasure, ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.measures.answer_recall import ANSWER, ceiling, chance_floor
from ifqa.scoring.measures.calibration_curves import calibration_curves
from ifqa.scoring.measures.confidence import RIGHT
from ifqa.scoring.per_question import Content, Mean, Means, Part, Row, score_in
from ifqa.scoring.resampling import ColumnStatistic, MeanStatistic, PairedDifference, SetStatistic, Statistic
from ifqa.scoring.scheme import GOLD_READ, MACRO, Declared, keys, unit_of, within_groups, without_unit
from ifqa.scoring.statistics import Interval, places_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Aggregator:
    """The numbers of rows, added one by one."""

    def __init__(self, by: Declared, k: int | None) -> None:
        """Begin with no row.

        Args:
            by: the measures, subsets and groups.
            k: how many passages were retrieved; None or 0 without a run.
        """
        self.by = by
        self.count = 0
        self.pairs: list[tuple[Question, Prediction]] = []  # for measures over sets
        units = {measure.unit for measure in by.measures} | ({"group"} if by.groups else set())
        self.units = {unit: _Names() for unit in units - {"question"}}
        self._columns: dict[str, array[float]] = {}  # NaN where a question has no score
        self._keys = {key for measure in by.measures for key in keys(measure)} | {"failed", "abstained"}
        self._keys |= {column for measure in by.columns for column in measure.columns}
        self._subsets: dict[str, array[int]] = {subset.name: array("Q") for subset in by.subsets}  # places of questions
        self._known: set[str] = set()  # the subsets that can be told
        self._depths = [depth for depth in ANSWER.depths if depth <= k] if k and _recalls_answers(by) else []
        self._annotated: list[Question] = []

    def add(self, row: Row, question: Question, prediction: Prediction | None = None) -> None:
        """Add the row of a question. Rows with a prediction are not mixed with others."""
        for key in self._keys:
            if (score := score_in(row, key)) is not None:
                column = self._columns.setdefault(key, array("d"))
                column.extend(math.nan for _ in range(self.count - len(column)))
                column.append(score)
        for subset in self.by.subsets:
            if subset.name not in self._known and subset.holds(question) is not None:
                self._known.add(subset.name)
        if GOLD_READ in row:
            self._known.add(GOLD_READ)
            self._subsets.setdefault(GOLD_READ, array("Q"))
            if row[GOLD_READ]:
                self._subsets[GOLD_READ].append(self.count)
        for name in row["subsets"]:
            if name != GOLD_READ and name in self._subsets:
                self._subsets[name].append(self.count)
        for unit, names in self.units.items():
            names.add(unit_of(unit, question), question.id)
        if self.by.sets and prediction:
            self.pairs.append((question, prediction))
        if self._depths and question.gold_passages:
            self._annotated.append(question)
        self.count += 1

    def sample(self) -> "Sample":
        """All questions; no row is added afterwards."""
        import numpy as np

        for column in self._columns.values():
            column.extend(math.nan for _ in range(self.count - len(column)))
        columns = {key: np.frombuffer(column) for key, column in self._columns.items()}  # (questions,) each
        return Sample(self, columns, np.arange(self.count))

    def scores(self, seed: int) -> Content:
        """Scores over all questions, and over parts of them.

        Args:
            seed: of the bootstrap.

        Returns:
            "questions" and "n_failed" (counts); "measures": key -> {"value", "low", "high"}, in percent, with the 95% bootstrap
            interval; "subsets": name -> {"questions", "measures"} of each subset that can be told and, if passages were read, of
            "gold_read", the questions with a gold passage among these. If the benchmark has groups, "groups": the same for
            each group, and "macro": {"measures"}, the mean over groups. If a run is scored by answer recall, "ceiling" and
            "chance": the answer recall of the gold passages, and of K random gold passages of other questions.

        Raises:
            IfqaError: a question lacks the unit that a measure resamples, or the benchmark has groups and it has none.
        """
        import numpy as np

        every = self.sample()
        told = [*(subset.name for subset in self.by.subsets), GOLD_READ]
        subsets = {name: self._subsets[name] for name in told if name in self._known}
        scores: Content = {
            "questions": self.count,
            "n_failed": int(np.nansum(every.columns.get("failed", 0.0))),
            "measures": every.means(seed),
            "subsets": every.parts(subsets, seed),
        }
        if abstained := int(np.nansum(every.columns.get("abstained", 0.0))):
            scores["n_abstained"] = abstained
        if any(set(RIGHT) <= set(measure.columns) for measure in self.by.columns) and "confidence" in every.columns:
            scores["sureness"] = calibration_curves(every.numbers(RIGHT), seed)
        if self.by.groups:
            if alone := next(iter(self.units["group"].lacking.values()), ""):
                raise IfqaError(
                    f"{alone} is of no {self.by.groups}; its benchmark is scored by {self.by.groups}, so give it a group"
                )
            scores["groups"] = every.parts(places_of(every.names("group")), seed)
            scores[MACRO] = {"measures": every.macro(seed)}
        if self._annotated:
            ceilings = [ceiling(question) for question in self._annotated]
            scores["ceiling"] = round(100 * sum(ceilings) / len(ceilings), 2)
            chance = chance_floor(self._annotated, self._depths)
            scores["chance"] = {name: round(100 * share, 2) for name, share in chance.items()}
        return scores


def aggregate(
    rows: Sequence[Row],
    questions: Sequence[Question],
    by: Declared,
    k: int | None,
    predictions: Sequence[Prediction] = (),
) -> Aggregator:
    """The numbers of rows that are there at once; `predictions` are for measures over sets."""
    aggregator = Aggregator(by, k)
    answers: Iterable[Prediction | None] = predictions or [None] * len(rows)
    for row, question, prediction in zip(rows, questions, answers, strict=True):
        aggregator.add(row, question, prediction)
    return aggregator


@dataclass
class _Names:
    """The name of each question's unit, each name kept once; and the ids of questions without one, by place."""

    codes: "array[int]" = field(default_factory=lambda: array("l"))
    known: dict[str, int] = field(default_factory=dict)
    lacking: dict[int, str] = field(default_factory=dict)

    def add(self, name: str, question_id: str) -> None:
        if not name:
            self.lacking[len(self.codes)] = question_id
        self.codes.append(self.known.setdefault(name, len(self.known)))

    def of(self, places: "NDArray[np.intp]") -> list[str]:
        """The names at these places."""
        names = list(self.known)
        return [names[self.codes[place]] for place in places.tolist()]


@dataclass(frozen=True)
class Sample:
    """Some of an aggregator's questions, by their places; `columns` has the scores of all questions, NaN where one has none."""

    all: Aggregator
    columns: "Mapping[str, NDArray[np.float64]]"
    places: "NDArray[np.intp]"

    def keys(self) -> list[str]:
        """The keys of measures that may be defined here, in the order in which they are shown."""
        import numpy as np

        keys = {key for key, column in self.columns.items() if not np.isnan(column[self.places]).all()}
        keys |= {measure.name for measure in self.all.by.sets if self.all.pairs}
        return self.all.by.keys(keys | {measure.name for measure in self.all.by.columns})

    def scored(self, key: str) -> "NDArray[np.bool_]":
        """For each question here, whether the measure counts it: a mean those with a score, every other measure all."""
        import numpy as np

        measure = self.all.by.measure(key)
        if isinstance(measure, SetMeasure | ColumnMeasure):
            return np.ones(len(self.places), bool)
        return ~np.isnan(self.columns[key][self.places])

    def statistic(self, key: str, there: "NDArray[np.bool_]") -> Statistic:
        """A measure of the questions that are true in `there`.

        Raises:
            IfqaError: one of them lacks the unit that the measure resamples.
        """
        measure, sample = self.all.by.measure(key), replace(self, places=self.places[there])
        units = sample._units(measure)
        if isinstance(measure, SetMeasure):
            return SetStatistic(measure, [self.all.pairs[place] for place in sample.places.tolist()], units)
        if isinstance(measure, ColumnMeasure):
            return ColumnStatistic(measure, sample.numbers(measure.columns), units)
        strata = sample.names("group") if within_groups(measure, self.all.by) else ()
        return MeanStatistic(measure, self.columns[key][sample.places].tolist(), units, strata)

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

    def means(self, seed: int) -> Means:
        """Each measure's value and interval in percent; with the number of questions if not all have a score."""
        means: Means = {}
        for key in self.keys():
            there = self.scored(key)
            if interval := self.statistic(key, there).interval(seed):
                means[key] = _percent(interval)
                if not there.all():  # such as gold recall, of questions without gold passages; IfQA has none
                    means[key]["questions"] = int(there.sum())
        return means

    def macro(self, seed: int) -> Means:
        """Each measure's mean over groups and its interval in percent; with their number if it is not defined for all."""
        import numpy as np

        means: Means = {}
        groups = np.array(self.names("group"))
        for key in self.keys():
            there = self.scored(key)
            if macro := self.statistic(key, there).macro(groups[there].tolist(), seed):
                interval, count = macro
                means[key] = _percent(interval)
                if count < len(set(groups)):
                    means[key]["groups"] = count
        return means

    def parts(self, places: Mapping[str, Iterable[int]], seed: int) -> dict[str, Part]:
        """The scores of parts of all questions, by name."""
        import numpy as np

        samples = {name: replace(self, places=np.array(part, np.intp)) for name, part in places.items()}
        return {
            name: {"questions": len(sample.places), "measures": sample.means(seed)} for name, sample in samples.items()
        }

    def numbers(self, keys: Sequence[str]) -> "NDArray[np.float64]":
        """Columns of the questions here, (questions, columns); NaN where a question has none."""
        import numpy as np

        nothing = np.full(self.all.count, np.nan)
        return np.stack([self.columns.get(key, nothing)[self.places] for key in keys], axis=1)

    def names(self, unit: str) -> list[str]:
        """The name of each question's unit."""
        return self.all.units[unit].of(self.places)

    def _units(self, measure: AnyMeasure) -> list[str]:
        """The unit of each question, which the bootstrap of a measure draws as a whole; empty if the unit is the question."""
        if measure.unit == "question":
            return []
        lacking = self.all.units[measure.unit].lacking
        if lacking and (alone := next((place for place in self.places.tolist() if place in lacking), None)) is not None:
            raise without_unit(measure, lacking[alone])
        return self.names(measure.unit)


def _recalls_answers(by: Declared) -> bool:
    return ANSWER.score in [measure.score for measure in by.rankings]


def _percent(interval: Interval) -> Mean:
    value, low, high = (round(100 * share, 2) for share in interval)
    return {"value": value, "low": low, "high": high}
