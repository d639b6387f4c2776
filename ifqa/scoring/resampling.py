"""Statistics of a sample of questions: the value, its bootstrap interval, its mean over groups, and two systems' difference.

There are three kinds. A mean of the questions' scores is resampled by counts (`ifqa.scoring.statistics`). A measure over sets
of answers and a measure of numbers in rows are computed anew for each resample, which is slow: so there are fewer resamples.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import NamedTuple, Self

import numpy as np

from ifqa.errors import IfqaError
from ifqa.protocols import AnyMeasure, ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.statistics import (
    Counts,
    Interval,
    Numbers,
    batches,
    interval_ends,
    mean_interval,
    paired_randomization,
    places_of,
    won_lost_tied,
)

RESAMPLES = 1_000  # of a measure that is computed anew for each; also the rounds of its randomisation test
_AT_ONCE = 50_000  # numbers in a table of resamples; several such tables fit into a core's cache


class PairedDifference(NamedTuple):
    """A statistic of two systems: `delta` is second less first, `low` to `high` its 95% interval, `p` two-sided; 0 to 1.

    `counts` are the questions on which the second is better, worse and equal; None where single questions have no score.
    """

    first: float
    second: float
    delta: float
    low: float
    high: float
    p: float
    counts: tuple[int, int, int] | None = None

    def percents(self) -> list[float]:
        """Both values, the difference and the ends of its interval in percent."""
        return [round(100 * share, 2) for share in (self.first, self.second, self.delta, self.low, self.high)]


class Statistic(ABC):
    """A measure of a sample of questions; None stands for a value that is not defined."""

    def __init__(
        self, measure: AnyMeasure, scored: object, units: Sequence[str] = (), strata: Sequence[str] = ()
    ) -> None:
        """Begin with what is scored, a row for each question, as the subclasses say.

        `units` has the unit of each question; empty: each question is a unit. `strata` is that of `mean_interval`.
        """
        self.measure, self.scored, self.units, self.strata = measure, np.asarray(scored), units, strata

    def at(self, places: Sequence[int]) -> Self:
        """The same measure of some of the questions."""
        units, strata = ([names[place] for place in places] if names else [] for names in (self.units, self.strata))
        return type(self)(self.measure, self.scored[places], units, strata)

    @property
    @abstractmethod
    def value(self) -> float | None:
        """From 0 to 1."""

    @abstractmethod
    def interval(self, seed: int) -> Interval | None:
        """The value with its 95% bootstrap interval over units."""

    @abstractmethod
    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        """The second system, `other`, against this one: both resampled alike, and swapped unit by unit for p."""

    def macro(self, groups: Sequence[str], seed: int) -> tuple[Interval, int] | None:
        """The mean over groups, of units drawn within each group; and in how many groups the measure is defined."""
        parts = [self.at(places) for places in places_of(groups).values()]
        values = [value for part in parts if (value := part.value) is not None]
        if not values:
            return None
        if self.measure.unit == "group":
            return mean_interval(values, seed), len(values)
        return self._macro(groups, [part for part in parts if part.value is not None], seed), len(values)

    @abstractmethod
    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval: ...


class MeanStatistic(Statistic):
    """The mean of the questions' scores, of which it gets a list; its interval is of 10,000 resamples."""

    @property
    def value(self) -> float | None:
        """None without questions."""
        return math.fsum(self.scored) / len(self.scored) if len(self.scored) else None

    def interval(self, seed: int) -> Interval | None:
        return mean_interval(self.scored, seed, units=self.units, strata=self.strata) if len(self.scored) else None

    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        first, second = self.scored, other.scored
        if not len(first):
            return None
        delta = mean_interval(second - first, seed, units=self.units, strata=self.strata)
        p = paired_randomization(first, second, seed, units=self.units)
        counts = won_lost_tied(second, first) if self.measure.best == "high" else won_lost_tied(first, second)
        return PairedDifference(float(sum(first)) / len(first), float(sum(second)) / len(second), *delta, p, counts)

    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval:
        return mean_interval(self.scored, seed, units=self.units, strata=groups, macro=True)


class _Recomputed(Statistic):
    """A measure that is computed anew for each of 1,000 resamples."""

    @abstractmethod
    def _scores(self, times: Numbers) -> Numbers:
        """The values of resamples from how often each question counts, (resamples, questions); NaN where not defined."""

    @cached_property
    def value(self) -> float | None:
        """None without questions, or where the measure is not defined."""
        value = self._scores(np.ones((1, len(self.scored))))[0] if len(self.scored) else math.nan
        return None if math.isnan(value) else float(value)

    @cached_property
    def _codes(self) -> Counts:
        """The number of each question's unit, the units by name."""
        return np.unique(np.asarray(self.units), return_inverse=True)[1] if self.units else np.arange(len(self.scored))

    def interval(self, seed: int) -> Interval | None:
        return None if self.value is None else (self.value, *interval_ends(self._resampled(seed), self.value))

    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        if self.value is None or other.value is None:
            return None
        delta = other.value - self.value
        low, high = interval_ends(other._resampled(seed) - self._resampled(seed), delta)
        both = type(self)(self.measure, np.concatenate([self.scored, other.scored]))
        rng, at_least, units = np.random.default_rng(seed), 0, int(self._codes.max()) + 1
        for rounds in batches(RESAMPLES, 2 * len(self._codes), _AT_ONCE):
            swapped = rng.integers(2, size=(rounds, units))[:, self._codes].astype(float)
            sides = [np.concatenate(times, axis=1) for times in ((1 - swapped, swapped), (swapped, 1 - swapped))]
            apart = np.nan_to_num(np.abs(both._scores(sides[1]) - both._scores(sides[0])))
            at_least += int((apart >= abs(delta) - 1e-9).sum())
        return PairedDifference(self.value, other.value, delta, low, high, (at_least + 1) / (RESAMPLES + 1))

    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval:
        values = np.array([part.value for part in parts], dtype=float)
        resampled = np.stack([part._resampled(seed + number) for number, part in enumerate(parts, start=1)])
        mean = float(sum(values) / len(values))
        return mean, *interval_ends(np.where(np.isnan(resampled), values[:, None], resampled).mean(axis=0), mean)

    def _resampled(self, seed: int) -> Numbers:
        """The values of resamples; (1000,)."""
        if self._codes.max() == 0:  # one unit: every resample is the same
            return np.full(RESAMPLES, self.value, dtype=float)
        return resample(self._scores, self._codes, seed)


class SetStatistic(_Recomputed):
    """A measure over a set of answers, (question, prediction) each.

    A unit that is drawn again gets a new name, in its questions' ids and in their unit, so that the measure counts it again.
    """

    measure: SetMeasure

    def _scores(self, times: Numbers) -> Numbers:
        values: list[float | None] = []
        for counts in times.astype(int).tolist():
            drawn = [self._copy(place, number) for place, count in enumerate(counts) for number in range(count)]
            value = self.measure.score(*map(list, zip(*drawn, strict=True)))
            if value is not None and (not isinstance(value, Real) or not 0 <= value <= 1):
                raise IfqaError(f"measure {self.measure.name!r}: wanted a number from 0 to 1, found {value!r}")
            values.append(value)
        return np.array(values, dtype=np.float64)  # NaN for None

    @cached_property
    def _copies(self) -> dict[tuple[int, int], tuple[Question, Prediction]]:
        return {}

    def _copy(self, place: int, number: int) -> tuple[Question, Prediction]:
        """The question and its prediction, under other names for the second time that it is drawn, and later."""
        if not number:
            return tuple(self.scored[place])
        if (place, number) not in self._copies:
            question, prediction = self.scored[place]
            unit, mark = self.measure.unit, f"#{number + 1}"
            labels = tuple((name, value + mark if name == unit else value) for name, value in question.labels)
            group = question.group + mark if unit == "group" else question.group
            renamed = replace(question, id=question.id + mark, group=group, labels=labels)
            self._copies[place, number] = renamed, replace(prediction, question_id=renamed.id)
        return self._copies[place, number]


class ColumnStatistic(_Recomputed):
    """A measure of numbers in the questions' rows, (questions, columns); NaN where a row lacks one."""

    measure: ColumnMeasure

    def _scores(self, times: Numbers) -> Numbers:
        scores: Numbers = np.asarray(self.measure.score(self.scored, times), dtype=float)
        wanted = (
            f"measure {self.measure.name!r}: wanted a number from 0 to 1, or NaN, for each of {len(times)} resamples"
        )
        if scores.shape != (len(times),):
            raise IfqaError(f"{wanted}; found the shape {scores.shape}")
        if len(wrong := scores[(scores < -1e-9) | (scores > 1 + 1e-9)]):
            raise IfqaError(f"{wanted}; found {wrong[0]!r:.80}")
        return scores.clip(0, 1)


def resample(score: Callable[[Numbers], Numbers], codes: Counts, seed: int) -> Numbers:
    """A function's result on 1,000 resamples, each of as many units as there are, drawn with replacement; (1000, ...).

    Args:
        score: gets how often each question counts, (resamples, questions).
        codes: the number of each question's unit.
        seed: of the draws.
    """
    rng, units, scores = np.random.default_rng(seed), int(codes.max()) + 1, []
    for rounds in batches(RESAMPLES, len(codes), _AT_ONCE):
        times = [np.bincount(rng.integers(units, size=units), minlength=units) for _ in range(rounds)]
        scores.append(score(np.stack(times)[:, codes].astype(float)))
    return np.concatenate(scores)
