import operator
import random
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.prompting.calculator import CalculatorError, compute, compute_in, evaluate
from ifqa.reading.span.numbers import as_answer

BINARY = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}


@pytest.mark.parametrize(
    ("expression", "value"),
    {
        "1890 + 5": "1895",
        "10,000 * 2": "20000",
        "1,234.50": "1234.5",
        "0.1 + 0.2": "0.3",
        "1 / 3": "0.333333",
        "1 / 7000": "0.000142857",
        "10 ** 29 + 1 / 3": "100000000000000000000000000000.333333",
        "-7 // 2": "-4",
        "-2 ** 2": "-4",
        "2 ** -1": "0.5",
        "2 ** 3 ** 2": "512",
        "7 % 4": "3",
        "15% of 240": "36",
        "50% - 3": "-2.5",
        "200 * (1 - 15%)": "170",
        "--5": "5",
        "3 × 4 ÷ 2 − 1": "5",
        "3 March 1912 + 2 years": "March 3, 1914",
        "March 3, 1912 - 10 days": "February 22, 1912",
        "Oct. 2, 1955 + 1 week": "October 9, 1955",
        "may 1st, 1900": "May 1, 1900",
        "1912-03-03 - 1 month": "February 3, 1912",
        "January 31, 2001 + 1 month": "February 28, 2001",
        "February 29, 2000 + 1 year": "February 28, 2001",
        "March 3, 1912 - 1912-01-01": "62",
        "1912 - 3 - 3": "1906",
        "year of (3 March 1912 + 10 years)": "1922",
        "1890 + 5 years": "1895",
        "age from March 3, 1912 to March 2, 1950": "37",
        "years from 1912-03-03 to 1950-03-03": "38",
        "months from 1912-01-31 to 1912-02-29": "0",
        "weeks from 1912-01-01 to 1912-01-31": "4",
        "days from 1912-04-10 to 1912-04-15": "5",
    }.items(),
)
def test_it_computes(expression, value):
    assert compute(expression) == value


def tree(draw, depth):
    """A random expression as text, and its value by Python's operators on exact fractions."""
    if depth == 0 or draw.random() < 0.2:
        whole, decimals = draw.randint(0, 9999), draw.choice(["", "", f".{draw.randint(0, 999)}"])
        text = draw.choice([f"{whole}{decimals}", f"{whole:,}{decimals}"])
        return text, Fraction(f"{whole}{decimals}")
    kind = draw.choice([*BINARY, "**", "neg", "percent"])
    left, a = tree(draw, depth - 1)
    if kind == "neg":
        return f"(-({left}))" if draw.random() < 0.5 else f"-({left})", -a
    if kind == "percent":
        return f"({left})%", a / 100
    if kind == "**":
        exponent = draw.randint(-2, 3) if a else draw.randint(1, 3)
        return f"({left}) ** {exponent}", a**exponent
    right, b = tree(draw, depth - 1)
    if kind in ("/", "//", "%") and not b:
        return left, a
    return f"({left}) {kind} ({right})", Fraction(BINARY[kind](a, b))


def test_a_thousand_expressions_have_the_values_that_python_gives():
    draw, right = random.Random(3), 0
    while right < 1000:
        text, value = tree(draw, draw.randint(1, 3))
        if len(text) <= 200 and abs(value) < 10**30:
            try:
                assert evaluate(text) == value, text
            except CalculatorError:  # an intermediate value was out of bounds
                assert "**" in text
                continue
            right += 1


def test_without_parentheses_signs_bind_as_in_python():
    draw = random.Random(5)
    for _ in range(1000):
        numbers = [draw.randint(1, 30) for _ in range(draw.randint(2, 6))]
        signs = [draw.choice(["+", "-", "*", "//", "%", "**"]) for _ in numbers[1:]]
        text = str(numbers[0])
        power = 1
        for sign, number in zip(signs, numbers[1:], strict=True):
            sign, number = (
                ("+", number) if sign == "**" and power > 1 else (sign, number % 4 if sign == "**" else number)
            )
            power = 2 if sign == "**" else 1
            unary = "-" if sign not in ("**", "%") and draw.random() < 0.2 else ""
            text += f" {sign} {unary}{number}"
        assert evaluate(text) == eval(text), text  # the text is the test's own: digits and signs


def test_a_thousand_dates_move_as_pythons_own():
    draw = random.Random(7)
    for _ in range(1000):
        start = date(1000, 1, 1) + timedelta(days=draw.randrange(360_000))
        step = timedelta(days=draw.randint(0, 9_999), weeks=draw.randint(0, 99))
        name = start.strftime("%B")
        text = draw.choice([start.isoformat(), f"{start.day} {name} {start.year}", f"{name} {start.day}, {start.year}"])
        sign, moved = draw.choice([("+", start + step), ("-", start - step)])
        weeks, days = step.days // 7, step.days % 7
        assert evaluate(f"{text} {sign} {weeks} weeks {sign} {days} days") == moved
        assert evaluate(f"{moved.isoformat()} - {text}") == (moved - start).days
        years, months = draw.randint(0, 300), draw.randint(0, 30)
        if start.day <= 28:
            later = start.replace(
                year=start.year + years + (start.month + months - 1) // 12, month=(start.month + months - 1) % 12 + 1
            )
            assert evaluate(f"{text} + {years} years + {months} months") == later
            assert evaluate(f"months from {text} to {later.isoformat()}") == 12 * years + months
            assert evaluate(f"year of ({text} + {years} years)") == start.year + years
            if years:
                birthday = start.replace(year=start.year + years)
                assert evaluate(f"age from {text} to {birthday.isoformat()}") == years
                assert evaluate(f"age from {text} to ({birthday.isoformat()} - 1 day)") == years - 1


def test_a_date_is_written_as_the_answers_write_it():
    assert compute("15 April 2003") == as_answer("15 April 2003", 0, 13) == "April 15, 2003"


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=10**6))
def test_the_text_of_a_number_is_the_number_rounded(value):
    text = compute(f"({value.numerator})/{value.denominator}")
    assert abs(Fraction(text) - value) <= Fraction(1, 2 * 10**6)
    assert text == "0" or not text.startswith(("-0.", "0.")) or abs(Fraction(text) / value - 1) < Fraction(1, 10**5)
    assert "." not in text or text[-1] not in "0."


HOSTILE = {
    "9**9**9": "exponent",
    "9**0.5": "whole exponent",
    "9" * 10_000_000: "characters",
    "9" * 200: "too large",
    "(" * 100 + "1" + ")" * 99: "deeper",
    "2**" * 60 + "2": "deeper",
    "1000000**1000": "too large",
    "((1.1**300)**10)**10": "too large",
    "1/10**13": "too small",
    "1/0": "zero",
    "1//0": "zero",
    "1%0": "zero",
    "0**-1": "zero",
    "().__class__": "unexpected character",
    "__import__('os')": "unexpected character",
    "abs(3)": "unknown word",
    "x.y": "unknown word",
    "1e9": "unknown word",
    "lambda: 3": "unknown word",
    "١+١": "unexpected character",
    "1²": "unexpected character",
    "1;2": "unexpected character",
    "1\n+2": "unexpected character",
    "1,23": "unexpected character",
    "1 == 1": "unexpected character",
    "1 2": "wanted an operator",
    "(1": "wanted ')'",
    "1 +": "wanted a number or a date",
    "": "wanted a number or a date",
    "()": "wanted a number or a date",
    "30 February 1900": "no such date",
    "1990-45-10": "no such date",
    "March 3": "unknown word",
    "9999-12-31 + 1 day": "outside",
    "0001-01-01 - 1 month": "outside",
    "1900-01-01 + 999999999999999999 days": "outside",
    "1900-01-01 + 999999999999999999 years": "outside",
    "1900-01-01 + 1900-01-01": "added",
    "1900-01-01 + 5": "added",
    "1900-01-01 * 2": "wants a number",
    "-1900-01-01": "wants a number",
    "5 - 1900-01-01": "wants a number",
    "1.5 years": "whole number",
    "3 weeks": "alone",
    "3 + 2 weeks": "wants a number",
    "year of 1912": "wants a date",
    "age from 1950-01-01 to 1949-01-01": "before",
}


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:30].encode("unicode_escape").decode())
def test_an_expression_without_a_value_is_refused_in_one_line(expression):
    with pytest.raises(CalculatorError, match=HOSTILE[expression].replace("(", r"\(").replace(")", r"\)")) as caught:
        compute(expression)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@given(st.text("0123456789.,+-*/%() abcdefrmotysJn", max_size=60) | st.text(max_size=250))
@settings(max_examples=500)
def test_any_text_has_a_value_or_is_refused(text):
    try:
        value = compute(text)
    except CalculatorError:
        return
    assert len(value) < 60


def test_marked_expressions_in_a_text_become_their_values():
    assert compute_in("[[1890 + 5]]") == "1895"
    assert compute_in("£[[140 - 110]] more, and [[2*3]]") == "£30 more, and 6"
    assert compute_in("[1] is no mark") == "[1] is no mark"
    assert compute_in("") == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [("[[1/0]]", "zero"), ("[[1 + 1", "without"), ("[[ [[1]] ]]", "without"), ("[[1]]" * 21, "more than 20")],
)
def test_a_marked_expression_without_a_value_is_refused(text, why):
    with pytest.raises(CalculatorError, match=why):
        compute_in(text)
