"""Bootstrap intervals and randomisation tests of measures over questions.

The bootstrap and the test resample questions, or units of related questions (such as those on the
same paragraph): a unit is drawn, or swapped, as a whole. Scores have few distinct values (0, 1 and
some fractions), so a resample of a mean draws the count of each distinct value, not single values:
the same distribution from a hundredth of the random numbers. A measure of sets of answers or of
columns is recomputed for each resample, which is slow, so it has fewer resamples.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError, PluginError
from ifqa.protocols import AnyMeasure, ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question

# For a measure that is recomputed for each; also the rounds of its randomisation test
RESAMPLES = 1_000
_AT_ONCE = 50_000  # numbers in a table of resamples; several tables fit into a core's cache
_DRAWS_AT_ONCE = 2_000_000  # random numbers of 8 bytes each
# Above this many distinct values, single values are drawn: 40,000 are drawn faster than 40,000
# counts
_MANY = 1_000
_Z = 1.959963984540054  # the normal distribution's quantile at 0.975
_DIGITS = 9  # decimals of a unit's sum: rounding makes the sums of equal units equal

Numbers = NDArray[np.float64]
Counts = NDArray[np.intp]
Values = Sequence[float] | Numbers  # a value for each question
Interval = tuple[float, float, float]  # a mean and the ends of its interval


def mean_interval(
    values: Values,
    seed: int = 0,
    resamples: int = 10_000,
    units: Sequence[str] = (),
    strata: Sequence[str] = (),
    macro: bool = False,
) -> Interval:
    """Mean over questions and the ends of its 95% percentile bootstrap interval (Efron 1979), on
    the scale of `values`.

    The same values, in any order, and the same seed give the same interval.

    Args:
        values: a value for each question.
        seed, resamples: seed and number of the resamples.
        units: each question's unit, which is drawn as a whole; a resample's mean is over all
            questions of the drawn units. Empty: each question is a unit.
        strata: each question's group. Units are drawn within each group; a resample's mean weights
            each group by its size. Empty: a single group.
        macro: take the unweighted mean of the groups' means.
    """
    _require_values(values)
    groups = indexes_by_name(strata or [""] * len(values))
    rng = np.random.default_rng(seed)
    mean = 0.0
    means = np.zeros(resamples)
    for indexes in groups.values():
        part = [values[n] for n in indexes]
        part_units = [units[n] for n in indexes] if units else ()
        means += _resampled_means(rng, part, part_units, resamples) * (
            1 if macro else len(part) / len(values)
        )
        mean += math.fsum(part) / len(part)
    if macro:
        return mean / len(groups), *interval_ends(means / len(groups))
    return math.fsum(values) / len(values), *interval_ends(means)


def wilson_interval(hits: int, of: int) -> Interval | None:
    """A share and the ends of its 95% interval (Wilson 1927), for counts that cannot be resampled.

    None if `of` is 0.
    """
    if not of:
        return None
    share = hits / of
    spread = _Z * _Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return share, max(0.0, middle - half), min(1.0, middle + half)


def to_percent(share: float) -> float:
    """A share of 1 in percent, with ten decimals: without the noise of binary fractions, as in 100
    * 0.55 = 55.00000000000001.

    Scores are rounded once, where they are shown: `ifqa.formatting.one_decimal`.
    """
    return round(100 * float(share), 10)


def indexes_by_name(names: Sequence[str]) -> dict[str, list[int]]:
    """Name -> its indexes in `names`; names are sorted."""
    indexes: dict[str, list[int]] = {name: [] for name in sorted(set(names))}
    for index, name in enumerate(names):
        indexes[name].append(index)
    return indexes


def interval_ends(values: Numbers, default: float = math.nan) -> tuple[float, float]:
    """The ends of the 95% interval of resampled values, without NaN.

    `default` twice if all are NaN.
    """
    defined = values[~np.isnan(values)]
    low, high = np.quantile(defined if len(defined) else [default], (0.025, 0.975))
    return float(low), float(high)


def paired_randomization(
    a: Values, b: Values, seed: int = 0, rounds: int = 10_000, units: Sequence[str] = ()
) -> float:
    """Two-sided p-value of the mean difference between two systems on the same questions, by random
    sign flips.

    Each round swaps the two systems on each question, or on all questions of a unit, with
    probability 1/2. p is the share of rounds with at least the observed difference; the observation
    counts as a round, so p is never 0 (Smucker et al., CIKM 2007).
    """
    _require_pairs(a, b)
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)  # (questions,)
    if units:
        differences, _ = _sum_by_unit(differences, units)  # (units,)
    sizes, counts = np.unique(np.abs(differences), return_counts=True)  # (distinct,) both
    # Sums that are equal in exact arithmetic must compare equal after rounding.
    threshold = abs(float(differences.sum())) - 1e-9 * float(sizes @ counts)
    rng = np.random.default_rng(seed)
    at_least = 0
    for batch in resample_batches(rounds, len(sizes), _DRAWS_AT_ONCE):
        # How many keep their sign, by size
        positive = rng.binomial(counts, 0.5, size=(batch, len(sizes)))
        at_least += int(np.count_nonzero(np.abs((2 * positive - counts) @ sizes) >= threshold))
    return (at_least + 1) / (rounds + 1)


def holm_correction(ps: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected for the number of tests by Holm's step-down method
    (Scand. J. Statist. 6, 1979).

    The chance of any false positive at a corrected p below 0.05 is at most 5%.
    """
    corrected = [0.0] * len(ps)
    lower_bound = 0.0
    for remaining, n in zip(
        range(len(ps), 0, -1), sorted(range(len(ps)), key=lambda n: ps[n]), strict=True
    ):
        lower_bound = max(lower_bound, min(1.0, remaining * ps[n]))
        corrected[n] = lower_bound
    return corrected


def count_wins(a: Values, b: Values) -> tuple[int, int, int]:
    """The numbers of questions on which the first system scores higher, lower and the same."""
    _require_pairs(a, b)
    won, lost = (sum(bool(x > y) for x, y in zip(*pair, strict=True)) for pair in ((a, b), (b, a)))
    return won, lost, len(a) - won - lost


def _resampled_means(
    rng: np.random.Generator, values: Values, units: Sequence[str], resamples: int
) -> Numbers:
    """The mean over questions in each resample of the units, drawn with replacement.

    (resamples,).
    """
    sums = np.asarray(values, dtype=np.float64)
    if not units:
        distinct, counts = np.unique(sums, return_counts=True)  # (distinct,) both
        sizes = np.ones_like(distinct)
    else:
        pairs, counts = np.unique(
            np.stack(_sum_by_unit(sums, units), axis=1), axis=0, return_counts=True
        )
        distinct = pairs[:, 0]
        sizes = pairs[:, 1]
    size = int(counts.sum())
    shares = counts / counts.sum()
    means = []
    if len(distinct) > _MANY:
        each = np.repeat(np.stack([distinct, sizes]), counts, axis=1)  # (2, units)
        for rounds in resample_batches(resamples, size, _DRAWS_AT_ONCE):
            # (rounds,) both
            total, count = np.take(each, rng.integers(size, size=(rounds, size)), axis=1).sum(
                axis=2
            )
            means.append(total / count)
    else:
        for rounds in resample_batches(resamples, len(distinct), _DRAWS_AT_ONCE):
            draws = rng.multinomial(size, shares, size=rounds)  # (rounds, distinct)
            means.append(draws @ distinct / (draws @ sizes))
    return np.concatenate(means)


def _sum_by_unit(values: Numbers, units: Sequence[str]) -> tuple[Numbers, Numbers]:
    """The sum and the count of each unit's values; (units,) both."""
    _, codes = np.unique(np.asarray(units), return_inverse=True)  # (questions,)
    return np.round(np.bincount(codes, weights=values), _DIGITS), np.bincount(codes).astype(
        np.float64
    )


def resample_batches(rounds: int, width: int, at_once: int) -> Iterator[int]:
    """Split `rounds` into batches of at most `at_once` numbers, at `width` numbers a round."""
    step = max(1, at_once // width)
    yield from (min(step, rounds - start) for start in range(0, rounds, step))


def _require_values(values: Values) -> None:
    if len(values) == 0:
        raise IfqaError(
            "found no scores, wanted one for each question; score at least one question"
        )


def _require_pairs(a: Values, b: Values) -> None:
    if len(a) != len(b):
        raise IfqaError(
            f"found {len(a)} and {len(b)} scores, wanted the same questions; "
            "score both on the same split"
        )
    _require_values(a)


class PairedDifference(NamedTuple):
    """A statistic for two systems, from 0 to 1.

    `delta` is second - first, `low` and `high` the ends of its 95% bootstrap interval over `units`
    units, NaN if the measure has none. Whether to show it says `ifqa.scoring.intervals`.

    `counts`: on how many questions the second is better, worse and equally good; None if single
    questions have no score. A mean over units, such as pairs of questions, counts units.
    """

    first: float
    second: float
    delta: float
    low: float
    high: float
    p: float
    units: int
    counts: tuple[int, int, int] | None = None

    @property
    def interval(self) -> Interval:
        return self.delta, self.low, self.high


class Statistic(ABC):
    """A measure of a sample of questions, from 0 to 1; None if it is undefined."""

    def __init__(
        self,
        measure: AnyMeasure,
        scored: object,
        units: Sequence[str] = (),
        strata: Sequence[str] = (),
    ) -> None:
        """`scored` has a row for each question (see the subclasses).

        `units` and `strata` are as in `mean_interval`.
        """
        self.measure = measure
        self.scored = np.asarray(scored)
        self.units = units
        self.strata = strata

    def _at(self, indexes: Sequence[int]) -> Self:
        units, strata = (
            [names[n] for n in indexes] if names else [] for names in (self.units, self.strata)
        )
        return type(self)(self.measure, self.scored[indexes], units, strata)

    @property
    def n_units(self) -> int:
        """The number of units that are resampled, by which it has an interval or not."""
        return len(set(self.units)) if self.units else len(self.scored)

    @property
    def has_interval(self) -> bool:
        return True

    @property
    @abstractmethod
    def value(self) -> float | None: ...

    @abstractmethod
    def interval(self, seed: int) -> Interval | None:
        """The value with its 95% bootstrap interval over units."""

    @abstractmethod
    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        """Compare a second system, `other`, with this one, on the same resamples.

        For p, the systems are swapped by unit.
        """

    def _parts(self, groups: Sequence[str]) -> list[Self]:
        """The part of each group in which the value is defined."""
        parts = [self._at(indexes) for indexes in indexes_by_name(groups).values()]
        return [part for part in parts if part.value is not None]

    def group_sizes(self, groups: Sequence[str]) -> list[int]:
        """The number of units in each group in which the value is defined."""
        return [part.n_units for part in self._parts(groups)]

    def macro(
        self, groups: Sequence[str], seed: int, whole_groups: bool = False
    ) -> tuple[Interval, int] | None:
        """The mean over groups, and the number of groups in which the value is defined.

        Its interval draws units within each group, or `whole_groups`.
        """
        parts = self._parts(groups)
        values = [part.value for part in parts if part.value is not None]
        if not values:
            return None
        if not self.has_interval:
            interval = (float(sum(values) / len(values)), math.nan, math.nan)
        elif whole_groups:
            interval = mean_interval(values, seed)
        else:
            interval = self._macro(groups, parts, seed)
        return interval, len(values)

    @abstractmethod
    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval: ...


class MeanStatistic(Statistic):
    """The mean of the questions' scores, with 10,000 resamples for its interval."""

    @property
    def value(self) -> float | None:
        return math.fsum(self.scored) / len(self.scored) if len(self.scored) else None

    def interval(self, seed: int) -> Interval | None:
        return (
            mean_interval(self.scored, seed, units=self.units, strata=self.strata)
            if len(self.scored)
            else None
        )

    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        first = self.scored
        second = other.scored
        if not len(first):
            return None
        delta = mean_interval(second - first, seed, units=self.units, strata=self.strata)
        p = paired_randomization(first, second, seed, units=self.units)
        means = [float(sum(scores)) / len(scores) for scores in (first, second)]
        if isinstance(self.measure, SetMeasure) and self.units:
            # All questions of a unit have its score
            members = [indexes[0] for indexes in indexes_by_name(self.units).values()]
            first = first[members]
            second = second[members]
        counts = (
            count_wins(second, first) if self.measure.best == "high" else count_wins(first, second)
        )
        return PairedDifference(means[0], means[1], *delta, p, self.n_units, counts)

    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval:
        return mean_interval(self.scored, seed, units=self.units, strata=groups, macro=True)


class _ResampledStatistic(Statistic):
    """A measure that is recomputed for each of 1,000 resamples."""

    @abstractmethod
    def _scores(self, times: Numbers) -> Numbers:
        """The values of resamples, NaN where undefined.

        `times` is how often each question counts, (resamples, questions).
        """

    @cached_property
    def value(self) -> float | None:
        score = self._scores(np.ones((1, len(self.scored))))[0] if len(self.scored) else math.nan
        return None if math.isnan(score) else float(score)

    @cached_property
    def _codes(self) -> Counts:
        """The index of each question's unit among the sorted names of units."""
        return (
            np.unique(np.asarray(self.units), return_inverse=True)[1]
            if self.units
            else np.arange(len(self.scored))
        )

    def interval(self, seed: int) -> Interval | None:
        return (
            None
            if self.value is None
            else (self.value, *interval_ends(self._resampled(seed), self.value))
        )

    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        if self.value is None or other.value is None:
            return None
        delta = other.value - self.value
        low, high = interval_ends(other._resampled(seed) - self._resampled(seed), delta)
        both = type(self)(self.measure, np.concatenate([self.scored, other.scored]))
        rng = np.random.default_rng(seed)
        at_least = 0
        units = int(self._codes.max()) + 1
        for rounds in resample_batches(RESAMPLES, 2 * len(self._codes), _AT_ONCE):
            swapped = rng.integers(2, size=(rounds, units))[:, self._codes].astype(float)
            sides = [
                np.concatenate(times, axis=1)
                for times in ((1 - swapped, swapped), (swapped, 1 - swapped))
            ]
            deltas = np.nan_to_num(np.abs(both._scores(sides[1]) - both._scores(sides[0])))
            at_least += int((deltas >= abs(delta) - 1e-9).sum())
        p = (at_least + 1) / (RESAMPLES + 1)
        units = min(self.n_units, other.n_units)
        return PairedDifference(self.value, other.value, delta, low, high, p, units)

    def _macro(self, groups: Sequence[str], parts: Sequence[Self], seed: int) -> Interval:
        values = np.array([part.value for part in parts], dtype=float)
        resampled = np.stack(
            [part._resampled(seed + number) for number, part in enumerate(parts, start=1)]
        )
        mean = float(sum(values) / len(values))
        return mean, *interval_ends(
            np.where(np.isnan(resampled), values[:, None], resampled).mean(axis=0), mean
        )

    def _resampled(self, seed: int) -> Numbers:
        """The values of resamples; (1000,)."""
        if self._codes.max() == 0:  # a single unit: every resample is the same
            return np.full(RESAMPLES, self.value, dtype=float)
        return resample(self._scores, self._codes, seed)


class SetStatistic(_ResampledStatistic):
    """A measure of (question, prediction) pairs.

    A unit drawn again gets a new name, in its questions' ids and in their unit, so that the measure
    counts it again.
    """

    measure: SetMeasure

    def _scores(self, times: Numbers) -> Numbers:
        scores: list[float | None] = []
        for counts in times.astype(int).tolist():
            pairs = [
                self._copy(index, number)
                for index, count in enumerate(counts)
                for number in range(count)
            ]
            score = self.measure.score(*map(list, zip(*pairs, strict=True)))
            if score is not None and (not isinstance(score, Real) or not 0 <= score <= 1):
                raise PluginError(
                    f"measure {self.measure.name!r}: wanted a number from 0 to 1, found {score!r}"
                )
            scores.append(score)
        return np.array(scores, dtype=np.float64)  # NaN for None

    @cached_property
    def _copies(self) -> dict[tuple[int, int], tuple[Question, Prediction]]:
        return {}

    def _copy(self, index: int, number: int) -> tuple[Question, Prediction]:
        """The question and its prediction, renamed from the second draw on."""
        if not number:
            return tuple(self.scored[index])
        if (index, number) not in self._copies:
            question, prediction = self.scored[index]
            unit = self.measure.unit
            mark = f"#{number + 1}"
            labels = tuple(
                (name, label + mark if name == unit else label) for name, label in question.labels
            )
            group = question.group + mark if unit == "group" else question.group
            renamed = replace(question, id=question.id + mark, group=group, labels=labels)
            self._copies[index, number] = renamed, replace(prediction, question_id=renamed.id)
        return self._copies[index, number]


class ColumnStatistic(_ResampledStatistic):
    """A measure of columns from the questions' rows, (questions, columns).

    NaN where a row lacks a number.
    """

    measure: ColumnMeasure

    @property
    def has_interval(self) -> bool:
        return self.measure.has_interval

    @property
    def n_units(self) -> int:
        """The number of units; of a measure that compares two classes, those of the smaller."""
        if not self.measure.classes:
            return super().n_units
        labels = self.scored[:, self.measure.columns.index(self.measure.classes)]
        return min(len(np.unique(self._codes[labels == label])) for label in (0, 1))

    def interval(self, seed: int) -> Interval | None:
        """The value with its interval, whose ends are NaN if the measure has none."""
        if self.has_interval:
            return super().interval(seed)
        return None if self.value is None else (self.value, math.nan, math.nan)

    def difference(self, other: Self, seed: int) -> PairedDifference | None:
        """The difference, the ends of whose interval are NaN if the measure has none."""
        paired = super().difference(other, seed)
        if paired is None or self.has_interval:
            return paired
        return paired._replace(low=math.nan, high=math.nan)

    def _scores(self, times: Numbers) -> Numbers:
        scores: Numbers = np.asarray(self.measure.score(self.scored, times), dtype=float)
        name = self.measure.name
        count = len(times)
        wanted = (
            f"measure {name!r}: wanted a number from 0 to 1, or NaN, for each of {count} resamples"
        )
        if scores.shape != (count,):
            raise PluginError(f"{wanted}; found the shape {scores.shape}")
        if len(wrong := scores[(scores < -1e-9) | (scores > 1 + 1e-9)]):
            raise PluginError(f"{wanted}; found {wrong[0]!r:.80}")
        return scores.clip(0, 1)


def resample(score: Callable[[Numbers], Numbers], codes: Counts, seed: int) -> Numbers:
    """The values of `score` on 1,000 resamples of the units, drawn with replacement; (1000, ...).

    `score` takes how often each question counts, (resamples, questions); `codes` has the index of
    each question's unit.
    """
    rng = np.random.default_rng(seed)
    units = int(codes.max()) + 1
    scores = []
    for rounds in resample_batches(RESAMPLES, len(codes), _AT_ONCE):
        times = [
            np.bincount(rng.integers(units, size=units), minlength=units) for _ in range(rounds)
        ]
        scores.append(score(np.stack(times)[:, codes].astype(float)))
    return np.concatenate(scores)
