"""Finds numbers, dates, months and lists in text: their values, what they count, and which are of
the same kind.

A number counts money in a currency; a length, mass, volume or area in a unit; a span of time; or
things that a noun names. A label ("room 14") counts nothing. Answers are computed only from numbers
of the same kind.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

_UNSPACED = frozenset("CJK HIRAGANA KATAKANA THAI LAO KHMER MYANMAR".split())
#: Unit -> dimension and size. Sizes are exact by definition (the international foot, the
#: avoirdupois pound, the US gallon).
UNITS: dict[str, tuple[str, float]] = {
    "millimetre": ("length", 0.001),
    "centimetre": ("length", 0.01),
    "metre": ("length", 1),
    "kilometre": ("length", 1000),
    "inch": ("length", 0.0254),
    "foot": ("length", 0.3048),
    "yard": ("length", 0.9144),
    "mile": ("length", 1609.344),
    "gram": ("mass", 0.001),
    "kilogram": ("mass", 1),
    "tonne": ("mass", 1000),
    "ounce": ("mass", 0.028349523125),
    "pound": ("mass", 0.45359237),
    "millilitre": ("volume", 0.001),
    "litre": ("volume", 1),
    "pint": ("volume", 0.473176473),
    "gallon": ("volume", 3.785411784),
    "acre": ("area", 4046.8564224),
    "hectare": ("area", 10_000),
    "kilobyte": ("memory", 10**3),
    "megabyte": ("memory", 10**6),
    "gigabyte": ("memory", 10**9),
    "terabyte": ("memory", 10**12),
    "watt": ("power", 1),
    "kilowatt": ("power", 1000),
    "megawatt": ("power", 10**6),
    "volt": ("voltage", 1),
    "hertz": ("frequency", 1),
    "kilohertz": ("frequency", 1000),
    "megahertz": ("frequency", 10**6),
}
_SPELLED = {
    "mm": "millimetre",
    "cm": "centimetre",
    "m": "metre",
    "km": "kilometre",
    "kilometer": "kilometre",
    "meter": "metre",
    "centimeter": "centimetre",
    "millimeter": "millimetre",
    "feet": "foot",
    "ft": "foot",
    "inches": "inch",
    "mi": "mile",
    "yd": "yard",
    "g": "gram",
    "kg": "kilogram",
    "kilo": "kilogram",
    "ton": "tonne",
    "lb": "pound",
    "lbs": "pound",
    "oz": "ounce",
    "kb": "kilobyte",
    "mb": "megabyte",
    "gb": "gigabyte",
    "tb": "terabyte",
    "kw": "kilowatt",
    "mw": "megawatt",
    "hz": "hertz",
    "khz": "kilohertz",
    "mhz": "megahertz",
    "l": "litre",
    "liter": "litre",
    "ml": "millilitre",
    "milliliter": "millilitre",
    "ha": "hectare",
}
_CURRENCIES = {"dollar": "$", "euro": "€", "rupee": "₹", "yen": "¥", "yuan": "¥", "franc": "CHF",
               **dict.fromkeys(("kr", "krone", "kroner", "krona", "kronor"), "kr")}  # fmt: skip
_CODES = {"USD": "$", "EUR": "€", "GBP": "£", "INR": "₹", "JPY": "¥", "CNY": "¥", "CHF": "CHF",
          **dict.fromkeys(("NOK", "SEK", "DKK", "kr", "kr."), "kr")}  # fmt: skip
CURRENCY = re.compile(
    rf"(?:(?:US|A|C|NZ|HK)?[$£€¥₹₩₽]|\b(?:{'|'.join(map(re.escape, _CODES))})(?=\s))\s?$"
)
#: Words between a number and what it counts.
_MODIFIERS = frozenset(
    """
    more fewer less additional extra other further different new older younger longer shorter larger
    smaller higher lower earlier later sooner taller deeper wider heavier lighter greater bigger
    better worse total consecutive such
    """.split()
)
_STOPS = frozenset(
    """
    a about after against ahead all along also an and another any are as at away be because been
    before between both but by can could did do does during each either even ever every far first
    for from had has have he her here his how i if in instead into is it its just last long high
    tall deep wide old late least like many may might much must near never next no nor not now of
    off on once one only or out over per prior she should since so some still than that the their
    them then there these they this those through to together too under until up was we well were
    what when where which while who whole whom whose will with within without would yet you
    """.split()
)
_WORD = re.compile(r"[ \xa0\u202f-]([^\W\d_]+(?:'s)?)")
_LABEL = re.compile(
    r"\b(?:room|page|pages|chapter|section|no\.?|number|nr\.?|flight|route|highway|road|gate"
    r"|platform|apartment|volume|figure|table"
    r"|line|track|channel|pp?\.|act|scene|bus|building|house|box|cell|ward|lot|plate|verse"
    r"|psalm|class|type|model|mark|unit|grade)\s*#?\s*$",
    re.IGNORECASE,
)
_NUMBER_OF = re.compile(r"\bnumber of\s*$", re.IGNORECASE)
_AGE = re.compile(r"\b(?:aged?|age of|at age|ages of)\s*$", re.IGNORECASE)
#: Nouns that count the same things -> their common stem.
_SAME = {
    **dict.fromkeys(
        "individual participant man woman other life guest passenger driver player".split(),
        "person",
    ),
    **dict.fromkeys("member figure victim".split(), "person"),
    **dict.fromkeys("championship victory win".split(), "title"),
    "track": "song",
    "movie": "film",
    "defeat": "loss",
    "cannon": "gun",
}
_PLURALS = {
    "people": "person",
    "men": "man",
    "women": "woman",
    "children": "child",
    "lives": "life",
    "wives": "wife",
}


def noun_stem(noun: str) -> str:
    """A noun in the singular; synonyms share a stem."""
    singular = _singular(noun)
    return _SAME.get(singular, singular)


def _singular(noun: str) -> str:
    noun = noun.lower().removesuffix("'s")
    noun = _PLURALS.get(noun, noun)
    if noun.endswith("ies") and len(noun) > 4:
        return f"{noun[:-3]}y"
    if noun.endswith(("ches", "shes", "xes", "sses")):
        return noun[:-2]
    return noun[:-1] if noun.endswith("s") and not noun.endswith(("ss", "us", "is")) else noun


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether the characters `start` to `end`, exclusive, begin and end with whole words and
    amounts.

    A span does not begin with the "million" of "18.4 million".
    """
    return (
        not _BARE_SCALE.match(text, start) and is_boundary(text, start) and is_boundary(text, end)
    )


def is_boundary(text: str, at: int) -> bool:
    """Whether an answer may begin or end at position `at`: not inside a word or an amount such as
    "€1,250.50".
    """
    if not 0 < at < len(text):
        return True
    before = text[at - 1]
    after = text[at]
    # Scripts without spaces between words may be cut anywhere
    if before.isalnum() and after.isalnum():
        return any(
            c >= "\u0e00" and unicodedata.name(c, "").split(" ")[0] in _UNSPACED
            for c in (before, after)
        )
    if after.isdigit():
        return unicodedata.category(before) != "Sc" and not (
            before in ".," and text[max(at - 2, 0)].isdigit()
        )
    if before.isdigit() and after in ".,":
        return not text[at + 1 : at + 2].isdigit()
    return not unicodedata.combining(after)


def unit_of(word: str) -> str:
    """The unit of `UNITS`, or the currency's sign, that a word names; empty for another word."""
    stem = noun_stem(word)
    name = _SPELLED.get(word.lower(), _SPELLED.get(stem, stem))
    return name if name in UNITS else _CURRENCIES.get(stem, "")


def is_measure(counts: str) -> bool:
    """Whether a number that counts this is an amount of money or in a unit of `UNITS`."""
    return (
        counts in UNITS
        or counts in _CODES.values()
        or (len(counts) == 1 and bool(CURRENCY.match(counts)))
    )


def counted_kind(text: str, start: int, end: int) -> str:
    """What the number at `start` to `end` (including "million") counts.

    A currency's sign, a unit of `UNITS`, a noun's stem, "age", "label", or empty if unknown.
    """
    before = text[max(start - 16, 0) : start]
    if prefix := CURRENCY.search(before):
        return _CODES.get(prefix[0].strip(), prefix[0].strip()[-1])
    if _AGE.search(before):
        return "age"
    if _LABEL.search(before) and not _NUMBER_OF.search(before):
        return "label"
    words = list[str]()
    place = end
    while (match := _WORD.match(text, place)) and len(words) < 4:
        word = match[1]
        place = match.end()
        if not words and (unit := unit_of(word)):
            return unit
        if word.lower() in _STOPS:
            break
        if word.lower() not in _MODIFIERS:
            words.append(word)
        if match[0][0] == "-" and len(words) == 1:  # a ten-album contract
            break
    plural = next((word for word in words if len(word) > 3 and _singular(word) != word.lower()), "")
    noun = plural or (
        words[-1] if words and not words[-1].lower().endswith(("ed", "ing", "ly")) else ""
    )
    return noun_stem(noun)


_AS = re.compile(r"\s+as\s+(\w+)")
_DIMENSIONS = {
    **dict.fromkeys("long far high tall deep wide short low thick".split(), "extent"),
    **dict.fromkeys(("old", "young"), "age"),
    **dict.fromkeys("fast quick slow quickly slowly often good strong".split(), "label"),
    "heavy": "kilogram",
}


def factor_kind(text: str, end: int) -> str:
    """What a factor that ends at `end` multiplies ("twice as many goals", "half as long"): see
    `counted_kind`, or "extent".
    """
    match = _AS.match(text, end)
    if match is None:
        return ""
    return (
        counted_kind(text, end, match.end())
        if match[1].lower() == "many"
        else _DIMENSIONS.get(match[1].lower(), "")
    )


def unit_ratio(counts: str, other: str) -> float | None:
    """How many units `counts` are in one `other`; 1 if unknown.

    None if they are not of the same kind.
    """
    if "label" in (counts, other):
        return None
    if counts == other or not other:
        return 1.0
    if counts in UNITS and other in UNITS:
        (dimension, size) = UNITS[counts]
        (other_dimension, other_size) = UNITS[other]
        return other_size / size if dimension == other_dimension else None
    return None if counts else 1.0


_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
).split()
_NTHS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_TENS = {
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_VALUES = {word: n for n, word in enumerate(_UNITS)} | _TENS
_VALUES |= {"single": 1, "once": 1, "dozen": 12, "hundred": 100}
_QUESTION_VALUES = _VALUES | {"another": 1, "additional": 1, "decade": 10, "century": 100}
_FACTORS: dict[str, float] = {
    "twice": 2,
    "double": 2,
    "doubled": 2,
    "doubling": 2,
    "thrice": 3,
    "triple": 3,
    "tripled": 3,
    "quadruple": 4,
    "quadrupled": 4,
    "half": 0.5,
    "halved": 0.5,
    "halving": 0.5,
}
MONTH_NAMES = (
    "January February March April May June July August September October November December".split()
)
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
# Not the "Billion" of a title
_BARE_SCALE = re.compile(rf"(?<=\d[\s-])(?:{'|'.join(SCALES)})\b(?!-)")
NUMBER_WORDS = (*_VALUES, *SCALES)
_EXACT = 1e15  # a float holds smaller integers exactly; longer digit strings are not amounts
#: Ordinals of 1 to 20 in words, and small number words with their digits; IfQA's answers use both.
ORDINALS = dict(enumerate(_NTHS, start=1))
_NTH_VALUES = {word: n for n, word in ORDINALS.items()}
DIGITS = {word: str(n) for n, word in enumerate(_UNITS)}

_NUMBER = re.compile(
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:st|nd|rd|th)\b|\d+(?:\.\d+)?|[A-Za-z]+(?:-[a-z]+)?"
)
_HUNDRED = re.compile(r"[ -](?:hundred|(dozen))\b", re.IGNORECASE)
_OF = re.compile(
    r"[ -][^\W\d_]+(?: (?:more|less|extra|additional))? of (?:the )?([^\W\d_]+)", re.IGNORECASE
)
_JOINED = re.compile(r",? (?:and )?")
SECONDS = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 604_800,
    "fortnight": 1_209_600,
}
_UNIT = re.compile(
    r"[ "
    r"-](?:(thousand|million|billion|trillion|minute|hour|day|week|fortnight|month|year|decade|century)s?"
    r"|(second)s)\b|(%)| (per ?cent)\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"\b(?:half an?|half|an?)(?= (?:thousand|million|billion|trillion)\b)"
    r"|\b(?:half an?|an?)(?= (?:minute|hour|day|week|fortnight|month|year)\b)",
    re.IGNORECASE,
)
_COUNTED_DOZEN = re.compile(rf"\b(?:{'|'.join((*_UNITS, *_TENS))})[ -]$", re.IGNORECASE)
_MONTH = "|".join(MONTH_NAMES)
_NTH = "(?:st|nd|rd|th)?"
_YEAR = re.compile(r"(?<![\d.,])(?:1\d|20)\d\d(?![.,]?\d)")
_DATE = re.compile(
    rf"\b(?:(?P<d1>\d{{1,2}}){_NTH} (?P<m1>{_MONTH})"
    rf"|(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}}){_NTH})\b(?:,? (?P<y>\d{{4}})\b)?"
)
_IN_MONTH = re.compile(rf"\b(?P<m>{_MONTH})\b(?! \d{{1,2}}\b)(?:,? (?:of )?(?P<y>\d{{4}})\b)?")
#: Possessive quantifiers, so that matching makes at most one pass from each word of a text.
_NAME_WORD = r"[A-Z\"](?:[\w'’\"-]|\.(?=\w))*+"
_NAME = rf"(?:the )?{_NAME_WORD}(?: (?:(?:of|the|de) )?{_NAME_WORD})*+(?: \([^()]{{1,40}}\))?+"
_LIST = re.compile(rf"(?<![\w\"]){_NAME}(?:(?:, {_NAME})++,?)?+ and {_NAME}")


@dataclass(frozen=True, slots=True)
class Number:
    """A number, date or list in a text.

    `value` counts a date's days from the year 1, a month's months from the year 0, or a list's
    items. `unit` is "million" or another scale; "second" to "century" for a span of time; "%";
    "ordinal"; "nth"; "calendar year"; "date" and "month of year", each with "?" if the text names
    no year; "list".
    """

    start: int  # position in characters
    end: int  # exclusive
    value: float
    factor: bool = False  # whether it multiplies, as "twice" does
    unit: str = ""
    counts: str = ""  # as `counted_kind` returns it
    before: str = ""  # the currency before an amount: "€"
    behind: str = ""  # the unit after an amount: " km"
    # Dates moved from this one are written "7 July 2000"; else as in IfQA, "July 7, 2000"
    day_first: bool = False
    of: str = ""  # the substance of an amount in a unit: "sugar" in "200 g of sugar"


DATED = {"calendar year", "date", "month of year"}  # units of moments with a year
#: The implicit step of a question: "had not won the 2007 title" means one title fewer.
IMPLICIT_ONE = Number(0, 0, 1.0)


def find_numbers(
    text: str, in_question: bool = False, question: str = "", as_written: bool = False
) -> list[Number]:
    """Digits, number words, ordinals, dates and months.

    With `in_question`, also "twice" and the "a" of "a year".

    A date without a year takes the question's year if it has exactly one, else the nearest year in
    the text. With `as_written`, moved dates keep the text's order of day and month.
    """
    dates = list(_dates(text, question, as_written))
    numbers = [*dates, *_months(text, question)]
    for match in _ARTICLE.finditer(text) if in_question else ():
        numbers.append(
            _with_unit(
                text, *match.span(), 0.5 if match.group().lower().startswith("half") else 1.0
            )
        )
    for number in _whole_times(text, list(_plain(text, in_question))):
        if number.unit == "calendar year" or not any(
            day.start <= number.start < day.end for day in dates
        ):
            numbers.append(number)
    return numbers


def find_lists(text: str) -> list[Number]:
    """Lists of names, such as "Denmark, Norway and Sweden"; the value is the number of items."""
    lists = []
    for match in _LIST.finditer(text):
        items = [name for name in re.split(r",? and |, ", match.group()) if name]
        lists.append(Number(*match.span(), float(len(items)), unit="list"))
    return lists


def format_answer(text: str, start: int, end: int, question: str = "") -> str:
    """The characters `start` to `end`, exclusive, of a text in the style of IfQA's answers.

    "15 April 2003" becomes "April 15, 2003"; a date without a year gets one as in `find_numbers`.
    Other text is unchanged.
    """
    match = _DATE.fullmatch(text[start:end].strip(" .,"))
    if match is None:
        return text[start:end]
    year: str = match["y"] or _year_near(text, start, end, question)
    return f"{match['m1'] or match['m2']} {match['d1'] or match['d2']}" + (
        f", {year}" if year else ""
    )


def _year_near(text: str, start: int, end: int, question: str) -> str:
    question_years: set[str] = set(_YEAR.findall(question))
    if len(question_years) == 1:
        return question_years.pop()
    years = _YEAR.finditer(text)
    distances = [
        (start - year.end() if year.end() <= start else year.start() - end, year.group())
        for year in years
    ]
    return min(
        (near for near in distances if near[0] >= 0), key=lambda near: near[0], default=(0, "")
    )[1]


def _with_digits(text: str, start: int, end: int) -> Number:
    """A number in digits with its unit; four digits without a unit or a currency may be a year."""
    digits = text[start:end]
    number = _with_unit(text, start, end, float(digits.replace(",", "")))
    has_currency = CURRENCY.search(text, max(start - 6, 0), start)
    if not number.unit and _YEAR.fullmatch(digits) and not has_currency:
        return replace(number, unit="calendar year")
    return number


def _with_word(text: str, start: int, end: int, value: float) -> Number:
    """A number in words with its unit; a "hundred" or "dozen" behind it multiplies it."""
    hundred = _HUNDRED.match(text, end) if value < 100 else None
    if hundred:
        times = 12.0 if hundred[1] else 100.0
        return _with_unit(text, start, hundred.end(), value * times)
    return _with_unit(text, start, end, value)


def _plain(text: str, in_question: bool) -> Iterator[Number]:
    values = _QUESTION_VALUES if in_question else _VALUES
    for match in _NUMBER.finditer(text):
        start, end, word = *match.span(), match.group().lower()
        first, _, second = word.partition("-")
        if word[0].isdigit() and not word[-1].isdigit():
            yield _nth(text, start, end, float(word[:-2]), "nth")
        elif word[0].isdigit():
            number = _with_digits(text, start, end)
            if number.value < _EXACT:
                yield number
        elif word in _NTH_VALUES:
            yield _nth(text, start, end, float(_NTH_VALUES[word]), "ordinal")
        elif word == "one" and not in_question and text.startswith(" of ", end):
            continue  # one of several, not how many
        elif word == "dozen" and _COUNTED_DOZEN.search(text, max(start - 12, 0), start):
            continue  # "three dozen" was read with its "three"
        elif word in values:
            yield _with_word(text, start, end, float(values[word]))
        elif first in values and second in values and 20 <= values[first] < 100:
            yield _with_unit(text, start, end, float(values[first] + values[second]))
        elif second and first in values:
            yield _with_unit(text, start, start + len(first), float(values[first]))
        elif in_question and word in _FACTORS:
            yield Number(start, end, _FACTORS[word], factor=True, counts=factor_kind(text, end))


def _whole_times(text: str, numbers: list[Number]) -> Iterator[Number]:
    """The numbers, with "2 hours 40 minutes" as 160 minutes."""
    last: Number | None = None
    for number in numbers:
        size = SECONDS.get(number.unit, 0)
        more = SECONDS.get(last.unit, 0) if last else 0
        gap = _UNIT.match(text, last.end) if last and size and more > size else None
        if last and gap and _JOINED.fullmatch(text, gap.end(), number.start):
            last = replace(number, start=last.start, value=last.value * more / size + number.value)
            continue
        if last:
            yield last
        last = number
    if last:
        yield last


def _nth(text: str, start: int, end: int, value: float, unit: str) -> Number:
    if text[end : end + 8].lower() == " century":
        return Number(start, end, value * 100 - 50, unit="century")
    return Number(start, end, value, unit=unit)


def _unit_name(match: re.Match[str]) -> str:
    """The unit behind a number: "%" for a sign or a word of it, else the word."""
    if match[3] or match[4]:
        return "%"
    return (match[1] or match[2]).lower()


def _currency_name(sign: str) -> str:
    """A currency before a number as answers write it: a code with its space, of "US$" the sign."""
    return sign if sign.strip() in _CODES else sign.strip()[-1]


def _with_unit(text: str, start: int, end: int, value: float) -> Number:
    if text[start:end].lower() in ("decade", "century"):
        return Number(start, end, value, unit="year")
    match = _UNIT.match(text, end)
    unit = _unit_name(match) if match else ""
    if unit and unit not in SCALES:
        return Number(start, end, value, unit=unit)
    last = match.end() if match else end
    counts = counted_kind(text, start, last)
    substance = _OF.match(text, last) if counts in UNITS else None
    sign = CURRENCY.search(text, max(start - 6, 0), start)
    word = _WORD.match(text, last)
    before = _currency_name(sign[0]) if sign else ""
    is_unit = word and unit_of(word[1]) and word[0][0] != "-"  # not "an 8350-ft runway"
    behind = f" {word[1]}" if word and is_unit and not sign else ""
    of = substance[1].lower() if substance else ""
    return Number(start, end, value, unit=unit, counts=counts, before=before, behind=behind, of=of)


def _dates(text: str, question: str, as_written: bool) -> Iterator[Number]:
    for match in _DATE.finditer(text):
        day = int(match["d1"] or match["d2"])
        month = MONTH_NAMES.index(match["m1"] or match["m2"]) + 1
        year = match["y"] or _year_near(text, *match.span(), question)
        try:
            days = date(int(year or 2001), month, day).toordinal()
        except ValueError:  # "February 30"
            continue
        day_first = as_written and bool(match["d1"])
        yield Number(
            *match.span(), float(days), unit="date" if year else "date?", day_first=day_first
        )


def _months(text: str, question: str) -> Iterator[Number]:
    for match in _IN_MONTH.finditer(text):
        # Part of a date
        if re.search(r"\d(?:st|nd|rd|th)? $", text[max(match.start() - 6, 0) : match.start()]):
            continue
        year = match["y"] or _year_near(text, *match.span(), question)
        months = int(year or 2001) * 12 + MONTH_NAMES.index(match["m"])
        yield Number(
            *match.span(), float(months), unit="month of year" if year else "month of year?"
        )
