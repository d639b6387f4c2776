"""Statistics of a sample: a measure of sets against plain loops, a measure of columns against a
measure of sets.
"""

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from ifqa.errors import IfqaError
from ifqa.protocols import ColumnMeasure, Measure, SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring import statistics
from ifqa.scoring.measures.confidence import AURC
from ifqa.scoring.statistics import (
    ColumnStatistic,
    MeanStatistic,
    SetStatistic,
    mean_interval,
    paired_randomization,
)


def consistent(questions, predictions):
    """The share of paragraphs whose questions are all answered right."""
    right: dict[str, list[bool]] = {}
    for question, prediction in zip(questions, predictions, strict=True):
        assert prediction.question_id == question.id
        right.setdefault(question.label("paragraph"), []).append(
            prediction.answer in question.answers
        )
    return sum(map(all, right.values())) / len(right)


def mean(questions, predictions):
    return sum(p.answer in q.answers for q, p in zip(questions, predictions, strict=True)) / len(
        questions
    )


CONSISTENT = SetMeasure("consistent", consistent, unit="paragraph")


def pairs_of(paragraphs, seed, share=0.7):
    """Questions on paragraphs, in two groups; about a share is answered right."""
    sizes = random.Random(0)
    answers = random.Random(seed)
    pairs = []
    for number in range(paragraphs):
        group = "ab"[number % 2]
        labels = (("paragraph", f"{number}"),)
        for n in range(sizes.randint(1, 3)):
            question = Question(f"{number}/{n}", "Why?", ("yes",), group=group, labels=labels)
            pairs.append(
                (question, Prediction(question.id, "yes" if answers.random() < share else "no"))
            )
    return pairs


def paragraphs_of(pairs):
    return [question.label("paragraph") for question, _ in pairs]


def over_paragraphs(pairs, measure=CONSISTENT):
    return SetStatistic(measure, pairs, paragraphs_of(pairs))


def score_pairs(measure, pairs):
    return measure(*map(list, zip(*pairs, strict=True)))


@pytest.mark.parametrize("unit", ["question", "group"])
def test_what_is_repeated_in_a_resample_gets_a_new_name(unit):
    seen = []

    def look(questions, predictions):
        seen.append(
            {question.id if unit == "question" else question.group for question in questions}
        )
        assert [prediction.question_id for prediction in predictions] == [
            question.id for question in questions
        ]
        return 1.0

    pairs = pairs_of(12, 1)
    groups = [question.group for question, _ in pairs] if unit == "group" else []
    SetStatistic(SetMeasure("look", look, unit=unit), pairs, groups).interval(0)
    assert len(seen) == 1 + statistics.RESAMPLES
    assert {len(names) for names in seen} == {2 if unit == "group" else len(pairs)}


def test_the_macro_value_is_the_mean_over_groups():
    pairs = pairs_of(40, 2)
    parts = [[pair for pair in pairs if pair[0].group == group] for group in "ab"]
    (mean, low, high), groups = over_paragraphs(pairs).macro(
        [question.group for question, _ in pairs], 0
    )
    assert (mean, groups) == (
        pytest.approx(sum(score_pairs(consistent, part) for part in parts) / 2),
        2,
    )
    assert low < mean < high


def test_an_undefined_measure_has_no_interval():
    no_set = SetStatistic(SetMeasure("none", lambda *_: None), pairs_of(3, 1))
    no_column = ColumnStatistic(AURC, np.full((3, 2), np.nan))
    empty = MeanStatistic(RIGHT, [])
    cases: list[tuple[Any, list[str]]] = [
        (no_set, ["a"] * 3),
        (no_column, ["a"] * 3),
        (empty, []),
    ]
    for statistic, groups in cases:
        assert (
            statistic.interval(0)
            is statistic.macro(groups, 0)
            is statistic.difference(statistic, 0)
            is None
        )


def test_a_system_does_not_differ_from_itself():
    for statistic in (
        over_paragraphs(pairs_of(20, 1)),
        ColumnStatistic(AURC, columns_of(answered(1))),
    ):
        paired = statistic.difference(statistic, 0)
        assert paired is not None
        assert (paired.delta, paired.low, paired.high, paired.p) == (0.0, 0.0, 0.0, 1.0)


def test_p_agrees_with_counting_all_swaps_of_paragraphs():
    first = pairs_of(8, 1, 0.9)
    second = pairs_of(8, 2, 0.4)
    paragraphs = sorted(set(paragraphs_of(first)))
    deltas = []
    for swaps in product((False, True), repeat=len(paragraphs)):
        swap = dict(zip(paragraphs, swaps, strict=True))
        both = [
            (b, a) if swap[a[0].label("paragraph")] else (a, b)
            for a, b in zip(first, second, strict=True)
        ]
        sides = zip(*both, strict=True)
        deltas.append(
            abs(score_pairs(consistent, next(sides)) - score_pairs(consistent, next(sides)))
        )
    exact = sum(delta >= deltas[0] - 1e-9 for delta in deltas) / len(deltas)
    paired = over_paragraphs(first).difference(over_paragraphs(second), 0)
    assert paired.p == pytest.approx(exact, abs=0.05)
    assert paired.delta == pytest.approx(paired.second - paired.first)
    assert paired.low <= paired.delta <= paired.high


def test_a_mean_as_a_set_measure_has_the_interval_of_a_mean():
    first = pairs_of(50, 1)
    second = pairs_of(50, 5, 0.5)
    units = paragraphs_of(first)
    scores, others = (
        [float(prediction.answer == "yes") for _, prediction in side] for side in (first, second)
    )
    measure = SetMeasure("mean", mean, unit="paragraph")
    over_sets = over_paragraphs(first, measure)
    assert over_sets.interval(0) == pytest.approx(mean_interval(scores, units=units), abs=0.02)
    p = paired_randomization(scores, others, units=units)
    assert over_sets.difference(over_paragraphs(second, measure), 0).p == pytest.approx(p, abs=0.04)


RIGHT = Measure("right", lambda *_: 1.0)


@pytest.mark.parametrize(("best", "counts"), [("high", (2, 1, 1)), ("low", (1, 2, 1))])
def test_the_difference_of_means_counts_the_questions_on_which_the_second_is_better(best, counts):
    measure = Measure("right", lambda *_: 1.0, best=best)
    first = MeanStatistic(measure, [0.0, 0.5, 1.0, 1.0])
    second = MeanStatistic(measure, [1.0, 1.0, 0.0, 1.0])
    paired = first.difference(second, 0)
    assert paired is not None
    assert (paired.first, paired.second, paired.delta, paired.counts) == (
        0.625,
        0.75,
        0.125,
        counts,
    )
    assert paired.p == paired_randomization([0.0, 0.5, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0])


def risk(questions, predictions):
    """AURC of predictions with distinct confidences."""
    pairs = sorted(zip(questions, predictions, strict=True), key=lambda pair: -pair[1].confidence)
    wrong = [prediction.answer not in question.answers for question, prediction in pairs]
    return sum(sum(wrong[:k]) / k for k in range(1, len(wrong) + 1)) / len(wrong)


QUESTIONS = [Question(f"q/{n:02}", "?", ("yes",), group=f"{n % 4}") for n in range(24)]
GROUPS = [question.group for question in QUESTIONS]


def answered(seed):
    """The questions with random answers and confidences."""
    rng = random.Random(seed)
    predictions = (
        Prediction(q.id, rng.choice(["yes", "no"]), confidence=rng.random()) for q in QUESTIONS
    )
    return [*zip(QUESTIONS, predictions, strict=True)]


def columns_of(pairs):
    return np.array(
        [[prediction.confidence, prediction.answer == "yes"] for _, prediction in pairs],
        dtype=float,
    )


def columns_of_units(seed, unit):
    column = ColumnMeasure("risk", AURC.score, AURC.columns, unit=unit)
    units = GROUPS if unit == "group" else []
    return ColumnStatistic(column, columns_of(answered(seed)), units)


def sets_of_units(seed, unit):
    units = GROUPS if unit == "group" else []
    return SetStatistic(SetMeasure("risk", risk, unit=unit), answered(seed), units)


@pytest.mark.parametrize("unit", ["question", "group"])
def test_a_measure_of_columns_has_the_interval_of_a_measure_of_sets(unit):
    expected = sets_of_units(1, unit).interval(3)
    assert columns_of_units(1, unit).interval(3) == pytest.approx(expected)


@pytest.mark.parametrize("unit", ["question", "group"])
def test_a_measure_of_columns_has_the_difference_of_a_measure_of_sets(unit):
    paired = columns_of_units(1, unit).difference(columns_of_units(2, unit), 3)
    expected = sets_of_units(1, unit).difference(sets_of_units(2, unit), 3)
    assert paired[:5] == pytest.approx(expected[:5])
    assert paired.p == expected.p


@pytest.mark.parametrize("unit", ["question", "group"])
def test_a_measure_of_columns_has_the_macro_mean_of_a_measure_of_sets(unit):
    whole = unit == "group"
    interval, count = columns_of_units(1, unit).macro(GROUPS, 0, whole)
    expected, _ = sets_of_units(1, unit).macro(GROUPS, 0, whole)
    assert interval == pytest.approx(expected)
    assert count == 4


@pytest.mark.parametrize(
    ("score", "message"),
    [(lambda _, times: times[:, 0] - 2, "-1"), (lambda _, times: times, "the shape")],
)
def test_a_score_outside_0_to_1_is_refused(score, message):
    odd = ColumnStatistic(
        ColumnMeasure("odd", score, ("confidence", "EM")), columns_of(answered(1))
    )
    with pytest.raises(
        IfqaError, match=f"measure 'odd': wanted a number from 0 to 1.*found .*{message}"
    ):
        odd.interval(0)
