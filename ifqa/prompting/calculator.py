"""Arithmetic and dates that a language model asks for: "1890 + 5", "3 March 1912 + 2 years", "15% of 240".

The tokenizer and the recursive descent parser below read an expression, not Python: there are no names, attributes or
calls. Length, depth and the size of every value are bounded, so every expression is computed fast.

    sum      = product (("+" | "-") product)*
    product  = sign (("*" | "/" | "//" | "%" | "of") sign)*           "of" multiplies: 15% of 240
    sign     = ("+" | "-")* power
    power    = percent ("**" ["-"] power)?                            -2 ** 2 is -4, as in Python
    percent  = atom "%"?                                              if no operand follows the "%"
    atom     = number | number unit | date | "(" sum ")" | "year of" atom | (unit | "age") "from" atom "to" atom

Numbers are exact fractions: 0.1 + 0.2 is 0.3, and // and % round down as in Python. A date is "3 March 1912", "March 3,
1912" or "1912-03-03" (without blanks; "1912 - 3 - 3" subtracts). Units are days, weeks, months and years, in whole
numbers. They move a date; years also move a year, as in "1890 + 5 years". In a month too short for the day, the date is
the month's last day.
"""

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, timedelta
from fractions import Fraction
from typing import Literal

_LARGEST = 10**30
_BITS = 4096  # of a fraction's numerator and denominator, each
_EXPONENT = 1000
_IN_DAYS = {"day": 1, "week": 7}
_IN_MONTHS = {"month": 1, "year": 12}
_LENGTH = 200  # characters of an expression
_DEPTH = 30  # parentheses and powers inside each other
_EXPRESSIONS = 20  # in an answer
_SMALLEST = Fraction(1, 10**12)
_DECIMALS = 6

_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = "|".join(f"{name}|{name[:3]}" for name in _MONTHS)
_NTH = "(?:st|nd|rd|th)?"
_TOKEN = re.compile(
    rf"""(?P<blank>[ \t]+)
    |(?P<date>(?P<y1>[0-9]{{4}})-(?P<n>[0-9]{{2}})-(?P<d1>[0-9]{{2}})(?![0-9])
        |(?P<d2>[0-9]{{1,2}}){_NTH}[ ]+(?P<m2>{_MONTH})\.?,?[ ]+(?P<y2>[0-9]{{4}})(?![0-9])
        |(?P<m3>{_MONTH})\.?[ ]+(?P<d3>[0-9]{{1,2}}){_NTH},?[ ]+(?P<y3>[0-9]{{4}})(?![0-9]))
    |(?P<number>[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)
    |(?P<word>[a-z]+)
    |(?P<sign>\*\*|//|[-+*/%()])""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})
_UNITS = ("day", "week", "month", "year")
_WORDS = frozenset({*_UNITS, "of", "from", "to", "age"})

_Kind = Literal["number", "date", "word", "sign", "end"]


class CalculatorError(ValueError):
    """Why an expression cannot be computed, in one line. The model made the mistake, so no run stops for it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time in days, weeks, months or years."""

    count: int
    unit: str


Value = Fraction | date | Span


def compute(expression: str) -> str:
    """The value of an expression as text.

    Whole numbers have no separators ("10000"). Other numbers are rounded to six decimals (below 0.1, to six significant
    digits), without trailing zeros. Dates are American ("April 15, 2003"), as in IfQA's answers.

    Raises:
        CalculatorError: the text is no expression, divides by zero, or is longer, deeper or larger than the bounds.
    """
    value = evaluate(expression)
    return f"{_MONTHS[value.month - 1]} {value.day}, {value.year}" if isinstance(value, date) else _format(value)


def evaluate(expression: str) -> Fraction | date:
    """The value of an expression; numbers are exact, except roots.

    Raises:
        CalculatorError: as for `compute`.
    """
    if len(expression) > _LENGTH:
        raise CalculatorError(f"an expression of {len(expression)} characters; at most {_LENGTH} are read")
    parser = _Parser(_tokens(expression.translate(_SIGNS)))
    value = parser.sum()
    if parser.kind != "end":
        raise CalculatorError(f"wanted an operator, found {parser.text!r}")
    if isinstance(value, Span):
        raise CalculatorError("a length of time alone; add it to a date, or write the unit outside the brackets")
    return value


def compute_in(text: str) -> str:
    """`text` with every expression in double brackets replaced by its value: "[[1890 + 5]]" becomes "1895".

    Raises:
        CalculatorError: a bracket is not closed, an expression has no value, or there are more than 20.
    """
    parts: list[str] = []
    start = 0
    while (opened := text.find("[[", start)) >= 0:
        closed = text.find("]]", opened)
        if closed < 0:
            raise CalculatorError("'[[' without ']]'")
        if len(parts) == 2 * _EXPRESSIONS:
            raise CalculatorError(f"more than {_EXPRESSIONS} expressions")
        parts += [text[start:opened], compute(text[opened + 2 : closed])]
        start = closed + 2
    return "".join([*parts, text[start:]])


def _tokens(text: str) -> list[tuple[_Kind, str, Fraction | date | None]]:
    """Kind and text of each token, and the value of a number or date."""
    tokens: list[tuple[_Kind, str, Fraction | date | None]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise CalculatorError(f"unexpected character {text[position]!a}")
        position, token = match.end(), match.group()
        if match["date"]:
            tokens.append(("date", token, _date(match)))
        elif match["number"]:
            tokens.append(("number", token, bounded(Fraction(token.replace(",", "")))))
        elif match["word"]:
            word = token.lower()
            word = word.removesuffix("s") if word.removesuffix("s") in _UNITS else word
            if word not in _WORDS:
                raise CalculatorError(f"unknown word {token!r}")
            tokens.append(("word", word, None))
        elif match["sign"]:
            tokens.append(("sign", token, None))
    return tokens


def _date(match: re.Match[str]) -> date:
    month = int(match["n"]) if match["n"] else _month(match["m2"] or match["m3"])
    try:
        return date(
            int(match["y1"] or match["y2"] or match["y3"]), month, int(match["d1"] or match["d2"] or match["d3"])
        )
    except ValueError as error:
        raise CalculatorError(f"no such date {match.group()!r}; a minus needs blanks on both sides") from error


def _month(name: str) -> int:
    return next(n for n, month in enumerate(_MONTHS, start=1) if month[:3].lower() == name[:3].lower())


class _Parser:
    """The grammar above, one method per rule. `kind`, `text` and `value` are those of the next token."""

    def __init__(self, tokens: list[tuple[_Kind, str, Fraction | date | None]]) -> None:
        self.rest = tokens[::-1]
        self.depth = 0
        self.advance()

    def advance(self) -> None:
        self.kind, self.text, self.value = self.rest.pop() if self.rest else ("end", "the end", None)

    def take(self, *texts: str) -> str:
        """Take the next token if it is one of `texts`; else return ""."""
        if self.kind not in ("sign", "word") or self.text not in texts:
            return ""
        taken = self.text
        self.advance()
        return taken

    def demand(self, text: str) -> None:
        if not self.take(text):
            raise CalculatorError(f"wanted {text!r}, found {self.text!r}")

    def sum(self) -> Value:
        value = self.product()
        while sign := self.take("+", "-"):
            value = add(value, self.product(), 1 if sign == "+" else -1)
        return value

    def product(self) -> Value:
        value = self.sign()
        while sign := self.take("*", "/", "//", "%", "of"):
            value = multiply(value, self.sign(), sign)
        return value

    def sign(self) -> Value:
        negative, signed = False, False
        while sign := self.take("+", "-"):
            negative, signed = negative != (sign == "-"), True
        value = self.power()
        if not signed:
            return value
        return -number(value, "a sign") if negative else number(value, "a sign")

    def power(self) -> Value:
        value = self.percent()
        if not self.take("**"):
            return value
        negative = bool(self.take("-"))
        exponent = number(self.nested("power"), "**")
        return power(number(value, "**"), -exponent if negative else exponent)

    def percent(self) -> Value:
        value = self.atom()
        if (self.kind, self.text) == ("sign", "%") and not self.operand_after():
            self.advance()
            return number(value, "%") / 100
        return value

    def operand_after(self) -> bool:
        """Whether an operand follows the token: "7 % 2" is a remainder; "7%", "7% - 2" and "7% of 2" are shares."""
        kind, text, _ = self.rest[-1] if self.rest else ("end", "", None)
        return kind in ("number", "date") or text in ("(", *_UNITS, "age")

    def nested(self, rule: Literal["sum", "power", "atom"]) -> Value:
        self.depth += 1
        if self.depth > _DEPTH:
            raise CalculatorError(f"nested deeper than {_DEPTH}")
        value = self.sum() if rule == "sum" else self.power() if rule == "power" else self.atom()
        self.depth -= 1
        return value

    def atom(self) -> Value:
        value = self.value
        if value is not None:
            self.advance()
            if isinstance(value, Fraction) and (unit := self.take(*_UNITS)):
                return span(value, unit)
            return value
        if self.take("("):
            inside = self.nested("sum")
            self.demand(")")
            return inside
        unit = self.take(*_UNITS, "age")
        if not unit:
            raise CalculatorError(f"wanted a number or a date, found {self.text!r}")
        if unit == "year" and self.take("of"):
            return Fraction(day(self.nested("atom"), "'year of'").year)
        self.demand("from")
        start = day(self.nested("atom"), "'from'")
        self.demand("to")
        return Fraction(elapsed(start, day(self.nested("atom"), "'to'"), unit))


def _format(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    if abs(value) < _SMALLEST:
        raise CalculatorError("too small a number")
    places, size = _DECIMALS, abs(value)
    while size < Fraction(1, 10) and abs(value) < 1:
        places, size = places + 1, size * 10
    scaled = round(abs(value) * 10**places)
    digits = str(scaled).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 and scaled else text


def number(value: Value, what: str) -> Fraction:
    """The value as a number. `what` names the operation in the CalculatorError, here and below."""
    if not isinstance(value, Fraction):
        raise CalculatorError(
            f"{what} wants a number, found {'a date' if isinstance(value, date) else 'a length of time'}"
        )
    return value


def day(value: Value, what: str) -> date:
    """The value as a date; CalculatorError if it is none."""
    if not isinstance(value, date):
        raise CalculatorError(f"{what} wants a date with day, month and year")
    return value


def span(count: Fraction, unit: str) -> Span:
    """A length of time of a whole number of units ("day", "week", "month", "year")."""
    if count.denominator != 1:
        raise CalculatorError(f"wanted a whole number of {unit}s")
    return Span(int(count), unit)


def add(left: Value, right: Value, sign: int) -> Value:
    """Sum (`sign` 1) or difference (-1) of numbers, a date and a time, two dates (difference in days), a year and years."""
    if isinstance(left, date) and isinstance(right, Span):
        return _moved(left, sign * right.count, right.unit)
    if isinstance(left, date) and isinstance(right, date) and sign < 0:
        return Fraction((left - right).days)
    if isinstance(left, Fraction) and isinstance(right, Span) and right.unit == "year":
        right = Fraction(right.count)  # "1890 + 5 years"
    if isinstance(left, date):
        raise CalculatorError(
            "only a length of time such as '2 years' can be added to a date; a date can also be subtracted from it"
        )
    return bounded(number(left, "'+' or '-'") + sign * number(right, "'+' or '-' after a number"))


def multiply(left_value: Value, right_value: Value, sign: str) -> Fraction:
    """Two numbers combined by "*" or "of", "/", "//" or "%"; "//" and "%" round down as in Python."""
    left, right = number(left_value, repr(sign)), number(right_value, repr(sign))
    if sign in ("*", "of"):
        return bounded(left * right)
    if right == 0:
        raise CalculatorError("division by zero")
    if sign == "//":
        return bounded(Fraction(left // right))
    return bounded(left % right if sign == "%" else left / right)


def power(base: Fraction, exponent: Fraction) -> Fraction:
    """A power: exact for whole exponents, and to a float's precision for others."""
    if base == 0 and exponent < 0:
        raise CalculatorError("division by zero")
    if abs(exponent) > _EXPONENT:
        raise CalculatorError(f"an exponent beyond {_EXPONENT}")
    if exponent.denominator == 1:
        bits = max(abs(base.numerator).bit_length(), base.denominator.bit_length())
        if base not in (-1, 0, 1) and bits * abs(exponent) > 2 * _BITS:
            raise CalculatorError("too large a power")
        return bounded(base ** int(exponent))
    if base < 0:
        raise CalculatorError("root of a negative number")
    try:
        value = Fraction(float(base) ** float(exponent))
    except (OverflowError, ZeroDivisionError) as error:
        raise CalculatorError("too large a power") from error
    if base and not value:
        raise CalculatorError("too small a power")
    return bounded(value)


def bounded(value: Fraction) -> Fraction:
    """The number; CalculatorError if it exceeds 10**30 or its numerator or denominator is too long."""
    if abs(value) > _LARGEST or max(value.numerator.bit_length(), value.denominator.bit_length()) > _BITS:
        raise CalculatorError("too large or too long a number")
    return value


def _moved(start: date, count: int, unit: str) -> date:
    try:
        if unit in _IN_DAYS:
            return start + timedelta(days=count * _IN_DAYS[unit])
        year, month = divmod(start.year * 12 + start.month - 1 + count * _IN_MONTHS[unit], 12)
        if not MINYEAR <= year <= MAXYEAR:
            raise CalculatorError("a date outside the years 1 to 9999")
        return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))
    except OverflowError as error:
        raise CalculatorError("a date outside the years 1 to 9999") from error


def elapsed(start: date, end: date, unit: str) -> int:
    """Whole units from a date to a later date. An age is in years; a birthday on February 29 counts from March 1."""
    if end < start:
        raise CalculatorError("the date after 'to' is before the one after 'from'")
    if unit in _IN_DAYS:
        return (end - start).days // _IN_DAYS[unit]
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    return months // _IN_MONTHS.get(unit, 12)
