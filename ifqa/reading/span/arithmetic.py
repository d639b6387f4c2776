"""Answers computed from a number of a passage and a number of the question, or from two numbers or a list of a passage.

No passage answers "If Messi had scored two fewer goals, how many ...?": the passage says 9, the question says two.
"""

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache

from ifqa.reading.span.numbers import (
    MONTH_NAMES,
    ONE,
    ORDINALS,
    SCALES,
    UNITS,
    Number,
    counted,
    currency_of,
    ratio,
    unit_of,
)

#: Two results of one step, the first by adding (or multiplying), the second by subtracting; None for one without sense.
Results = list[str | None]

_DECIMALS = 3  # of a step that is converted into another unit
_DAYS = {"day": 1, "week": 7, "fortnight": 14}
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, **{unit: days * 86_400 for unit, days in _DAYS.items()}}
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200}
#: Words that give the direction of a step. They decide if the question has words of only one kind, is not negated ("hadn't
#: been delayed" goes the other way), and does not ask for the difference itself.
_LESS = re.compile(r"\b(?:earlier|prior|sooner|fewer|less|ahead|shorter)\b", re.IGNORECASE)
_MORE = re.compile(
    r"\b(?:later|more|additional|extra|another|further|longer|older|postponed|delayed|extended)\b", re.IGNORECASE
)
#: Further ones, of amounts: a place in an order is lower where its number is higher.
_LOWER = re.compile(r"\b(?:lower|smaller|cheaper|lighter|reduced|decreased)\b", re.IGNORECASE)
_HIGHER = re.compile(r"\b(?:higher|larger|bigger|greater|taller|heavier|increased|raised)\b", re.IGNORECASE)
#: Of spans of time, and of ages.
_FASTER = re.compile(r"\b(?:faster|quicker)\b", re.IGNORECASE)
_SLOWER = re.compile(r"\bslower\b", re.IGNORECASE)
_YOUNGER = re.compile(r"\byounger\b", re.IGNORECASE)
_SCORES = frozenset("point goal run vote".split())  # no place in an order is some of these further
_NEGATED = re.compile(r"\b(?:not|never|without)\b|n't\b", re.IGNORECASE)
_COMPARED = "more|fewer|less|additional|earlier|later|longer|shorter|older|younger|ahead"
_DIFFERENCE = re.compile(rf"\bhow (?:many|much) (?:\w+ )?(?:{_COMPARED})\b", re.IGNORECASE)
_SUM = re.compile(r"\b(?:combined|altogether|together|in all|how many total)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"\bhow (?:many|much)\b|\b(?:number of|total|count|overall|episode number)\b", re.IGNORECASE)
_COUNT = re.compile(r"\bhow many\b|\bnumber of\b", re.IGNORECASE)
_IN_UNIT = re.compile(r"\b(?:how many|in) (\w+)", re.IGNORECASE)
_MONTH = re.compile(r"\b(?:which|what) month\b(?! and year)", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:which|what) (?:calendar )?year\b", re.IGNORECASE)
_AGE = re.compile(r"\b(?:which|what) (decade|century)", re.IGNORECASE)
_LENGTH = r"how long|duration|how much (?:earlier|later|sooner|longer)"
_PERIOD = re.compile(
    rf"\bhow many (?:(?:\w+ )?(day|week|month|year)s\b)|\b({_LENGTH})\b|\bhow old\b|\bwhat age\b", re.IGNORECASE
)


@lru_cache(maxsize=256)
def _seen(pattern: re.Pattern[str], question: str) -> re.Match[str] | None:
    """`pattern.search(question)`, which is asked for every number of every passage of a question."""
    return pattern.search(question)


def compute(passage: Number, question: Number, question_text: str) -> Results:
    """Answers computed from two numbers: [sum, difference], or [product, None] if the question's number is a factor.

    A step that makes no sense is None: a date plus two goals, or the sum if the question says "earlier". Two years, months
    or dates have the time between them as difference, if the question asks for it.
    """
    if not _is_asked(passage, question_text):
        return [None, None]
    period = _seen(_PERIOD, question_text)
    if period and (between := _between(passage, question, period[1] or "")):
        return [None, _written(between, question_text)]
    if question.unit.startswith(("date", "month of")):
        return [None, None]
    answers = _results(passage, question, question_text)
    if _is_year(question):
        return [None, answers[1] if _is_year(passage) and _seen(_AMOUNT, question_text) else None]
    if question.factor or _seen(_DIFFERENCE, question_text) or _seen(_NEGATED, question_text):
        return answers
    less, more = _seen(_LESS, question_text), _seen(_MORE, question_text)
    if passage.unit not in ("ordinal", "nth"):
        less, more = less or _seen(_LOWER, question_text), more or _seen(_HIGHER, question_text)
    if passage.unit in _SECONDS:
        less, more = less or _seen(_FASTER, question_text), more or _seen(_SLOWER, question_text)
    if passage.counts == "age":
        less = less or _seen(_YOUNGER, question_text)
    return [None if less and not more else answers[0], None if more and not less else answers[1]]


_MAIN = re.compile(
    r"(?:^|,)\s*(?:then\s+)?(?:(?:in|on|at|by|for|to|from|of|with|during|until)\s+)?"
    r"(?:(who|whom|whose|where|why)\b|(when\b|(?:what|which) (?:calendar )?(?:year|date|day|decade|century|month)\b)"
    r"|(how old|(?:what|which) age)\b|how (far|high|tall|deep|wide)\b|(how many)\b)",
    re.IGNORECASE,
)


def _is_asked(passage: Number, question_text: str) -> bool:
    """Whether a number is of the kind that the question asks for; true where the question does not tell."""
    question_word = _seen(_MAIN, question_text)
    if question_word is None:
        return True
    is_time = passage.unit in ("calendar year", "century") or passage.unit.startswith(("date", "month of"))
    is_period = passage.unit in _SECONDS or passage.unit in _MONTHS
    if question_word[1]:
        return passage.unit in ("ordinal", "nth")  # "where?": fifth
    if question_word[2]:
        return is_time
    if question_word[3]:
        return is_period or is_time or passage.counts in ("", "age")
    if question_word[4]:
        return not is_time and not is_period and UNITS.get(passage.counts, ("length",))[0] == "length"
    wanted = counted(question_text, question_word.end(), question_word.end())
    if is_period or is_time:
        return wanted in ("", "second", "minute", "hour", "day", "week", "month", "year", "decade")
    return ratio(passage.counts, wanted) is not None or passage.unit in ("ordinal", "nth")


def compute_two(first: Number, second: Number, questions: Sequence[Number], question_text: str) -> list[Results]:
    """Answers computed from two numbers of a passage, with each number of the question, the implicit one first.

    For the implicit one [sum, difference]; for the others [difference + number, difference - number].
    """
    difference, total = combined(first, second, question_text)
    steps: list[Results] = [[_written(number, question_text) if number else None for number in (total, difference)]]
    for other in questions[1:]:
        fits = difference and difference.unit in _MONTHS and other.unit in _MONTHS
        steps.append(_results(difference, other, question_text) if difference and fits else [None, None])
    return steps


def compute_list(items: Number, questions: Sequence[Number], question_text: str) -> list[Results]:
    """Answers computed from the number of a list's items: [items, items - 1]; with each other number [sum, difference]."""
    if not _seen(_COUNT, question_text) or _seen(_PERIOD, question_text):
        return [[None, None] for _ in questions]
    steps: list[Results] = [[_written(items, question_text), str(int(items.value) - 1)]]
    for other in questions[1:]:
        fits = not other.factor and not other.unit and other.value < 10
        steps.append(_results(items, other, question_text) if fits else [None, None])
    return steps


def combined(first: Number, second: Number, question_text: str) -> tuple[Number | None, Number | None]:
    """What two numbers of a passage make: (difference, sum), each None unless the question asks for it."""
    period = _seen(_PERIOD, question_text)
    if period:
        return _between(first, second, period[1] or ""), None
    if first.unit != second.unit or not _is_amount(first) or not _is_amount(second):
        return None, None
    if ratio(first.counts, second.counts) != 1 or not _is_asked(first, question_text):
        return None, None
    difference = replace(first, end=second.end, value=abs(first.value - second.value))
    total = replace(first, end=second.end, value=first.value + second.value)
    return difference if _seen(_DIFFERENCE, question_text) else None, total if _seen(_SUM, question_text) else None


def _is_year(number: Number) -> bool:
    return number.unit == "calendar year"


def _is_amount(number: Number) -> bool:
    return number.unit in ("", "%") or number.unit in SCALES


def _between(first: Number, second: Number, period: str) -> Number | None:
    """The time between two years, months or dates, in the period asked for; else in years."""
    early, late = sorted((first.value, second.value))
    period = period.lower()
    if _is_year(first) and _is_year(second):
        return Number(first.start, second.end, late - early, unit="year") if period in ("", "year") else None
    if first.unit != second.unit or not first.unit.startswith(("date", "month of")):
        return None
    if first.unit.startswith("month"):
        months = int(late - early)
    elif period in ("day", "week"):
        value = (late - early) / _DAYS[period]
        return Number(first.start, second.end, value, unit=period) if value == int(value) else None
    else:
        start, end = date.fromordinal(int(early)), date.fromordinal(int(late))
        months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    if period == "month":
        return Number(first.start, second.end, months, unit=period)
    years = Number(first.start, second.end, months // 12, unit="year")
    return years if period in ("", "year") and months >= 12 else None


def _results(passage: Number, question: Number, question_text: str) -> Results:
    unit = passage.unit.rstrip("?")
    if unit in ("date", "month of year"):
        if question.factor:
            return [None, None]
        shifted = _shifted_date if unit == "date" else _shifted_month
        return [shifted(passage, sign * question.value, question.unit, question_text) for sign in (1, -1)]
    if question.factor:
        fits = _multiplies(passage, question)
        return [_written(passage, question_text, passage.value * question.value) if fits else None, None]
    both = _in_one_unit(passage, question)
    if both is None:
        return [None, None]
    base, step = both
    return [_written(base, question_text, base.value + sign * step) for sign in (1, -1)]


def _multiplies(passage: Number, factor: Number) -> bool:
    """Whether a factor such as "twice" or "half as many goals" multiplies a number: no date and no place in an order."""
    if passage.unit in ("calendar year", "century", "ordinal", "nth") or passage.counts == "label":
        return False
    is_period = passage.unit in _SECONDS or passage.unit in _MONTHS
    if factor.counts == "extent":
        return is_period or not passage.counts or UNITS.get(passage.counts, ("",))[0] == "length"
    if factor.counts == "age":
        return is_period or passage.counts in ("", "age")
    return ratio(passage.counts, factor.counts) is not None and not (is_period and factor.counts)


def _in_one_unit(passage: Number, question: Number) -> tuple[Number, float] | None:
    """The passage's number and the question's, in one unit; None if they are not of one kind."""
    unit, value = passage.unit, question.value
    if question.unit in _SECONDS or question.unit in _MONTHS:
        if unit in ("calendar year", "century") or passage.counts == "age":
            return (passage, value * _MONTHS[question.unit] / 12) if _MONTHS.get(question.unit, 0) >= 12 else None
        sizes = next((sizes for sizes in (_SECONDS, _MONTHS) if unit in sizes and question.unit in sizes), None)
        if sizes is None:
            return None
        smaller = min(unit, question.unit, key=sizes.__getitem__)
        smaller = unit if value * sizes[question.unit] % sizes[unit] == 0 else smaller
        base = replace(passage, value=passage.value * sizes[unit] / sizes[smaller], unit=smaller)
        return base, value * sizes[question.unit] / sizes[smaller]
    if question.unit == "%" and unit != "%":
        exact = unit in ("calendar year", "century", "ordinal", "nth") or passage.counts == "label"
        return None if exact else (passage, passage.value * value / 100)
    if passage.counts == "label" or (question.unit in ("ordinal", "nth") and unit not in ("ordinal", "nth")):
        return None
    if question == ONE and passage.before + passage.behind:  # an amount is not one more without a word of it
        return None
    if passage.of and question.of and passage.of != question.of:
        return None
    if unit in ("ordinal", "nth"):
        return None if question.counts in _SCORES or question.counts in UNITS else (passage, value)
    if question == ONE:
        return passage, value
    if unit in ("calendar year", "century", "%") or unit in _SECONDS or unit in _MONTHS:
        return None if question.counts else (passage, value)
    times = ratio(passage.counts, question.counts)
    if times is None:
        return None
    if question.unit in SCALES or (unit in SCALES and value >= 1000):
        value *= SCALES.get(question.unit, 1) / SCALES.get(unit, 1)
    exact = times == 1 or round(value * times, _DECIMALS) == value * times  # 500 m are no round number of miles
    return (passage, value * times) if exact else None


def _shifted_date(when: Number, step: float, unit: str, question: str) -> str | None:
    start = date.fromordinal(int(when.value))
    try:
        if unit in _DAYS:
            moved = start + timedelta(days=step * _DAYS[unit])
        elif unit in _MONTHS:
            year, month = divmod(start.year * 12 + start.month - 1 + int(step * _MONTHS[unit]), 12)
            moved = start.replace(year=year, month=month + 1, day=min(start.day, monthrange(year, month + 1)[1]))
        else:
            return None
    except (ValueError, OverflowError):  # before the year 1
        return None
    if _seen(_MONTH, question):
        return MONTH_NAMES[moved.month - 1]
    if when.unit == "date" and _seen(_YEAR, question):
        return str(moved.year)
    name = MONTH_NAMES[moved.month - 1]
    if when.day_first:
        return f"{moved.day} {name}" + (f" {moved.year}" if when.unit == "date" else "")
    return f"{name} {moved.day}" + (f", {moved.year}" if when.unit == "date" else "")


def _shifted_month(when: Number, step: float, unit: str, question: str) -> str | None:
    if unit not in _MONTHS:
        return None
    year, month = divmod(int(when.value + step * _MONTHS[unit]), 12)
    if not when.unit.endswith("?") and _seen(_YEAR, question):
        return str(year)
    bare = when.unit.endswith("?") or _seen(_MONTH, question)
    return MONTH_NAMES[month] if bare else f"{MONTH_NAMES[month]} {year}"


def _written(number: Number, question: str, value: float | None = None) -> str | None:
    """A value, by default the number's own, in the number's unit and in the style of IfQA's answers.

    It is a decade or century if the question asks for that.
    """
    unit, value = number.unit, round(number.value if value is None else value, 6)
    if value < 0 and not _seen(_DIFFERENCE, question):  # fewer than none
        return None
    value = abs(value)
    age = _seen(_AGE, question)
    if age and 1000 <= value < 2100:
        return f"{int(value) // 10 * 10}s" if age[1].lower() == "decade" else _nth((int(value) - 1) // 100 + 1)
    if unit == "century":
        return None
    if unit in ("ordinal", "nth") and not _seen(_AMOUNT, question):
        if value != int(value) or value < 1:
            return None
        return ORDINALS.get(int(value), _nth(int(value))) if unit == "ordinal" else _nth(int(value))
    tail = ""
    if unit in SCALES:
        whole = round(value * SCALES[unit], 6)
        unit = next((name for name, size in reversed(SCALES.items()) if whole >= size), "")
        scaled = whole / SCALES.get(unit, 1)
        value, tail = (scaled, unit) if unit != "thousand" and round(scaled, 3) == scaled else (whole, "")
    elif (unit in _SECONDS or unit in _MONTHS) and _shows_period(question):
        tail = unit + "s" * (value != 1)
    if value == int(value):
        text = f"{int(value):,}" if value >= 10000 else str(int(value))
    else:
        text = f"{value:g}" if value < 1e5 else str(value)
    behind = "" if number.behind and _asks_for_unit(question, number.counts) else number.behind
    before = "" if number.before and _asks_for_unit(question, number.counts) else number.before
    return f"{before}{f'{text} {tail}'.strip()}{behind}"


def _shows_period(question: str) -> bool:
    """Whether an answer names its unit of time: "how long" does not say which."""
    period = _seen(_PERIOD, question)
    return bool(period and period[2])


def _asks_for_unit(question: str, unit: str) -> bool:
    """Whether the question names the unit of its answer: "how many miles", "in euros"."""
    return any((unit_of(word) or currency_of(word)) == unit for word in _IN_UNIT.findall(question))


def _nth(value: int) -> str:
    tail = {1: "st", 2: "nd", 3: "rd"}.get(value % 10 if value % 100 not in (11, 12, 13) else 0, "th")
    return f"{value}{tail}"
