"""Numbers the list items and headings of a Word document from before 2007: "5.4", "(a)", "iv."."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from struct import error, unpack_from

from ifqa.corpus.documents.list_numbers import format_number

_LEVELS = 9
_BULLET, _NONE = 23, 255
#: Numbers of formats -> their names in later versions of Word; others are written in digits.
_STYLES = {
    1: "upperRoman",
    2: "lowerRoman",
    3: "upperLetter",
    4: "lowerLetter",
    5: "ordinal",
    6: "cardinalText",
    7: "ordinalText",
    9: "chicago",
    11: "japaneseCounting",
    22: "decimalZero",
    26: "decimalEnclosedFullstop",
    27: "decimalEnclosedParen",
    57: "numberInDash",
    58: "russianLower",
    59: "russianUpper",
}


@dataclass(frozen=True, slots=True)
class _Level:
    start: int
    kind: int  # how it is written
    is_legal: bool  # whether the numbers of all levels are written in digits
    template: str  # with the characters 0 to 8 for the numbers of the levels


class Lists:
    """The lists of a document; `label` counts, so it is to be asked for each item in order."""

    def __init__(self, definitions: bytes, uses: bytes) -> None:
        self._levels = _read_levels(definitions)
        self._uses = _read_uses(uses)
        self._counts = defaultdict[int, list[int]](list)
        self._started = set[int]()

    def label(self, use: int, level: int) -> str | None:
        """The number or bullet of the next item of a list; None if it has none."""
        if not 0 < use <= len(self._uses) or level >= _LEVELS:
            return None
        identifier, starts = self._uses[use - 1]
        levels = self._levels.get(identifier, ())
        if level >= len(levels):
            return None
        counts = self._counts[identifier]
        if use not in self._started and starts:  # the list begins anew
            del counts[min(starts) :]
        self._started.add(use)
        del counts[level + 1 :]
        while len(counts) <= level:
            start = starts.get(len(counts), levels[len(counts)].start)
            counts.append(start - 1 if len(counts) == level else start)
        counts[level] += 1
        return _write_label(levels, level, counts)


def _write_label(levels: Sequence[_Level], level: int, counts: Sequence[int]) -> str | None:
    own = levels[level]
    if own.kind == _BULLET:
        return "•"
    if own.kind == _NONE or not own.template.strip():
        return None
    parts = list[str]()
    for char in own.template:
        place = ord(char)
        if place >= _LEVELS:
            parts.append(char)
        elif place <= level and levels[place].kind != _NONE:
            style = "decimal" if own.is_legal else _STYLES.get(levels[place].kind, "decimal")
            parts.append(format_number(counts[place], style))
    return "".join(parts).strip()


def _read_levels(table: bytes) -> dict[int, Sequence[_Level]]:
    """Number of a list -> its levels."""
    lists = dict[int, Sequence[_Level]]()
    try:
        count = unpack_from("<H", table)[0]
        at = 2 + 28 * count
        for number in range(count):
            identifier = unpack_from("<i", table, 2 + 28 * number)[0]
            is_simple = table[2 + 28 * number + 26] & 1
            levels = list[_Level]()
            for _ in range(1 if is_simple else _LEVELS):
                level, at = _read_level(table, at)
                levels.append(level)
            lists[identifier] = levels
    except (error, IndexError):  # damaged, so the lists after it have no numbers
        pass
    return lists


def _read_level(table: bytes, at: int) -> tuple[_Level, int]:
    start, kind, flags = unpack_from("<iBB", table, at)
    characters = table[at + 24]
    paragraph = table[at + 25]
    at += 28 + characters + paragraph
    length = unpack_from("<H", table, at)[0]
    template = table[at + 2 : at + 2 + 2 * length].decode("utf-16-le", "ignore")
    return _Level(start, kind, bool(flags & 4), template), at + 2 + 2 * length


def _read_uses(table: bytes) -> list[tuple[int, dict[int, int]]]:
    """The number of the list of each use, and the starts of the levels that it begins anew."""
    uses = list[tuple[int, dict[int, int]]]()
    try:
        count = unpack_from("<I", table)[0]
        at = 4 + 16 * count
        for number in range(count):
            identifier = unpack_from("<i", table, 4 + 16 * number)[0]
            changes = table[4 + 16 * number + 12]
            starts = dict[int, int]()
            uses.append((identifier, starts))
            at += 4
            for _ in range(changes):
                start, flags = unpack_from("<iI", table, at)
                at += 8
                if flags & 0x20:
                    level, at = _read_level(table, at)
                    start = level.start
                if flags & 0x10:
                    starts[flags & 15] = start
    except (error, IndexError):
        pass
    return uses
