"""Reads the characters of symbol fonts: Symbol, Wingdings and Webdings.

Office writes them as letters of these fonts, or in the private range from U+F000. Those that
Unicode has, and that say something, are given as Unicode; the others, such as ornaments, are left
out.
"""

from collections.abc import Mapping

from ifqa.corpus.documents.symbol_font import symbol_text

_PRIVATE = range(0xF020, 0xF100)
_BULLET = "•"
_WINGDINGS = {
    0x2A: "✉",
    0x28: "☎",
    0x4A: "☺",
    0x4B: "😐",
    0x4C: "☹",
    0x6C: "●",
    0x6E: "■",
    0x6F: "☐",
    0x70: "☐",
    0x71: "☐",
    0x72: "☐",
    0x76: "❖",
    0x80: "⓪",
    **{0x81 + place: chr(0x2460 + place) for place in range(10)},
    0x8B: "⓿",
    **{0x8C + place: chr(0x2776 + place) for place in range(10)},
    0x9E: "·",
    0x9F: _BULLET,
    0xA1: "○",
    0xA7: "▪",
    0xA8: "☐",
    0xAB: "★",
    0xD8: "➢",
    0xDF: "←",
    0xE0: "→",
    0xE1: "↑",
    0xE2: "↓",
    0xE8: "→",
    0xEF: "⇦",
    0xF0: "⇨",
    0xF3: "⇔",
    0xFB: "✗",
    0xFC: "✓",
    0xFD: "☒",
    0xFE: "☑",
}
_WINGDINGS_2 = {
    0x4F: "✗",
    0x50: "✓",
    0x51: "☒",
    0x52: "☑",
    0x53: "☒",
    0x54: "☒",
    0xA3: "☐",
    **{0x6A + place: chr(0x2460 + place) for place in range(10)},
}
_WINGDINGS_3 = {0x66: "←", 0x67: "→", 0x68: "↑", 0x69: "↓", 0x7D: "▶"}
_WEBDINGS = {0x61: "✓", 0x63: "☐", 0x67: "■", 0x72: "✗", 0x3D: "●"}


_TABLES = {
    "symbol": {code: symbol_text(bytes([code])) for code in range(0x21, 0x100)},
    "wingdings": _WINGDINGS,
    "wingdings 2": _WINGDINGS_2,
    "wingdings 3": _WINGDINGS_3,
    "webdings": _WEBDINGS,
}


def _translation(table: Mapping[int, str]) -> dict[int, str]:
    """What characters of a font become: those beyond the table nothing, but a blank stays."""
    codes = range(0x21, 0x100)
    letters = {code: table.get(code, "") for code in codes}
    private = {0xF000 + code: table.get(code, "") for code in codes}
    return {**letters, **private, 0xF020: " "}


_TRANSLATIONS = {name: _translation(table) for name, table in _TABLES.items()}


def is_symbol_font(font: str) -> bool:
    """Whether the characters of a font by this name can be read."""
    return font.lower() in _TRANSLATIONS


def plain_symbols(text: str, font: str) -> str:
    """The text of a run in a font, if it is one of symbols in Unicode, else unchanged."""
    translation = _TRANSLATIONS.get(font.lower()) if font else None
    return text.translate(translation) if translation else text


def symbol(code: str, font: str) -> str:
    """The character with a hexadecimal code in a font; empty if Unicode has none."""
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    if font.lower() in _TRANSLATIONS:
        return plain_symbols(chr(number), font) if 0 < number < 0xF100 else ""
    is_private = number in _PRIVATE or 0xE000 <= number < 0xF900 or 0xD800 <= number < 0xE000
    return "" if is_private or not 0 < number < 0x110000 else chr(number)
