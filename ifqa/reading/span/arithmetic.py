"""Computes answers from a number in a passage and a number in the question, or from two numbers or
a list in a passage.

No passage answers "If Messi had scored two fewer goals, how many ...?": the passage says 9, the
question says two.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import lru_cache

from ifqa.reading.span.numbers import (
    IMPLICIT_ONE,
    MONTH_NAMES,
    NUMBER_WORDS,
    ORDINALS,
    SCALES,
    SECONDS,
    UNITS,
    Number,
    counted_kind,
    is_measure,
    unit_of,
    unit_ratio,
)

# [sum or product, difference] as text; None where the operation makes no sense
StepResults = list[str | None]

_WHOLE = 100  # percent
_MANY = 100  # "not said" is one of fewer than these
_DECIMALS = 3  # most decimals of a step after conversion into another unit
_DAYS = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS = {"month": 1, "year": 12, "decade": 120, "century": 1200}
_TIME_UNITS = {*SECONDS, *_MONTHS}
_DATES = {"date", "date?", "month of year", "month of year?"}
_MOMENTS = {*_DATES, "calendar year", "century"}
_PLACES = {"ordinal", "nth"}  # in an order: "third", "3rd"
_SCORES = frozenset("point goal run vote".split())  # steps of these do not move a place in an order


def _words(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{alternatives})\b", re.IGNORECASE)


#: Outside quotation marks: the song "Never Say Die" negates nothing.
_NEGATED = re.compile(
    r"(?:\b(?:not|never|without)\b|n't\b)(?=[^\"]*+(?:\"[^\"]*+\"[^\"]*+)*+$)", re.IGNORECASE
)
_DIFFERENCE = _words(
    r"how (?:many|much) (?:\w+ )?(?:more|fewer|less|additional|earlier|later|longer|shorter"
    r"|older|younger|ahead)"
)
_SUM = _words("combined|altogether|together|in all|how many total")
_AMOUNT = _words("how (?:many|much)|number of|total|count|overall|episode number")
_COUNT = _words("how many|number of")
_IN_UNIT = re.compile(r"\b(?:how many|in) (\w+)", re.IGNORECASE)
_MONTH = re.compile(r"\b(?:which|what) month\b(?! and year)", re.IGNORECASE)
_YEAR = _words("(?:which|what) (?:calendar )?year")
_AGE = re.compile(r"\b(?:which|what) (decade|century)", re.IGNORECASE)
_PERIOD = re.compile(
    r"\bhow many (?:(?:\w+ )?(day|week|month|year)s\b)"
    r"|\b(how long|duration|how much (?:earlier|later|sooner|longer))\b|\bhow old\b|\bwhat age\b",
    re.IGNORECASE,
)
_MAIN = re.compile(
    r"(?:^|,)\s*(?:then\s+)?(?:(?:in|on|at|by|for|to|from|of|with|during|until)\s+)?"
    r"(?:(?P<no_number>who|whom|whose|where|why)\b"
    r"|(?P<moment>when\b|(?:what|which) (?:calendar )?(?:year|date|day|decade|century|month)\b)"
    r"|(?P<age>how old|(?:what|which) age)\b|how (?P<length>far|high|tall|deep|wide)\b"
    r"|(?P<count>how many)\b)",
    re.IGNORECASE,
)
#: What else a question without a word of `_MAIN` asks for: "what would have been its new price?".
_KIND = re.compile(
    r"\b(?:what|which) (?:would|will) (?:have been |be )?(?:the|its|his|her|their)"
    r"(?: (?!(?:that|this|each|per|of|in)\b)[\w-]+){0,3} (?:(?P<moment>year|date|decade|month)"
    r"|(?P<money>price|cost|budget|revenue|salary|fee|fine)"
    r"|(?P<measure>amount|size|length|height|distance|area|weight|age|population|duration"
    r"|score|capacity|speed|temperature))\b(?! (?:length|count|range))",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"(?:^|,)\s*(?:then\s+)?(?:would|could|should|might|will|can|did|does|do|is|are|was)\b",
    re.IGNORECASE,
)
_WH = _words("who|whom|whose|what|which|when|where|why|how")
_SUPPOSITION = re.compile(
    r"\b(?:if|suppos(?:e|ing)|assum(?:e|ing)|imagine|unless|without)\b|^\W*(?:had|were|should)\b",
    re.IGNORECASE,
)
_WEEKDAY = _words("day of the week|weekday")
#: "three medals fewer", "a third of the pupils": the step of such a question is not the implicit
#: one.
_EXPLICIT_STEP = re.compile(
    rf"\b(?:\d[\d,.]*|(?:{'|'.join(NUMBER_WORDS)})(?:-\w+)?)(?:%| per ?cent)?"
    r"(?: (?!(?:and|or|if|of|in|on|at|by|to|for|with|the|had|was|were|would)\b)[\w'-]+){0,3}"
    r" (?:more|fewer|less|additional|extra|later|earlier|sooner|longer|shorter|higher|lower"
    r"|further|older|younger|larger|smaller|taller|heavier|lighter|faster|slower|ahead)\b"
    r"|\b(?:a|one|two) (?:half|third|quarter|fifth|tenth)s? of\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=256)
def _seen(pattern: re.Pattern[str], question: str) -> re.Match[str] | None:
    """`pattern.search(question)`, cached: it is needed for every number in every passage."""
    return pattern.search(question)


#: Words for a step down, words for a step up, and the numbers they apply to (a higher number is a
#: lower place in an order). They decide the step's direction if the question has words of one kind
#: only, no negation ("hadn't been delayed" reverses them), and does not ask for the difference
#: itself.
_DIRECTIONS: list[tuple[re.Pattern[str], re.Pattern[str], Callable[[Number], bool]]] = [
    (
        _words("earlier|prior|sooner|fewer|less|ahead|shorter"),
        _words(
            "later|more|additional|extra|another|further|longer|older|postponed|delayed|extended"
        ),
        lambda number: True,
    ),
    (
        _words("lower|smaller|cheaper|lighter|reduced|decreased"),
        _words("higher|larger|bigger|greater|taller|heavier|increased|raised"),
        lambda number: number.unit not in _PLACES,
    ),
    (_words("faster|quicker"), _words("slower"), lambda number: number.unit in SECONDS),
    (_words("younger"), _words("older"), lambda number: number.counts == "age"),
]


def compute_answers(passage: Number, question: Number, question_text: str) -> StepResults:
    """Answers computed from two numbers: [sum, difference], or [product, None] if the question's
    number is a factor.

    None where the step makes no sense: a date plus two goals, or the sum if the question says
    "earlier". The difference of two years, months or dates is the time between them, if the
    question asks for it. A moment plus a step answers no question for an amount.
    """
    if not _fits_question_word(passage, question_text) or (
        question == IMPLICIT_ONE and _seen(_EXPLICIT_STEP, question_text)
    ):
        return [None, None]
    period = _seen(_PERIOD, question_text)
    if period and (between := _between(passage, question, period)):
        return [None, _written(between, question_text)]
    if question.unit in _DATES:
        return [None, None]
    answers = _results(passage, question, question_text)
    if question.unit == "calendar year":
        return [
            None,
            answers[1]
            if passage.unit == "calendar year" and _seen(_AMOUNT, question_text)
            else None,
        ]
    if passage.unit in _MOMENTS and _asks_amount(question_text):
        return [None, None]
    return _directed(answers, passage, question, question_text)


def has_supposition(question_text: str) -> bool:
    """Whether a question supposes something, so that a number may be more or less than the passage
    says.
    """
    return _seen(_SUPPOSITION, question_text) is not None


def _is_choice(question_text: str) -> bool:
    """Whether a question asks for yes or no, or for one of two: "would it be larger or
    smaller?".
    """
    return bool(_seen(_CHOICE, question_text)) and not _seen(_WH, question_text)


def _asks_amount(question_text: str) -> bool:
    if question_word := _seen(_MAIN, question_text):
        return bool(question_word["count"] or question_word["age"])
    kind = _seen(_KIND, question_text)
    return bool(kind and not kind["moment"])


def _directed(
    answers: StepResults, passage: Number, question: Number, question_text: str
) -> StepResults:
    """The answers without those against the direction that the question gives."""
    if not question.factor and question != IMPLICIT_ONE and _seen(_DIFFERENCE, question_text):
        return [None, answers[1]]
    if question.factor or _seen(_DIFFERENCE, question_text) or _seen(_NEGATED, question_text):
        return answers
    directions = [(down, up) for down, up, fits in _DIRECTIONS if fits(passage)]
    less, more = (
        any(_seen(words, question_text) for words in side) for side in zip(*directions, strict=True)
    )
    return [None if less and not more else answers[0], None if more and not less else answers[1]]


def _fits_question_word(passage: Number, question_text: str) -> bool:
    """Whether a number is of the kind that the question asks for.

    True if the question does not tell.
    """
    if _is_choice(question_text) or _seen(_WEEKDAY, question_text):
        return False
    question_word = _seen(_MAIN, question_text)
    is_moment = passage.unit in _MOMENTS
    is_period = passage.unit in _TIME_UNITS
    if question_word is None:
        kind = _seen(_KIND, question_text)
        if kind is None or kind["measure"]:
            return kind is None or passage.unit not in _PLACES
        is_money = passage.unit in ("", *SCALES) and (
            not passage.counts or (is_measure(passage.counts) and passage.counts not in UNITS)
        )
        return is_moment if kind["moment"] else is_money
    if question_word["no_number"]:
        # "where?": fifth
        return question_word["no_number"].lower() == "where" and passage.unit in _PLACES
    if question_word["moment"]:
        return is_moment
    if question_word["age"]:
        return is_period or is_moment or passage.counts in ("", "age")
    if question_word["length"]:
        return (
            not is_moment
            and not is_period
            and UNITS.get(passage.counts, ("length",))[0] == "length"
        )
    wanted = counted_kind(question_text, question_word.end(), question_word.end())
    if is_period or is_moment:
        return wanted in ("", "second", "minute", "hour", "day", "week", "month", "year", "decade")
    return unit_ratio(passage.counts, wanted) is not None or passage.unit in _PLACES


def compute_two(
    first: Number, second: Number, questions: Sequence[Number], question_text: str
) -> list[StepResults]:
    """Answers computed from two numbers in a passage and each number in the question, IMPLICIT_ONE
    first.

    For IMPLICIT_ONE [sum, difference]; for the others [difference + number, difference - number].
    """
    total, difference = _combined(first, second, question_text)
    steps: list[StepResults] = [
        [_written(number, question_text) if number else None for number in (total, difference)]
    ]
    for other in questions[1:]:
        fits = difference and difference.unit in _MONTHS and other.unit in _MONTHS
        steps.append(
            _results(difference, other, question_text) if difference and fits else [None, None]
        )
    return steps


def compute_list(
    items: Number, questions: Sequence[Number], question_text: str
) -> list[StepResults]:
    """Answers computed from a list: for IMPLICIT_ONE [items, items - 1].

    For each other number [sum, difference].
    """
    if (
        not _seen(_COUNT, question_text)
        or _seen(_PERIOD, question_text)
        or _is_choice(question_text)
    ):
        return [[None, None] for _ in questions]
    steps: list[StepResults] = [[_written(items, question_text), str(int(items.value) - 1)]]
    for other in questions[1:]:
        fits = not other.factor and not other.unit and other.value < 10
        answers: StepResults = _results(items, other, question_text) if fits else [None, None]
        steps.append(_directed(answers, items, other, question_text))
    return steps


def _combined(
    first: Number, second: Number, question_text: str
) -> tuple[Number | None, Number | None]:
    """(sum, difference) of two numbers in a passage, each None unless the question asks for it."""
    if period := _seen(_PERIOD, question_text):
        return None, _between(first, second, period)
    is_amount = first.unit in ("", "%") or first.unit in SCALES
    if first.unit != second.unit or not is_amount or unit_ratio(first.counts, second.counts) != 1:
        return None, None
    if not _fits_question_word(first, question_text):
        return None, None
    results = [
        replace(first, end=second.end, value=abs(first.value + sign * second.value))
        for sign in (1, -1)
    ]
    return results[0] if _seen(_SUM, question_text) else None, results[1] if _seen(
        _DIFFERENCE, question_text
    ) else None


def _between(first: Number, second: Number, asked_period: re.Match[str]) -> Number | None:
    """The time between two years, months or dates, in the period that the question names, else in
    years.
    """
    (early, late) = sorted((first.value, second.value))
    period = (asked_period[1] or "year").lower()
    if first.unit != second.unit or not (first.unit == "calendar year" or first.unit in _DATES):
        return None
    elapsed: float | None = None
    if first.unit == "calendar year":
        elapsed = late - early if period == "year" else None
    elif period in ("day", "week"):
        elapsed = (late - early) / _DAYS[period] if first.unit.startswith("date") else None
    else:
        months = int(late - early)
        if first.unit.startswith("date"):
            start = date.fromordinal(int(early))
            end = date.fromordinal(int(late))
            months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
        elapsed = months if period == "month" else months // 12 or None
    return (
        None
        if elapsed is None or elapsed % 1
        else Number(first.start, second.end, elapsed, unit=period)
    )


def _results(passage: Number, question: Number, question_text: str) -> StepResults:
    if passage.unit in _DATES:
        if question.factor:
            return [None, None]
        moved = _moved_date if passage.unit.startswith("date") else _moved_month
        return [
            moved(passage, sign * question.value, question.unit, question_text) for sign in (1, -1)
        ]
    if question.factor:
        fits = _multiplies(passage, question)
        return [
            _written(passage, question_text, passage.value * question.value) if fits else None,
            None,
        ]
    converted = in_one_unit(passage, question)
    if converted is None:
        return [None, None]
    base, step = converted
    amounts = [base.value + step, base.value - step]
    texts = [_written(base, question_text, amount) for amount in amounts]
    # A share of a whole never exceeds it; a rate above it, such as 150%, is none
    if base.unit == "%" and base.value <= _WHOLE < amounts[0]:
        texts[0] = None
    return texts


def _multiplies(passage: Number, factor: Number) -> bool:
    """Whether a factor such as "twice" or "half as many goals" multiplies a number.

    Never a date or a place in an order.
    """
    if passage.unit in _MOMENTS or passage.unit in _PLACES or passage.counts == "label":
        return False
    is_period = passage.unit in _TIME_UNITS
    if factor.counts == "extent":
        return is_period or not passage.counts or UNITS.get(passage.counts, ("",))[0] == "length"
    if factor.counts == "age":
        return is_period or passage.counts in ("", "age")
    return unit_ratio(passage.counts, factor.counts) is not None and not (
        is_period and factor.counts
    )


def _in_one_unit_of_time(passage: Number, question: Number) -> tuple[Number, float] | None:
    """`in_one_unit` for a step of time, such as "two years" or "40 minutes"."""
    step = question.value
    if passage.unit in _MOMENTS or passage.counts == "age":
        months = _MONTHS.get(question.unit, 0)
        return (passage, step * months / 12) if months >= 12 else None
    sizes = next(
        (sizes for sizes in (SECONDS, _MONTHS) if {passage.unit, question.unit} <= sizes.keys()),
        None,
    )
    if sizes is None:
        return None
    seconds = step * sizes[question.unit]  # or months
    unit = min(passage.unit, question.unit, key=sizes.__getitem__)
    if seconds % sizes[passage.unit] == 0:
        unit = passage.unit
    base = replace(passage, value=passage.value * sizes[passage.unit] / sizes[unit], unit=unit)
    return base, seconds / sizes[unit]


def in_one_unit(passage: Number, question: Number) -> tuple[Number, float] | None:
    """The passage's number and the question's step, in one unit.

    None if they are not of the same kind.
    """
    unit = passage.unit
    step = question.value
    is_label = passage.counts == "label"
    if question.unit in _TIME_UNITS:
        return _in_one_unit_of_time(passage, question)
    if question.unit == "%" and unit != "%":
        is_exact = passage.unit in _MOMENTS or passage.unit in _PLACES or is_label
        return None if is_exact else (passage, passage.value * step / 100)
    if is_label or (question.unit in _PLACES and passage.unit not in _PLACES):
        return None
    # "€5", "1.5", "40%" and "3 weeks" change only by an explicit step
    if question == IMPLICIT_ONE and (
        passage.before + passage.behind
        or (
            unit not in _PLACES
            and unit != "calendar year"
            and (unit not in ("", "list") or passage.value >= _MANY or passage.value % 1)
        )
    ):
        return None
    # No price: an "Atari 7800" less $14.95
    if not passage.counts and unit == "" and is_measure(question.counts):
        return None
    if passage.of and question.of and passage.of != question.of:
        return None
    if passage.unit in _PLACES:
        return None if question.counts in _SCORES or question.counts in UNITS else (passage, step)
    if question == IMPLICIT_ONE:
        return passage, step
    if passage.unit in _MOMENTS or passage.unit in _TIME_UNITS or unit == "%":
        return None if question.counts else (passage, step)
    ratio = unit_ratio(passage.counts, question.counts)
    if ratio is None:
        return None
    if question.unit in SCALES or (unit in SCALES and step >= 1000):
        step *= SCALES.get(question.unit, 1) / SCALES.get(unit, 1)
    # 500 m are not a round number of miles
    is_round = ratio == 1 or round(step * ratio, _DECIMALS) == step * ratio
    return (passage, step * ratio) if is_round else None


def _moved_date(when: Number, step: float, unit: str, question: str) -> str | None:
    start = date.fromordinal(int(when.value))
    try:
        if unit in _DAYS:
            moved = start + timedelta(days=step * _DAYS[unit])
        elif unit == "month" or (unit in _MONTHS and when.unit == "date"):
            year, month = divmod(start.year * 12 + start.month - 1 + int(step * _MONTHS[unit]), 12)
            moved = start.replace(
                year=year, month=month + 1, day=min(start.day, monthrange(year, month + 1)[1])
            )
        else:
            return None
    except (ValueError, OverflowError):  # before the year 1
        return None
    name = MONTH_NAMES[moved.month - 1]
    has_year = when.unit == "date"
    if _seen(_MONTH, question):
        return name
    if has_year and _seen(_YEAR, question):
        return str(moved.year)
    if when.day_first:
        return f"{moved.day} {name}" + f" {moved.year}" * has_year
    return f"{name} {moved.day}" + f", {moved.year}" * has_year


def _moved_month(when: Number, step: float, unit: str, question: str) -> str | None:
    has_year = when.unit == "month of year"
    if unit not in _MONTHS or not (has_year or _MONTHS[unit] == 1):  # "May" is May in another year
        return None
    year, month = divmod(int(when.value + step * _MONTHS[unit]), 12)
    if has_year and _seen(_YEAR, question):
        return str(year)
    return MONTH_NAMES[month] + f" {year}" * (has_year and not _seen(_MONTH, question))


def _written(number: Number, question: str, amount: float | None = None) -> str | None:
    """An amount, by default the number's value, in the number's unit and in the style of IfQA's
    answers.

    If the question asks for a decade or century, a year becomes its decade or century.
    """
    unit = number.unit
    amount = round(number.value if amount is None else amount, 6)
    if amount < 0 and not _seen(_DIFFERENCE, question):  # fewer than none
        return None
    amount = abs(amount)
    age = _seen(_AGE, question)
    if age and 1000 <= amount < 2100:
        return (
            f"{int(amount) // 10 * 10}s"
            if age[1].lower() == "decade"
            else _nth((int(amount) - 1) // 100 + 1)
        )
    if unit == "century":
        return None
    if number.unit in _PLACES and not _seen(_AMOUNT, question):
        if amount != int(amount) or amount < 1:
            return None
        return (
            ORDINALS.get(int(amount), _nth(int(amount))) if unit == "ordinal" else _nth(int(amount))
        )
    tail = ""
    period = _seen(_PERIOD, question)
    if unit in SCALES:
        whole = round(amount * SCALES[unit], 6)
        unit = next((name for name, size in reversed(SCALES.items()) if whole >= size), "")
        scaled = whole / SCALES.get(unit, 1)
        amount, tail = (
            (scaled, unit) if unit != "thousand" and round(scaled, 3) == scaled else (whole, "")
        )
    elif number.unit in _TIME_UNITS and period and period[2]:  # "how long" names no unit
        tail = unit + "s" * (amount != 1)
    if amount == int(amount):
        text = f"{int(amount):,}" if amount >= 10000 else str(int(amount))
    else:
        text = f"{amount:g}" if amount < 10_000 else f"{amount:,}"
    text = f"{text} {tail}".strip()
    shown = f"{number.before}{text}{number.behind}"
    # "how many miles" and "in euros" name the unit of their answer
    named = shown != text and {unit_of(word) for word in _IN_UNIT.findall(question)}
    return text if named and number.counts in named else shown


def _nth(place: int) -> str:
    tail = {1: "st", 2: "nd", 3: "rd"}.get(
        place % 10 if place % 100 not in (11, 12, 13) else 0, "th"
    )
    return f"{place}{tail}"
