"""How many answers two equally good systems must differ by before a paired test notices it: the
power of a regression gate.

The systems are imagined as equally good: their answers to each question are swapped by chance. Then
some right answers of the second are lost. The tests are those of the gate: one-sided paired
randomisation tests, exact for measures of 0 and 1, and corrected by Holm's method, whose first step
compares the smallest p with the level over the number of measures.
"""

from collections.abc import Sequence
from functools import cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from ifqa.scoring.statistics import Counts, Numbers, indexes_by_name

POWER = 0.8  # the share of trials in which a loss is noticed
TRIALS = 1_000
_COUNTED = 15  # up to so many changed scores, every flip of their signs is counted
_ROUNDS = 4_000  # of a randomisation test of more changed scores within a trial


def fewest_noticed(
    first: Numbers,
    second: Numbers,
    best: Sequence[float],
    level: float,
    tests: int = 0,
    units: Sequence[str] = (),
    trials: int = TRIALS,
    seed: int = 0,
) -> int | None:
    """The fewest lost answers that fail the gate in at least 80% of trials.

    One fewer fails it in less.

    Args:
        first, second: scores from 0 to 1, (questions, measures), the headline of answers first; NaN
            where undefined.
        best: each measure's best score, 1 or 0. A lost answer gets the worst score in every
            measure.
        level: the gate's level over all measures.
        tests: the number of tested measures, if some have no scores of single questions; by default
            those of `best`.
        units: each question's unit, which a test swaps as a whole; empty if each question is one.
        trials, seed: number of trials, and their seed.

    Returns None if even the loss of all right answers is noticed in fewer trials.
    """
    rng = np.random.default_rng(seed)
    gate = _Gate(best, level / (tests or len(best)), units, len(first), rng)
    fewest = sorted(gate.fewest_in_trial(first, second, rng) for _ in range(trials))
    noticed = fewest[int(np.ceil(POWER * trials)) - 1]
    return int(noticed) if np.isfinite(noticed) else None


class _Gate:
    """The tests of a gate on simulated systems; the random signs of its tests are drawn once."""

    def __init__(
        self,
        best: Sequence[float],
        level: float,
        units: Sequence[str],
        questions: int,
        rng: np.random.Generator,
    ) -> None:
        self._signs = np.where(np.asarray(best) == 1, 1.0, -1.0)  # of a gain
        self._worst = 1.0 - np.asarray(best, dtype=np.float64)
        self._level = level
        groups = list(indexes_by_name(units).values()) if units else [[n] for n in range(questions)]
        self._owner = np.zeros(questions, dtype=np.intp)  # the unit of each question
        for number, group in enumerate(groups):
            self._owner[group] = number
        self._units = len(groups)
        self._columns = np.arange(self._units)  # of the signs, for each unit
        self._flips = rng.integers(0, 2, size=(_ROUNDS, self._units)).astype(np.float32) * 2 - 1

    def fewest_in_trial(self, first: Numbers, second: Numbers, rng: np.random.Generator) -> float:
        """The fewest lost answers that the gate notices between one pair of equal systems.

        Infinity if none.
        """
        swap = rng.random(self._units)[self._owner] < 0.5
        a = np.where(swap[:, None], second, first)
        b = np.where(swap[:, None], first, second)
        # So that chance in the signs differs from trial to trial
        self._columns = rng.permutation(self._units)
        right = rng.permutation(np.flatnonzero(b[:, 0] == 1.0 - self._worst[0]))
        if self._fails(a, b, right[:0]):
            return 0.0
        if not self._fails(a, b, right):
            return float("inf")
        # the gate passes at `low` and fails at `high`
        low = 0
        high = len(right)
        while high - low > 1:
            middle = (low + high) // 2
            if self._fails(a, b, right[:middle]):
                high = middle
            else:
                low = middle
        return float(high)

    def _fails(self, a: Numbers, b: Numbers, lost: Counts) -> bool:
        """Whether the gate fails once the second system has lost some answers."""
        later = b.copy()
        later[lost] = self._worst
        losses = np.nan_to_num((a - later) * self._signs)  # (questions, measures)
        return any(self._p_of_loss(column) <= self._level for column in losses.T)

    def _p_of_loss(self, losses: Numbers) -> float:
        """The one-sided p of a measure's losses, by sign flips of units."""
        if self._units < len(losses):
            by_unit = np.bincount(self._owner, weights=losses, minlength=self._units).astype(
                np.float64
            )
        else:
            by_unit = losses
        changed = np.flatnonzero(by_unit)
        sizes = by_unit[changed]
        if not len(changed):
            return 1.0
        if np.all(np.abs(sizes) == 1.0):
            lost = int(np.count_nonzero(sizes > 0))
            return _binomial_tail(len(changed), lost)
        counted = len(changed) <= _COUNTED
        flips = _all_flips(len(changed)) if counted else self._flips[:, self._columns[changed]]
        sums = flips @ np.abs(sizes).astype(np.float32)
        at_least = np.count_nonzero(sums >= sizes.sum() - 1e-4)  # equal sums differ in float32
        return float(at_least) / len(flips)


@cache
def _all_flips(count: int) -> NDArray[np.float32]:
    """Every way to flip the signs of some numbers, (2 ** count, count)."""
    numbers = np.arange(2**count)[:, None] >> np.arange(count)
    return (numbers & 1).astype(np.float32) * 2 - 1


@cache
def _binomial_tail(count: int, at_least: int) -> float:
    """The chance of at least so many heads among `count` fair coins."""
    return float(sum(comb(count, heads) for heads in range(at_least, count + 1)) / 2**count)
