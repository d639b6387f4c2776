"""Writes equations of Office (OMML) and OpenDocument (MathML) as text: 10^24, (a+b)/2, √(x)."""

import re
from collections.abc import Callable
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.marks import lowered, raised
from ifqa.corpus.documents.mathml import Formula
from ifqa.corpus.documents.office import MATH, WORD, is_on

_VALUE = f"{MATH}val"
_GONE = frozenset((f"{WORD}del", f"{WORD}moveFrom"))
_NUMBER = re.compile(r"\d{1,3}")
_SINGLE = re.compile(r"[\w.,]+|[-+−–]\d+|\(.*\)|√\(.*\)", re.S)  # needs no brackets


def equation_text(element: Element) -> str:
    """The text of an element of OMML, such as m:oMath."""
    if element.tag == f"{MATH}t":
        return element.text or ""
    if element.tag in _GONE or element.tag.endswith("Pr"):
        return ""
    writer = _OMML.get(element.tag.removeprefix(MATH))
    if writer:
        return writer(element)
    return "".join(map(equation_text, element))


def _part(element: Element, name: str) -> str:
    """The text of the child `name`, such as the base of a power."""
    part = element.find(f"{MATH}{name}")
    return equation_text(part).strip() if part is not None else ""


def _setting(element: Element, name: str, default: str) -> str:
    """A setting among the properties of an element."""
    for properties in element:
        if properties.tag.endswith("Pr"):
            setting = properties.find(f"{MATH}{name}")
            if setting is not None:
                return setting.get(_VALUE) or ""
    return default


def _power(base: str, exponent: str) -> str:
    return f"{base}^{_bracketed(exponent)}" if exponent else base


def _index(base: str, index: str) -> str:
    """A base with an index: x1, a_n."""
    if not index:
        return base
    is_plain = index.isdecimal() and base[-1:].isalnum()
    return base + lowered(index) if is_plain else f"{base}_{_bracketed(index)}"


def _fraction(above: str, below: str) -> str:
    """A fraction; one of numbers is set apart from a whole number before it: 1 1/2."""
    if _NUMBER.fullmatch(above) and _NUMBER.fullmatch(below):
        return f"{raised(above)}/{lowered(below)}"
    return f"{_bracketed(above)}/{_bracketed(below)}"


def _root(radicand: str, degree: str) -> str:
    return f"{_bracketed(radicand)}^(1/{degree})" if degree else f"√({radicand})"


def _bracketed(text: str) -> str:
    """A text in brackets, unless it is one number or name."""
    is_single = len(text) < 2 or (_SINGLE.fullmatch(text) and text.count("(") <= 1)
    return text if is_single else f"({text})"


def _write_fraction(element: Element) -> str:
    above = _part(element, "num")
    below = _part(element, "den")
    if _setting(element, "type", "bar") == "noBar":
        return f"{above} over {below}"
    return _fraction(above, below)


def _write_root(element: Element) -> str:
    hides = element.find(f"{MATH}radPr/{MATH}degHide")
    degree = "" if is_on(hides, _VALUE) else _part(element, "deg")
    return _root(_part(element, "e"), degree)


def _write_delimiters(element: Element) -> str:
    inner = [equation_text(part) for part in element.findall(f"{MATH}e")]
    begin = _setting(element, "begChr", "(")
    end = _setting(element, "endChr", ")")
    return begin + _setting(element, "sepChr", "|").join(inner) + end


def _write_sum(element: Element) -> str:
    sign = _index(_setting(element, "chr", "∫"), _part(element, "sub"))
    return f"{_power(sign, _part(element, 'sup'))} {_part(element, 'e')}"


def _write_matrix(element: Element) -> str:
    rows = [
        ", ".join(equation_text(cell) for cell in row.findall(f"{MATH}e"))
        for row in element.findall(f"{MATH}mr")
    ]
    return "; ".join(rows)


_OMML: dict[str, Callable[[Element], str]] = {
    "sSup": lambda element: _power(_part(element, "e"), _part(element, "sup")),
    "sSub": lambda element: _index(_part(element, "e"), _part(element, "sub")),
    "sSubSup": lambda element: _power(
        _index(_part(element, "e"), _part(element, "sub")), _part(element, "sup")
    ),
    "sPre": lambda element: (
        _power(_index("", _part(element, "sub")), _part(element, "sup")) + _part(element, "e")
    ),
    "f": _write_fraction,
    "rad": _write_root,
    "d": _write_delimiters,
    "nary": _write_sum,
    "m": _write_matrix,
    "func": lambda element: f"{_part(element, 'fName')} {_part(element, 'e')}",
    "limLow": lambda element: _index(_part(element, "e"), _part(element, "lim")),
    "limUpp": lambda element: _power(_part(element, "e"), _part(element, "lim")),
    "acc": lambda element: _part(element, "e") + _setting(element, "chr", "\u0302"),
    "eqArr": lambda element: "; ".join(map(equation_text, element.findall(f"{MATH}e"))),
}


def mathml_text(element: Element) -> str:
    """The text of an element of MathML, such as math:math."""
    formula = Formula()
    _add_mathml(element, formula)
    return formula.text()


def _add_mathml(element: Element, formula: Formula) -> None:
    formula.add_tag(True, element.tag.rpartition("}")[2])
    formula.add_text(element.text or "")
    for child in element:
        _add_mathml(child, formula)
    formula.add_tag(False, element.tag.rpartition("}")[2])
