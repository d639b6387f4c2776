"""Answers computed from a number of a passage and a number of the question, or from two numbers or a list of a passage.

No passage answers "If Messi had scored two fewer goals, how many ...?": the passage says 9, the question says two.
"""

import re
from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta
from functools import lru_cache

from ifqa.reading.span.numbers import MONTH_NAMES, ORDINALS, SCALES, Number

#: Two results of one step, the first by adding (or multiplying), the second by subtracting; None for one without sense.
Results = list[str | None]

_DAYS = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200}
_YEARS = {"decade": 10, "century": 100}
#: Words that give the direction of a step. They decide if the question has words of only one kind, is not negated ("hadn't
#: been delayed" goes the other way), and does not ask for the difference itself.
_LESS = re.compile(r"\b(?:earlier|prior|sooner|fewer|less|ahead|shorter)\b", re.IGNORECASE)
_MORE = re.compile(
    r"\b(?:later|more|additional|extra|another|further|longer|older|postponed|delayed|extended)\b", re.IGNORECASE
)
_NEGATED = re.compile(r"\b(?:not|never|without)\b|n't\b", re.IGNORECASE)
_COMPARED = "more|fewer|less|additional|earlier|later|longer|shorter|older|younger|ahead"
_DIFFERENCE = re.compile(rf"\bhow (?:many|much) (?:\w+ )?(?:{_COMPARED})\b", re.IGNORECASE)
_SUM = re.compile(r"\b(?:combined|altogether|together|in all|how many total)\b", re.IGNORECASE)
_AMOUNT = re.compile(r"\bhow (?:many|much)\b|\b(?:number of|total|count|overall|episode number)\b", re.IGNORECASE)
_COUNT = re.compile(r"\bhow many\b|\bnumber of\b", re.IGNORECASE)
_MONTH = re.compile(r"\b(?:which|what) month\b(?! and year)", re.IGNORECASE)
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
    return [None if less and not more else answers[0], None if more and not less else answers[1]]


def compute_two(first: Number, second: Number, questions: Sequence[Number], question_text: str) -> list[Results]:
    """Answers computed from two numbers of a passage, with each number of the question.

    Args:
        questions: the question's numbers, the implicit one first.

    Returns:
        For the implicit one [sum, difference]; for the others [difference + number, difference - number].
    """
    difference, total = combined(first, second, question_text)
    steps: list[Results] = [[_written(one, question_text) if one else None for one in (total, difference)]]
    for other in questions[1:]:
        fits = difference and difference.unit in _MONTHS and other.unit in _MONTHS
        steps.append(_results(difference, other, question_text) if difference and fits else [None, None])
    return steps


def compute_list(items: Number, questions: Sequence[Number], question_text: str) -> list[Results]:
    """Answers computed from the number of a list's items, with each number of the question.

    Returns:
        For the implicit one [items, items - 1]; for the others [items + number, items - number].
    """
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
    difference = Number(first.start, second.end, abs(first.value - second.value), unit=first.unit)
    total = Number(first.start, second.end, first.value + second.value, unit=first.unit)
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
        return [_written(passage, question_text, passage.value * question.value), None]
    if question.unit == "%" and unit != "%":
        step = passage.value * question.value / 100
    elif question.unit in SCALES or (unit in SCALES and question.value >= 1000):
        step = question.value * SCALES.get(question.unit, 1) / SCALES.get(unit, 1)
    else:
        step = question.value * _YEARS.get(question.unit, 1)
    return [_written(passage, question_text, passage.value + sign * step) for sign in (1, -1)]


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
    return f"{MONTH_NAMES[moved.month - 1]} {moved.day}" + (f", {moved.year}" if when.unit == "date" else "")


def _shifted_month(when: Number, step: float, unit: str, question: str) -> str | None:
    if unit not in _MONTHS:
        return None
    year, month = divmod(int(when.value + step * _MONTHS[unit]), 12)
    bare = when.unit.endswith("?") or _seen(_MONTH, question)
    return MONTH_NAMES[month] if bare else f"{MONTH_NAMES[month]} {year}"


def _written(number: Number, question: str, value: float | None = None) -> str | None:
    """A value, by default the number's own, in the number's unit and in the style of IfQA's answers.

    It is a decade or century if the question asks for that.
    """
    unit, value = number.unit, round(abs(number.value if value is None else value), 6)
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
    elif unit in (*_DAYS, *_MONTHS) and (asked := _seen(_PERIOD, question)) and asked[2]:
        tail = unit + "s" * (value != 1)
    if value == int(value):
        text = f"{int(value):,}" if value >= 10000 else str(int(value))
    else:
        text = f"{value:g}" if value < 1e5 else str(value)
    return f"{text} {tail}".strip()


def _nth(value: int) -> str:
    tail = {1: "st", 2: "nd", 3: "rd"}.get(value % 10 if value % 100 not in (11, 12, 13) else 0, "th")
    return f"{value}{tail}"
