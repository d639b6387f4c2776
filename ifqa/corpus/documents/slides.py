"""Reads presentations of PowerPoint (.pptx), slide by slide."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.archive import Archive
from ifqa.corpus.documents.blocks import (
    Block,
    Notes,
    Paragraph,
    Table,
    TableCell,
    TableRow,
    block_runs,
)
from ifqa.corpus.documents.charts import chart_runs
from ifqa.corpus.documents.chunking import ENDED
from ifqa.corpus.documents.decoding import HIDDEN, TextRun, Unread, UnreadableFile
from ifqa.corpus.documents.drawings import count_struck, drawing_text, is_bold
from ifqa.corpus.documents.list_numbers import format_number, parse_count
from ifqa.corpus.documents.office import (
    CHART,
    DIAGRAM,
    DRAWING,
    RELATION,
    SHOW,
    Package,
    Relation,
    children,
)

_USUAL = "ppt/presentation.xml"
#: Boxes at a slide's edge.
EDGES = frozenset(
    ("sldNum", "ftr", "dt", "hdr", "footer", "header", "date-time", "page-number", "sldImg")
)
_TITLES = ("title", "ctrTitle")
_BULLETED = ("body", "obj")  # placeholders whose paragraphs have bullets
_MOST_LEVELS = 9
_NUMBER_STYLES = {
    "arabic": "decimal",
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
    "circleNum": "decimalEnclosedCircle",
}
_NUMBER_ENDS = {"Period": "{}.", "ParenR": "{})", "ParenBoth": "({})"}


@dataclass(slots=True)
class _Shape:
    """A shape of a slide: its kind as a placeholder, empty if it is none, and its blocks."""

    kind: str
    blocks: list[Block]


def read_pptx(content: bytes) -> Iterator[TextRun | Unread]:
    """The slides of a PowerPoint presentation that are shown, each with its title as the heading,
    and with its tables, charts, diagrams and notes.

    Hidden and missing slides and struck text are told as unread, unless all slides are missing.
    """
    package = Package(Archive(content), _USUAL)
    targets = package.relations(package.main)
    slides = (
        slide.get(f"{RELATION}id") for slide in package.tree(package.main).iter(f"{SHOW}sldId")
    )
    missing = 0
    number = 0
    for number, key in enumerate(slides, start=1):
        if key not in targets or targets[key].name not in package.archive.names:
            missing += 1
            continue
        tree = package.tree(targets[key].name)
        if tree.get("show") in ("0", "false"):
            yield Unread("hidden slide")
            continue
        reader = _SlideReader(package, targets[key].name, number)
        yield from with_title(reader.runs(tree), number)
        if struck := count_struck(tree):
            yield Unread(HIDDEN, struck)
    if missing and missing == number:
        raise UnreadableFile("its slides are missing in it")
    if missing:
        yield Unread("missing slide", missing)


def with_title(runs: Iterable[TextRun], number: int) -> Iterator[TextRun]:
    """The runs of a slide, each as a sentence.

    Without a title, its first paragraph is the heading; a table has none, so it gets the slide's
    number.
    """
    filled = (replace(run, text=run.text.strip()) for run in runs if run.text.strip())
    first = next(filled, None)
    if first is None:
        return
    if first.row:
        yield TextRun(f"Slide {number}", number, level=1)
        yield first
    else:
        yield replace(first, level=1, item=False)
    for run in filled:
        yield run if run.row or ENDED.search(run.text) else replace(run, text=f"{run.text}.")


class _SlideReader:
    """Reads the shapes of a slide, or of its notes."""

    def __init__(self, package: Package, name: str, number: int) -> None:
        self._package = package
        self._relations: Mapping[str | None, Relation] = package.relations(name)
        self._number = number
        self._read = set[str]()  # charts and diagrams

    def runs(self, tree: Element) -> Iterator[TextRun]:
        """The runs of the slide, its title first, and then of its diagrams and notes."""
        shapes = [shape for shape in self._shapes(tree) if shape.kind not in EDGES]
        shapes.sort(key=lambda shape: shape.kind not in _TITLES)
        yield from chain.from_iterable(block_runs(shape.blocks) for shape in shapes)
        for relation in self._relations.values():
            if relation.kind == "diagramData" and relation.name not in self._read:
                yield from block_runs(self._diagram(relation.name))
        for relation in self._relations.values():
            if relation.kind == "notesSlide":
                reader = _SlideReader(self._package, relation.name, self._number)
                yield from reader.runs_of_notes(self._package.tree(relation.name))

    def runs_of_notes(self, tree: Element) -> Iterator[TextRun]:
        """The runs of the notes of a slide."""
        for shape in self._shapes(tree):
            if shape.kind not in EDGES:
                yield from block_runs(shape.blocks)

    def _shapes(self, element: Element) -> Iterator[_Shape]:
        for child in children(element):
            if _is_hidden(child):
                continue
            if child.tag == f"{SHOW}sp":
                kind = _placeholder(child)
                yield _Shape(kind, list(self._blocks(child, kind)))
            elif child.tag == f"{SHOW}graphicFrame":
                yield _Shape("", list(self._blocks(child, "")))
            elif child.tag == f"{DRAWING}tbl":
                yield _Shape("", [self._read_table(child)])
            elif child.tag == f"{DRAWING}p":
                yield _Shape("", [self._paragraph(child, "")])
            else:
                yield from self._shapes(child)

    def _blocks(self, element: Element, kind: str) -> Iterator[Block]:
        """The blocks of a shape."""
        if element.tag == f"{SHOW}txBody" and kind in _TITLES:
            lines = [drawing_text(paragraph) for paragraph in element.iter(f"{DRAWING}p")]
            yield Paragraph(self._number, " ".join(lines))
            return
        if any(child.tag == f"{DRAWING}p" for child in element):
            yield from self._paragraphs(element, kind)
            return
        for child in children(element):
            if child.tag == f"{DRAWING}tbl":
                yield self._read_table(child)
            elif child.tag == f"{CHART}chart":
                yield self._read_chart(child)
            elif child.tag == f"{DIAGRAM}relIds":
                yield from self._read_diagram(child)
            else:
                yield from self._blocks(child, kind)

    def _paragraphs(self, body: Element, kind: str) -> Iterator[Paragraph]:
        """The paragraphs of a text, with their automatic numbers."""
        counts: dict[int, tuple[str, int]] = {}  # level -> its style and number
        defaults = body.find(f"{DRAWING}lstStyle")
        for element in body.findall(f"{DRAWING}p"):
            level = min(_level(element), _MOST_LEVELS - 1)
            properties = element.find(f"{DRAWING}pPr")
            paragraph = self._paragraph(element, kind)
            if paragraph.text.strip():
                numbering = _numbering(properties, defaults, level)
                label = _count(counts, level, numbering)
                paragraph.text = label + paragraph.text.lstrip()
                paragraph.item = paragraph.item or bool(label)
            yield paragraph

    def _paragraph(self, element: Element, kind: str) -> Paragraph:
        properties = element.find(f"{DRAWING}pPr")
        is_plain = properties is not None and properties.find(f"{DRAWING}buNone") is not None
        is_item = _has_bullet(properties) or (kind in _BULLETED and not is_plain)
        return Paragraph(self._number, drawing_text(element), item=is_item, bold=is_bold(element))

    def _read_table(self, element: Element) -> Table:
        table = Table()
        for row in element.findall(f"{DRAWING}tr"):
            cells = [self._read_cell(cell) for cell in row.findall(f"{DRAWING}tc")]
            table.rows.append(TableRow(self._number, cells))
        return table

    def _read_cell(self, element: Element) -> TableCell:
        cell = TableCell(
            copies_left=element.get("hMerge") in ("1", "true"),
            copies_above=element.get("vMerge") in ("1", "true"),
        )
        if not (cell.copies_left or cell.copies_above):
            body = element.find(f"{DRAWING}txBody")
            cell.blocks += self._paragraphs(body if body is not None else element, "")
        return cell

    def _read_chart(self, element: Element) -> Notes:
        name = self._find_part(element.get(f"{RELATION}id"))
        runs = chart_runs(self._package.tree(name), self._number) if name else []
        return Notes(list(runs))

    def _read_diagram(self, element: Element) -> list[Block]:
        name = self._find_part(element.get(f"{RELATION}dm"))
        return self._diagram(name) if name else []

    def _diagram(self, name: str) -> list[Block]:
        return [
            Paragraph(self._number, drawing_text(paragraph), item=True)
            for paragraph in self._package.tree(name).iter(f"{DRAWING}p")
        ]

    def _find_part(self, key: str | None) -> str:
        """The name of a part that is read for the first time, else empty."""
        relation = self._relations.get(key)
        if relation is None or relation.name in self._read:
            return ""
        self._read.add(relation.name)
        return relation.name if relation.name in self._package.archive.names else ""


def _is_hidden(element: Element) -> bool:
    """Whether a shape is hidden by its properties, the first of its children."""
    if not len(element) or not element[0].tag.startswith(f"{SHOW}nv"):
        return False
    properties = element[0].find(f"{SHOW}cNvPr")
    return properties is not None and properties.get("hidden") in ("1", "true")


def _placeholder(shape: Element) -> str:
    """The kind of a placeholder, "obj" if it says none; empty for another shape."""
    holder = shape.find(f"{SHOW}nvSpPr/{SHOW}nvPr/{SHOW}ph")
    return "" if holder is None else holder.get("type") or "obj"


def _level(paragraph: Element) -> int:
    properties = paragraph.find(f"{DRAWING}pPr")
    return parse_count(properties.get("lvl")) if properties is not None else 0


def _has_bullet(properties: Element | None) -> bool:
    return properties is not None and any(
        properties.find(f"{DRAWING}{name}") is not None for name in ("buChar", "buBlip")
    )


def _numbering(properties: Element | None, defaults: Element | None, level: int) -> Element | None:
    """How a paragraph is numbered, by itself or by the default of its text; None if it is not."""
    if properties is not None:
        own = properties.find(f"{DRAWING}buAutoNum")
        if own is not None or _has_bullet(properties):
            return own
        if properties.find(f"{DRAWING}buNone") is not None:
            return None
    if defaults is None:
        return None
    return defaults.find(f"{DRAWING}lvl{level + 1}pPr/{DRAWING}buAutoNum")


def _count(counts: dict[int, tuple[str, int]], level: int, numbering: Element | None) -> str:
    """The number of a paragraph with a blank after it, if it has one; the lists below it end."""
    for below in [each for each in counts if each > level]:
        del counts[below]
    if numbering is None:
        counts.pop(level, None)
        return ""
    style = numbering.get("type") or "arabicPeriod"
    start = parse_count(numbering.get("startAt"), 1)
    key = f"{style} {start}"
    before = counts.get(level)
    number = before[1] + 1 if before and before[0] == key else start
    counts[level] = key, number
    return f"{_written(number, style)} "


def _written(number: int, style: str) -> str:
    kind = next((name for name in _NUMBER_STYLES if style.startswith(name)), "arabic")
    form = next((form for end, form in _NUMBER_ENDS.items() if style.endswith(end)), "{}")
    return form.format(format_number(number, _NUMBER_STYLES[kind]))
