"""Measures of confidence, against brute force over all orders of ties and against scikit-learn."""

import math
from itertools import groupby, pairwise, permutations, product
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.scoring.measures.confidence import (
    AURC,
    AUROC,
    BRIER,
    CONFIDENCE,
    ECE,
    EM_50,
    EM_80,
    fit_threshold,
)
from ifqa.scoring.statistics import ColumnStatistic


def value_of(measure, columns):
    return ColumnStatistic(measure, columns).value


CASES = st.lists(
    st.tuples(st.integers(0, 8).map(lambda n: n / 8), st.booleans()), min_size=1, max_size=40
)
FEW = st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=6)


def numbers(cases):
    return np.array(cases, dtype=float)


def orders(cases):
    """All orders from the surest to the least sure."""
    falling = sorted(cases, key=lambda case: -case[0])
    ties = [list(group) for _, group in groupby(falling, key=lambda case: case[0])]
    for parts in product(*(permutations(group) for group in ties)):
        yield [right for part in parts for _, right in part]


def area(rights):
    return fmean(sum(not right for right in rights[:k]) / k for k in range(1, len(rights) + 1))


def at(rights, percent):
    first = rights[: -(-len(rights) * percent // 100)]
    return sum(first) / len(first)


@given(FEW)
def test_ties_count_with_the_mean_over_all_their_orders(cases):
    all_orders = list(orders(cases))
    assert value_of(AURC, numbers(cases)) == pytest.approx(fmean(map(area, all_orders)))
    for measure, percent in ((EM_50, 50), (EM_80, 80)):
        assert value_of(measure, numbers(cases)) == pytest.approx(
            fmean(at(rights, percent) for rights in all_orders)
        )


@given(CASES)
def test_brier_agrees_with_scikit_learn(cases):
    from sklearn.metrics import brier_score_loss

    sure, right = numbers(cases).T
    expected = brier_score_loss(right, sure, pos_label=1)
    assert value_of(BRIER, numbers(cases)) == pytest.approx(expected)


@given(CASES)
def test_auroc_agrees_with_scikit_learn(cases):
    from sklearn.metrics import roc_auc_score

    sure, right = numbers(cases).T
    expected = pytest.approx(roc_auc_score(right, sure)) if len(set(right)) == 2 else None
    assert value_of(AUROC, numbers(cases)) == expected


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.booleans()),
        min_size=1,
        max_size=50,
        unique_by=lambda case: case[0],
    )
)
def test_the_calibration_error_is_the_mean_gap_of_fifteen_equal_bins(cases):
    falling = sorted(cases, reverse=True)
    ends = [len(cases) * n // 15 for n in range(16)]
    parts = [falling[start:end] for start, end in pairwise(ends)]
    gaps = [abs(sum(sure for sure, _ in part) - sum(right for _, right in part)) for part in parts]
    assert value_of(ECE, numbers(cases)) == pytest.approx(sum(gaps) / len(cases), abs=1e-12)


@given(CASES)
def test_scores_do_not_depend_on_the_order(cases):
    for measure in CONFIDENCE:
        score = value_of(measure, numbers(cases))
        reversed_score = value_of(measure, numbers(cases[::-1]))
        assert score == (None if reversed_score is None else pytest.approx(reversed_score))


@given(CASES)
def test_scores_are_from_0_to_1(cases):
    for measure in CONFIDENCE:
        score = value_of(measure, numbers(cases))
        assert score is None or 0 <= score <= 1


@given(CASES)
def test_scores_count_a_repeated_question_twice(cases):
    times = np.array([[n % 3 for n in range(len(cases))]], dtype=float)
    repeated = [case for n, case in enumerate(cases) for _ in range(n % 3)]
    for measure in CONFIDENCE:
        expected = value_of(measure, numbers(repeated)) if repeated else None
        expected = np.nan if expected is None else expected
        assert measure.score(numbers(cases), times) == pytest.approx([expected], nan_ok=True)


def test_perfect_confidence_has_the_best_scores():
    cases = [(1.0, True)] * 6 + [(0.0, False)] * 4
    best = {"EM-50": 1, "EM-80": 6 / 8, "ECE": 0, "Brier": 0, "AUROC": 1}
    best["AURC"] = fmean([0] * 6 + [1 / 7, 2 / 8, 3 / 9, 4 / 10])
    assert {
        measure.name: value_of(measure, numbers(cases)) for measure in CONFIDENCE
    } == pytest.approx(best)


def test_a_question_without_a_confidence_has_confidence_0():
    known = [(0.9, True), (0.4, True)]
    for measure in CONFIDENCE:
        some = value_of(measure, numbers([*known, (0.0, False)]))
        none = value_of(measure, numbers([*known, (np.nan, False)]))
        assert some == none


def test_questions_without_any_confidence_have_no_score():
    for measure in CONFIDENCE:
        assert value_of(measure, numbers([(np.nan, 1.0), (np.nan, 0.0)])) is None


def test_a_question_without_a_label_is_left_out():
    assert value_of(AUROC, numbers([(0.9, 1), (0.8, np.nan), (0.7, 0), (0.95, 0)])) == 0.5


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9]), st.booleans())), st.floats(0, 1))
def test_a_fitted_threshold_is_the_lowest_that_keeps_the_error(answers, error):
    fits = {}
    for threshold in {confidence for confidence, _ in answers}:
        kept = [right for confidence, right in answers if confidence >= threshold]
        fits[threshold] = kept.count(False) <= error * len(kept)
    lowest = min((threshold for threshold, keeps in fits.items() if keeps), default=None)
    assert fit_threshold([c for c, _ in answers], [right for _, right in answers], error) == lowest


@given(st.integers(1, 200), st.data())
def test_a_threshold_may_let_pass_exactly_the_error(count, data):
    wrong = data.draw(st.integers(0, count))
    right = [n >= wrong for n in range(count)]
    assert fit_threshold([0.9] * count, right, wrong / count) == 0.9
    if wrong:
        assert fit_threshold([0.9] * count, right, (wrong - 0.01) / count) is None


@pytest.mark.parametrize("percent", [29, 57])
def test_an_error_in_whole_percents_lets_as_many_of_a_hundred_pass(percent):
    right = [n >= percent for n in range(100)]
    assert fit_threshold([0.9] * 100, right, float(f"0.{percent}")) == 0.9


def test_the_calibration_error_has_no_interval():
    statistic = ColumnStatistic(ECE, numbers([(0.9, 1), (0.6, 0), (0.3, 0)]))
    interval = statistic.interval(0)
    assert interval is not None
    value, low, high = interval
    assert value == statistic.value
    assert math.isnan(low)
    assert math.isnan(high)


def test_the_calibration_errors_mean_over_groups_has_no_interval():
    statistic = ColumnStatistic(ECE, numbers([(0.9, 1), (0.6, 0), (0.3, 0)]))
    macro = statistic.macro(["a", "b", "b"], 0)
    assert macro is not None
    (value, low, high), count = macro
    assert value == pytest.approx((0.1 + 0.45) / 2)
    assert math.isnan(low)
    assert math.isnan(high)
    assert count == 2
