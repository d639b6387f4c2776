"""Intervals of means and shares over questions, a randomisation test of two systems, and the agreement of annotators.

The bootstrap and the test resample questions, or units of several related questions (such as those on one paragraph): a unit
is drawn, or changes its sign, as a whole. Scores have few distinct values (0, 1 and some fractions), so a round draws the count
of each distinct value instead of single values: the same distribution with a hundredth of the draws.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ifqa.errors import IfqaError

_DRAWS_AT_ONCE = 2_000_000  # 8 bytes each, which fit in memory
_MANY = 1_000  # above so many distinct values, single values are drawn: 40,000 draws are faster than 40,000 counts
_Z = 1.959963984540054  # the normal distribution's quantile at 0.975
_DIGITS = 9  # a unit's sum is rounded to so many, so that units with the same score have equal sums

Numbers = NDArray[np.float64]
Counts = NDArray[np.intp]
Values = Sequence[float] | Numbers  # of each question
Interval = tuple[float, float, float]  # a mean and the ends of its interval


def mean_interval(
    values: Values,
    seed: int = 0,
    resamples: int = 10_000,
    units: Sequence[str] = (),
    strata: Sequence[str] = (),
    macro: bool = False,
) -> Interval:
    """Mean over questions and the ends of its 95% percentile bootstrap interval (Efron 1979), on the scale of `values`.

    The same values, in any order, and the same seed give the same interval.

    Args:
        values: a value for each question.
        seed: seed of the draws.
        resamples: number of resamples.
        units: the unit of each question, which is drawn as a whole; a resample's mean is over all questions of the drawn
            units. Empty: each question is a unit.
        strata: the group of each question, if units are drawn within each group; a resample then has as many questions of
            each group as there are, and its mean weighs each group by its size. Empty: units are drawn from all.
        macro: the mean of the groups' means, all of one weight.
    """
    _require_values(values)
    groups = places_of(strata or [""] * len(values))
    rng, mean, means = np.random.default_rng(seed), 0.0, np.zeros(resamples)
    for places in groups.values():
        part, of_group = [values[place] for place in places], [units[place] for place in places] if units else ()
        means += _resampled_means(rng, part, of_group, resamples) * (1 if macro else len(part) / len(values))
        mean += math.fsum(part) / len(part)
    if macro:
        return mean / len(groups), *interval_ends(means / len(groups))
    return math.fsum(values) / len(values), *interval_ends(means)


def share_interval(hits: int, of: int) -> Interval | None:
    """A share and the ends of its 95% interval (Wilson 1927), for counts without questions to resample; None of nothing."""
    if not of:
        return None
    share, spread = hits / of, _Z * _Z / of
    middle = (share + spread / 2) / (1 + spread)
    half = _Z * math.sqrt(share * (1 - share) / of + spread / (4 * of)) / (1 + spread)
    return share, max(0.0, middle - half), min(1.0, middle + half)


def places_of(names: Sequence[str]) -> dict[str, list[int]]:
    """The indexes of each name, by name."""
    places: dict[str, list[int]] = {name: [] for name in sorted(set(names))}
    for place, name in enumerate(names):
        places[name].append(place)
    return places


def interval_ends(values: Numbers, default: float = math.nan) -> tuple[float, float]:
    """The 95% interval of resampled values, of which NaN are left out; `default` twice if no value is left."""
    defined = values[~np.isnan(values)]
    low, high = np.quantile(defined if len(defined) else [default], (0.025, 0.975))
    return float(low), float(high)


def paired_randomization(a: Values, b: Values, seed: int = 0, rounds: int = 10_000, units: Sequence[str] = ()) -> float:
    """Two-sided p-value of the mean difference of two systems on the same questions, by random sign flips.

    Each round swaps the two systems on every question, or on all questions of a unit, with probability 1/2. p is the share
    of rounds whose difference is at least as large as the observed difference. The observed difference counts as a round, so
    p is never 0 (Smucker et al., CIKM 2007). `units` are as in `mean_interval`.
    """
    _require_pairs(a, b)
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)  # (questions,)
    if units:
        differences, _ = _by_unit(differences, units)  # (units,)
    sizes, counts = np.unique(np.abs(differences), return_counts=True)  # (distinct,) both
    # Sums that are equal in exact arithmetic must compare equal after rounding.
    threshold = abs(float(differences.sum())) - 1e-9 * float(sizes @ counts)
    rng, at_least = np.random.default_rng(seed), 0
    for batch in batches(rounds, len(sizes), _DRAWS_AT_ONCE):
        kept = rng.binomial(counts, 0.5, size=(batch, len(sizes)))  # of each size, how many keep their sign
        at_least += int(np.count_nonzero(np.abs((2 * kept - counts) @ sizes) >= threshold))
    return (at_least + 1) / (rounds + 1)


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values of several tests, corrected for their number by Holm's step-down method.

    The chance that a difference which is none gets a corrected p below 0.05, in any of the tests, is at most 5%
    (Holm, Scandinavian Journal of Statistics 6, 1979).
    """
    corrected, least = [0.0] * len(ps), 0.0
    for left, n in zip(range(len(ps), 0, -1), sorted(range(len(ps)), key=lambda n: ps[n]), strict=True):
        least = max(least, min(1.0, left * ps[n]))
        corrected[n] = least
    return corrected


def won_lost_tied(a: Values, b: Values) -> tuple[int, int, int]:
    """The number of questions on which the first system scores higher, lower and the same."""
    _require_pairs(a, b)
    won, lost = (sum(bool(x > y) for x, y in zip(*pair, strict=True)) for pair in ((a, b), (b, a)))
    return won, lost, len(a) - won - lost


def alpha(units: Sequence[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha of unordered classes, 1 - observed / expected disagreement; 1 is full agreement, 0 that of chance.

    As in Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), sections C and D: any number of annotators, of whom
    each may leave units out.

    Args:
        units: the classes that each unit was given, in any order; a unit with fewer than two says nothing and is left out.

    Returns:
        None where it is not defined: no unit has two classes, or all classes are the same.
    """
    paired = [Counter(classes) for classes in units if len(classes) > 1]
    total: Counter[Hashable] = sum(paired, Counter())
    size = total.total()
    expected = size * size - sum(count * count for count in total.values())
    if not expected:
        return None
    observed = sum(
        (counts.total() ** 2 - sum(count * count for count in counts.values())) / (counts.total() - 1)
        for counts in paired
    )
    return 1 - (size - 1) * observed / expected


def _resampled_means(rng: np.random.Generator, values: Values, units: Sequence[str], resamples: int) -> Numbers:
    """The mean over the questions of as many units as there are, drawn with replacement; (resamples,)."""
    sums = np.asarray(values, dtype=np.float64)
    if not units:
        distinct, counts = np.unique(sums, return_counts=True)  # (distinct,) both
        sizes = np.ones_like(distinct)
    else:
        pairs, counts = np.unique(np.stack(_by_unit(sums, units), axis=1), axis=0, return_counts=True)
        distinct, sizes = pairs[:, 0], pairs[:, 1]
    size, shares = int(counts.sum()), counts / counts.sum()
    means = []
    if len(distinct) > _MANY:
        each = np.repeat(np.stack([distinct, sizes]), counts, axis=1)  # (2, units)
        for rounds in batches(resamples, size, _DRAWS_AT_ONCE):
            total, count = np.take(each, rng.integers(size, size=(rounds, size)), axis=1).sum(axis=2)  # (rounds,) both
            means.append(total / count)
    else:
        for rounds in batches(resamples, len(distinct), _DRAWS_AT_ONCE):
            drawn = rng.multinomial(size, shares, size=rounds)  # (rounds, distinct)
            means.append(drawn @ distinct / (drawn @ sizes))
    return np.concatenate(means)


def _by_unit(values: Numbers, units: Sequence[str]) -> tuple[Numbers, Numbers]:
    """The sum and the count of each unit's values; (units,) both."""
    _, places = np.unique(np.asarray(units), return_inverse=True)  # (questions,)
    return np.round(np.bincount(places, weights=values), _DIGITS), np.bincount(places).astype(np.float64)


def batches(rounds: int, width: int, at_once: int) -> Iterator[int]:
    """Split `rounds` into batches of at most `at_once` numbers, at `width` numbers a round."""
    step = max(1, at_once // width)
    yield from (min(step, rounds - start) for start in range(0, rounds, step))


def _require_values(values: Values) -> None:
    if len(values) == 0:
        raise IfqaError("found no scores, wanted one for each question; score at least one question")


def _require_pairs(a: Values, b: Values) -> None:
    if len(a) != len(b):
        raise IfqaError(f"found {len(a)} and {len(b)} scores, wanted the same questions; score both on one split")
    _require_values(a)
