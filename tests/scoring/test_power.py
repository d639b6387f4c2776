"""The loss that a gate notices 4 times in 5, against the gate's own test and against an exact
count.
"""

from math import comb

import numpy as np
import pytest

from ifqa.scoring.power import POWER, fewest_noticed
from ifqa.scoring.statistics import paired_randomization

QUESTIONS, LEVEL = 83, 0.05


def systems(differing, seed=1):
    """EM and F1 of two systems that differ on so many questions, (questions, measures)."""
    rng = np.random.default_rng(seed)
    exact = (rng.random(QUESTIONS) < 0.6).astype(float)
    other = exact.copy()
    changed = rng.choice(QUESTIONS, differing, replace=False)
    other[changed] = 1 - other[changed]
    partial = np.where(rng.random(QUESTIONS) < 0.3, rng.random(QUESTIONS).round(2), 0.0)
    return [np.stack([score, np.maximum(score, partial)], axis=1) for score in (exact, other)]


def simulated_power(first, second, lost, trials=300):
    """How often the gate's randomisation tests, corrected, notice so many lost answers."""
    rng = np.random.default_rng(7)
    failed = 0
    for seed in range(trials):
        swap = (rng.random(len(first)) < 0.5)[:, None]
        a = np.where(swap, second, first)
        b = np.where(swap, first, second).copy()
        b[rng.permutation(np.flatnonzero(b[:, 0] == 1))[:lost]] = 0
        halves = [paired_randomization(a[:, n], b[:, n], seed, 1000) / 2 for n in range(2)]
        got_worse = b.sum(axis=0) < a.sum(axis=0)
        ps = [half if worse else 1 - half for half, worse in zip(halves, got_worse, strict=True)]
        failed += 2 * min(ps) < LEVEL
    return failed / trials


def noticed_loss(*arguments, **options):
    """The fewest lost answers that are noticed, where some are."""
    lost = fewest_noticed(*arguments, **options)
    assert lost is not None
    return lost


@pytest.mark.parametrize("differing", [2, 20])
def test_the_noticed_loss_has_the_power_that_it_claims(differing):
    first, second = systems(differing)
    noticed = noticed_loss(first, second, [1, 1], LEVEL, trials=500)
    assert simulated_power(first, second, noticed) >= POWER - 0.06  # of 500 and 300 trials
    assert simulated_power(first, second, noticed - 1) < POWER + 0.06


def exact_power(differing, both_right, lost):
    """The chance that a sign test at LEVEL notices a loss, counted over all swaps and all choices
    of lost answers.
    """
    total = 0.0
    for won in range(differing + 1):
        right = both_right + won
        for of_won in range(max(0, lost - both_right), min(won, lost) + 1):
            chance = comb(differing, won) / 2**differing
            chance *= comb(won, of_won) * comb(both_right, lost - of_won) / comb(right, lost)
            losses = differing - won + lost - of_won
            count = losses + won - of_won
            p = sum(comb(count, n) for n in range(losses, count + 1)) / 2**count
            total += chance * (p <= LEVEL)
    return total


def test_one_measure_of_0_or_1_has_its_exact_power():
    both_right, differing = 40, 12
    column = np.array([1.0] * both_right + [1.0, 0.0] * (differing // 2) + [0.0] * 20)
    other = column.copy()
    other[both_right : both_right + differing] = 1 - other[both_right : both_right + differing]
    noticed = noticed_loss(column[:, None], other[:, None], [1], LEVEL, trials=4000)
    assert exact_power(differing, both_right, noticed) >= POWER - 0.02
    assert exact_power(differing, both_right, noticed - 1) < POWER + 0.02


def test_further_tests_cost_power():
    first, second = systems(20)
    needed = [noticed_loss(first, second, [1, 1], LEVEL, tests, trials=300) for tests in (2, 3, 8)]
    assert needed == sorted(needed)
    assert needed[0] < needed[2]


def test_a_measure_whose_best_score_is_low_is_tested_too():
    first, second = systems(5)
    assert fewest_noticed(1 - first, 1 - second, [0, 0], LEVEL, trials=200) == fewest_noticed(
        first, second, [1, 1], LEVEL, trials=200
    )


def test_systems_that_answer_too_little_have_no_noticed_loss():
    column = np.array([[1.0]] * 3 + [[0.0]] * 20)
    assert fewest_noticed(column, column, [1], LEVEL, trials=50) is None


def test_units_are_swapped_as_wholes():
    column = np.ones((40, 1))
    alone = noticed_loss(column, column, [1], LEVEL, trials=100)
    in_pairs = noticed_loss(
        column, column, [1], LEVEL, units=[str(n // 2) for n in range(40)], trials=100
    )
    assert alone == 5  # 1/32 is the first power of 1/2 below the level
    assert in_pairs >= alone


@pytest.mark.parametrize("share", [0.2, 0.9])
@pytest.mark.parametrize("seed", [0, 1])
def test_undefined_scores_do_not_count(share, seed):
    rng = np.random.default_rng(seed)
    column = (rng.random((60, 1)) < 0.8).astype(float)
    extra = np.where(rng.random((60, 1)) < share, np.nan, column)
    both = np.concatenate([column, extra], axis=1)
    assert fewest_noticed(both, both, [1, 1], LEVEL, trials=50) == fewest_noticed(
        column, column, [1], LEVEL, 2, trials=50
    )
