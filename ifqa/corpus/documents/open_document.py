"""Reads texts and presentations of OpenDocument (.odt, .odp), packed or as one file of XML (.fodt,
.fodp).
"""

import posixpath
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from xml.etree.ElementTree import Element

from ifqa.corpus.documents.archive import Archive, parse_xml
from ifqa.corpus.documents.blocks import (
    WIDEST,
    Block,
    Notes,
    Paragraph,
    Table,
    TableCell,
    TableRow,
    block_runs,
)
from ifqa.corpus.documents.decoding import HIDDEN, TextRun, Unread, UnreadableFile
from ifqa.corpus.documents.equations import mathml_text
from ifqa.corpus.documents.list_numbers import parse_count
from ifqa.corpus.documents.marks import ruby, shifted
from ifqa.corpus.documents.open_styles import (
    DRAW,
    NO_STYLE,
    OFFICE,
    PRESENTATION,
    SVG,
    TABLE,
    TEXT,
    Levels,
    OpenStyle,
    OpenStyles,
    count_label,
    over,
)
from ifqa.corpus.documents.slides import EDGES, with_title

_CONTENT = "content.xml"
_MANIFEST = "META-INF/manifest.xml"
_LINK = "{http://www.w3.org/1999/xlink}href"
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
_MATH = "{http://www.w3.org/1998/Math/MathML}math"
_CHART = "{urn:oasis:names:tc:opendocument:xmlns:chart:1.0}"
_PARAGRAPHS = frozenset((f"{TEXT}p", f"{TEXT}h"))
_BLANKS = frozenset(f"{TEXT}{name}" for name in ("s", "tab", "line-break"))
#: What is not shown, or is no text of the document: deleted text, comments, prompts, the contents.
_LEFT_OUT = frozenset(
    f"{TEXT}{name}"
    for name in (
        "tracked-changes",
        "table-of-content",
        "page-number",
        "placeholder",
        "hidden-text",
        "hidden-paragraph",
        "script",
        "note-citation",
    )
) | {
    f"{OFFICE}annotation",
    f"{OFFICE}forms",
    f"{OFFICE}styles",
    f"{OFFICE}automatic-styles",
    f"{OFFICE}master-styles",
    f"{OFFICE}binary-data",
    f"{OFFICE}meta",
    f"{OFFICE}settings",
    f"{OFFICE}scripts",
    f"{OFFICE}font-face-decls",
    f"{SVG}title",
    f"{SVG}desc",
}
_DEEPEST = 10  # levels of lists and headings


@dataclass(slots=True)
class _Line:
    """A paragraph that is being read."""

    paragraph: Paragraph
    parts: list[str] = field(default_factory=list)
    has_text: bool = False
    bold: bool = True

    def add(self, text: str, style: OpenStyle) -> None:
        """Add text as it is shown."""
        if text.strip():
            self.has_text = True
            self.bold = self.bold and bool(style.bold)
        self.parts.append(shifted(text, style.shift))


@dataclass(slots=True)
class _List:
    """A list that is being read."""

    levels: Levels
    counts: dict[int, int]
    level: int = 0


def read_odt(content: bytes) -> Iterator[TextRun | Unread]:
    """The paragraphs and table rows of an OpenDocument text, without deleted and hidden text and
    the table of contents.
    """
    reader = _open(content)
    yield from block_runs(reader.blocks(reader.tree))
    yield from reader.told()


def read_odp(content: bytes) -> Iterator[TextRun | Unread]:
    """The slides of an OpenDocument presentation that are shown, each with its title as the
    heading, and with its notes.
    """
    reader = _open(content)
    for number, page in enumerate(reader.tree.iter(f"{DRAW}page"), start=1):
        style = reader.styles.find("drawing-page", page.get(f"{DRAW}style-name"))
        if style.hidden:
            yield Unread("hidden slide")
        else:
            yield from with_title(reader.slide_runs(page, number), number)
    yield from reader.told()


def _open(content: bytes) -> "_Reader":
    styles = OpenStyles()
    if content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        tree = parse_xml(content, "it")
        styles.add(tree)
        return _Reader(tree, styles, None)
    archive = Archive(content)
    if _MANIFEST in archive.names and b"encryption-data" in archive.read(_MANIFEST):
        raise UnreadableFile("it needs a password")
    tree = archive.tree(_CONTENT)
    if "styles.xml" in archive.names:
        styles.add(archive.tree("styles.xml"))
    styles.add(tree)
    return _Reader(tree, styles, archive)


class _Reader:
    """Reads the paragraphs and tables of a document, counting the outermost ones."""

    def __init__(self, tree: Element, styles: OpenStyles, archive: Archive | None) -> None:
        self.tree = tree
        self.styles = styles
        self._archive = archive
        self._place = 0
        self._open = 0  # outermost paragraphs and rows, and those in them, that are being read
        self._outline: dict[int, int] = {}  # the numbers of headings
        self._counts: dict[str, dict[int, int]] = {}  # of lists, by their ids and styles
        self._read = set[str]()  # objects, such as charts
        self._unread = Counter[str]()

    def told(self) -> Iterator[Unread]:
        """What was left out on purpose."""
        self._unread["comment"] += sum(1 for _ in self.tree.iter(f"{OFFICE}annotation"))
        self._unread[HIDDEN] += sum(1 for _ in self.tree.iter(f"{TEXT}deletion"))
        yield from (Unread(what, count) for what, count in self._unread.items() if count)

    def slide_runs(self, page: Element, number: int) -> Iterator[TextRun]:
        """The runs of a slide, its title first."""
        self._place = number
        self._open = 1  # a slide is a place
        titles = list[Block]()
        blocks = list[Block]()
        for child in page:
            if child.get(f"{PRESENTATION}class") == "title" and not _is_left_out(child):
                shown = block_runs(self.blocks(child))
                text = " ".join(run.text for run in shown)
                titles.append(Paragraph(number, text))
            else:
                blocks += self._block(child, None)
        return chain(block_runs(titles), block_runs(blocks))

    def blocks(self, element: Element, around: _List | None = None) -> Iterator[Block]:
        """The blocks in an element."""
        for child in element:
            yield from self._block(child, around)

    def _block(self, element: Element, around: _List | None) -> Iterator[Block]:
        if element.tag in _PARAGRAPHS:
            yield from self._read_paragraph(element, around)
        elif element.tag == f"{TEXT}list":
            yield from self._read_list(element, around)
        elif element.tag == f"{TABLE}table":
            rows = list(self._rows(element, False))
            yield Table(rows)
        elif element.tag in (f"{DRAW}object", f"{DRAW}object-ole"):
            yield from self._read_object(element)
        elif not _is_left_out(element):
            yield from self.blocks(element, around)
        elif element.tag == f"{TEXT}section":
            self._unread["hidden section"] += 1

    def _read_list(self, element: Element, around: _List | None) -> Iterator[Block]:
        name = element.get(f"{TEXT}style-name")
        if around is None:
            levels = self.styles.outline if name == "Outline" else {}
            levels = self.styles.lists.get(name or "", levels)
            inner = _List(levels, self._counts_of(element, name or ""))
        else:
            own = self.styles.lists.get(name) if name else None
            levels = around.levels if own is None else own
            inner = _List(levels, around.counts, min(around.level + 1, _DEEPEST - 1))
        for entry in element:
            if entry.tag == f"{TEXT}list-item":
                yield from self._read_item(entry, inner)
            else:
                for child in entry:
                    yield from self._block(child, inner if child.tag == f"{TEXT}list" else None)

    def _counts_of(self, element: Element, name: str) -> dict[int, int]:
        """The numbers that a list continues, or empty ones."""
        continued = element.get(f"{TEXT}continue-list")
        counts: dict[int, int] = {}
        if continued:
            counts = self._counts.get(f"id {continued}", counts)
        elif element.get(f"{TEXT}continue-numbering") == "true":
            counts = self._counts.get(f"style {name}", counts)
        self._counts[f"style {name}"] = counts
        if key := element.get(_XML_ID) or element.get(f"{TEXT}id"):
            self._counts[f"id {key}"] = counts
        return counts

    def _read_item(self, item: Element, around: _List) -> Iterator[Block]:
        """An item; its number is before its first paragraph, and none if it has only lists."""
        start = item.get(f"{TEXT}start-value")
        is_first = True
        for child in item:
            if child.tag in _PARAGRAPHS and is_first:
                is_first = False
                label = count_label(
                    around.levels,
                    around.level,
                    around.counts,
                    parse_count(start, 1) if start else None,
                )
                yield from self._read_paragraph(child, around, label, True)
            else:
                yield from self._block(child, around)

    def _read_paragraph(
        self, element: Element, around: _List | None, label: str = "", is_item: bool = False
    ) -> Iterator[Block]:
        self._place += not self._open
        self._open += 1
        style = self.styles.find("paragraph", element.get(f"{TEXT}style-name"))
        line = _Line(Paragraph(self._place))
        self._read_inline(element, line, style)
        self._open -= 1
        paragraph = line.paragraph
        if element.tag == f"{TEXT}h":
            level = parse_count(element.get(f"{TEXT}outline-level"), 1)
            paragraph.level = min(max(level, 1), _DEEPEST)
            label = label or self._number_heading(element, paragraph.level, style, around)
        text = "".join(line.parts)
        if text.strip() and not _is_hidden_paragraph(element):
            paragraph.text = label + text.lstrip()
        paragraph.item = is_item and not paragraph.level
        paragraph.bold = line.bold
        yield paragraph

    def _number_heading(
        self, element: Element, level: int, style: OpenStyle, around: _List | None
    ) -> str:
        """The number of a heading by the outline of the document."""
        is_unnumbered = element.get(f"{TEXT}is-list-header") == "true" or style.list_name == ""
        if around is not None or is_unnumbered:
            return ""
        restarts = element.get(f"{TEXT}restart-numbering") == "true"
        start = parse_count(element.get(f"{TEXT}start-value"), 1) if restarts else None
        return count_label(self.styles.outline, level - 1, self._outline, start)

    def _read_inline(self, element: Element, line: _Line, style: OpenStyle) -> None:
        """Read the mixed content of a paragraph."""
        self._add(element.text or "", line, style)
        for child in element:
            self._read_piece(child, line, style)
            self._add(child.tail or "", line, style)

    def _add(self, text: str, line: _Line, style: OpenStyle) -> None:
        if style.is_read:
            line.add(text, style)
        elif text.strip():
            self._unread[HIDDEN] += 1

    def _read_piece(self, piece: Element, line: _Line, style: OpenStyle) -> None:
        if piece.tag == f"{TEXT}span":
            own = self.styles.find("text", piece.get(f"{TEXT}style-name"))
            self._read_inline(piece, line, over(own, style))
        elif piece.tag in _BLANKS:
            line.parts.append(" ")
        elif piece.tag == f"{TEXT}note":
            self._read_note(piece, line)
        elif piece.tag == f"{TEXT}ruby":
            self._read_ruby(piece, line, style)
        elif piece.tag == f"{OFFICE}annotation" or _is_left_out(piece):
            return
        elif piece.tag.startswith(DRAW) and piece.tag != f"{DRAW}a":
            if style.is_read:
                self._read_frame(piece, line, style)
        else:
            self._read_inline(piece, line, style)

    def _read_note(self, note: Element, line: _Line) -> None:
        """Add the text of a note below the paragraph; its number is not shown."""
        body = note.find(f"{TEXT}note-body")
        if body is not None:
            text = " ".join(run.text for run in block_runs(list(self.blocks(body))))
            line.paragraph.below.append(Notes([TextRun(text, self._place)]))

    def _read_ruby(self, element: Element, line: _Line, style: OpenStyle) -> None:
        base = element.find(f"{TEXT}ruby-base")
        reading = element.find(f"{TEXT}ruby-text")
        if base is not None:
            self._read_inline(base, line, style)
        if reading is not None:
            line.add(ruby("".join(reading.itertext())), NO_STYLE)

    def _read_frame(self, frame: Element, line: _Line, style: OpenStyle) -> None:
        """Add a formula to the text, and other frames above or below it."""
        formula = self._read_formula(frame)
        if formula:
            line.add(formula, style)
            return
        side = line.paragraph.below if line.has_text else line.paragraph.above
        side.extend(self._block(frame, None))

    def _read_formula(self, frame: Element) -> str:
        shown = frame.find(f"{DRAW}object")
        if shown is None:
            return ""
        math = shown.find(_MATH)
        if math is None:
            tree = self._object_tree(shown, peek=True)
            math = tree if tree is not None and tree.tag == _MATH else None
        return mathml_text(math) if math is not None else ""

    def _read_object(self, element: Element) -> Iterator[Block]:
        """The table of a chart, or the text of another object in the document."""
        tree = self._object_tree(element)
        if tree is None:
            return
        if tree.tag == _MATH:
            yield Paragraph(self._place, mathml_text(tree))
            return
        charts = list(tree.iter(f"{_CHART}chart"))
        for chart in charts[:1]:
            self._open += 1
            for part in chart:
                if part.tag in (f"{_CHART}title", f"{_CHART}subtitle", f"{TABLE}table"):
                    yield from self._block(part, None)
            self._open -= 1

    def _object_tree(self, element: Element, peek: bool = False) -> Element | None:
        """The content of an object that is a file of the archive; None if it has none.

        One that was read before is not read again, but by `peek`.
        """
        inner = next(iter(element), None)
        if inner is not None:
            return inner
        name = posixpath.normpath(posixpath.join(element.get(_LINK) or ".", _CONTENT))
        if self._archive is None or name not in self._archive.names or name in self._read:
            return None
        tree = self._archive.tree(name)
        if not peek or tree.tag == _MATH:
            self._read.add(name)
        return tree

    def _rows(self, element: Element, is_header: bool) -> Iterator[TableRow]:
        for child in element:
            if child.tag == f"{TABLE}table-row":
                self._place += not self._open
                self._open += 1
                if child.get(f"{TABLE}visibility") == "collapse":
                    self._unread["hidden row"] += 1
                else:
                    yield TableRow(self._place, self._cells(child), is_header)
                self._open -= 1
            elif child.tag != f"{TABLE}table" and not _is_left_out(child):
                header = is_header or child.tag == f"{TABLE}table-header-rows"
                yield from self._rows(child, header)

    def _cells(self, row: Element) -> list[TableCell]:
        """The cells of a row; repeated ones at its end are left out if they are empty."""
        cells = list[TableCell]()
        covered = 0  # cells to the right that the last one covers
        waiting = 0  # empty cells that are added only if another one follows
        for element in row:
            if element.tag not in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
                continue
            if len(cells) >= WIDEST:
                break
            repeated = parse_count(element.get(f"{TABLE}number-columns-repeated"), 1)
            repeated = min(max(repeated, 1), WIDEST)
            is_covered = element.tag == f"{TABLE}covered-table-cell"
            cell = TableCell()
            if not is_covered:
                cell.blocks += self.blocks(element)
                covered = parse_count(element.get(f"{TABLE}number-columns-spanned"), 1) - 1
            if not (is_covered or cell.blocks):
                waiting = min(waiting + repeated, WIDEST)
                continue
            cells += [TableCell() for _ in range(waiting)]
            waiting = 0
            for _ in range(repeated if is_covered else 1):
                is_left = is_covered and covered > 0
                covered -= is_left
                cells.append(
                    TableCell(
                        cell.blocks,
                        copies_left=is_left,
                        copies_above=is_covered and not is_left,
                    )
                )
            if not is_covered:
                cells += [TableCell(copies_left=True) for _ in range(repeated - 1)]
        return cells[:WIDEST]


def _is_left_out(element: Element) -> bool:
    """Whether an element is not shown: a hidden section, an empty placeholder, a comment."""
    if element.tag in _LEFT_OUT:
        return True
    if element.get(f"{PRESENTATION}class") in EDGES:
        return True
    return (
        element.get(f"{PRESENTATION}placeholder") == "true"
        or element.get(f"{TEXT}display") == "none"
        or element.get(f"{TEXT}is-hidden") == "true"
        or element.get(f"{DRAW}display") == "none"
    )


def _is_hidden_paragraph(paragraph: Element) -> bool:
    """Whether a field in a paragraph hides it."""
    field_of_it = paragraph.find(f".//{TEXT}hidden-paragraph")
    return field_of_it is not None and field_of_it.get(f"{TEXT}is-hidden") == "true"
