"""Writes the numbers of lists (4, iv, d, 04, 4th) of Word, PowerPoint and OpenDocument."""

from collections.abc import Callable

from ifqa.corpus.documents.numerals import write_roman

_LONGEST = 9  # digits of a number in a file that is believed
_LARGEST_ROMAN = 4_999
_MOST_LETTERS = 10  # in a number: 260 is "zzzzzzzzzz"
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщыэюя"
_CHINESE = "〇一二三四五六七八九"
_SIGNS = "*†‡§"
_WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
_ORDINAL_WORDS = (
    "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth "
    "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
).split()


def parse_count(text: str | None, default: int = 0) -> int:
    """A whole number in a file; the default if it is none, or beyond reason."""
    is_number = text is not None and text.isascii() and text.isdecimal() and len(text) <= _LONGEST
    return int(text or "") if is_number else default


def format_number(number: int, style: str) -> str:
    """A number in the style of Word's `numFmt`; in digits where the style is not known."""
    writer = _WRITERS.get(style)
    written = writer(number) if writer and number >= 0 else ""
    return written or f"{number}"


def _roman(number: int) -> str:
    return write_roman(number) if number <= _LARGEST_ROMAN else ""


def _letters(number: int, alphabet: str = _LATIN) -> str:
    """After z comes aa, then bb."""
    times, place = divmod(number - 1, len(alphabet))
    return alphabet[place] * (times + 1) if number and times < _MOST_LETTERS else ""


def _ordinal(number: int) -> str:
    is_teen = 10 < number % 100 < 20
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if is_teen else ending}"


def _chinese(number: int) -> str:
    tens, ones = divmod(number, 10)
    if tens > 9:
        return ""
    if not tens:
        return _CHINESE[ones]
    return (_CHINESE[tens] if tens > 1 else "") + "十" + (_CHINESE[ones] if ones else "")


def _circled(number: int) -> str:
    return chr(0x2460 + number - 1) if 1 <= number <= 20 else ""


def _word(words: list[str]) -> Callable[[int], str]:
    return lambda number: words[number].capitalize() if number < len(words) else ""


_WRITERS: dict[str, Callable[[int], str]] = {
    "decimalZero": lambda number: f"{number:02}",
    "lowerRoman": _roman,
    "upperRoman": lambda number: _roman(number).upper(),
    "lowerLetter": _letters,
    "upperLetter": lambda number: _letters(number).upper(),
    "russianLower": lambda number: _letters(number, _RUSSIAN),
    "russianUpper": lambda number: _letters(number, _RUSSIAN).upper(),
    "ordinal": _ordinal,
    "cardinalText": _word(_WORDS),
    "ordinalText": _word(_ORDINAL_WORDS),
    "chicago": lambda number: _letters(number, _SIGNS),
    "numberInDash": lambda number: f"- {number} -",
    "decimalEnclosedCircle": _circled,
    "decimalEnclosedCircleChinese": _circled,
    "decimalEnclosedParen": lambda number: f"({number})",
    "decimalEnclosedFullstop": lambda number: f"{number}.",
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "taiwaneseCounting": _chinese,
    "taiwaneseCountingThousand": _chinese,
    "japaneseCounting": _chinese,
    "ideographDigital": _chinese,
    "hex": lambda number: f"{number:X}",
}
