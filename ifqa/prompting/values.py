"""The calculator's values: exact fractions, dates and lengths of time, all bounded in size.

A model writes the expressions, so an expression without a value raises CalculatorError. A power that would take long or
fill the memory is not computed.
"""

from calendar import monthrange
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date, timedelta
from fractions import Fraction

_LARGEST = 10**30
_BITS = 4096  # of a fraction's numerator and denominator, each
_EXPONENT = 1000
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}


class CalculatorError(ValueError):
    """Why an expression cannot be computed, in one line. The model made the mistake, so no run stops for it."""


@dataclass(frozen=True, slots=True)
class Span:
    """A length of time in days, weeks, months or years."""

    count: int
    unit: str


Value = Fraction | date | Span


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
        if unit in _DAYS:
            return start + timedelta(days=count * _DAYS[unit])
        year, month = divmod(start.year * 12 + start.month - 1 + count * _MONTHS[unit], 12)
        if not MINYEAR <= year <= MAXYEAR:
            raise CalculatorError("a date outside the years 1 to 9999")
        return date(year, month + 1, min(start.day, monthrange(year, month + 1)[1]))
    except OverflowError as error:
        raise CalculatorError("a date outside the years 1 to 9999") from error


def elapsed(start: date, end: date, unit: str) -> int:
    """Whole units from a date to a later date. An age is in years; a birthday on February 29 counts from March 1."""
    if end < start:
        raise CalculatorError("the date after 'to' is before the one after 'from'")
    if unit in _DAYS:
        return (end - start).days // _DAYS[unit]
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    return months // _MONTHS.get(unit, 12)
