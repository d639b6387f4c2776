import random
import re
from contextlib import suppress
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.prompting.calculator import CalculatorError, compute, compute_brackets, evaluate

COMPUTED = {
    "1890 + 5": "1895", "10,000 * 2": "20000", "1,234.50": "1234.5", "0.1 + 0.2": "0.3", "1 / 3": "0.333333",
    "1 / 7000": "0.000142857", "15% of 240": "36", "50% - 3": "-2.5", "200 * (1 - 15%)": "170", "--5": "5", "-15% * 2": "-0.3",
    f"{10**29} + 1 / 3": "100000000000000000000000000000.333333", "3 × 4 ÷ 2 − 1": "5",
    "3 March 1912 + 2 years": "March 3, 1914",
    "March 3, 1912 - 10 days": "February 22, 1912", "Oct. 2, 1955 + 1 week": "October 9, 1955",
    "may 1st, 1900": "May 1, 1900", "1912-03-03 - 1 month": "February 3, 1912", "15 April 2003": "April 15, 2003",
    "January 31, 2001 + 1 month": "February 28, 2001", "February 29, 2000 + 1 year": "February 28, 2001",
    "March 3, 1912 - 1912-01-01": "62", "1912 - 3 - 3": "1906", "year of (3 March 1912 + 10 years)": "1922",
    "1890 + 5 years": "1895", "age from March 3, 1912 to March 2, 1950": "37", "years from 1912-03-03 to 1950-03-03": "38",
    "months from 1912-01-31 to 1912-02-29": "0", "weeks from 1912-01-01 to 1912-01-31": "4",
    "days from 1912-04-10 to 1912-04-15": "5",
}  # fmt: skip


def test_expressions_are_computed():
    assert {expression: compute(expression) for expression in COMPUTED} == COMPUTED


def test_values_equal_pythons_exact_fractions():
    draw, values = random.Random(5), 0

    def term(depth):
        if depth and draw.random() < 0.5:
            return draw.choice(["({})", "-({})", "(-({}))"]).format(chain(depth - 1))
        return draw.choice([f"{draw.randint(1, 30)}", f"{draw.randint(0, 9)}.{draw.randint(0, 99)}", "12,345"])

    def chain(depth):
        text = term(depth)
        for sign in draw.choices("+-*/", k=draw.randint(1, 3)):
            text += f" {sign} {term(depth)}"
        return text

    while values < 1000:
        text = chain(2)
        python = re.sub(r"[\d.]+", lambda match: f"Fraction('{match[0]}')", text.replace(",", ""))
        try:
            expected = eval(python)  # digits and signs, drawn above
        except ZeroDivisionError:
            continue
        if len(text) < 200:
            assert evaluate(text) == expected, text
            values += 1


def test_dates_move_as_pythons():
    draw = random.Random(7)
    for _ in range(1000):
        start = date(1000, 1, 1) + timedelta(days=draw.randrange(360_000))
        step = timedelta(days=draw.randint(0, 9_999), weeks=draw.randint(0, 99))
        name = start.strftime("%B")
        text = draw.choice([start.isoformat(), f"{start.day} {name} {start.year}", f"{name} {start.day}, {start.year}"])
        sign, moved = draw.choice([("+", start + step), ("-", start - step)])
        assert evaluate(f"{text} {sign} {step.days // 7} weeks {sign} {step.days % 7} days") == moved
        assert evaluate(f"{moved.isoformat()} - {text}") == (moved - start).days
        years, months = draw.randint(1, 300), draw.randint(0, 30)
        if start.day <= 28:
            more, month = divmod(start.month + months - 1, 12)
            later = start.replace(year=start.year + years + more, month=month + 1)
            assert evaluate(f"{text} + {years} years + {months} months") == later
            assert evaluate(f"months from {text} to {later.isoformat()}") == 12 * years + months
            assert evaluate(f"year of ({text} + {years} years)") == start.year + years
            birthday = start.replace(year=start.year + years).isoformat()
            assert evaluate(f"age from {text} to {birthday}") == years
            assert evaluate(f"age from {text} to ({birthday} - 1 day)") == years - 1


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=10**6))
def test_the_text_of_a_number_is_rounded(number):
    text = compute(f"({number.numerator})/{number.denominator}")
    assert abs(Fraction(text) - number) <= Fraction(1, 2 * 10**6)
    assert text == "0" or not text.startswith(("-0.", "0.")) or abs(Fraction(text) / number - 1) < Fraction(1, 10**5)
    assert "." not in text or text[-1] not in "0."


HOSTILE = {
    "9**9": "wanted a number", "9" * 10_000_000: "characters", "(" * 100 + "1" + ")" * 99: "deeper", "1/0": "zero",
    "7 % 4": "wanted an operator", "().__class__": "unexpected character", "__import__('os')": "unexpected character",
    "abs(3)": "unknown word", "1e9": "unknown word", "lambda: 3": "unknown word", "March 3": "unknown word",
    "١+١": "unexpected character", "1²": "unexpected character", "1\n+2": "unexpected character",
    "1,23": "unexpected character", "1 2": "wanted an operator", "(1": "wanted ')'", "1 +": "wanted a number or a date",
    "": "wanted a number or a date", "()": "wanted a number or a date", "30 February 1900": "invalid date",
    "1990-45-10": "invalid date", "9999-12-31 + 1 day": "outside", "0001-01-01 - 1 month": "outside",
    "1900-01-01 + 999999999999999999 days": "outside", "1900-01-01 + 999999999999999999 years": "outside",
    "1900-01-01 + 1900-01-01": "added", "1900-01-01 + 5": "added", "1900-01-01 * 2": "needs a number",
    "-1900-01-01": "needs a number", "5 - 1900-01-01": "needs a number", "1.5 years": "whole number", "3 weeks": "length of time",
    "3 + 2 weeks": "needs a number", "year of 1912": "need a date", "age from 1950-01-01 to 1949-01-01": "before",
}  # fmt: skip


@pytest.mark.parametrize("expression", HOSTILE, ids=lambda text: text[:30].encode("unicode_escape").decode())
def test_an_expression_without_a_value_is_refused_in_one_line(expression):
    with pytest.raises(CalculatorError) as caught:
        compute(expression)
    message = str(caught.value)
    assert HOSTILE[expression] in message
    assert "\n" not in message
    assert len(message) < 400


@given(st.text("0123456789.,+-*/%() abcdefrmotysJn", max_size=60) | st.text(max_size=250))
@settings(max_examples=500)
def test_any_text_has_a_short_value_or_is_refused(text):
    with suppress(CalculatorError):
        assert len(compute(text)) < 400


def test_expressions_in_brackets_become_their_values_or_are_refused():
    assert compute_brackets("[[1890 + 5]]") == "1895"
    assert compute_brackets("£[[140 - 110]] more, and [[2*3]]") == "£30 more, and 6"
    assert compute_brackets("[1] is no mark") == "[1] is no mark"
    assert compute_brackets("") == ""
    hostile = {"[[1/0]]": "zero", "[[1 + 1": "without", "[[ [[1]] ]]": "without", "[[1]]" * 21: "more than 20"}
    for text, message in hostile.items():
        with pytest.raises(CalculatorError, match=message):
            compute_brackets(text)
