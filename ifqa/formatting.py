"""Text for people: counts, durations, and text from outside without control characters."""

import re

#: Characters that can steer a terminal or are invisible: C0 except tab and newline, DEL, C1, zero-width characters, marks that
#: change the direction of text, line and paragraph separators, lone surrogates, and tags. The joiners U+200C and U+200D are kept:
#: words in Persian and Hindi need them.
CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Replace `CONTROLS` by U+FFFD, so that text from outside cannot steer a terminal. Line breaks are kept."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def printable_line(text: str) -> str:
    """`printable` text on one line, so that a name or title from outside cannot forge a line."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def pluralize(count: float, noun: str, plural: str = "") -> str:
    """A count with its noun: "1 page", "2,000 pages"; `plural` defaults to the noun and an s."""
    number = f"{count:,.0f}"
    return f"{number} {noun if number == '1' else plural or noun + 's'}"


def format_duration(seconds: float) -> str:
    """A duration in one unit: "90 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
