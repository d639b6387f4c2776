"""Evaluates arithmetic and dates in a language model's answer: "1890 + 5", "3 March 1912 + 2 years", "15% of 240".

It is a tokenizer and a recursive descent parser without names, attributes or calls; length and depth are limited.

    sum      = product (("+" | "-") product)*
    product  = sign (("*" | "/" | "of") sign)*           "of" multiplies: 15% of 240
    sign     = ("+" | "-")* atom "%"?
    atom     = number | number unit | date | "(" sum ")" | "year of" atom | (unit | "age") "from" atom "to" atom

Numbers are exact fractions: 0.1 + 0.2 is 0.3. A date is "3 March 1912", "March 3, 1912" or "1912-03-03" ("1912 - 3 - 3"
subtracts). Whole numbers of days, weeks, months and years move a date; years also move a year, as in "1890 + 5 years". In a
month too short for the day, the date is the month's last day.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import NamedTuple

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}
_LENGTH = 200  # most characters in an expression
_DEPTH = 30  # most levels of parentheses
_EXPRESSIONS = 20  # most expressions in an answer
_DIGITS = 6

_NAMES = "January February March April May June July August September October November December".split()
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _NAMES)
_TOKEN = re.compile(
    rf"""[ \t]+
    |(?P<y1>[0-9]{{4}})-(?P<n>[0-9]{{2}})-(?P<d1>[0-9]{{2}})(?![0-9])
    |(?P<d2>[0-9]{{1,2}})(?:st|nd|rd|th)?[ ]+(?P<m2>{_MONTH})\.?,?[ ]+(?P<y2>[0-9]{{4}})(?![0-9])
    |(?P<m3>{_MONTH})\.?[ ]+(?P<d3>[0-9]{{1,2}})(?:st|nd|rd|th)?,?[ ]+(?P<y3>[0-9]{{4}})(?![0-9])
    |(?P<number>[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)
    |(?P<word>[a-z]+)
    |(?P<sign>[-+*/%()])""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})
_UNITS = (*_DAYS, *_MONTHS)
_WORDS = (*_UNITS, "of", "from", "to", "age")


class CalculatorError(ValueError):
    """An expression cannot be computed. This is the language model's mistake, so it does not stop a run."""


class Duration(NamedTuple):
    """A length of time; `unit` is day, week, month or year."""

    length: int
    unit: str


Value = Fraction | date | Duration


def compute(expression: str) -> str:
    """The value of an expression as text; CalculatorError if it is invalid, divides by zero, or exceeds the limits.

    Whole numbers have no separators ("10000"). Other numbers are rounded to six decimals (below 0.1, to six significant
    digits), without trailing zeros. Dates are American ("April 15, 2003"), as in IfQA's answers.
    """
    value = evaluate(expression)
    if isinstance(value, date):
        return f"{_NAMES[value.month - 1]} {value.day}, {value.year}"
    if value.denominator == 1:
        return str(value.numerator)
    precise = Context(prec=2 * _LENGTH)  # more digits than any value has
    exact = precise.divide(Decimal(value.numerator), Decimal(value.denominator))
    large = abs(value) >= Fraction(1, 10)
    rounded = exact.quantize(Decimal((0, (1,), -_DIGITS)), context=precise) if large else Context(_DIGITS).plus(exact)
    return f"{rounded:f}".rstrip("0").rstrip(".")


def evaluate(expression: str) -> Fraction | date:
    """The exact value of an expression."""
    if len(expression) > _LENGTH:
        raise CalculatorError(f"the expression has {len(expression)} characters; wanted at most {_LENGTH}")
    parser = _ExpressionParser([*_tokenize(expression.translate(_SIGNS))])
    value = parser.sum()
    if parser.rest[-1] != "the end":
        raise CalculatorError(f"wanted an operator, found {parser.next_token()}")
    if isinstance(value, Duration):
        raise CalculatorError("the value is a length of time; add it to a date, or write its unit outside brackets")
    return value


def compute_brackets(text: str) -> str:
    """Replace each expression in double brackets by its value: "[[1890 + 5]]" becomes "1895".

    CalculatorError if brackets are not closed, an expression has no value, or there are more than 20.
    """
    first, *rest = text.split("[[")
    if len(rest) > _EXPRESSIONS:
        raise CalculatorError(f"more than {_EXPRESSIONS} expressions")
    parts = [first]
    for part in rest:
        expression, closing, after = part.partition("]]")
        if not closing:
            raise CalculatorError("'[[' without ']]'")
        parts += [compute(expression), after]
    return "".join(parts)


def _tokenize(text: str) -> Iterator[Fraction | date | str]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CalculatorError(f"unexpected character {text[position]!a}")
        position, token = match.end(), match[0].lower()
        if match["number"]:
            yield Fraction(token.replace(",", ""))
        elif match["word"]:
            word = token.removesuffix("s") if token.removesuffix("s") in _UNITS else token
            if word not in _WORDS:
                raise CalculatorError(f"unknown word {token!r}")
            yield word
        elif match["sign"]:
            yield token
        elif token.strip():
            yield _date(match)


def _date(match: re.Match[str]) -> date:
    year, day = match["y1"] or match["y2"] or match["y3"], match["d1"] or match["d2"] or match["d3"]
    name = (match["m2"] or match["m3"] or "")[:3].title()
    month = match["n"] or next(n for n, known in enumerate(_NAMES, start=1) if known.startswith(name))
    try:
        return date(int(year), int(month), int(day))
    except ValueError as error:
        raise CalculatorError(f"invalid date {match[0]!r}; a minus needs spaces on both sides") from error


class _ExpressionParser:
    """The grammar above, with a method for each rule. `rest` holds the unread tokens in reverse."""

    def __init__(self, tokens: list[Fraction | date | str]) -> None:
        self.rest = ["the end", *tokens[::-1]]
        self.depth = 0

    def next_token(self) -> str:
        """The next token, for messages."""
        return repr(str(self.rest[-1]))

    def take(self, *words: str) -> str:
        """Take the next token if it is one of these words or signs; else ""."""
        token = self.rest[-1]
        if isinstance(token, str) and token in words:
            self.rest.pop()
            return token
        return ""

    def sum(self) -> Value:
        total = self.product()
        while sign := self.take("+", "-"):
            total = add(total, self.product(), 1 if sign == "+" else -1)
        return total

    def product(self) -> Value:
        product = self.sign()
        while sign := self.take("*", "/", "of"):
            left, right = require_number(product, repr(sign)), require_number(self.sign(), repr(sign))
            if sign == "/" and right == 0:
                raise CalculatorError("division by zero")
            product = left / right if sign == "/" else left * right
        return product

    def sign(self) -> Value:
        factor, signed = Fraction(1), False
        while sign := self.take("+", "-"):
            factor, signed = (-factor if sign == "-" else factor), True
        operand = self.atom()
        if self.take("%"):
            factor, signed = factor / 100, True
        return require_number(operand, "a sign") * factor if signed else operand

    def atom(self) -> Value:
        self.depth += 1
        if self.depth > _DEPTH:
            raise CalculatorError(f"nested deeper than {_DEPTH}")
        operand = self.inner()
        self.depth -= 1
        return operand

    def inner(self) -> Value:
        token = self.rest[-1]
        if not isinstance(token, str):
            self.rest.pop()
            if isinstance(token, Fraction) and (unit := self.take(*_UNITS)):
                if token.denominator != 1:
                    raise CalculatorError(f"wanted a whole number of {unit}s")
                return Duration(int(token), unit)
            return token
        if self.take("("):
            inside = self.sum()
            if not self.take(")"):
                raise CalculatorError(f"wanted ')', found {self.next_token()}")
            return inside
        unit = self.take(*_UNITS, "age")
        if unit == "year" and self.take("of"):
            return Fraction(self.date().year)
        if not unit or not self.take("from"):
            raise CalculatorError(f"wanted a number or a date, found {self.next_token()}")
        start = self.date()
        if not self.take("to"):
            raise CalculatorError(f"wanted 'to', found {self.next_token()}")
        return Fraction(count_elapsed(start, self.date(), unit))

    def date(self) -> date:
        day = self.atom()
        if not isinstance(day, date):
            raise CalculatorError("'of', 'from' and 'to' need a date with day, month and year")
        return day


def require_number(operand: Value, what: str) -> Fraction:
    """The operand if it is a number; `what` names the operation in the error."""
    if not isinstance(operand, Fraction):
        kind = "a date" if isinstance(operand, date) else "a length of time"
        raise CalculatorError(f"{what} needs a number, found {kind}")
    return operand


def add(left: Value, right: Value, sign: int) -> Value:
    """The sum (`sign` 1) or difference (-1) of two numbers, a date and a duration, a year and years, or two dates (in days)."""
    if isinstance(left, date):
        if isinstance(right, Duration):
            return _shift_date(left, sign * right.length, right.unit)
        if isinstance(right, date) and sign < 0:
            return Fraction((left - right).days)
        raise CalculatorError("only a length of time, like '2 years', can be added to a date; a date can be subtracted")
    if isinstance(left, Fraction) and isinstance(right, Duration) and right.unit == "year":
        right = Fraction(right.length)  # "1890 + 5 years"
    return require_number(left, "'+' or '-'") + sign * require_number(right, "'+' or '-' after a number")


def _shift_date(start: date, count: int, unit: str) -> date:
    try:
        if unit in _DAYS:
            return start + timedelta(days=count * _DAYS[unit])
        year, month = divmod(start.year * 12 + start.month - 1 + count * _MONTHS[unit], 12)
        return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))
    except (OverflowError, ValueError) as error:
        raise CalculatorError("a date outside the years 1 to 9999") from error


def count_elapsed(start: date, end: date, unit: str) -> int:
    """Whole units from a date to a later date; an age is in years. A birthday on February 29 counts from March 1."""
    if end < start:
        raise CalculatorError("the date after 'to' is before the one after 'from'")
    if unit in _DAYS:
        return (end - start).days // _DAYS[unit]
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    return months // _MONTHS.get(unit, 12)
