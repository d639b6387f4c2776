"""Numbers and dates in text, and answers computed from a number of a passage and a number of the question.

No passage answers "If Messi had scored two fewer goals, how many ...?": the passage says 9, the question says two.
"""

import re
from dataclasses import dataclass
from datetime import date, timedelta

_UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
          "eighteen nineteen twenty").split()  # fmt: skip
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_VALUES = {word: value for value, word in enumerate(_UNITS)} | _TENS
_VALUES |= {word: value for value, word in enumerate(_ORDINALS, start=1)}
_VALUES |= {
    "single": 1,
    "another": 1,
    "additional": 1,
    "once": 1,
    "decade": 10,
    "dozen": 12,
    "hundred": 100,
    "century": 100,
}
_FACTORS: dict[str, float] = {"twice": 2, "double": 2, "doubled": 2, "doubling": 2, "thrice": 3, "triple": 3, "tripled": 3,
                              "quadruple": 4, "quadrupled": 4, "half": 0.5, "halved": 0.5, "halving": 0.5}  # fmt: skip
_DAYS = {"day": 1, "week": 7, "fortnight": 14}
_MONTHS = {"month": 1, "year": 12, "decade": 120}
_MONTH_NAMES = "January February March April May June July August September October November December".split()
_EXACT = 1e15  # a float holds smaller integers exactly; longer digit strings are not amounts
#: Small number words and their digits; IfQA's answers use both.
DIGITS = {word: str(value) for value, word in enumerate(_UNITS)}

_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[A-Za-z]+(?:-[a-z]+)?")
_SCALE = re.compile(r"[ -](thousand|million|billion|trillion)s?\b", re.IGNORECASE)
_PERIOD = re.compile(r"[ -](day|week|fortnight|month|year|decade)s?\b", re.IGNORECASE)
_ARTICLE_PERIOD = re.compile(r"\b(?:a|an)(?= (?:day|week|fortnight|month|year)\b)", re.IGNORECASE)
_MONTH = "|".join(_MONTH_NAMES)
_NTH = "(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}}){_NTH} (?P<m1>{_MONTH})|(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}}){_NTH})\b(?:,? (?P<y>\d{{4}})\b)?"
)
#: Words that give the direction of a step. They decide if the question has words of only one kind and does not ask for
#: the difference itself. Words such as "delayed" are left out: "hadn't been delayed" goes the other way.
_LESS = re.compile(r"\b(?:earlier|prior|sooner|fewer|less|ahead|lower|younger|shorter)\b", re.IGNORECASE)
_MORE = re.compile(r"\b(?:later|more|additional|extra|another|further|longer|older|higher)\b", re.IGNORECASE)
_COMPARED = "more|fewer|less|additional|earlier|later|longer|shorter|older|younger|ahead"
_DIFFERENCE = re.compile(rf"\bhow (?:many|much) (?:\w+ )?(?:{_COMPARED})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Number:
    """A number or date in a text.

    Attributes:
        start, end: position in characters, `end` exclusive.
        value: the number; for a date, the days since the year 1.
        factor: whether it multiplies, as "twice" does.
        unit: "million" and the like; "day" to "decade" for a span of time; "date", or "day of year" for a date without a year.
    """

    start: int
    end: int
    value: float
    factor: bool = False
    unit: str = ""


#: The implicit step of a question: "had not won the 2007 title" means one title fewer.
ONE = Number(0, 0, 1.0)


def find_numbers(text: str, asked: bool = False) -> list[Number]:
    """The numbers in a text: digits, words, ordinals, dates.

    In a question (`asked`): also factors such as "twice" and the "a" of "a year", but no dates.
    """
    found = [] if asked else _dates(text)
    if asked:
        found += [_with_unit(text, match.start(), match.end(), 1.0) for match in _ARTICLE_PERIOD.finditer(text)]
    for match in _NUMBER.finditer(text):
        word = match.group().lower()
        first, _, second = word.partition("-")
        if word[0].isdigit():
            value = float(word.replace(",", ""))
            if value < _EXACT:
                found.append(_with_unit(text, match.start(), match.end(), value))
        elif word in _VALUES:
            found.append(_with_unit(text, match.start(), match.end(), float(_VALUES[word])))
        elif first in _VALUES and second in _VALUES and 20 <= _VALUES[first] < 100:
            found.append(_with_unit(text, match.start(), match.end(), float(_VALUES[first] + _VALUES[second])))
        elif second and first in _VALUES:
            found.append(_with_unit(text, match.start(), match.start() + len(first), float(_VALUES[first])))
        elif asked and word in _FACTORS:
            found.append(Number(match.start(), match.end(), _FACTORS[word], factor=True))
    return found


def compute(passage: Number, question: Number, question_text: str) -> list[str | None]:
    """Answers computed from two numbers: [sum, difference], or [product, None] if the question's number is a factor.

    A step that makes no sense is None: a date plus two goals, or the sum if the question says "earlier".
    """
    answers = _results(passage, question, question_text)
    if question.factor or _DIFFERENCE.search(question_text):
        return answers
    less, more = _LESS.search(question_text), _MORE.search(question_text)
    return [None if less and not more else answers[0], None if more and not less else answers[1]]


def _results(passage: Number, question: Number, question_text: str) -> list[str | None]:
    if passage.unit in ("date", "day of year"):
        return [
            None if question.factor else _shifted(passage, sign * question.value, question.unit) for sign in (1, -1)
        ]
    unit = passage.unit if passage.unit in ("thousand", "million", "billion", "trillion") else ""
    if question.factor:
        return [_format(passage.value * question.value, unit, question_text), None]
    step = question.value * (10 if question.unit == "decade" else 1)
    return [_format(value, unit, question_text) for value in (passage.value + step, passage.value - step)]


def american_date(text: str) -> str:
    """A text that is a date, "15 April 2003", in IfQA's style, "April 15, 2003"; any other text unchanged."""
    match = _DATE.fullmatch(text.strip(" .,"))
    if match is None or match["m1"] is None:
        return text
    return f"{match['m1']} {match['d1']}" + (f", {match['y']}" if match["y"] else "")


def _with_unit(text: str, start: int, end: int, value: float) -> Number:
    match = _SCALE.match(text, end) or _PERIOD.match(text, end)
    return Number(start, end, value, unit=match[1].lower() if match else "")


def _dates(text: str) -> list[Number]:
    found = []
    for match in _DATE.finditer(text):
        day, month = int(match["d1"] or match["d2"]), _MONTH_NAMES.index(match["m1"] or match["m2"]) + 1
        try:
            value = date(int(match["y"] or 2001), month, day).toordinal()
        except ValueError:  # "February 30"
            continue
        found.append(Number(match.start(), match.end(), float(value), unit="date" if match["y"] else "day of year"))
    return found


def _shifted(when: Number, step: float, unit: str) -> str | None:
    start = date.fromordinal(int(when.value))
    try:
        if unit in _DAYS:
            moved = start + timedelta(days=step * _DAYS[unit])
        elif unit in _MONTHS:
            months = start.year * 12 + start.month - 1 + int(step * _MONTHS[unit])
            moved = start.replace(year=months // 12, month=months % 12 + 1)
        else:
            return None
    except (ValueError, OverflowError):  # 31 June, or before the year 1
        return None
    return f"{_MONTH_NAMES[moved.month - 1]} {moved.day}" + (f", {moved.year}" if when.unit == "date" else "")


def _format(value: float, unit: str, question: str) -> str:
    """A number in the style of IfQA's answers; a decade or century if the question asks for that."""
    value = round(abs(value), 6)
    asked = re.search(r"\b(?:which|what) (decade|century)", question.lower())
    if asked and 1000 <= value < 2100:
        if asked[1] == "decade":
            return f"{int(value) // 10 * 10}s"
        century = (int(value) - 1) // 100 + 1
        return f"{century}" + ("st" if century == 21 else "th")
    if value == int(value):
        text = f"{int(value):,}" if value >= 10000 else str(int(value))
    else:
        text = f"{value:g}" if value < 1e5 else str(value)
    return f"{text} {unit}".strip()
