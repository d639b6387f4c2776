"""Writes a cell's number, date or duration as a spreadsheet shows it, by the cell's format code.

A code has up to four sections, for positive and negative numbers, zero and text: ISO/IEC 29500-1,
18.8.31. A date in the format "as the system writes it" is written as 2024-03-14.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache

_SYSTEM_DATES = {"mm-dd-yy": "yyyy-mm-dd", "m/d/yy h:mm": "yyyy-mm-dd hh:mm"}
_GENERAL = re.compile("general|@", re.I)
#: A quoted text, an escaped or padding character, a bracket, a run of one letter, or a character.
_TOKEN = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<escaped>.)|[_*](?P<padding>.)|\[(?P<bracket>[^\]]*)\]'
    r"|(?P<noon>AM/PM|A/P)|(?P<letters>[yY]+|[mM]+|[dD]+|[hH]+|[sS]+(?:\.0+)?)|(?P<other>.)",
    re.S,
)
_DIGITS = re.compile(r"[0#?][0#?,]*(?:\.[0#?]*)?,*|\.[0#?]+,*")
_CONDITION = re.compile(r"([<>]=?|=|<>)(-?\d+(?:\.\d+)?)")
_CURRENCY = re.compile(r"\$([^-]*)")
_DAY_ZERO = datetime(1899, 12, 30)
_LONGEST_CODE = 255  # characters; a spreadsheet allows no more


def format_value(value: object, code: str) -> str:
    """The text that a cell shows for its value in a format."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return value
    sections = _sections(code[:_LONGEST_CODE])
    if isinstance(value, int | float | Decimal):
        return _format_number(value, sections)
    if isinstance(value, datetime | date | time | timedelta):
        return _format_moment(value, sections[0])
    return str(value)


@lru_cache(maxsize=512)
def _sections(code: str) -> tuple[tuple[re.Match[str], ...], ...]:
    """The tokens of each section of a code."""
    sections: list[list[re.Match[str]]] = [[]]
    for token in _TOKEN.finditer(_SYSTEM_DATES.get(code, code)):
        if token["other"] == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    return tuple(map(tuple, sections))


def plain_number(value: float | Decimal) -> str:
    """A number without a format, with all its digits."""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e21:
            return str(int(value))
        return f"{value:.15g}"  # a spreadsheet keeps 15 digits
    return str(value)


def _format_number(value: float | Decimal, sections: Sequence[Sequence[re.Match[str]]]) -> str:
    tokens, is_unsigned = _choose_section(value, sections)
    pattern = "".join(token["other"] or "" for token in tokens)
    if not _DIGITS.search(pattern):
        return _write_general(value, tokens, len(sections) > 1)
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        return str(value)
    sign = "-" if number < 0 and not is_unsigned else ""
    return (sign + _write_number(abs(number), tokens)).strip()


def _write_general(
    value: float | Decimal, tokens: Sequence[re.Match[str]], is_one_of_several: bool
) -> str:
    """A number in a section without digits: "General", perhaps with a unit, "@", or text alone."""
    literals = _literals(tokens)
    if not literals and not is_one_of_several:
        return plain_number(value)
    number = plain_number(value)
    if is_one_of_several:
        number = number.removeprefix("-")
    return _GENERAL.sub(number, literals).strip()


def _choose_section(
    value: float | Decimal, sections: Sequence[Sequence[re.Match[str]]]
) -> tuple[Sequence[re.Match[str]], bool]:
    """The section for a number, and whether it writes the sign of a negative one itself."""
    for number, section in enumerate(sections[:2]):
        condition = next(
            filter(None, (_CONDITION.fullmatch(t["bracket"] or "") for t in section)), None
        )
        if condition and _meets(float(value), condition[1], float(condition[2])):
            return section, number == 1 and value < 0
        if condition and number == 0 and len(sections) > 1:
            return sections[-1 if len(sections) > 2 else 1], False
    if value < 0 and len(sections) > 1:
        return sections[1], True
    if value == 0 and len(sections) > 2:
        return sections[2], False
    return sections[0], False


def _meets(value: float, operator: str, limit: float) -> bool:
    return {
        "<": value < limit,
        "<=": value <= limit,
        ">": value > limit,
        ">=": value >= limit,
        "=": value == limit,
        "<>": value != limit,
    }[operator]


def _literal(token: re.Match[str]) -> str:
    """What a token other than a placeholder shows."""
    if token["bracket"] is not None:
        currency = _CURRENCY.match(token["bracket"])
        return currency[1] if currency else ""
    if token["padding"] is not None:
        return " " if token[0].startswith("_") else ""
    return token["text"] or token["escaped"] or ""


def _literals(tokens: Sequence[re.Match[str]]) -> str:
    return "".join(_literal(token) or token["other"] or token["letters"] or "" for token in tokens)


def _write_number(number: Decimal, tokens: Sequence[re.Match[str]]) -> str:
    """A number that is not negative, by the placeholders of a section."""
    pattern = "".join(token["other"] or "\0" for token in tokens)
    if "/" in pattern:
        return _write_fraction(number, pattern)
    if "E" in pattern.upper():
        return _write_exponent(number, pattern)
    if "%" in pattern:
        number *= 100 ** pattern.count("%")
    digits = _DIGITS.search(pattern)
    if digits is None:  # not reached: the caller looked for one
        return str(number)
    if "." not in pattern and _DIGITS.search(pattern, digits.end()):
        return _write_groups(number, tokens)
    number, code = _scale(number, digits[0])
    return _fill(tokens, pattern, digits.span(), _write_digits(number, code))


def _scale(number: Decimal, digits: str) -> tuple[Decimal, str]:
    """A number divided by 1,000 for each comma at the end of its whole or decimal digits: "0.0,,".

    With it the digits without these commas.
    """
    whole, point, decimals = digits.partition(".")
    code = whole.rstrip(",") + point + decimals.rstrip(",")
    return number / 1000 ** (len(digits) - len(code)), code


def _write_groups(number: Decimal, tokens: Sequence[re.Match[str]]) -> str:
    """A number whose digits have literals between them: 555-1234."""
    digits = list(f"{number.quantize(Decimal(1), ROUND_HALF_UP):f}".lstrip("0"))
    first = next(place for place, token in enumerate(tokens) if _is_placeholder(token))
    parts = list[str]()
    for place in range(len(tokens) - 1, -1, -1):
        token = tokens[place]
        zero = "0" * (token["other"] == "0")
        if not _is_placeholder(token):
            parts.append(_literal(token) + (token["other"] or ""))
        elif place == first:
            parts.append("".join(digits) or zero)
        else:
            parts.append(digits.pop() if digits else zero)
    return "".join(reversed(parts))


def _is_placeholder(token: re.Match[str]) -> bool:
    return token["other"] is not None and token["other"] in "0#?"


def _fill(tokens: Sequence[re.Match[str]], pattern: str, span: tuple[int, int], digits: str) -> str:
    """The literals of a section around its digits; further placeholders are dropped."""
    parts = list[str]()
    for place, token in enumerate(tokens):
        if place == span[0]:
            parts.append(digits)
        elif not span[0] < place < span[1]:
            other = token["other"] or ""
            parts.append(_literal(token) + (other if other not in "0#?," else ""))
    return "".join(parts)


def _write_digits(number: Decimal, code: str) -> str:
    whole, _, decimals = code.partition(".")
    rounded = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    integer, _, fraction = f"{rounded:f}".partition(".")
    integer = integer.lstrip("0").rjust(whole.replace(",", "").count("0"), "0")
    if "," in whole:
        integer = f"{int(integer or 0):,}".rjust(len(integer), "0") if integer else ""
    fewest = len(decimals.rstrip("#?"))
    while len(fraction) > fewest and fraction.endswith("0"):
        fraction = fraction[:-1]
    if not integer and not fraction:
        return "0" if "0" in whole else ""
    return f"{integer}.{fraction}" if fraction else integer


def _write_exponent(number: Decimal, pattern: str) -> str:
    mantissa, _, _ = pattern.upper().partition("E")
    _, _, decimals = mantissa.partition(".")
    return f"{float(number):.{sum(map(decimals.count, '0#?'))}E}"


def _write_fraction(number: Decimal, pattern: str) -> str:
    """A number as a mixed fraction: "1 1/2"."""
    _, _, below = pattern.partition("/")
    digits = re.match(r"[\s\d#?]*", below)[0].strip()  # type: ignore[index]  # matches
    whole = int(number)
    numerator, denominator = _nearest_fraction(Fraction(number - whole), digits)
    if numerator == denominator:
        return str(whole + 1)
    if not numerator:
        return str(whole)
    shown = f"{numerator}/{denominator}"
    return f"{whole} {shown}" if whole else shown


def _nearest_fraction(part: Fraction, digits: str) -> tuple[int, int]:
    """Numerator and denominator, by the number of the denominator's digits.

    A denominator that the code names is kept: "# ?/8" writes 0.25 as "2/8".
    """
    if digits.isdecimal() and int(digits):
        denominator = int(digits)
        return int(part * denominator + Fraction(1, 2)), denominator
    return part.limit_denominator(10 ** (len(digits) or 1) - 1).as_integer_ratio()


def _format_moment(value: date | time | timedelta, tokens: Sequence[re.Match[str]]) -> str:
    if not any(token["letters"] or _is_elapsed(token) for token in tokens):
        return _iso(value)
    parts = list[str]()
    has_noon = any(token["noon"] for token in tokens)
    moment = _as_datetime(value)
    for place, token in enumerate(tokens):
        if _is_elapsed(token):
            parts.append(_elapsed(moment, token["bracket"]))
        elif token["noon"]:
            parts.append("PM" if moment.hour >= 12 else "AM")
        elif token["letters"]:
            parts.append(_date_part(moment, _as_minutes(tokens, place), has_noon))
        else:
            parts.append(_literal(token) or token["other"] or "")
    return "".join(parts).strip().removesuffix(";@")


def _is_elapsed(token: re.Match[str]) -> bool:
    bracket = (token["bracket"] or "").casefold()
    return bracket != "" and bracket[0] in "hms" and bracket == bracket[0] * len(bracket)


def _as_datetime(value: date | time | timedelta) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, timedelta):
        return _DAY_ZERO + value
    if isinstance(value, time):
        return datetime.combine(_DAY_ZERO, value)
    return datetime.combine(value, time())


def _iso(value: date | time | timedelta) -> str:
    if isinstance(value, timedelta):
        return _elapsed(_DAY_ZERO + value, "h") + f":{(_DAY_ZERO + value):%M:%S}"
    return str(value).removesuffix(" 00:00:00")


def _elapsed(moment: datetime, unit: str) -> str:
    seconds = round((moment - _DAY_ZERO).total_seconds())
    count = seconds // {"h": 3600, "m": 60, "s": 1}[unit[0].casefold()]
    return str(count).rjust(len(unit), "0")


def _as_minutes(tokens: Sequence[re.Match[str]], place: int) -> str:
    """The letters of a token; of "m" for minutes, which stand beside hours or seconds, "n"."""
    letters: str = tokens[place]["letters"].casefold()
    if letters[0] != "m" or len(letters) > 2:
        return letters
    before = next(_units(reversed(tokens[:place])), "")
    after = next(_units(iter(tokens[place + 1 :])), "")
    return letters.replace("m", "n") if before == "h" or after == "s" else letters


def _units(tokens: Iterator[re.Match[str]]) -> Iterator[str]:
    for token in tokens:
        if token["letters"] or _is_elapsed(token):
            yield (token["letters"] or token["bracket"])[0].casefold()


def _date_part(moment: datetime, letters: str, has_noon: bool) -> str:
    hour = (moment.hour - 1) % 12 + 1 if has_noon else moment.hour
    whole, _, decimals = letters.partition(".")
    texts = {
        "yy": f"{moment:%y}",
        "yyyy": f"{moment.year:04}",
        "m": str(moment.month),
        "mm": f"{moment.month:02}",
        "mmm": f"{moment:%b}",
        "mmmm": f"{moment:%B}",
        "mmmmm": f"{moment:%b}"[:1],
        "d": str(moment.day),
        "dd": f"{moment.day:02}",
        "ddd": f"{moment:%a}",
        "dddd": f"{moment:%A}",
        "h": str(hour),
        "hh": f"{hour:02}",
        "n": str(moment.minute),
        "nn": f"{moment.minute:02}",
        "s": str(moment.second),
        "ss": f"{moment.second:02}",
    }
    fallback = texts["yyyy"] if whole[0] == "y" else texts.get(whole[:1] * 2, "")
    shown = texts.get(whole, fallback)
    return (
        f"{shown}.{moment.microsecond:06}"[: len(shown) + 1 + len(decimals)] if decimals else shown
    )
