"""Intervals and paired tests, against scipy; Krippendorff's alpha, against published worked examples and Scott's pi."""

import random
from collections import Counter
from itertools import chain, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.scoring import statistics
from ifqa.scoring.statistics import (
    count_wins,
    holm_correction,
    krippendorff_alpha,
    mean_interval,
    paired_randomization,
    wilson_interval,
)

SCORES = st.lists(st.sampled_from([0.0, 1.0, 0.5, 2 / 3, 0.4]), min_size=1, max_size=40)


def scores(seed, count: int, values: tuple[float, ...] = (0.0, 1.0)) -> list[float]:
    return random.Random(seed).choices(values, k=count)


@pytest.mark.parametrize(
    ("values", "step"),  # step: between two neighbouring means that a resample can have, where it is wide
    [
        (scores(1, 700), 1 / 700),
        (scores(2, 60, (0.0, 0.0, 0.0, 0.0, 1.0)), 1 / 60),
        (scores(3, 300, (0.0, 0.0, 1.0, 0.4, 2 / 3, 0.8)), 0),
        ([random.Random(seed).random() ** 3 for seed in range(200)], 0),
    ],
    ids=["exact match", "rare and few", "f1", "continuous"],
)
def test_interval_agrees_with_scipy(values, step):
    import numpy as np
    from scipy.stats import bootstrap

    mean, low, high = mean_interval(values)
    theirs = bootstrap((values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(5))
    assert mean == pytest.approx(np.mean(values))
    tolerance = 0.12 * theirs.standard_error + step  # three sigma of the difference of two such quantiles, and a step
    assert low == pytest.approx(theirs.confidence_interval.low, abs=tolerance)
    assert high == pytest.approx(theirs.confidence_interval.high, abs=tolerance)


@given(SCORES, st.integers(0, 9))
def test_interval_holds_the_mean_and_is_reproducible(values, seed):
    mean, low, high = found = mean_interval(values, seed=seed, resamples=500)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert low - 1e-12 <= mean <= high + 1e-12
    assert mean_interval(values[::-1], seed=seed, resamples=500) == found


def test_seeds_batches_and_draws_of_single_values_hardly_change_the_interval(monkeypatch):
    a, b = scores(1, 50, (0.0, 1.0, 0.5)), scores(2, 50, (0.0, 1.0, 0.3))
    whole = mean_interval(a), paired_randomization(a, b)
    spread = [random.Random(number).random() for number in range(100)]
    assert mean_interval(spread, seed=1) != pytest.approx(mean_interval(spread, seed=2), abs=1e-6)
    assert mean_interval(spread, seed=1) == pytest.approx(mean_interval(spread, seed=2), abs=0.01)
    monkeypatch.setattr(statistics, "_DRAWS_AT_ONCE", 100)
    assert (mean_interval(a), paired_randomization(a, b)) == whole
    monkeypatch.undo()
    values, units = clustered(9, 60, 4)
    whole = mean_interval(values), mean_interval(values, units=units)
    monkeypatch.setattr(statistics, "_MANY", 0)
    for one, other in zip(whole, (mean_interval(values), mean_interval(values, units=units)), strict=True):
        assert (one, one[0]) == (pytest.approx(other, abs=0.012), other[0])


def scipy_p(a, b, resamples):
    import numpy as np
    from scipy.stats import permutation_test

    def mean_difference(x, y, axis):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    how = {"permutation_type": "samples", "vectorized": True, "rng": np.random.default_rng(7)}
    return permutation_test((np.array(a), np.array(b)), mean_difference, n_resamples=resamples, **how).pvalue


@pytest.mark.parametrize("shift", [0.0, 0.03, 0.06, 0.1])
def test_p_agrees_with_scipy(shift):
    rng = random.Random(11)
    a = [float(rng.random() < 0.4 + shift) for _ in range(400)]
    b = [float(rng.random() < 0.4) for _ in range(400)]
    assert paired_randomization(a, b) == pytest.approx(scipy_p(a, b, 10_000), abs=0.025)


@pytest.mark.parametrize("seed", range(4))
def test_p_agrees_with_counting_all_sign_flips(seed):
    a, b = scores(seed, 10, (0.0, 1.0, 0.4, 2 / 3)), scores(seed + 50, 10, (0.0, 1.0, 0.5))
    assert paired_randomization(a, b, rounds=50_000) == pytest.approx(scipy_p(a, b, float("inf")), abs=0.01)


def test_p_at_the_ends():
    assert paired_randomization([1.0, 0.5], [1.0, 0.5]) == 1.0
    assert paired_randomization([1.0] * 100, [0.0] * 100, rounds=999) == 1 / 1000  # never 0
    assert paired_randomization([1.0], [0.0]) == 1.0  # one question shows nothing
    # .1 + .2 - .3 is not 0 in floating point; every flip of these signs must count as at least as large.
    assert paired_randomization([0.1, 0.2, 0.0], [0.0, 0.0, 0.3]) == 1.0


@given(SCORES, st.randoms(use_true_random=False))
def test_p_is_two_sided_and_reproducible(a, rng):
    b = rng.sample(a, len(a))
    p = paired_randomization(a, b, rounds=200)
    assert 0 < p <= 1
    assert p == paired_randomization(b, a, rounds=200)


def test_won_lost_tied_and_empty_or_unequal_scores_are_refused():
    assert count_wins([1.0, 0.0, 0.5, 1.0], [0.0, 1.0, 0.5, 0.9]) == (2, 1, 1)
    with pytest.raises(IfqaError, match="no scores"):
        mean_interval([])
    with pytest.raises(IfqaError, match="found 1 and 2 scores"):
        paired_randomization([1.0], [1.0, 0.0])
    with pytest.raises(IfqaError, match="no scores"):
        count_wins([], [])


def clustered(seed, several, largest):
    """Scores of questions on paragraphs of 1 to `largest` questions; scores within a paragraph are similar."""
    rng = random.Random(seed)
    hard = [rng.random() for _ in range(several)]
    places = [number for number in range(several) for _ in range(rng.randint(1, largest))]
    return [float(rng.random() > hard[place]) for place in places], [f"paragraph {place}" for place in places]


def brute_force(values, units, resamples, seed):
    """The mean of each resample: drawn by paragraph, summed by question."""
    rng = random.Random(seed)
    paragraphs = [[v for v, u in zip(values, units, strict=True) if u == unit] for unit in dict.fromkeys(units)]
    draws = ([*chain(*rng.choices(paragraphs, k=len(paragraphs)))] for _ in range(resamples))
    return sorted(sum(drawn) / len(drawn) for drawn in draws)


@pytest.mark.parametrize(("several", "largest"), [(80, 6), (12, 30)])
def test_interval_over_units_agrees_with_brute_force(several, largest):
    values, units = clustered(several, several, largest)
    mean, low, high = mean_interval(values, units=units)
    means = brute_force(values, units, 8_000, seed=5)
    spread = (sum((one - mean) ** 2 for one in means) / len(means)) ** 0.5
    assert mean == pytest.approx(sum(values) / len(values))
    assert low == pytest.approx(means[200], abs=0.15 * spread)
    assert high == pytest.approx(means[7_800], abs=0.15 * spread)
    _, low_alone, high_alone = mean_interval(values)
    assert high - low > 1.2 * (high_alone - low_alone)  # questions on one paragraph tell less than as many on several


def test_the_macro_average_agrees_with_numpy():
    import numpy as np

    values = {group: scores(number, size) for number, (group, size) in enumerate({"a": 40, "b": 300, "c": 12}.items())}
    groups = [group for group in values for _ in values[group]]
    mean, low, high = mean_interval([*chain(*values.values())], strata=groups, macro=True)
    assert mean == pytest.approx(np.mean([np.mean(several) for several in values.values()]))
    rng = np.random.default_rng(8)
    drawn = [rng.choice(several, size=(10_000, len(several))).mean(axis=1) for several in values.values()]
    ends = np.quantile(means := np.mean(drawn, axis=0), (0.025, 0.975))
    assert [low, high] == pytest.approx([*ends], abs=0.1 * means.std() + 1 / 36)


@pytest.mark.parametrize("seed", range(3))
def test_p_by_unit_agrees_with_counting_all_flips_of_units(seed):
    rng = random.Random(seed)
    units = [rng.choice("abcdefgh") for _ in range(24)]
    a, b = scores(seed, 24, (0.0, 1.0, 0.5)), scores(seed + 9, 24)
    sums = [sum(x - y for x, y, u in zip(a, b, units, strict=True) if u == unit) for unit in sorted(set(units))]
    flips = [abs(sum(s * d for s, d in zip(signs, sums, strict=True))) for signs in product((1, -1), repeat=len(sums))]
    exact = sum(flip >= abs(sum(sums)) - 1e-9 for flip in flips) / len(flips)
    assert paired_randomization(a, b, rounds=50_000, units=units) == pytest.approx(exact, abs=0.01)


def test_holm_corrects_as_in_a_worked_example():
    # By hand: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 0.04, which may not be below the one before it.
    assert holm_correction([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_rejects_what_the_step_down_rule_rejects(ps):
    left, rejected = sorted(range(len(ps)), key=ps.__getitem__), set()
    while left and ps[left[0]] * len(left) < 0.05:
        rejected.add(left.pop(0))
    assert {n for n, p in enumerate(holm_correction(ps)) if p < 0.05} == rejected


def test_units_of_one_question_one_stratum_and_equal_scores_are_nothing_special():
    values, other = scores(6, 50, (0.0, 0.5, 1.0)), scores(5, 50)
    units = [f"{number}" for number in range(50)]
    for macro in (False, True):
        assert mean_interval(values, strata=["a"] * 50, macro=macro) == mean_interval(values)
    assert mean_interval(values, seed=3, units=units) == mean_interval(values, seed=3)
    assert paired_randomization(values, other, 3, units=units) == paired_randomization(values, other, 3)
    assert mean_interval([1.0, 0.0], units=["a", "a"]) == (0.5, 0.5, 0.5)
    assert mean_interval([1.0] * 5) == (1.0, 1.0, 1.0)


@pytest.mark.parametrize(("hits", "of"), [(0, 1), (1, 1), (0, 50), (3, 7), (49, 50), (800, 1000)])
def test_the_interval_of_a_share_agrees_with_scipy(hits, of):
    from scipy.stats import binomtest

    theirs = binomtest(hits, of).proportion_ci(method="wilson")
    assert wilson_interval(hits, of) == pytest.approx((hits / of, theirs.low, theirs.high))
    assert wilson_interval(0, 0) is None


#: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): B, two observers, and C, four who leave units out.
TWO = ("0100000010", "1110010000")
FOUR = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def units(rows):
    return [[value for value in column if value != "."] for column in zip(*rows, strict=True)]


def test_alpha_is_that_of_the_published_examples_and_undefined_without_two_classes():
    assert [krippendorff_alpha(units(rows)) for rows in (TWO, FOUR)] == pytest.approx([0.095, 0.743], abs=0.0005)
    assert [krippendorff_alpha(few) for few in ([], [["a"]], [["a", "a"], ["a", "a"]], [["a", "a"], ["b"]])] == [
        None
    ] * 4


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_alpha_of_two_annotators_is_scotts_pi_with_its_correction(pairs):
    counts = Counter(value for pair in pairs for value in pair)
    number = 2 * len(pairs)
    chance = sum((count / number) ** 2 for count in counts.values())
    if chance == 1:
        assert krippendorff_alpha(pairs) is None
        return
    scott = (sum(first == second for first, second in pairs) / len(pairs) - chance) / (1 - chance)
    assert krippendorff_alpha(pairs) == pytest.approx(1 - (1 - scott) * (1 - 1 / number))
