"""The automatic numbers of the list items and headings of a Word document."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.list_numbers import format_number, parse_count
from ifqa.corpus.documents.office import WORD, is_on
from ifqa.corpus.documents.word_styles import VALUE, Style, value_of

_LEVELS = 9
_LONGEST_TEXT = 100  # characters of a level's text
_PLACE = re.compile(r"%([1-9])")
_SIGNS = ("bullet", "none")  # formats without a number


@dataclass(frozen=True, slots=True)
class _Level:
    """How a level of a list is numbered."""

    start: int = 1
    style: str = "decimal"
    text: str = ""  # such as "%1.%2"
    in_digits: bool = False  # whether the numbers of higher levels are in digits, too
    restart: int | None = None  # it restarts after a level below this number; None: after each
    separator: str = " "
    paragraph_style: str = ""


@dataclass(slots=True)
class _List:
    """A list as a paragraph refers to it (w:num)."""

    definition: str  # the id of the w:abstractNum, whose numbers it shares
    levels: Mapping[int, _Level]
    restarts: frozenset[int] = frozenset()  # levels that begin anew with its first item
    is_open: bool = False


@dataclass(slots=True)
class _Definition:
    levels: dict[int, _Level] = field(default_factory=dict)
    link: str = ""  # the style that has its levels


@dataclass(frozen=True, slots=True)
class Label:
    """What stands before the text of an item: "2." and a blank; empty for a bullet."""

    text: str
    is_item: bool


_NO_LABEL = Label("", False)


class Numbering:
    """The lists of a document, and the number that each of them has reached."""

    def __init__(self, tree: Element | None, styles: Mapping[str, str]) -> None:
        """`styles` are ids of styles with the ids of the lists that they set."""
        self._lists: dict[str, _List] = {}
        self._counts: dict[str, dict[int, int]] = {}
        if tree is None:
            return
        definitions = {
            element.get(f"{WORD}abstractNumId") or "": _parse_definition(element)
            for element in tree.iter(f"{WORD}abstractNum")
        }
        elements = {
            element.get(f"{WORD}numId") or "": element for element in tree.iter(f"{WORD}num")
        }
        for number, element in elements.items():
            name = value_of(element.find(f"{WORD}abstractNumId"))
            definition = definitions.get(name, _Definition())
            if definition.link:
                linked = elements.get(styles.get(definition.link, ""))
                if linked is not None:
                    name = value_of(linked.find(f"{WORD}abstractNumId"))
                    definition = definitions.get(name, definition)
            self._lists[number] = _parse_list(element, name, definition)

    def label(self, list_id: str | None, level: str | None, style: Style) -> Label:
        """Count a paragraph, and say what stands before it.

        `list_id` and `level` are what the paragraph sets; its style sets the rest.
        """
        numbered = self._lists.get(list_id if list_id is not None else style.list_id or "")
        if numbered is None:
            return _NO_LABEL
        place = self._level_of(numbered, list_id, level, style)
        levels = numbered.levels
        if place not in levels:
            return Label("", True)
        counts = self._counts.setdefault(numbered.definition, {})
        if not numbered.is_open:
            numbered.is_open = True
            for each in numbered.restarts:
                counts.pop(each, None)
        for above in range(place):  # a level that is passed over counts as begun
            if above in levels:
                counts.setdefault(above, levels[above].start)
        counts[place] = counts[place] + 1 if place in counts else levels[place].start
        for below in [each for each in counts if each > place]:
            restart = levels[below].restart if below in levels else None
            if restart is None or place < restart:
                del counts[below]
        return _write_label(levels, place, counts)

    @staticmethod
    def _level_of(numbered: _List, list_id: str | None, level: str | None, style: Style) -> int:
        if level is None and list_id is None:
            level = style.list_level
        if level is not None:
            return parse_count(level)
        linked = (
            place
            for place, each in numbered.levels.items()
            if each.paragraph_style and each.paragraph_style in style.ids
        )
        return next(linked, 0)


def _write_label(levels: Mapping[int, _Level], place: int, counts: Mapping[int, int]) -> Label:
    level = levels[place]
    if level.style == "bullet":
        return Label("", True)

    def number(match: re.Match[str]) -> str:
        each = int(match[1]) - 1
        other = levels.get(each, _Level())
        if other.style in _SIGNS:
            return ""
        style = "decimal" if level.in_digits else other.style
        return format_number(counts.get(each, other.start), style)

    text = _PLACE.sub(number, level.text).strip()
    return Label(text + level.separator if text else "", bool(text))


def _parse_definition(element: Element) -> _Definition:
    levels = {
        place: _parse_level(level)
        for level in element.findall(f"{WORD}lvl")
        if (place := parse_count(level.get(f"{WORD}ilvl"))) < _LEVELS
    }
    return _Definition(levels, value_of(element.find(f"{WORD}numStyleLink")))


def _parse_level(element: Element) -> _Level:
    restart = element.find(f"{WORD}lvlRestart")
    separator = value_of(element.find(f"{WORD}suff"))
    return _Level(
        parse_count(value_of(element.find(f"{WORD}start")), 0),
        value_of(_find_format(element)) or "decimal",
        value_of(element.find(f"{WORD}lvlText"))[:_LONGEST_TEXT],
        is_on(element.find(f"{WORD}isLgl"), VALUE),
        parse_count(restart.get(VALUE), _LEVELS) if restart is not None else None,
        "" if separator == "nothing" else " ",
        value_of(element.find(f"{WORD}pStyle")),
    )


def _find_format(level: Element) -> Element | None:
    """The format of a level's numbers; newer ones are among alternatives."""
    direct = level.find(f"{WORD}numFmt")
    return direct if direct is not None else next(level.iter(f"{WORD}numFmt"), None)


def _parse_list(element: Element, name: str, definition: _Definition) -> _List:
    levels = dict(definition.levels)
    restarts = set[int]()
    for override in element.findall(f"{WORD}lvlOverride"):
        place = parse_count(override.get(f"{WORD}ilvl"))
        if place >= _LEVELS:
            continue
        own = override.find(f"{WORD}lvl")
        if own is not None:
            levels[place] = _parse_level(own)
        start = override.find(f"{WORD}startOverride")
        if start is not None and place in levels:
            levels[place] = replace(levels[place], start=parse_count(start.get(VALUE), 1))
            restarts.add(place)
    return _List(name, levels, frozenset(restarts))
