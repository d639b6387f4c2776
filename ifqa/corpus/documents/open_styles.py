"""The styles of an OpenDocument file: which text is raised, struck or hidden, and how lists and
headings are numbered.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.list_numbers import format_number, parse_count

_OPEN = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
TEXT, TABLE, DRAW, PRESENTATION, OFFICE, STYLE = (
    _OPEN % name for name in ("text", "table", "drawing", "presentation", "office", "style")
)
FORMATTING = _OPEN % "xsl-fo-compatible"
SVG = _OPEN % "svg-compatible"
#: Where LibreOffice writes what a later version of the standard has.
_EXTENSION = "{urn:org:documentfoundation:names:experimental:office:xmlns:loext:1.0}"
_NUMBER_STYLES = {
    "1": "decimal",
    "a": "lowerLetter",
    "A": "upperLetter",
    "i": "lowerRoman",
    "I": "upperRoman",
    "1st": "ordinal",
    "01, 02, 03, ...": "decimalZero",
    "①, ②, ③, ...": "decimalEnclosedCircle",
    "一, 二, 三, ...": "chineseCounting",
}
_LEVELS = 10
_LONGEST_AFFIX = 50  # characters before or after a number


@dataclass(frozen=True, slots=True)
class OpenStyle:
    """A style of text, of a paragraph or of a slide; None where it says nothing."""

    hidden: bool | None = None
    struck: bool | None = None
    bold: bool | None = None
    shift: int | None = None  # 1 is raised, -1 is lowered
    list_name: str | None = None  # the style of its list; empty for none

    @property
    def is_read(self) -> bool:
        """Whether text in it is neither hidden nor struck."""
        return not (self.hidden or self.struck)


NO_STYLE = OpenStyle()


@dataclass(frozen=True, slots=True)
class ListLevel:
    """How a level of a list, or of the headings, is numbered."""

    style: str = ""  # of the number; empty for a bullet, or no number
    before: str = ""
    after: str = ""
    pattern: str = ""  # such as "%1%.%2%"; it has the text before and after, too
    shown: int = 1  # levels in a number: 2 is "3.1"
    start: int = 1
    is_bullet: bool = False


Levels = Mapping[int, ListLevel]


@dataclass(slots=True)
class OpenStyles:
    """The styles of a file, by family and name."""

    elements: dict[tuple[str, str], Element] = field(default_factory=dict)
    lists: dict[str, Levels] = field(default_factory=dict)
    outline: Levels = field(default_factory=dict)
    _known: dict[tuple[str, str], OpenStyle] = field(default_factory=dict)

    def add(self, tree: Element) -> None:
        """Add the styles in a tree, which come before those of the same name."""
        for element in tree.iter(f"{STYLE}style"):
            key = element.get(f"{STYLE}family") or "", element.get(f"{STYLE}name") or ""
            self.elements[key] = element
        for element in tree.iter(f"{TEXT}list-style"):
            self.lists[element.get(f"{STYLE}name") or ""] = _parse_levels(element)
        outline = next(tree.iter(f"{TEXT}outline-style"), None)
        if outline is not None:
            self.outline = _parse_levels(outline)

    def find(self, family: str, name: str | None) -> OpenStyle:
        """A style with what it inherits."""
        chain = list[tuple[str, str]]()
        passed = set[tuple[str, str]]()
        key = family, name or ""
        while key in self.elements and key not in self._known and key not in passed:
            chain.append(key)
            passed.add(key)
            key = family, self.elements[key].get(f"{STYLE}parent-style-name") or ""
        style = self._known.get(key, NO_STYLE)
        for key in reversed(chain):
            style = _parse_style(self.elements[key], style)
            self._known[key] = style
        return style


def over(style: OpenStyle, base: OpenStyle) -> OpenStyle:
    """The look of text in a style within text of another style."""
    if style is NO_STYLE:
        return base
    return OpenStyle(
        base.hidden if style.hidden is None else style.hidden,
        base.struck if style.struck is None else style.struck,
        base.bold if style.bold is None else style.bold,
        base.shift if style.shift is None else style.shift,
        base.list_name if style.list_name is None else style.list_name,
    )


def _parse_style(element: Element, base: OpenStyle) -> OpenStyle:
    text = element.find(f"{STYLE}text-properties")
    page = element.find(f"{STYLE}drawing-page-properties")
    own = OpenStyle(list_name=element.get(f"{STYLE}list-style-name"))
    if text is not None:
        own = OpenStyle(_hidden(text), _struck(text), _bold(text), _shift(text), own.list_name)
    if page is not None and page.get(f"{PRESENTATION}visibility"):
        own = OpenStyle(hidden=page.get(f"{PRESENTATION}visibility") == "hidden")
    return over(own, base)


def _hidden(text: Element) -> bool | None:
    shown = text.get(f"{TEXT}display")
    return shown == "none" if shown else None


def _struck(text: Element) -> bool | None:
    lines = [text.get(f"{STYLE}text-line-through-{name}") for name in ("style", "type", "text")]
    made = [line for line in lines[:2] if line]
    return all(line != "none" for line in made) if made else None


def _bold(text: Element) -> bool | None:
    weight = text.get(f"{FORMATTING}font-weight")
    if not weight:
        return None
    return weight == "bold" or parse_count(weight) >= 600


def _shift(text: Element) -> int | None:
    position = (text.get(f"{STYLE}text-position") or "").split()
    if not position:
        return None
    if position[0] in ("super", "sub"):
        return 1 if position[0] == "super" else -1
    if not position[0].strip("-0%."):
        return 0
    return -1 if position[0].startswith("-") else 1


def _parse_levels(element: Element) -> Levels:
    levels: dict[int, ListLevel] = {}
    for child in element:
        place = parse_count(child.get(f"{TEXT}level"), 1) - 1
        if 0 <= place < _LEVELS:
            levels[place] = _parse_level(child)
    return levels


def _parse_level(element: Element) -> ListLevel:
    style = element.get(f"{STYLE}num-format") or ""
    pattern = (
        element.get(f"{STYLE}num-list-format") or element.get(f"{_EXTENSION}num-list-format") or ""
    )
    return ListLevel(
        style,
        (element.get(f"{STYLE}num-prefix") or "")[:_LONGEST_AFFIX],
        (element.get(f"{STYLE}num-suffix") or "")[:_LONGEST_AFFIX],
        pattern[: 2 * _LONGEST_AFFIX],
        min(parse_count(element.get(f"{TEXT}display-levels"), 1), _LEVELS),
        parse_count(element.get(f"{TEXT}start-value"), 1),
        element.tag.startswith(f"{TEXT}list-level-style-") and "number" not in element.tag,
    )


def count_label(
    levels: Levels, place: int, counts: dict[int, int], start: int | None = None
) -> str:
    """Count an item or heading at a level from 0, and give its number with a blank after it.

    `counts` are the numbers that the levels have reached; `start` is a number that it sets itself.
    Empty for a bullet.
    """
    level = levels.get(place, ListLevel())
    first = level.start if start is None else start
    for above in range(place):  # a level that is passed over counts as begun
        counts.setdefault(above, levels.get(above, ListLevel()).start)
    counts[place] = counts[place] + 1 if place in counts and start is None else first
    for below in [each for each in counts if each > place]:
        del counts[below]
    if not level.style:
        return ""
    numbers = {
        each: format_number(
            counts[each],
            _NUMBER_STYLES.get(levels.get(each, ListLevel()).style, "decimal"),
        )
        for each in range(place + 1)
        if levels.get(each, ListLevel()).style
    }
    if level.pattern:
        text = level.pattern
        for each in range(place + 1):
            text = text.replace(f"%{each + 1}%", numbers.get(each, ""))
    else:
        shown = [numbers[each] for each in sorted(numbers) if each > place - level.shown]
        text = level.before + ".".join(shown) + level.after
    return f"{text.strip()} " if text.strip() else ""
