"""Measures over sets, against plain loops."""

import random
from itertools import product

import pytest

from ifqa.protocols import SetMeasure
from ifqa.records import Prediction, Question
from ifqa.scoring import sets
from ifqa.scoring.sets import set_difference, set_interval, set_macro


def consistent(questions, predictions):
    """The share of paragraphs whose questions are all answered right."""
    right = {}
    for question, prediction in zip(questions, predictions, strict=True):
        assert prediction.question_id == question.id
        right.setdefault(question.label("paragraph"), []).append(prediction.answer in question.answers)
    return sum(map(all, right.values())) / len(right) if right else None


def mean(questions, predictions):
    right = [p.answer in q.answers for q, p in zip(questions, predictions, strict=True)]
    return sum(right) / len(right)


CONSISTENT = SetMeasure("consistent", consistent, unit="paragraph")


def questions(several, largest=3, seed=0):
    rng = random.Random(seed)
    sizes = [rng.randint(1, largest) for _ in range(several)]
    return [
        Question(
            f"{paragraph}/{n}", "Why?", ("yes",), group="ab"[paragraph % 2], labels=(("paragraph", str(paragraph)),)
        )
        for paragraph, size in enumerate(sizes)
        for n in range(size)
    ]


def said(several, seed, share=0.7):
    rng = random.Random(seed)
    return [Prediction(one.id, "yes" if rng.random() < share else "no") for one in several]


def test_a_paragraph_that_is_drawn_twice_counts_twice():
    """A share of paragraphs has the interval of a mean over paragraphs."""
    asked = questions(60)
    answered = said(asked, 1)
    value, low, high = set_interval(CONSISTENT, asked, answered, seed=0)
    right = {}
    for question, prediction in zip(asked, answered, strict=True):
        right[question.label("paragraph")] = right.get(question.label("paragraph"), True) and prediction.answer == "yes"
    shares = [float(one) for one in right.values()]
    rng = random.Random(4)
    means = sorted(sum(rng.choices(shares, k=60)) / 60 for _ in range(4_000))
    assert value == sum(shares) / 60
    assert [low, high] == pytest.approx([means[100], means[3_900]], abs=0.03)


@pytest.mark.parametrize("unit", ["question", "group"])
def test_ids_and_groups_are_told_apart_in_a_resample(unit):
    seen = []

    def look(several, predictions):
        seen.append({one.id if unit == "question" else one.group for one in several})
        assert [one.question_id for one in predictions] == [one.id for one in several]
        return 1.0

    asked = questions(12)
    set_interval(SetMeasure("look", look, unit=unit), asked, said(asked, 1), seed=0)
    units = len(asked) if unit == "question" else 2
    assert len(seen) == 1 + sets.RESAMPLES
    assert {len(one) for one in seen} == {units}


def test_the_macro_value_is_the_mean_over_groups():
    asked = questions(40)
    answered = said(asked, 2)
    parts = [[n for n, one in enumerate(asked) if one.group == group] for group in "ab"]
    wanted = sum(consistent([asked[n] for n in part], [answered[n] for n in part]) for part in parts) / 2
    (value, low, high), groups = set_macro(CONSISTENT, asked, answered, seed=0)
    assert (value, groups) == (pytest.approx(wanted), 2)
    assert low < value < high


def test_what_is_not_defined_has_no_value():
    none = SetMeasure("none", lambda *_: None)
    asked = questions(3)
    assert set_interval(none, asked, said(asked, 1), 0) is None
    assert set_macro(none, asked, said(asked, 1), 0) is None
    assert set_difference(none, asked, said(asked, 1), said(asked, 2), 0) is None


def test_a_system_differs_from_itself_in_nothing():
    asked = questions(20)
    found = set_difference(CONSISTENT, asked, said(asked, 1), said(asked, 1), 0)
    assert (found.more, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_p_agrees_with_counting_all_swaps_of_paragraphs():
    asked = questions(8, seed=3)
    first, second = said(asked, 1, 0.9), said(asked, 2, 0.4)
    paragraphs = sorted({one.label("paragraph") for one in asked})
    apart = []
    for swaps in product((False, True), repeat=len(paragraphs)):
        swap = dict(zip(paragraphs, swaps, strict=True))
        pairs = [
            (b, a) if swap[one.label("paragraph")] else (a, b) for one, a, b in zip(asked, first, second, strict=True)
        ]
        apart.append(abs(consistent(asked, [b for _, b in pairs]) - consistent(asked, [a for a, _ in pairs])))
    exact = sum(one >= apart[0] - 1e-9 for one in apart) / len(apart)
    found = set_difference(CONSISTENT, asked, first, second, 0)
    assert found.p == pytest.approx(exact, abs=0.05)
    assert found.more == pytest.approx(found.second - found.first)
    assert found.low <= found.more <= found.high


def test_a_mean_as_a_set_measure_has_the_interval_of_a_mean():
    from ifqa.scoring.statistics import mean_interval, paired_randomization

    asked = questions(50)
    first, second = said(asked, 1), said(asked, 5, 0.5)
    units = [one.label("paragraph") for one in asked]
    values, others = ([float(one.answer == "yes") for one in side] for side in (first, second))
    measure = SetMeasure("mean", mean, unit="paragraph")
    assert set_interval(measure, asked, first, 0) == pytest.approx(mean_interval(values, units=units), abs=0.02)
    p = paired_randomization(values, others, units=units)
    assert set_difference(measure, asked, first, second, 0).p == pytest.approx(p, abs=0.04)
