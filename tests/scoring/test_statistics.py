"""Intervals and paired tests, against scipy.

Krippendorff's alpha, against published worked examples and Scott's pi.
"""

import random
from itertools import chain, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.scoring import statistics
from ifqa.scoring.statistics import (
    holm_correction,
    mean_interval,
    paired_randomization,
    wilson_interval,
)

SCORES = st.lists(st.sampled_from([0.0, 1.0, 0.5, 2 / 3, 0.4]), min_size=1, max_size=40)


def scores(seed, count: int, values: tuple[float, ...] = (0.0, 1.0)) -> list[float]:
    return random.Random(seed).choices(values, k=count)


BOOTSTRAPPED = {  # scores, and the step between neighbouring means of resamples if it is wide
    "exact match": (scores(1, 700), 1 / 700),
    "rare and few": (scores(2, 60, (0.0, 0.0, 0.0, 0.0, 1.0)), 1 / 60),
    "f1": (scores(3, 300, (0.0, 0.0, 1.0, 0.4, 2 / 3, 0.8)), 0),
    "continuous": ([random.Random(seed).random() ** 3 for seed in range(200)], 0),
}


@pytest.mark.parametrize("case", BOOTSTRAPPED)
def test_interval_agrees_with_scipy(case):
    import numpy as np
    from scipy.stats import bootstrap

    values, step = BOOTSTRAPPED[case]
    rng = np.random.default_rng(5)
    expected = bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=rng)
    # Three sigma of the difference of two such quantiles, and a step
    tolerance = 0.12 * expected.standard_error + step
    mean, *ends = mean_interval(values)
    assert mean == pytest.approx(np.mean(values))
    assert ends == pytest.approx([*expected.confidence_interval], abs=tolerance)


@given(SCORES, st.integers(0, 9))
def test_interval_holds_the_mean(values, seed):
    mean, low, high = mean_interval(values, seed=seed, resamples=500)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert low - 1e-12 <= mean <= high + 1e-12


@given(SCORES, st.integers(0, 9))
def test_interval_of_a_seed_does_not_depend_on_the_order_of_scores(values, seed):
    interval = mean_interval(values, seed=seed, resamples=500)
    assert mean_interval(values[::-1], seed=seed, resamples=500) == interval


def test_the_seed_hardly_changes_the_interval():
    spread = [random.Random(number).random() for number in range(100)]
    first = mean_interval(spread, seed=1)
    second = mean_interval(spread, seed=2)
    assert first != pytest.approx(second, abs=1e-6)
    assert first == pytest.approx(second, abs=0.01)


def test_drawing_in_batches_changes_nothing(monkeypatch):
    a = scores(1, 50, (0.0, 1.0, 0.5))
    b = scores(2, 50, (0.0, 1.0, 0.3))
    interval = mean_interval(a)
    p = paired_randomization(a, b)
    monkeypatch.setattr(statistics, "_DRAWS_AT_ONCE", 100)
    assert mean_interval(a) == interval
    assert paired_randomization(a, b) == p


@pytest.mark.parametrize("by_unit", [False, True])
def test_drawing_single_values_hardly_changes_the_interval(by_unit, monkeypatch):
    values, paragraphs = clustered(9, 60, 4)
    units = paragraphs if by_unit else ()
    before = mean_interval(values, units=units)
    monkeypatch.setattr(statistics, "_MANY", 0)
    after = mean_interval(values, units=units)
    assert before == pytest.approx(after, abs=0.012)
    assert before[0] == after[0]


def scipy_p(a, b, resamples):
    import numpy as np
    from scipy.stats import permutation_test

    def mean_difference(x, y, axis):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    options = {"permutation_type": "samples", "vectorized": True, "rng": np.random.default_rng(7)}
    return permutation_test(
        (np.array(a), np.array(b)), mean_difference, n_resamples=resamples, **options
    ).pvalue


@pytest.mark.parametrize("seed", range(4))
def test_p_agrees_with_counting_all_sign_flips(seed):
    a = scores(seed, 10, (0.0, 1.0, 0.4, 2 / 3))
    b = scores(seed + 50, 10, (0.0, 1.0, 0.5))
    assert paired_randomization(a, b, rounds=50_000) == pytest.approx(
        scipy_p(a, b, float("inf")), abs=0.01
    )


def test_p_of_equal_scores_is_1():
    assert paired_randomization([1.0, 0.5], [1.0, 0.5]) == 1.0


def test_p_is_never_0():
    assert paired_randomization([1.0] * 100, [0.0] * 100, rounds=999) == 1 / 1000


def test_p_of_one_question_is_1():
    assert paired_randomization([1.0], [0.0]) == 1.0


def test_p_overlooks_errors_of_rounding():
    # .1 + .2 - .3 is not 0 in floating point; every flip of these signs must count as at least as
    # large.
    assert paired_randomization([0.1, 0.2, 0.0], [0.0, 0.0, 0.3]) == 1.0


@given(SCORES, st.randoms(use_true_random=False))
def test_p_is_a_probability(a, rng):
    b = rng.sample(a, len(a))
    assert 0 < paired_randomization(a, b, rounds=200) <= 1


@given(SCORES, st.randoms(use_true_random=False))
def test_p_is_two_sided(a, rng):
    b = rng.sample(a, len(a))
    assert paired_randomization(a, b, rounds=200) == paired_randomization(b, a, rounds=200)


def test_missing_or_unequal_scores_are_refused():
    with pytest.raises(IfqaError, match="no scores"):
        mean_interval([])
    with pytest.raises(IfqaError, match="found 1 and 2 scores"):
        paired_randomization([1.0], [1.0, 0.0])


def clustered(seed, paragraphs, largest):
    """Scores of questions on paragraphs of 1 to `largest` questions, similar within a paragraph.

    And their paragraphs.
    """
    rng = random.Random(seed)
    hard = [rng.random() for _ in range(paragraphs)]
    numbers = [number for number in range(paragraphs) for _ in range(rng.randint(1, largest))]
    return [float(rng.random() > hard[number]) for number in numbers], [
        f"paragraph {number}" for number in numbers
    ]


@pytest.mark.parametrize(("paragraphs", "largest"), [(80, 6), (12, 30)])
def test_interval_over_units_agrees_with_brute_force(paragraphs, largest):
    values, units = clustered(paragraphs, paragraphs, largest)
    mean, low, high = mean_interval(values, units=units)
    rng = random.Random(5)
    by_unit = [
        [v for v, u in zip(values, units, strict=True) if u == unit]
        for unit in dict.fromkeys(units)
    ]
    draws = ([*chain(*rng.choices(by_unit, k=paragraphs))] for _ in range(8_000))
    means = sorted(sum(draw) / len(draw) for draw in draws)
    spread = (sum((drawn - mean) ** 2 for drawn in means) / len(means)) ** 0.5
    assert mean == pytest.approx(sum(values) / len(values))
    assert [low, high] == pytest.approx([means[200], means[7_800]], abs=0.15 * spread)
    _, low_alone, high_alone = mean_interval(values)
    # Questions on one paragraph tell less than as many on several
    assert high - low > 1.2 * (high_alone - low_alone)


def test_the_macro_average_agrees_with_numpy():
    import numpy as np

    groups = {"a": scores(0, 40), "b": scores(1, 300), "c": scores(2, 12)}
    strata = [group for group in groups for _ in groups[group]]
    mean, *ends = mean_interval([*chain(*groups.values())], strata=strata, macro=True)
    assert mean == pytest.approx(np.mean([np.mean(group) for group in groups.values()]))
    rng = np.random.default_rng(8)
    draws = [rng.choice(group, size=(10_000, len(group))).mean(axis=1) for group in groups.values()]
    expected = np.quantile(means := np.mean(draws, axis=0), (0.025, 0.975))
    assert ends == pytest.approx([*expected], abs=0.1 * means.std() + 1 / 36)


@pytest.mark.parametrize("seed", range(3))
def test_p_by_unit_agrees_with_counting_all_flips_of_units(seed):
    rng = random.Random(seed)
    units = [rng.choice("abcdefgh") for _ in range(24)]
    a = scores(seed, 24, (0.0, 1.0, 0.5))
    b = scores(seed + 9, 24)
    sums = [
        sum(x - y for x, y, u in zip(a, b, units, strict=True) if u == unit)
        for unit in sorted(set(units))
    ]
    flips = [
        abs(sum(s * d for s, d in zip(signs, sums, strict=True)))
        for signs in product((1, -1), repeat=len(sums))
    ]
    exact = sum(flip >= abs(sum(sums)) - 1e-9 for flip in flips) / len(flips)
    assert paired_randomization(a, b, rounds=50_000, units=units) == pytest.approx(exact, abs=0.01)


def test_holm_corrects_as_in_a_worked_example():
    # By hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 0.04, which may not be below the one before it.
    assert holm_correction([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_the_step_down_rule_rejects(ps):
    left = sorted(range(len(ps)), key=ps.__getitem__)
    rejected = set()
    while left and ps[left[0]] * len(left) < 0.05:
        rejected.add(left.pop(0))
    assert {n for n, p in enumerate(holm_correction(ps)) if p < 0.05} == rejected


@pytest.mark.parametrize("macro", [False, True])
def test_a_single_stratum_changes_nothing(macro):
    values = scores(6, 50, (0.0, 0.5, 1.0))
    assert mean_interval(values, strata=["a"] * 50, macro=macro) == mean_interval(values)


def test_units_of_one_question_change_nothing():
    values = scores(6, 50, (0.0, 0.5, 1.0))
    other = scores(5, 50)
    units = [f"{number}" for number in range(50)]
    assert mean_interval(values, seed=3, units=units) == mean_interval(values, seed=3)
    assert paired_randomization(values, other, 3, units=units) == paired_randomization(
        values, other, 3
    )


def test_the_interval_of_a_single_unit_is_its_mean():
    assert mean_interval([1.0, 0.0], units=["a", "a"]) == (0.5, 0.5, 0.5)


def test_the_interval_of_equal_scores_is_their_mean():
    assert mean_interval([1.0] * 5) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("hits", "of"), [(0, 1), (1, 1), (0, 50), (3, 7), (49, 50), (800, 1000)])
def test_the_interval_of_a_share_agrees_with_scipy(hits, of):
    from scipy.stats import binomtest

    ends = binomtest(hits, of).proportion_ci(method="wilson")
    assert wilson_interval(hits, of) == pytest.approx((hits / of, ends.low, ends.high))
    assert wilson_interval(0, 0) is None
