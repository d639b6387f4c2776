"""Statistics of a sample of questions: the value, its bootstrap interval, its mean over groups, and two systems' difference.

There are three kinds. A mean of the questions' scores is resampled by counts (`ifqa.scoring.statistics`). A measure over sets
of answers and a measure of numbers in rows are computed anew for each resample, which is slow: so there are fewer resamples.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from ifqa.errors import IfqaError
from ifqa.protocols import AnyMeasure, ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.statistics import (
    Interval,
    batches,
    interval_ends,
    macro_interval,
    mean_interval,
    paired_randomization,
    places_of,
    won_lost_tied,
)

if TYPE_CHECKING:
    import numpy as np

    from ifqa.protocols import Numbers

    Counts = np.ndarray[Any, np.dtype[np.intp]]

RESAMPLES = 1_000  # of a measure that is computed anew for each; also the rounds of its randomisation test
_AT_ONCE = 50_000  # numbers in a table of resamples; several such tables fit into a core's cache

Pair = tuple[Question, Prediction]
T = TypeVar("T")


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

    def __init__(self, measure: AnyMeasure) -> None:
        self.measure = measure

    @property
    @abstractmethod
    def value(self) -> float | None:
        """From 0 to 1."""

    @abstractmethod
    def at(self, places: Sequence[int]) -> Self:
        """The same measure of some of the questions."""

    @abstractmethod
    def interval(self, seed: int) -> Interval | None:
        """The value with its 95% bootstrap interval over units."""

    @abstractmethod
    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        """The second system, `other`, against this one: both resampled alike, and swapped unit by unit for p."""

    def macro(self, groups: Sequence[str], seed: int) -> tuple[Interval, int] | None:
        """The mean over groups, of units drawn within each group; and in how many groups the measure is defined."""
        parts = [self.at(places) for places in places_of(groups).values()]
        values = [part.value for part in parts if part.value is not None]
        if not values:
            return None
        if self.measure.unit == "group":
            return mean_interval(values, seed), len(values)
        return self._macro(groups, parts, seed), len(values)

    @abstractmethod
    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval: ...


class MeanStatistic(Statistic):
    """The mean of the questions' scores."""

    def __init__(
        self, measure: AnyMeasure, scores: Sequence[float], units: Sequence[str] = (), strata: Sequence[str] = ()
    ) -> None:
        """`units` and `strata` are those of `mean_interval`."""
        super().__init__(measure)
        self._scores, self._units, self._strata = scores, units, strata

    @property
    def value(self) -> float | None:
        """None without questions."""
        return math.fsum(self._scores) / len(self._scores) if self._scores else None

    def at(self, places: Sequence[int]) -> Self:
        """The mean of some of the scores."""
        units, strata = _some(self._units, places), _some(self._strata, places)
        return type(self)(self.measure, _some(self._scores, places), units, strata)

    def interval(self, seed: int) -> Interval | None:
        """Of 10,000 resamples."""
        if not self._scores:
            return None
        return mean_interval(self._scores, seed, units=self._units, strata=self._strata)

    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        """The mean of the questions' differences."""
        first, second = self._scores, other._scores
        if not first:
            return None
        deltas = [b - a for a, b in zip(first, second, strict=True)]
        delta = mean_interval(deltas, seed, units=self._units, strata=self._strata)
        p = paired_randomization(first, second, seed, units=self._units)
        counts = won_lost_tied(second, first) if self.measure.best == "high" else won_lost_tied(first, second)
        return PairedDifference(sum(first) / len(first), sum(second) / len(second), *delta, p, counts)

    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval:
        return macro_interval(self._scores, groups, seed, units=self._units)


class _Recomputed(Statistic):
    """A measure that is computed anew for each resample."""

    @property
    @abstractmethod
    def _codes(self) -> "Counts":
        """The number of each question's unit, the units by name."""

    @abstractmethod
    def _scores(self, times: "Counts") -> "Numbers":
        """The values of resamples from how often each unit is drawn, (resamples, units); NaN where not defined."""

    @abstractmethod
    def _swapped(self, other: Self, swaps: "Counts") -> "Numbers":
        """Second less first with the units swapped that are 1, (rounds, units); NaN where not defined."""

    def interval(self, seed: int) -> Interval | None:
        """Of 1,000 resamples."""
        return None if self.value is None else (self.value, *interval_ends(self._resampled(seed), self.value))

    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        """Of 1,000 resamples and rounds."""
        import numpy as np

        if self.value is None or other.value is None:
            return None
        delta = other.value - self.value
        low, high = interval_ends(other._resampled(seed) - self._resampled(seed), delta)
        rng, at_least, units = np.random.default_rng(seed), 0, int(self._codes.max()) + 1
        for rounds in batches(RESAMPLES, 2 * len(self._codes), _AT_ONCE):
            apart = np.nan_to_num(np.abs(self._swapped(other, rng.integers(2, size=(rounds, units)))))
            at_least += int((apart >= abs(delta) - 1e-9).sum())
        return PairedDifference(self.value, other.value, delta, low, high, (at_least + 1) / (RESAMPLES + 1))

    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval:
        import numpy as np

        values, resampled = [], []
        for part in parts:
            if (value := part.value) is not None:
                values.append(value)
                scores = part._resampled(seed + len(values))
                resampled.append(np.where(np.isnan(scores), value, scores))
        mean = sum(values) / len(values)
        return mean, *interval_ends(np.mean(resampled, axis=0), mean)

    def _resampled(self, seed: int) -> "Numbers":
        """The values of resamples; (1000,)."""
        import numpy as np

        if self._codes.max() == 0:  # one unit: every resample is the same
            return np.full(RESAMPLES, self.value)
        return resample(self._scores, self._codes, seed)


class SetStatistic(_Recomputed):
    """A measure over a set of answers.

    A unit that is drawn again gets a new name, in its questions' ids and in their unit, so that the measure counts it again.
    """

    measure: SetMeasure

    def __init__(self, measure: SetMeasure, pairs: Sequence[Pair], units: Sequence[str] = ()) -> None:
        """`units` has the unit of each question; empty: each question is a unit."""
        super().__init__(measure)
        self._pairs, self._units = pairs, units

    def at(self, places: Sequence[int]) -> Self:
        """The measure of some of the answers."""
        return type(self)(self.measure, _some(self._pairs, places), _some(self._units, places))

    @cached_property
    def value(self) -> float | None:
        """None without questions, or where the measure says so.

        Raises:
            IfqaError: the value is not from 0 to 1.
        """
        return self._value(self._pairs)

    def _value(self, pairs: Sequence[Pair]) -> float | None:
        value = self.measure.score(*map(list, zip(*pairs, strict=True))) if pairs else None
        if value is not None and (not isinstance(value, Real) or not 0 <= value <= 1):
            raise IfqaError(f"measure {self.measure.name!r}: wanted a number from 0 to 1, found {value!r}")
        return None if value is None else float(value)

    @cached_property
    def _codes(self) -> "Counts":
        return _codes_of(self._units or [question.id for question, _ in self._pairs])

    @cached_property
    def _copies(self) -> list[list[list[Pair]]]:
        """The pairs of each unit, and their copies so far under other names."""
        units: list[list[list[Pair]]] = [[[]] for _ in range(int(self._codes.max()) + 1)]
        for unit, pair in zip(self._codes.tolist(), self._pairs, strict=True):
            units[unit][0].append(pair)
        return units

    def _copied(self, unit: int, count: int) -> Iterator[Pair]:
        copies = self._copies[unit]
        while len(copies) < count:
            copies.append([_renamed(*pair, self.measure.unit, len(copies)) for pair in copies[0]])
        return chain.from_iterable(copies[:count])

    def _scores(self, times: "Counts") -> "Numbers":
        import numpy as np

        resamples = (
            [pair for unit, count in enumerate(row) for pair in self._copied(unit, count)] for row in times.tolist()
        )
        return np.array([self._value(pairs) for pairs in resamples], dtype=float)  # NaN for None

    def _swapped(self, other: Self, swaps: "Counts") -> "Numbers":
        import numpy as np

        values = []
        for swap in swaps[:, self._codes].tolist():
            both = list(zip(self._pairs, other._pairs, swap, strict=True))
            first = self._value([second if swapped else first for first, second, swapped in both])
            values.append((first, self._value([first if swapped else second for first, second, swapped in both])))
        deltas: Numbers = np.diff(np.array(values, dtype=float), axis=1)[:, 0]
        return deltas


class ColumnStatistic(_Recomputed):
    """A measure of numbers in the questions' rows; a resample is how often each question counts."""

    measure: ColumnMeasure

    def __init__(self, measure: ColumnMeasure, numbers: "Numbers", units: Sequence[str] = ()) -> None:
        """Begin with numbers of the measure's columns.

        Args:
            measure: the measure.
            numbers: (questions, columns); NaN where a row lacks one.
            units: the unit of each question; empty: each question is a unit.
        """
        super().__init__(measure)
        self._numbers, self._units = numbers, units

    def at(self, places: Sequence[int]) -> Self:
        """The measure of some of the rows."""
        return type(self)(self.measure, self._numbers[places], _some(self._units, places))

    @cached_property
    def value(self) -> float | None:
        """None without questions, or where the measure gives NaN.

        Raises:
            IfqaError: the value is not from 0 to 1, or has another shape.
        """
        import numpy as np

        if not len(self._numbers):
            return None
        value = float(self._checked(self._numbers, np.ones((1, len(self._numbers))))[0])
        return None if math.isnan(value) else value

    def _checked(self, numbers: "Numbers", times: "Numbers") -> "Numbers":
        import numpy as np

        scores: Numbers = np.asarray(self.measure.score(numbers, times), dtype=float)
        wanted = (
            f"measure {self.measure.name!r}: wanted a number from 0 to 1, or NaN, for each of {len(times)} resamples"
        )
        if scores.shape != (len(times),):
            raise IfqaError(f"{wanted}; found the shape {scores.shape}")
        if len(wrong := scores[(scores < -1e-9) | (scores > 1 + 1e-9)]):
            raise IfqaError(f"{wanted}; found {wrong[0]!r:.80}")
        return np.clip(scores, 0, 1)

    @cached_property
    def _codes(self) -> "Counts":
        import numpy as np

        return _codes_of(self._units) if self._units else np.arange(len(self._numbers))

    def _scores(self, times: "Counts") -> "Numbers":
        return self._checked(self._numbers, times[:, self._codes].astype(float))

    def _swapped(self, other: Self, swaps: "Counts") -> "Numbers":
        import numpy as np

        both, second = np.concatenate([self._numbers, other._numbers]), swaps[:, self._codes].astype(float)
        first_values = self._checked(both, np.concatenate([1 - second, second], axis=1))
        second_values = self._checked(both, np.concatenate([second, 1 - second], axis=1))
        return np.subtract(second_values, first_values)


def resample(score: "Callable[[Counts], Numbers]", codes: "Counts", seed: int) -> "Numbers":
    """A function's result on 1,000 resamples, each of as many units as there are, drawn with replacement; (1000, ...).

    Args:
        score: gets how often each unit is drawn, (resamples, units).
        codes: the number of each question's unit.
        seed: of the draws.
    """
    import numpy as np

    rng, units, scores = np.random.default_rng(seed), int(codes.max()) + 1, []
    for rounds in batches(RESAMPLES, len(codes), _AT_ONCE):
        times = [np.bincount(rng.integers(units, size=units), minlength=units) for _ in range(rounds)]
        scores.append(score(np.stack(times)))
    return np.concatenate(scores)


def _codes_of(units: Sequence[str]) -> "Counts":
    import numpy as np

    return np.unique(np.asarray(units), return_inverse=True)[1]


def _some(column: Sequence[T], places: Sequence[int]) -> list[T]:
    """The column at these places; an empty column stays empty."""
    return [column[place] for place in places] if column else []


def _renamed(question: Question, prediction: Prediction, unit: str, number: int) -> Pair:
    """The same pair with another question id and another name of its unit."""
    mark = f"#{number + 1}"
    question = replace(question, id=question.id + mark)
    if unit == "group":
        question = replace(question, group=question.group + mark)
    elif unit != "question":
        labels = tuple((name, value + mark if name == unit else value) for name, value in question.labels)
        question = replace(question, labels=labels)
    return question, replace(prediction, question_id=question.id)
