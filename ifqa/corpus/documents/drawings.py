"""Reads the text of drawings, which slides, diagrams and charts consist of (DrawingML)."""

from xml.etree.ElementTree import Element

from ifqa.corpus.documents.equations import equation_text
from ifqa.corpus.documents.marks import shifted
from ifqa.corpus.documents.office import DRAWING, MATH, children
from ifqa.corpus.documents.symbols import plain_symbols

_RUNS = frozenset(f"{DRAWING}{name}" for name in ("r", "fld"))
_EQUATIONS = frozenset((f"{MATH}oMath", f"{MATH}oMathPara"))
_STRUCK = ("sngStrike", "dblStrike")


def drawing_text(paragraph: Element) -> str:
    """The text of a paragraph (a:p), without what is struck out."""
    parts = list[str]()
    _add_text(paragraph, parts)
    return "".join(parts)


def _add_text(element: Element, parts: list[str]) -> None:
    for child in children(element):
        if child.tag in _RUNS:
            parts.append(_run_text(child))
        elif child.tag in (f"{DRAWING}br", f"{DRAWING}tab"):
            parts.append(" ")
        elif child.tag in _EQUATIONS:
            parts.append(equation_text(child))
        elif len(child) and not child.tag.endswith("Pr"):
            _add_text(child, parts)


def _run_text(run: Element) -> str:
    text = "".join(part.text or "" for part in run.findall(f"{DRAWING}t"))
    properties = run.find(f"{DRAWING}rPr")
    if properties is None or not text.strip():
        return text
    if properties.get("strike") in _STRUCK:
        return ""
    fonts = (properties.find(f"{DRAWING}{name}") for name in ("sym", "latin"))
    for font in fonts:
        if font is not None:
            text = plain_symbols(text, font.get("typeface") or "")
    shift = properties.get("baseline") or "0"
    if not shift.strip("-0%"):
        return text
    return shifted(text, -1 if shift.startswith("-") else 1)


def count_struck(tree: Element) -> int:
    """The number of pieces of text that are struck out."""
    return sum(each.get("strike") in _STRUCK for each in tree.iter(f"{DRAWING}rPr"))


def is_bold(paragraph: Element) -> bool:
    """Whether all text of a paragraph is bold."""
    properties = [
        run.find(f"{DRAWING}rPr")
        for run in paragraph.findall(f"{DRAWING}r")
        if any((part.text or "").strip() for part in run.findall(f"{DRAWING}t"))
    ]
    return all(each is not None and each.get("b") in ("1", "true") for each in properties)
