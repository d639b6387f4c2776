"""Which interval is reported: Wilson's where all or none score, none where there are too few."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from ifqa.protocols import ColumnMeasure, Measure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.aggregation import aggregate_rows
from ifqa.scoring.intervals import mend_intervals, report_interval
from ifqa.scoring.measures.confidence import AUROC
from ifqa.scoring.scheme import ScoringScheme, default_scheme


def scores_of(values, measure=None, groups="", unit="question"):
    """The scores of questions with these values of the measure "right", each its own group, or
    all of the groups in `groups`.
    """
    measure = measure or Measure("right", lambda *_: 1.0, unit=unit)
    names = groups or "x" * len(values)
    questions = [
        Question(f"q/{n}", "If?", ("a",), group=group)
        for n, (_, group) in enumerate(zip(values, names, strict=True))
    ]
    rows: Any = [
        {"id": question.id, "subsets": [], "right": value, "failed": 0.0}
        for question, value in zip(questions, values, strict=True)
    ]
    predictions = [Prediction(question.id, "a") for question in questions]
    return aggregate_rows(rows, questions, ScoringScheme((measure,)), None, predictions).scores(0)


@pytest.mark.parametrize("count", [10, 15, 83])
@pytest.mark.parametrize("right", [0, 1])
def test_all_or_none_have_wilsons_interval(count, right):
    mean = scores_of([float(right)] * count)["measures"]["right"]
    wilson = binomtest(right * count, count).proportion_ci(method="wilson")
    assert (mean["low"], mean["high"]) == pytest.approx((100 * wilson.low, 100 * wilson.high))
    assert mean["low"] < mean["high"]


def test_other_shares_keep_the_interval_of_the_bootstrap():
    mean = scores_of([1.0] + [0.0] * 19)["measures"]["right"]
    assert (mean["low"], mean["high"]) == (0.0, 15.0)


def test_few_questions_have_no_interval():
    assert scores_of([1.0, 0.0] * 4)["measures"]["right"] == {"value": 50.0}


def test_few_units_have_no_interval():
    mean = scores_of([1.0, 0.0] * 20, groups="ab" * 20, unit="group")["measures"]["right"]
    assert mean == {"value": 50.0}


def test_all_units_right_have_wilsons_interval_of_the_units():
    groups = "abcdefghijkl" * 3
    mean = scores_of([1.0] * 36, groups=groups, unit="group")["measures"]["right"]
    assert mean["low"] == pytest.approx(100 * binomtest(12, 12).proportion_ci(method="wilson").low)


def test_a_measure_of_sets_or_columns_without_spread_has_no_interval():
    whole = SetMeasure("right", lambda *_: 1.0)
    assert scores_of([1.0] * 20, whole)["measures"]["right"] == {"value": 100.0}
    column = ColumnMeasure("right", lambda numbers, times: times[:, 0] * 0 + 1, ("failed",))
    assert scores_of([1.0] * 20, column)["measures"]["right"] == {"value": 100.0}


def grouped_scores(values, groups):
    """The scores of questions in groups, each question its own unit."""
    questions = [Question(f"q/{n}", "If?", ("a",), group=name) for n, name in enumerate(groups)]
    rows: Any = [
        {"id": question.id, "subsets": [], "right": value, "failed": 0.0}
        for question, value in zip(questions, values, strict=True)
    ]
    scheme = ScoringScheme((Measure("right", lambda *_: 1.0),), groups="topic")
    return aggregate_rows(rows, questions, scheme, None).scores(0)


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=10, max_size=80))
def test_groups_of_one_question_leave_the_interval_as_it_is(values):
    names = [str(n) for n in range(len(values))]
    scores = grouped_scores(values, names)
    assert scores["measures"] == scores_of(values)["measures"]


# 83 questions in 5 groups of two, and 73 of one
PAIRS = [str(n // 2 if n < 10 else n) for n in range(83)]


def test_pairs_and_single_questions_are_resampled_together():
    values = [1.0] * 50 + [0.0] * 33
    scores = grouped_scores(values, PAIRS)
    assert scores["measures"] == scores_of(values)["measures"]


def test_the_macro_average_of_small_groups_draws_groups():
    macro = grouped_scores([1.0] * 50 + [0.0] * 33, PAIRS)["macro"]["measures"]["right"]
    assert macro["low"] < 50 < 65 < macro["high"]


def test_the_macro_average_of_few_small_groups_has_no_interval():
    macro = grouped_scores([1.0, 0.0] * 20, "a" * 38 + "bc")["macro"]["measures"]["right"]
    assert "low" not in macro


def test_the_macro_average_of_large_groups_draws_within_them():
    macro = grouped_scores([1.0] * 5 + [0.0] * 9 + [1.0], "a" * 5 + "b" * 10)
    assert macro["macro"]["measures"]["right"] == pytest.approx(
        {"value": 55.0, "low": 50.0, "high": 65.0}
    )


def test_small_groups_do_not_narrow_the_interval_of_a_difference():
    right = Measure("right", lambda *_: 1.0)
    questions = [Question(f"q/{n}", "If?", ("a",), group=name) for n, name in enumerate(PAIRS)]
    sides = []
    for values in ([1.0, 0.0] * 2 + [0.0] * 79, [0.0, 1.0] * 2 + [0.0] * 79):
        rows: Any = [
            {"id": question.id, "subsets": [], "right": value, "failed": 0.0}
            for question, value in zip(questions, values, strict=True)
        ]
        scheme = ScoringScheme((right,), groups="topic")
        sides.append(aggregate_rows(rows, questions, scheme, None).sample())
    [(_, count, paired)] = sides[0].differences(sides[1], ["right"], 0)
    assert count == 83
    assert paired.low < 0 < paired.high


def auroc_of(labels, groups="", units=""):
    """AUROC's score over questions whose labels tell whether a gold passage was read."""
    names = groups or "x" * len(labels)
    paragraphs = units or map(str, range(len(labels)))
    questions = [
        Question(f"q/{n}", "If?", ("a",), group=name, labels=(("paragraph", paragraph),))
        for n, (name, paragraph) in enumerate(zip(names, paragraphs, strict=True))
    ]
    rows: Any = [
        {
            "id": question.id,
            "subsets": [],
            "failed": 0.0,
            "confidence": (17 * n % 83) / 83,
            "gold_read": label,
        }
        for n, (question, label) in enumerate(zip(questions, labels, strict=True))
    ]
    measure = replace(AUROC, unit="paragraph" if units else "question")
    scheme = ScoringScheme((measure,), groups="topic" if groups else "")
    return aggregate_rows(rows, questions, scheme, None).scores(0)


@pytest.mark.parametrize(("negatives", "has"), [(1, False), (9, False), (10, True), (41, True)])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_measure_of_two_classes_has_no_interval_if_one_is_small(negatives, has, swapped):
    labels = [float((n < negatives) == swapped) for n in range(83)]
    assert ("low" in auroc_of(labels)["measures"]["AUROC"]) == has


def test_a_class_of_few_units_is_small():
    labels = [0.0, 1.0] * 60
    few = [str(n // 24) for n in range(120)]
    many = [str(n // 4) for n in range(120)]
    assert "low" not in auroc_of(labels, units=few)["measures"]["AUROC"]
    assert "low" in auroc_of(labels, units=many)["measures"]["AUROC"]


def test_a_macro_average_over_groups_with_small_classes_draws_groups():
    labels = [float(n % 10 != 0) for n in range(120)]
    few = auroc_of(labels, groups=[str(n // 60) for n in range(120)])
    many = auroc_of(labels, groups=[str(n // 10) for n in range(120)])
    assert "low" in few["macro"]["measures"]["AUROC"]
    assert "low" in many["macro"]["measures"]["AUROC"]
    few = auroc_of(labels, groups=[str(n // 30) for n in range(120)])
    assert "low" not in few["macro"]["measures"]["AUROC"]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(1, 100), st.booleans())
def test_a_reported_interval_holds_the_score(a, b, c, units, is_share):
    low, score, high = sorted((a, b, c))
    reported = report_interval((score, low, high), units, is_share)
    assert reported[0] == score
    if not math.isnan(reported[1]):
        assert reported[1] <= score <= reported[2]
        assert reported[1] < reported[2]


STORED: Any = {
    "questions": 83,
    "n_failed": 0,
    "measures": {
        "EM": {"value": 0.0, "low": 0.0, "high": 0.0},
        "F1": {"value": 5.0, "low": 2.0, "high": 9.0},
        "AURC": {"value": 100.0, "low": 100.0, "high": 100.0},
        "gold_any@5": {"value": 100.0, "low": 100.0, "high": 100.0, "questions": 15},
        "ECE": {"value": 100.0},
    },
    "subsets": {
        "numeric": {"questions": 9, "measures": {"EM": {"value": 50.0, "low": 1.0, "high": 90.0}}}
    },
}


def mended():
    return mend_intervals(STORED, default_scheme())


def test_stored_intervals_are_mended():
    means = mended()["measures"]
    wilson = binomtest(0, 83).proportion_ci(method="wilson")
    assert means["EM"] == pytest.approx({"value": 0.0, "low": 0.0, "high": 100 * wilson.high})
    assert means["F1"] == STORED["measures"]["F1"]
    assert means["AURC"] == {"value": 100.0}
    assert means["ECE"] == {"value": 100.0}
    low = 100 * binomtest(15, 15).proportion_ci(method="wilson").low
    assert means["gold_any@5"]["low"] == pytest.approx(low)
    assert mended()["subsets"]["numeric"]["measures"]["EM"] == {"value": 50.0}


def auroc_stored(gold_read):
    mean = {"value": 98.8, "low": 96.3, "high": 100.0}
    subsets = {
        "gold_read": {"questions": gold_read, "measures": {}},
        "no_overlap": {"questions": 74, "measures": {"AUROC": mean}},
    }
    stored: Any = STORED | {"measures": {"AUROC": mean}, "subsets": subsets}
    return mend_intervals(stored, default_scheme())


@pytest.mark.parametrize(("gold_read", "has"), [(82, False), (73, True), (9, False)])
def test_a_stored_interval_over_a_small_class_is_left_out(gold_read, has):
    scores = auroc_stored(gold_read)
    assert ("low" in scores["measures"]["AUROC"]) == has
    assert ("low" in scores["subsets"]["no_overlap"]["measures"]["AUROC"]) == has


def test_mended_intervals_are_not_mended_again():
    assert mend_intervals(mended(), default_scheme()) == mended()


def test_stored_intervals_over_units_without_spread_are_left_out():
    scheme = ScoringScheme((Measure("EM", lambda *_: 1.0, unit="group"),))
    means = mend_intervals(STORED, scheme)["measures"]
    assert means["EM"] == {"value": 0.0}
