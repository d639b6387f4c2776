"""The calculator is exact, and refuses in one line what is no arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.reading.agent.calculator import CannotCompute, compute, format_value

NUMBERS = st.one_of(
    st.integers(0, 10**6).map(lambda number: (str(number), Fraction(number))),
    st.decimals(0, 1000, places=3).map(lambda number: (f"{number:f}", Fraction(number))),
)


def combine(parts):
    """An expression in brackets with its value; None where it divides by zero."""
    return st.tuples(parts, st.sampled_from("+-*/"), parts).map(joined)


def joined(part):
    (left, first), sign, (right, second) = part
    text = f"({left} {sign} {right})"
    if first is None or second is None or (sign == "/" and second == 0):
        return text, None
    values = {"+": first + second, "-": first - second, "*": first * second}
    return text, values[sign] if sign in values else first / second


EXPRESSIONS = st.recursive(NUMBERS, combine, max_leaves=5)


@given(EXPRESSIONS)
def test_values_are_those_of_fractions(expression):
    text, value = expression
    if value is None:
        with pytest.raises(CannotCompute, match="division by zero"):
            compute(text)
    else:
        assert compute(text) == value


def outcome(text):
    """The value of a text, or why it has none."""
    try:
        return format_value(compute(text))
    except CannotCompute as error:
        return str(error)


@given(st.one_of(st.text(max_size=60), st.text("0123456789.,+-*/() ", max_size=80)))
def test_any_text_has_a_value_or_a_one_line_error(text):
    assert len(outcome(text).splitlines()) == 1


@given(st.integers(-(10**9), 10**9), st.integers(1, 12))
def test_a_decimal_is_written_exactly(number, decimals):
    value = Fraction(number, 10**decimals)
    assert Fraction(format_value(value)) == value


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1969 + 3", "1972"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("10 - 4 - 3", "3"),
        ("-(2 - 5)", "3"),
        ("2 - -3", "5"),
        ("1,250 * 2", "2500"),
        ("7 / 2", "3.5"),
        ("-1 / 8", "-0.125"),
        (".5 + 1.", "1.5"),
        ("22 / 7", "22/7, about 3.14286"),
        ("6 × 7 − 2 ÷ 2", "41"),
    ],
)
def test_an_expression_is_written_as_a_number(expression, value):
    assert format_value(compute(expression)) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "the end"),
        ("2 +", "the end"),
        ("2 ** 9", "found '*'"),
        ("2 ^ 9", "found '\\^'"),
        ("(1 + 2", "wanted '\\)'"),
        ("1 2", "found '2'"),
        ("__import__('os')", "wanted a number"),
        ("1 / (2 - 2)", "division by zero"),
        ("1" * 31, "31 digits"),
        ("*".join(["9" * 30] * 4), "more than 60 digits"),
        ("1" * 201, "200 characters"),
        ("(" * 60 + "1" + ")" * 60, "brackets"),
        ("-" * 60 + "1", "brackets or signs"),
        ("\u0664 + 1", "wanted a number"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_line(expression, reason):
    with pytest.raises(CannotCompute, match=reason) as caught:
        compute(expression)
    assert "\n" not in str(caught.value)
