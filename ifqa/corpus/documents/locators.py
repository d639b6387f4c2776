"""Where a passage of a document stands: its file and page or line, which its id says.

`handbook.pdf#31:page=12,13@412` is passage 31 of handbook.pdf. It begins on page 12; its character 412 is the first on page 13.
`notes.md#0:line=1-9` stands in the lines 1 to 9. White space, `#` and `%` in the file's name are percent-encoded, because an id
of a TREC run has no white space.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import quote, unquote_to_bytes

Unit = Literal["page", "line", "paragraph", "part", "row"]
_ID = re.compile(rf"(?s)(.+)#\d+:({'|'.join(get_args(Unit))})=(\d+)(?:-(\d+))?((?:,\d+@\d+)*)")
_REFUSED = re.compile(r"[\s%#\x00-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a document: the file's path below its folder, to be read, and the pages or lines `first` to `last`."""

    file: str
    unit: Unit
    first: int
    last: int

    def __str__(self) -> str:
        unit, units = ("p.", "pp.") if self.unit == "page" else (self.unit, f"{self.unit}s")
        where = f"{unit} {self.first}" if self.first == self.last else f"{units} {self.first}-{self.last}"
        return f"{self.file}, {where}"


def passage_id(file: str, number: int, unit: Unit, places: Sequence[tuple[int, int]]) -> str:
    """The id of a passage.

    Args:
        file: the file's path below its folder.
        number: of the passage in the file, from 0.
        unit: what `places` count.
        places: (page or line, its first character in the passage), in their order; the first character is 0.
    """
    first, last = places[0][0], places[-1][0]
    where = f"{first}" if first == last else f"{first}-{last}"
    if unit == "page":
        where = ",".join([f"{first}", *(f"{place}@{start}" for place, start in places[1:])])
    named = _REFUSED.sub(lambda match: quote(os.fsencode(match[0]), safe=""), file)
    return f"{named}#{number}:{unit}={where}"


def place_of(passage_id: str, at: int | None = None) -> Place | None:
    """Where a passage stands; None for a passage that is from no document.

    Args:
        passage_id: the passage's id.
        at: a character of the passage, whose own page is then given.
    """
    match = _ID.fullmatch(passage_id)
    if match is None:
        return None
    file, first, last, more = match[1], match[3], match[4], match[5]
    unit = cast(Unit, match[2])
    pages = [(int(first), 0), *((int(page), int(start)) for page, start in re.findall(r"(\d+)@(\d+)", more))]
    reached = [page for page, start in pages if at is None or start <= at]
    name = unquote_to_bytes(file).decode("utf-8", "replace")
    if unit == "page":
        return Place(name, unit, reached[-1] if at is not None else reached[0], reached[-1])
    return Place(name, unit, int(first), int(last or first))
