"""The forms an answer can take: "5" and "five", "May 4, 1979" and "4 May 1979", "3.5 million" and "3,500,000".

The IfQA paper adds such forms to the annotated answers: for a number digits and words, with its unit if it has one; for a date
"Month Day, Year". (It also adds an entity's Wikipedia title, which no rule can know.) The release has only some of these forms.
EM, F1 and recall do not use the forms: they take the answers as released, so that numbers stay comparable. The forms tell
whether several answers have several meanings, and can be used before training or search.

An answer is parsed as a number, an ordinal or a date, and all spellings of it are written out. Each spelling parses as the same
value, so forms of forms are no new forms.
"""

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_UNEVEN = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MONTHS = "january february march april may june july august september october november december".split()


def _spelled(number: int) -> list[str]:
    """The words of 0 to 100 and of 200, 300 … 900; "twenty-one" also without its hyphen."""
    if number < 20:
        return [_UNITS[number]]
    if number >= 100:
        hundreds = f"{_UNITS[number // 100]} hundred"
        return [hundreds, "a hundred"] if number == 100 else [hundreds]
    tens = _TENS[number // 10 - 2]
    return [f"{tens}{mark}{_UNITS[number % 10]}" for mark in "- "] if number % 10 else [tens]


def _ordinal_word(cardinal: str) -> str:
    stem = re.match(r"(.*[- ])?(\w+)", cardinal)
    assert stem
    last = stem[2]
    ending = _UNEVEN.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return (stem[1] or "") + ending


_WORDS = {number: _spelled(number) for number in [*range(101), *range(200, 1_000, 100)]}
_ORDINALS = {number: [_ordinal_word(word) for word in _WORDS[number]] for number in range(1, 101)}
_READ_WORDS = {word: number for number, words in _WORDS.items() for word in words} | {"hundred": 100}
_READ_ORDINALS = {word: number for number, words in _ORDINALS.items() for word in words} | {"hundredth": 100}

_LONGEST = 1 + max(
    len(words.split()) for words in (*_READ_WORDS, *_READ_ORDINALS)
)  # words of the longest number, with one for its scale

_DIGITS = re.compile(r"(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,4}|[1-9][0-9]{0,14}|0)(?:\.[0-9]{1,6})?")
_NTH = re.compile(r"([1-9][0-9]?|100)(st|nd|rd|th)")
_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_PERCENT = ("%", "percent", "per cent")
#: A number continues with these words ("one hundred and five", "two thirds"), so the part before them is incomplete.
_GOES_ON = {"and", "or", "to", "point", "half", "halves", "quarter", "quarters", "dozen", *_SCALES, *_MONTHS}
_GOES_ON |= {word for words in _READ_WORDS for word in words.split()}
_GOES_ON |= {part for word in _READ_ORDINALS for part in (word, f"{word}s")} - {"second", "seconds"}

_MONTH = rf"(?P<month>{'|'.join(f'{name}|{name[:3]}' for name in _MONTHS)}|sept)\.?"
_DAY = r"(?P<day>0?[1-9]|[12][0-9]|3[01])(?:st|nd|rd|th)?"
_DATES = [
    re.compile(rf"{_MONTH} {_DAY}(?:,? (?P<year>[0-9]{{4}}))?"),
    re.compile(rf"(?:the )?{_DAY}(?: of)? {_MONTH}(?:,? (?P<year>[0-9]{{4}}))?"),
    re.compile(rf"{_MONTH}(?:,| of)? (?P<year>[0-9]{{4}})"),
    re.compile(r"(?P<year>[0-9]{4})-(?P<number>[0-9]{2})-(?P<day>[0-9]{2})"),
]


def forms(answer: str) -> tuple[str, ...]:
    """The answer unchanged, then its other forms, each once; only the answer if it is no number and no date.

    It parses numbers in digits or words (words for 0 to 100, and for round hundreds, thousands and millions), also before a
    unit ("three years") or in percent; ordinals ("21st", "twenty-first place"); dates in several orders, with or without
    the comma, the year or the day; and ISO dates. Case and blanks do not matter. A plain "1984" may be a year and has no
    other forms, while "1,984" is a number. A name such as "Three Kings" has no other forms either.
    """
    if not isinstance(answer, str):
        raise TypeError("answer must be one string, not several")
    return tuple(dict.fromkeys([answer, *_others(" ".join(answer.split()))]))


def _others(text: str) -> Iterator[str]:
    for pattern in _DATES:
        if found := pattern.fullmatch(text.lower()):
            yield from _date_forms(found.groupdict())
            return
    words = re.sub(r"(?<=[0-9])%$", " %", text).split()
    for end in range(min(len(words), _LONGEST), 0, -1):  # the longest number that the words begin with
        start, unit = " ".join(words[:end]).lower(), " ".join(words[end:])
        if (amount := _amount(start)) is not None:
            if unit in _PERCENT:
                yield from _percent_forms(amount)
            elif _is_unit(unit) and (unit or not _YEAR.fullmatch(start)):
                yield from (f"{form} {unit}".strip() for form in _amount_forms(amount))
            return
        if number := _ordinal(start):
            if _is_unit(unit):
                yield from (f"{form} {unit}".strip() for form in [_nth(number), *_ORDINALS[number]])
            return


def _is_unit(text: str) -> bool:
    """Whether words after a number can be its unit: lower-case, and not a continuation of the number."""
    words = text.split()
    return all(re.fullmatch(r"[a-z][a-z'-]*", word) for word in words) and not (words and words[0] in _GOES_ON)


def _amount(text: str) -> Decimal | None:
    """The value of "12", "1,200", "3.5 million", "two hundred", "a thousand"; None for anything else."""
    head, _, scale = text.rpartition(" ")
    if scale not in _SCALES:
        return _plain(text)
    factor = Decimal(1) if head in ("", "a") else _plain(head)
    return None if factor is None else factor * _SCALES[scale]


def _plain(text: str) -> Decimal | None:
    if _DIGITS.fullmatch(text):
        return Decimal(text.replace(",", ""))
    return Decimal(_READ_WORDS[text]) if text in _READ_WORDS else None


def _amount_forms(value: Decimal) -> Iterator[str]:
    """Digits without and with commas; if it is round, with a scale ("3.5 million"); if it is short, in words."""
    digits = f"{value:f}"
    if "." in digits:
        digits = digits.rstrip("0").rstrip(".")
    if len(digits.partition(".")[0]) <= 15:  # longer ones would not be parsed again
        yield digits
        yield f"{Decimal(digits):,f}"
    if value in _WORDS:
        yield from _WORDS[int(value)]
    for scale, size in _SCALES.items():
        factor = value / size
        if not 1 <= factor < 1_000 or factor != round(factor, 0 if scale == "thousand" else 2):
            continue
        yield f"{factor.normalize():f} {scale}"
        if factor in _WORDS:
            yield from (f"{word} {scale}" for word in _WORDS[int(factor)])
        if factor == 1:
            yield f"a {scale}"


def _percent_forms(value: Decimal) -> Iterator[str]:
    for form in _amount_forms(value):
        if form[0].isdigit() and form[-1].isdigit():
            yield from (f"{form}%", f"{form} %")
        yield from (f"{form} percent", f"{form} per cent")


def _ordinal(text: str) -> int:
    """The number of "21st" or "twenty-first", 1 to 100; 0 for anything else, such as "21th"."""
    if found := _NTH.fullmatch(text):
        number = int(found[1])
        return number if text == _nth(number) else 0
    return _READ_ORDINALS.get(text, 0)


def _nth(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _date_forms(parts: dict[str, str | None]) -> Iterator[str]:
    """All orders of a date's parts; nothing for a day that does not exist, such as February 30."""
    number = int(parts.get("number") or 0) or 1 + [m[:3] for m in _MONTHS].index(
        (parts.get("month") or "")[:3] or "jan"
    )
    day, year = int(parts.get("day") or 0), parts.get("year") or ""
    try:
        date(int(year or 2000), number, day or 1)  # 2000 has a February 29
    except ValueError:
        return
    month = _MONTHS[number - 1].capitalize()
    if not day:
        yield from (f"{month} {year}", f"{month}, {year}", f"{month} of {year}")
        return
    orders = [f"{month} {day}", f"{day} {month}", f"{month} {_nth(day)}", f"{_nth(day)} {month}"]
    orders += [f"{_nth(day)} of {month}"]
    if not year:
        yield from orders
        return
    for order in orders:
        yield from (f"{order}, {year}", f"{order} {year}")
    yield f"{year}-{number:02}-{day:02}"
