"""The styles of a Word document: formatting that changes the text, such as hidden or struck, and
which paragraphs are headings or items of a list.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.office import WORD, is_on

VALUE = f"{WORD}val"
_SWITCHES = {
    f"{WORD}vanish": "hidden",
    f"{WORD}strike": "struck",
    f"{WORD}dstrike": "double_struck",
    f"{WORD}b": "bold",
}
_SHIFTS = {"superscript": 1, "subscript": -1}
_BODY_LEVEL = 9  # Word's outline level of text that is no heading


@dataclass(frozen=True, slots=True)
class Look:
    """How text looks; None where a style, or the text itself, does not say."""

    hidden: bool | None = None
    struck: bool | None = None
    double_struck: bool | None = None
    bold: bool | None = None
    shift: int | None = None  # 1 is raised, -1 is lowered
    font: str | None = None

    @property
    def is_read(self) -> bool:
        """Whether the text is neither hidden nor struck."""
        return not (self.hidden or self.struck or self.double_struck)

    def over(self, base: "Look") -> "Look":
        """This look, with that of `base` where this one says nothing."""
        if self is PLAIN:
            return base
        if base is PLAIN:
            return self
        return Look(
            base.hidden if self.hidden is None else self.hidden,
            base.struck if self.struck is None else self.struck,
            base.double_struck if self.double_struck is None else self.double_struck,
            base.bold if self.bold is None else self.bold,
            base.shift if self.shift is None else self.shift,
            base.font if self.font is None else self.font,
        )


PLAIN = Look()


def parse_look(properties: Element | None) -> Look:
    """The look that the properties of a run (w:rPr) set."""
    if properties is None:
        return PLAIN
    switches: dict[str, bool] = {}
    shift: int | None = None
    font: str | None = None
    for setting in properties:
        if name := _SWITCHES.get(setting.tag):
            switches[name] = is_on(setting, VALUE)
        elif setting.tag == f"{WORD}vertAlign":
            shift = _SHIFTS.get(setting.get(VALUE) or "", 0)
        elif setting.tag == f"{WORD}rFonts":
            font = setting.get(f"{WORD}ascii") or setting.get(f"{WORD}hAnsi")
    if not switches and shift is None and font is None:
        return PLAIN
    return Look(**switches, shift=shift, font=font)


@dataclass(frozen=True, slots=True)
class Style:
    """A style, with what it inherits."""

    name: str = ""  # in lower case; English in every language of Word, unlike its id
    level: int | None = None  # of a heading, 0 for body text; None if neither it nor its base says
    look: Look = PLAIN
    list_id: str | None = None  # w:numId
    list_level: str | None = None  # w:ilvl
    ids: tuple[str, ...] = field(default=(), compare=False)  # its own, and that of its base


_NONE = Style()


class Styles:
    """The styles of a document by their ids."""

    def __init__(self, tree: Element | None) -> None:
        elements = tree.iter(f"{WORD}style") if tree is not None else []
        self._elements = {element.get(f"{WORD}styleId") or "": element for element in elements}
        self._known: dict[str, Style] = {}
        defaults = (
            name
            for name, element in self._elements.items()
            if element.get(f"{WORD}type") == "paragraph" and is_on_default(element)
        )
        self.default = next(defaults, "")

    def find(self, name: str) -> Style:
        """The style with an id; an empty one if there is none."""
        chain = list[str]()
        names = set[str]()
        while name in self._elements and name not in self._known and name not in names:
            chain.append(name)
            names.add(name)
            name = value_of(self._elements[name].find(f"{WORD}basedOn"))
        base = self._known.get(name, _NONE)
        for name in reversed(chain):
            base = _parse_style(name, self._elements[name], base)
            self._known[name] = base
        return base

    def ids_of_lists(self) -> Mapping[str, str]:
        """Id of a style -> id of the list that it sets, for styles of lists."""
        return {
            name: value_of(element.find(f"{WORD}pPr/{WORD}numPr/{WORD}numId"))
            for name, element in self._elements.items()
            if element.get(f"{WORD}type") == "numbering"
        }


def is_on_default(element: Element) -> bool:
    """Whether a style is the default of its kind."""
    return element.get(f"{WORD}default") in ("1", "true", "on")


def _parse_style(name: str, element: Element, base: Style) -> Style:
    title = value_of(element.find(f"{WORD}name")).lower()
    properties = element.find(f"{WORD}pPr")
    level = outline_level(properties)
    if level is None:
        level = _named_level(title)
    if level is None and base.name != "title":
        level = base.level
    list_id, list_level = parse_list(properties)
    return Style(
        title,
        level,
        parse_look(element.find(f"{WORD}rPr")).over(base.look),
        list_id if list_id is not None else base.list_id,
        list_level if list_level is not None else base.list_level,
        (name, *base.ids[:1]),
    )


def _named_level(name: str) -> int | None:
    number = name.removeprefix("heading ")
    if number != name and number.isdecimal() and len(number) == 1:
        return int(number)
    return 1 if name == "title" else None


def outline_level(properties: Element | None) -> int | None:
    """The level of a heading that the properties of a paragraph or style set; 0 for body text."""
    if properties is None:
        return None
    level = value_of(properties.find(f"{WORD}outlineLvl"))
    if len(level) != 1 or not level.isdecimal():
        return None
    return int(level) + 1 if int(level) < _BODY_LEVEL else 0


def parse_list(properties: Element | None) -> tuple[str | None, str | None]:
    """The id of the list and the level in it that the properties of a paragraph set."""
    if properties is None:
        return None, None
    numbering = properties.find(f"{WORD}numPr")
    if numbering is None:
        return None, None
    list_id = numbering.find(f"{WORD}numId")
    level = numbering.find(f"{WORD}ilvl")
    return (
        list_id.get(VALUE) if list_id is not None else None,
        level.get(VALUE) if level is not None else None,
    )


def value_of(element: Element | None) -> str:
    """The value of a setting; empty if it is not made."""
    return (element.get(VALUE) or "") if element is not None else ""
