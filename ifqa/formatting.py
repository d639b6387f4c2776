"""Text for people: counts, durations, and text from outside without control characters."""

import math
import re
from decimal import ROUND_HALF_UP, Decimal

#: Characters that can steer a terminal or are invisible: C0 except tab and newline, DEL, C1,
#: zero-width characters, marks that change the direction of text, line and paragraph separators,
#: lone surrogates, and tags. The joiners U+200C and U+200D are kept: words in Persian and Hindi
#: need them.
CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)

#: The beginning of a cell that a spreadsheet computes; "-5 km" and "+44 20" do nothing there.
_FORMULA = re.compile(r"[=@\t\r]|[+-].*[|!(=]")


def is_formula(text: str) -> bool:
    """Whether a spreadsheet that opens a table would compute this cell, and not show it."""
    return bool(_FORMULA.match(text))


def printable(text: str) -> str:
    """Replace `CONTROLS` by U+FFFD, so that text from outside cannot steer a terminal. Line breaks
    are kept.
    """
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def printable_line(text: str) -> str:
    """`printable` text on one line, so that a name or title from outside cannot forge a line."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def pluralize(count: float, noun: str, plural: str = "") -> str:
    """A count with its noun: "1 page", "2,000 pages"; `plural` defaults to the noun and an s."""
    number = f"{count:,.0f}"
    return f"{number} {noun if number == '1' else plural or noun + 's'}"


def one_decimal(number: float, sign: str = "") -> str:
    """A score as shown: rounded once, to one decimal, a half away from zero.

    `sign` "+" writes that of positive numbers too.

    Python's own ".1f" rounds a half to the even digit, so that 12.25 would be 12.2 and 12.75 would
    be 12.8.
    """
    if not math.isfinite(number):
        return str(number)
    tenths = Decimal(repr(round(number, 9))).quantize(Decimal("0.1"), ROUND_HALF_UP)
    return f"{tenths:{sign}}"


def format_duration(seconds: float) -> str:
    """A duration in one unit: "90 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
