"""Numbers the items of a list in HTML: `start`, `reversed`, `type` and `value`."""

import re
from dataclasses import dataclass, field

from ifqa.corpus.documents.html_tables import Line
from ifqa.corpus.documents.numerals import write_number

DEEPEST_LISTS = 100
_INTEGER = re.compile(r"\s*([-+]?\d{1,9})")
_STYLE = re.compile(r"list-style(?:-type)?\s*:\s*([a-z -]{1,60})", re.I)
_TYPES = {
    "lower-alpha": "a",
    "lower-latin": "a",
    "upper-alpha": "A",
    "upper-latin": "A",
    "lower-roman": "i",
    "upper-roman": "I",
    "decimal": "1",
    "none": "",
    "disc": "",
    "circle": "",
    "square": "",
}


@dataclass(slots=True)
class OpenList:
    """A list while it is open."""

    name: str  # of its element
    style: str  # of its numbers: "1", "a", "A", "i" or "I"; empty without numbers
    number: int  # of the next item
    step: int = 1
    is_counted: bool = False  # whether its numbers go backwards from the number of its items
    lines: list[Line] = field(default_factory=list)  # that begin an item
    term_start: int = -1  # of a description: the first line of the open term; -1 without
    term: str = ""  # the last term

    def next_label(self, attributes: dict[str, str]) -> str:
        """The number of the next item as it is shown, with its full stop; empty without."""
        if not self.style:
            return ""
        value = _INTEGER.match(attributes.get("value", ""))
        if value:
            self.number = int(value[1])
            self.is_counted = False
        style = attributes.get("type", self.style)
        label = write_number(self.number, style if style in "1aAiI" else "1")
        self.number += self.step
        return f"{label}."

    def number_backwards(self) -> None:
        """Number the items of a `reversed` list without a `start`, when their count is known."""
        if not self.is_counted:
            return
        for place, line in enumerate(self.lines):
            rest = line.pieces[0].partition(" ")[2]
            line.pieces[0] = f"{write_number(len(self.lines) - place, self.style)}. {rest}"


def start_list(name: str, attributes: dict[str, str]) -> OpenList:
    """The list that a start tag opens."""
    if name != "ol":
        return OpenList(name, "", 1)
    kind = attributes.get("type", "1")
    style = kind if kind in ("1", "a", "A", "i", "I") else "1"
    if declared := _STYLE.search(attributes.get("style", "")):
        for word in declared[1].lower().split():
            style = _TYPES.get(word, style)
    first = _INTEGER.match(attributes.get("start", ""))
    is_reversed = "reversed" in attributes
    return OpenList(
        name,
        style,
        int(first[1]) if first else 1,
        -1 if is_reversed else 1,
        is_reversed and not first and bool(style),
    )
