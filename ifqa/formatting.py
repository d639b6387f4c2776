"""Text for people: counts, durations, and text from outside without control characters."""

import re

#: Characters that can steer a terminal or are invisible: C0 but tab and newline, DEL and C1; zero-width ones; the marks that
#: reverse the order of text; line and paragraph separators; half surrogate pairs; tags. The joiners U+200C and U+200D are
#: part of words in Persian and Hindi, and stay.
CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """The text with U+FFFD for each of `CONTROLS`, so that text from outside cannot steer a terminal. Line breaks stay."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def printable_line(text: str) -> str:
    """`printable` text in one line: a name or title from outside cannot start a new line."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def pluralize(count: float, noun: str, plural: str = "") -> str:
    """A count with its noun: "1 page", "2,000 pages"; the plural is the noun and an s unless `plural` is given."""
    number = f"{count:,.0f}"
    return f"{number} {noun if number == '1' else plural or noun + 's'}"


def format_duration(seconds: float) -> str:
    """A duration in one unit: "90 s", "12 min", "3.5 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
