"""Computes the arithmetic that a language model asks for, exactly and without evaluating code.

An expression has whole and decimal numbers ("1,250.5"), + - * / and brackets. Its value is a
fraction, so that nothing is rounded.
"""

import re
from fractions import Fraction

from ifqa.formatting import pluralize

LONGEST = 200  # characters of an expression
_MOST_DIGITS = 30  # of a number that is written
_MOST_RESULT_DIGITS = 60  # of a numerator or a denominator; products stay small
_DEEPEST = 20  # brackets and signs within one another
_MOST_DECIMALS = 12  # of a result that is written as a decimal
_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-"})
_NUMBER = re.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+", re.ASCII)
_TOKEN = re.compile(rf"{_NUMBER.pattern}|\S", re.ASCII)


class CannotCompute(ValueError):
    """An expression has no value; the message says why in one line."""


def compute(expression: str) -> Fraction:
    """The exact value of an expression.

    Raises:
        CannotCompute: it is no arithmetic, divides by zero, or is too long.
    """
    if len(expression) > LONGEST:
        raise CannotCompute(f"the expression has more than {LONGEST} characters")
    parser = _Parser(expression.translate(_SIGNS))
    value = parser.sum(0)
    if parser.symbol:
        raise CannotCompute(f"wanted + - * / or the end, found {parser.symbol!r}")
    return value


def format_value(value: Fraction) -> str:
    """A value as a whole number, as an exact decimal, or as a fraction with a decimal near it."""
    if value.denominator == 1:
        return str(value.numerator)
    for decimals in range(1, _MOST_DECIMALS + 1):
        scaled = value * 10**decimals
        if scaled.denominator == 1:
            digits = f"{abs(scaled.numerator):0{decimals + 1}}"
            sign = "-" if value < 0 else ""
            return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"
    return f"{value.numerator}/{value.denominator}, about {float(value):.6g}"


class _Parser:
    """Reads an expression from the left.

    `symbol` is the next number, sign or bracket, and empty at the end; `depth` counts the brackets
    and signs around a part.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._tokens.reverse()

    @property
    def symbol(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def sum(self, depth: int) -> Fraction:
        value = self._product(depth)
        while self.symbol in ("+", "-"):
            sign = self._tokens.pop()
            term = self._product(depth)
            value = _limited(value + term if sign == "+" else value - term)
        return value

    def _product(self, depth: int) -> Fraction:
        value = self._factor(depth)
        while self.symbol in ("*", "/"):
            sign = self._tokens.pop()
            factor = self._factor(depth)
            if sign == "/" and not factor:
                raise CannotCompute("division by zero")
            value = _limited(value * factor if sign == "*" else value / factor)
        return value

    def _factor(self, depth: int) -> Fraction:
        if depth > _DEEPEST:
            raise CannotCompute(f"more than {_DEEPEST} brackets or signs within one another")
        if not self._tokens:
            raise CannotCompute("wanted a number, found the end")
        symbol = self._tokens.pop()
        if symbol in ("+", "-"):
            value = self._factor(depth + 1)
            return -value if symbol == "-" else value
        if symbol == "(":
            value = self.sum(depth + 1)
            if self.symbol != ")":
                found = repr(self.symbol) if self.symbol else "the end"
                raise CannotCompute(f"wanted ')', found {found}")
            self._tokens.pop()
            return value
        return _number(symbol)


def _number(symbol: str) -> Fraction:
    if not _NUMBER.fullmatch(symbol):
        raise CannotCompute(f"wanted a number, found {symbol!r}; it may have + - * / and brackets")
    digits = sum(character.isdigit() for character in symbol)
    if digits > _MOST_DIGITS:
        raise CannotCompute(f"a number of {pluralize(digits, 'digit')}; at most {_MOST_DIGITS}")
    return Fraction(symbol.replace(",", ""))


def _limited(value: Fraction) -> Fraction:
    """The value; CannotCompute if it has too many digits."""
    if max(abs(value.numerator), value.denominator) >= 10**_MOST_RESULT_DIGITS:
        raise CannotCompute(f"the value has more than {_MOST_RESULT_DIGITS} digits")
    return value
