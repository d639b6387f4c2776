"""Opens the packages of Word and PowerPoint: zip archives whose parts refer to one another."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.archive import Archive

DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}"
MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
SHOW = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
ALTERNATIVES = f"{_COMPATIBILITY}AlternateContent"
_STRICT = "{http://purl.oclc.org/ooxml/"
_STRICT_NAME = re.compile(r"\{http://purl\.oclc\.org/ooxml/(\w+)/(\w+)\}")
#: What shows that one of several alternatives can be read.
_READABLE = frozenset(
    (
        f"{WORD}t",
        f"{DRAWING}t",
        f"{MATH}t",
        f"{CHART}chart",
        f"{DIAGRAM}relIds",
    )
)


@dataclass(frozen=True, slots=True)
class Relation:
    """A part that another part refers to."""

    kind: str  # the last word of its type: "styles", "slide"
    name: str


class Package:
    """The parts of a document of Word or PowerPoint.

    `usual` is the name of the main part where the package's relations name none.
    """

    def __init__(self, archive: Archive, usual: str) -> None:
        self.archive = archive
        named = (
            relation.name
            for relation in self.relations("").values()
            if relation.kind == "officeDocument" and relation.name in archive.names
        )
        self.main = next(named, usual)

    def tree(self, name: str) -> Element:
        """Parse a part; the names of strict files are given as those of usual ones."""
        tree = self.archive.tree(name)
        if tree.tag.startswith(_STRICT):
            _loosen_names(tree)
        return tree

    def relations(self, name: str) -> Mapping[str | None, Relation]:
        """Id -> the parts within the package that a part refers to; "" for the package itself."""
        folder, _, base = name.rpartition("/")
        part = posixpath.join(folder, "_rels", f"{base}.rels")
        if part not in self.archive.names:
            return {}
        return {
            relation.get("Id"): Relation(
                (relation.get("Type") or "").rpartition("/")[2],
                posixpath.normpath(
                    posixpath.join("/", folder, relation.get("Target") or "")
                ).lstrip("/"),
            )
            for relation in self.archive.tree(part)
            if relation.get("TargetMode") != "External"
        }


def _loosen_names(tree: Element) -> None:
    """Give the elements and attributes of a strict file (ISO 29500) their usual names."""
    known: dict[str, str] = {}

    def usual(name: str) -> str:
        if name not in known:
            known[name] = _STRICT_NAME.sub(
                r"{http://schemas.openxmlformats.org/\1/2006/\2}", name, count=1
            )
        return known[name]

    for element in tree.iter():
        element.tag = usual(element.tag)
        for name in [name for name in element.attrib if name.startswith(_STRICT)]:
            element.attrib[usual(name)] = element.attrib.pop(name)


def children(element: Element) -> Iterator[Element]:
    """The children of an element, and of the alternatives among them those that can be read."""
    for child in element:
        if child.tag == ALTERNATIVES:
            yield from children(_choose(child))
        else:
            yield child


def _choose(alternatives: Element) -> Element:
    """The first alternative with text; a text box is often in the last one only."""
    for alternative in alternatives:
        if any(element.tag in _READABLE for element in alternative.iter()):
            return alternative
    return Element("nothing")


def is_on(element: Element | None, attribute: str) -> bool:
    """Whether a setting is made, and not to "off"."""
    return element is not None and element.get(attribute) not in ("0", "false", "off", "none")
