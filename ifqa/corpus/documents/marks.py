"""Writes superscripts, subscripts, note marks and ruby in plain text: 10^24, 1 1/2, mill 3.

A reader wraps such a piece by `raised`, `lowered`, `note_mark` or `ruby`; `write_marks` resolves
them when the whole paragraph is known, because the rule depends on the text before. Exponents and
fractions are written as the reader of Wikipedia's dumps writes them (wikipedia/wikitext.py).
"""

import re
from collections.abc import Callable

# Characters that Unicode keeps for a program's own use, so no document has them.
_RAISED = "\ufdd0"
_RAISED_END = "\ufdd1"
_LOWERED = "\ufdd2"
_LOWERED_END = "\ufdd3"
_NOTE = "\ufdd4"
_NOTE_END = "\ufdd5"
_RUBY = "\ufdd6"
_RUBY_END = "\ufdd7"
_PIECE = re.compile("([\ufdd0\ufdd2\ufdd4\ufdd6])([^\ufdd0-\ufdd7]*)([\ufdd1\ufdd3\ufdd5\ufdd7])")
_STRAY = re.compile("[\ufdd0-\ufdd7]")
_FRACTION = re.compile(
    f"{_RAISED}(\\d{{1,3}}){_RAISED_END}[/⁄]{_LOWERED}(\\d{{1,3}}){_LOWERED_END}"
)
_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
_PLAIN_DIGITS = str.maketrans(_SUPERSCRIPTS, "0123456789+−")
_VULGAR = {
    "½": "1/2",
    "⅓": "1/3",
    "⅔": "2/3",
    "¼": "1/4",
    "¾": "3/4",
    "⅕": "1/5",
    "⅖": "2/5",
    "⅗": "3/5",
    "⅘": "4/5",
    "⅙": "1/6",
    "⅚": "5/6",
    "⅛": "1/8",
    "⅜": "3/8",
    "⅝": "5/8",
    "⅞": "7/8",
}
_MIXED_NUMBER = re.compile(rf"(?<=\d) ?([{''.join(_VULGAR)}])")
_SUPERSCRIPT_DIGITS = re.compile(f'(?<=[\\w.,;:!?)"”’])[{_SUPERSCRIPTS}]+')
_BEFORE = 24  # characters before a mark that decide how it is written
_YEAR = re.compile(r"(?<!\d)(?:1[0-9]|20)\d\d\Z")
_WORD = re.compile(r"[^\W\d_]+\Z")
_EXPONENT = re.compile(r"[-+−–]?\d+(?:[./]\d+)?")
_NUMBER = re.compile(r"\d{1,3}(?:\s?[,–-]\s?\d{1,3})*")  # of notes: "3", "3, 5"
_SYMBOLS = re.compile(r"\[.{1,12}\]|[*†‡§¶#]{1,3}")
_ORDINALS = frozenset("st nd rd th er re e ème eme o º ª".split())
#: A digit above one of these is an exponent: km2.
_UNITS = frozenset("m km cm mm dm nm µm μm ft in yd mi h kg hm min sec deg".split())


def raised(text: str) -> str:
    """Mark a superscript."""
    return f"{_RAISED}{text}{_RAISED_END}"


def lowered(text: str) -> str:
    """Mark a subscript."""
    return f"{_LOWERED}{text}{_LOWERED_END}"


def shifted(text: str, shift: int | None) -> str:
    """Mark a superscript if `shift` is above 0, a subscript if below; blanks around it stay."""
    inner = text.strip()
    if not shift or not inner:
        return text
    start = text.index(inner)
    piece = raised(inner) if shift > 0 else lowered(inner)
    return text[:start] + piece + text[start + len(inner) :]


def note_mark(text: str) -> str:
    """Mark the number or sign of a note, which is no part of the word before it."""
    return f"{_NOTE}{text}{_NOTE_END}"


def ruby(text: str) -> str:
    """Mark the reading of the characters before it, which is shown above them."""
    return f"{_RUBY}{text}{_RUBY_END}"


def write_marks(text: str) -> str:
    """The text with its marked pieces, superscript digits and mixed numbers in plain characters."""
    if _PIECE.search(text):
        # A word processor may cut "24" into two pieces of one digit
        text = text.replace(_RAISED_END + _RAISED, "").replace(_LOWERED_END + _LOWERED, "")
        text = _FRACTION.sub(_write_fraction, text)
        text = _write_pieces(text)
    text = _STRAY.sub("", text)
    text = _SUPERSCRIPT_DIGITS.sub(_write_superscript, text)
    return _MIXED_NUMBER.sub(lambda match: f" {_VULGAR[match[1]]}", text)


def _write_fraction(match: re.Match[str]) -> str:
    before = match.string[match.start() - 1 : match.start()] if match.start() else ""
    apart = " " if before.isdecimal() else ""
    return f"{apart}{match[1]}/{match[2]}"


def _write_pieces(text: str) -> str:
    written = list[str]()
    before = ""
    position = 0
    for match in _PIECE.finditer(text):
        plain = text[position : match.start()]
        before = (before + plain)[-_BEFORE:]
        piece = _WRITERS[match[1]](before, match[2].strip())
        after = text[match.end() : match.end() + 1]
        if piece.startswith(" ") and after.isalnum():
            piece += " "
        written += [plain, piece]
        before = (before + piece)[-_BEFORE:]
        position = match.end()
    return "".join([*written, text[position:]])


def _write_superscript(match: re.Match[str]) -> str:
    """Superscript digits of Unicode: an exponent or a note mark in plain digits, else unchanged."""
    before = match.string[max(match.start() - _BEFORE, 0) : match.start()]
    plain = match[0].translate(_PLAIN_DIGITS)
    piece = _write_raised(before, plain)
    return match[0] if piece == plain else piece


def _write_raised(before: str, text: str) -> str:
    """A superscript after the text `before`: an exponent, a note mark, or a part of the word."""
    if not text:
        return ""
    if _SYMBOLS.fullmatch(text):
        return _write_apart(before, text)
    if before[-1:].isdecimal():
        return _write_after_digit(before, text)
    if not _NUMBER.fullmatch(text):
        return text
    word = _WORD.search(before)
    if word is None:
        return _write_apart(before, text) if before[-1:] in '.,;:!?)"”’]' else text
    is_base = len(word[0]) == 1 or word[0] in _UNITS  # x2, km2
    return text if is_base else _write_apart(before, text)


def _write_after_digit(before: str, text: str) -> str:
    if _EXPONENT.fullmatch(text):
        if _YEAR.search(before) and _NUMBER.fullmatch(text):
            return _write_apart(before, text)
        return f"^{text}"
    if text.casefold() in _ORDINALS:
        return text
    if len(text) == 1 and text.isalpha():  # notes of a table are a, b, c; exponents are n, k, x
        return _write_apart(before, text) if text in "abcdefgh" else f"^{text}"
    return text


def _write_apart(before: str, text: str) -> str:
    return text if not before or before[-1:].isspace() else f" {text}"


def _write_lowered(before: str, text: str) -> str:
    """A subscript: CO2, and 101_2 after a digit."""
    is_number = before[-1:].isdecimal() and text[:1].isdecimal()
    return f"_{text}" if is_number else text


def _write_ruby(before: str, text: str) -> str:
    return f"({text})" if text else ""


_WRITERS: dict[str, Callable[[str, str], str]] = {
    _RAISED: _write_raised,
    _LOWERED: _write_lowered,
    _NOTE: _write_apart,
    _RUBY: _write_ruby,
}
