"""Krippendorff's alpha, against published worked examples and Scott's pi."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.scoring.statistics import alpha

#: Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): B, two observers, and C, four who leave units out.
TWO = ("0100000010", "1110010000")
FOUR = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def units(rows):
    return [[value for value in column if value != "."] for column in zip(*rows, strict=True)]


def test_alpha_is_that_of_the_published_examples_and_undefined_without_two_classes():
    assert [alpha(units(rows)) for rows in (TWO, FOUR)] == pytest.approx([0.095, 0.743], abs=0.0005)
    assert [alpha(few) for few in ([], [["a"]], [["a", "a"], ["a", "a"]], [["a", "a"], ["b"]])] == [None] * 4


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_alpha_of_two_annotators_is_scotts_pi_with_its_correction(pairs):
    counts = Counter(value for pair in pairs for value in pair)
    number = 2 * len(pairs)
    chance = sum((count / number) ** 2 for count in counts.values())
    if chance == 1:
        assert alpha(pairs) is None
        return
    scott = (sum(first == second for first, second in pairs) / len(pairs) - chance) / (1 - chance)
    assert alpha(pairs) == pytest.approx(1 - (1 - scott) * (1 - 1 / number))
