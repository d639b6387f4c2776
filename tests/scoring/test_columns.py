"""Measures of numbers in the rows: the same values, intervals and p as a measure over sets with the same function."""

import random
import time

import numpy as np
import pytest

from ifqa.errors import IfqaError
from ifqa.protocols import ColumnMeasure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring.columns import column_difference, column_interval, column_macro
from ifqa.scoring.measures.confidence import AURC, CONFIDENCE
from ifqa.scoring.sets import set_difference, set_interval, set_macro


def risk(questions, predictions):
    """AURC of predictions with unlike confidences."""
    both = sorted(zip(questions, predictions, strict=True), key=lambda one: -one[1].confidence)
    wrong = [prediction.answer not in question.answers for question, prediction in both]
    return sum(sum(wrong[:k]) / k for k in range(1, len(wrong) + 1)) / len(wrong)


QUESTIONS = [Question(f"q/{n:02}", "?", ("yes",), group=f"{n % 4}") for n in range(24)]


def said(seed):
    rng = random.Random(seed)
    return [Prediction(one.id, rng.choice(["yes", "no"]), confidence=rng.random()) for one in QUESTIONS]


def rows(predictions):
    return np.array([[one.confidence, one.answer == "yes"] for one in predictions], dtype=float)


@pytest.mark.parametrize("unit", ["question", "group"])
def test_intervals_and_p_are_those_of_a_measure_over_sets(unit):
    over_set, column = SetMeasure("risk", risk, unit=unit), ColumnMeasure("risk", AURC.score, AURC.columns, unit=unit)
    units = [one.group for one in QUESTIONS] if unit == "group" else []
    first, second = said(1), said(2)
    assert column_interval(column, rows(first), 3, units) == pytest.approx(set_interval(over_set, QUESTIONS, first, 3))
    found = column_difference(column, rows(first), rows(second), 3, units)
    wanted = set_difference(over_set, QUESTIONS, first, second, 3)
    assert [found.first, found.second, found.more, found.low, found.high] == pytest.approx(
        [wanted.first, wanted.second, wanted.more, wanted.low, wanted.high]
    )
    assert found.p == pytest.approx(wanted.p, abs=0.05)  # other draws


def test_the_macro_value_is_that_of_a_measure_over_sets():
    groups = [one.group for one in QUESTIONS]
    found = column_macro(AURC, rows(said(1)), groups, 0)
    wanted = set_macro(SetMeasure("risk", risk), QUESTIONS, said(1), 0)
    assert found[0] == pytest.approx(wanted[0])
    assert found[1] == wanted[1] == 4


def test_a_system_differs_from_itself_in_nothing():
    found = column_difference(AURC, rows(said(1)), rows(said(1)), 0)
    assert (found.more, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_what_is_not_defined_has_no_value():
    none = np.full((3, 2), np.nan)
    assert column_interval(AURC, none, 0) is None
    assert column_macro(AURC, none, ["a", "b", "b"], 0) is None
    assert column_difference(AURC, none, rows(said(1))[:3], 0) is None


@pytest.mark.parametrize(
    ("of", "found"), [(lambda numbers, times: times[:, 0] - 2, "-1"), (lambda numbers, times: times, "the shape")]
)
def test_a_value_that_is_no_share_is_refused(of, found):
    with pytest.raises(IfqaError, match=f"measure 'odd': wanted a number from 0 to 1.*found .*{found}"):
        column_interval(ColumnMeasure("odd", of, ("confidence", "EM")), rows(said(1)), 0)


def test_all_measures_of_confidence_of_700_questions_take_little_time():
    rng = np.random.default_rng(0)
    many = np.stack([rng.random(700), rng.integers(2, size=700)], axis=1)
    started = time.process_time()
    for measure in CONFIDENCE:
        column_interval(measure, many, 0)
    assert time.process_time() - started < 2  # 0.5 s on an idle core
