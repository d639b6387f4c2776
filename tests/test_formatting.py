"""Scores as text: rounded once, to one decimal, a half away from zero."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.formatting import one_decimal
from ifqa.scoring.statistics import to_percent


@given(st.integers(1, 30_000).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of))))
def test_a_share_is_shown_as_exact_arithmetic_rounds_it(counts):
    hits, of = counts
    tenths = (2 * Fraction(1000 * hits, of) + 1) // 2  # half up
    assert one_decimal(to_percent(hits / of)) == f"{tenths // 10}.{tenths % 10}"


@pytest.mark.parametrize(
    ("hits", "of", "shown"), [(268, 479, "55.9"), (52, 83, "62.7"), (49, 400, "12.3")]
)
def test_a_share_is_not_rounded_twice(hits, of, shown):
    assert one_decimal(to_percent(hits / of)) == shown


def test_a_sign_is_written_if_wished():
    assert [one_decimal(number, "+") for number in (1.25, 0.0, -1.25)] == ["+1.3", "+0.0", "-1.3"]


def test_what_is_no_number_is_named():
    assert one_decimal(float("nan")) == "nan"
