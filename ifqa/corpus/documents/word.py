"""Reads documents of Word (.docx): paragraphs with their numbers, tables, text boxes and notes."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
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
from ifqa.corpus.documents.decoding import (
    HIDDEN,
    TextRun,
    Unread,
    UnreadableFile,
    decode_text,
)
from ifqa.corpus.documents.drawings import drawing_text
from ifqa.corpus.documents.equations import equation_text
from ifqa.corpus.documents.html import read_html
from ifqa.corpus.documents.list_numbers import parse_count
from ifqa.corpus.documents.marks import ruby, shifted
from ifqa.corpus.documents.office import (
    CHART,
    DIAGRAM,
    DRAWING,
    MATH,
    RELATION,
    WORD,
    Package,
    children,
    is_on,
)
from ifqa.corpus.documents.rtf import is_rtf, read_rtf
from ifqa.corpus.documents.symbols import plain_symbols, symbol
from ifqa.corpus.documents.text_files import read_text
from ifqa.corpus.documents.web_archive import is_web_archive, read_web_archive
from ifqa.corpus.documents.word_numbering import Numbering
from ifqa.corpus.documents.word_styles import (
    PLAIN,
    VALUE,
    Look,
    Style,
    Styles,
    outline_level,
    parse_list,
    parse_look,
    value_of,
)

_USUAL = "word/document.xml"
_DEEPEST_CHUNK = 3  # documents within one another
_WIDEST_CELL = 63  # columns, as in Word
#: What is deleted, or stands elsewhere now.
_GONE = frozenset(f"{WORD}{name}" for name in ("del", "moveFrom"))
_PROPERTIES = frozenset(
    f"{WORD}{name}"
    for name in ("pPr", "rPr", "tblPr", "tblGrid", "trPr", "tcPr", "sdtPr", "sectPr")
)
_BLANKS = frozenset(f"{WORD}{name}" for name in ("tab", "ptab", "br", "cr"))
_NOTES = {f"{WORD}footnoteReference": "footnote", f"{WORD}endnoteReference": "endnote"}
_EQUATIONS = frozenset((f"{MATH}oMath", f"{MATH}oMathPara"))
_WORD_ART = "{urn:schemas-microsoft-com:vml}textpath"
_CHECKED = "☒"
_UNCHECKED = "☐"


@dataclass(slots=True)
class _Field:
    """A field of the document, whose code is not shown, and whose result is."""

    value: str = ""  # of a form's check box or list, which has no result
    in_code: bool = True
    has_result: bool = False


@dataclass(slots=True)
class _Line:
    """A paragraph that is being read."""

    paragraph: Paragraph
    look: Look  # of its style
    parts: list[str] = field(default_factory=list)
    fields: list[_Field] = field(default_factory=list)
    codes: int = 0  # open fields whose code is being read
    has_text: bool = False
    bold: bool = True

    def add(self, text: str, look: Look = PLAIN) -> None:
        """Add text as it is shown."""
        if self.codes or not text:
            return
        if text.strip():
            self.has_text = True
            self.bold = self.bold and bool(look.bold)
            if self.fields:
                self.fields[-1].has_result = True
        self.parts.append(shifted(text, look.shift))

    def anchor(self, blocks: Iterable[Block]) -> None:
        """Add what is anchored here: above the text if there is none yet."""
        side = self.paragraph.below if self.has_text else self.paragraph.above
        side.extend(blocks)


def read_docx(content: bytes) -> Iterator[TextRun | Unread]:
    """The paragraphs and table rows of a Word document, without deleted, moved and hidden text.

    Notes follow the paragraph that refers to them. Running heads are read only if there is no other
    text. What is left out, also comments and parts in formats of others, is told as unread.
    """
    return _read_archive(Archive(content), 0)


def _read_archive(archive: Archive, depth: int) -> Iterator[TextRun | Unread]:
    package = Package(archive, _USUAL)
    reader = _Reader(package, depth)
    has_text = False
    for run in reader.runs():
        has_text = has_text or not (run.text.isspace() or not run.text)
        yield run
    edges = list(reader.edge_runs())
    if not has_text:
        yield from edges
    elif any(run.text.strip() for run in edges):
        reader.unread["running head"] += len(reader.edges)
    yield from (Unread(what, count) for what, count in reader.unread.items() if count)


class _Reader:
    """Reads the paragraphs and tables of a document, counting the outermost ones."""

    def __init__(self, package: Package, depth: int) -> None:
        tree = package.tree(package.main)
        self._package = package
        self._depth = depth
        self._tree = tree
        self._relations = package.relations(package.main)
        styles = self._related_tree("styles")
        self._styles = Styles(styles)
        self._numbering = Numbering(self._related_tree("numbering"), self._styles.ids_of_lists())
        self._place = 0
        self._open = 0  # outermost paragraphs and rows, and those in them, that are being read
        self._carried = list[str]()  # the texts of paragraphs whose end is deleted
        self._read = set[str]()  # charts, diagrams and chunks
        self.unread = Counter[str]()
        self.unread["comment"] += self._count_comments()
        self.edges = self._edges()
        self._notes: dict[str, dict[str | None, str]] = {}
        for kind in ("footnote", "endnote"):
            self._notes[kind] = self._read_notes(kind)

    def runs(self) -> Iterator[TextRun]:
        """The runs of the document's body."""
        return block_runs(self._blocks_within(self._tree))

    def edge_runs(self) -> Iterator[TextRun]:
        """The runs of the running heads."""
        for name in self.edges:
            yield from block_runs(self._blocks_within(self._package.tree(name)))

    def _edges(self) -> list[str]:
        """The names of the parts with running heads."""
        names = [
            relation.name
            for kind in ("header", "footer")
            for relation in self._relations.values()
            if relation.kind == kind
        ]
        return [name for name in dict.fromkeys(names) if name in self._package.archive.names]

    def _count_comments(self) -> int:
        tree = self._related_tree("comments")
        return 0 if tree is None else len(tree.findall(f"{WORD}comment"))

    def _related_tree(self, kind: str) -> Element | None:
        """The part of a kind that the document refers to, or that is where it usually is."""
        archive = self._package.archive
        named = [relation.name for relation in self._relations.values() if relation.kind == kind]
        usual = f"{self._package.main.rpartition('/')[0]}/{kind}.xml"
        for name in [*named, usual]:
            if name in archive.names:
                return self._package.tree(name)
        return None

    def _read_notes(self, kind: str) -> dict[str | None, str]:
        """Id -> text of the footnotes or endnotes."""
        tree = self._related_tree(f"{kind}s")
        notes: dict[str | None, str] = {}
        if tree is None:
            return notes
        self._open += 1  # they are not counted as paragraphs
        for note in tree.iter(f"{WORD}{kind}"):
            if note.get(f"{WORD}type") in (None, "normal"):
                runs = block_runs(self._blocks_within(note))
                notes[note.get(f"{WORD}id")] = " ".join(run.text for run in runs)
        self._open -= 1
        return notes

    def _blocks_within(self, element: Element) -> Iterator[Block]:
        """The blocks of a body, cell or text box."""
        yield from self._blocks(element)
        yield from self._drop_carried()

    def _drop_carried(self) -> Iterator[Paragraph]:
        """What is left of paragraphs whose end is deleted, where no paragraph follows."""
        text = "".join(self._carried)
        self._carried.clear()
        if text.strip():
            yield Paragraph(self._place, text)

    def _blocks(self, element: Element) -> Iterator[Block]:
        for child in children(element):
            if child.tag == f"{WORD}p":
                yield from self._read_paragraph(child)
            elif child.tag == f"{WORD}tbl":
                yield from self._drop_carried()
                yield Table(list(self._rows(child)))
            elif child.tag == f"{WORD}altChunk":
                yield self._read_chunk(child)
            elif not _is_left_out(child):
                yield from self._blocks(child)

    def _rows(self, table: Element) -> Iterator[TableRow]:
        for child in children(table):
            if child.tag == f"{WORD}tr":
                self._begin()
                if _is_hidden(child):
                    self.unread["hidden row"] += 1
                elif _is_deleted(child):
                    self.unread[HIDDEN] += 1
                else:
                    yield self._read_row(child)
                self._open -= 1
            elif not _is_left_out(child):
                yield from self._rows(child)

    def _begin(self) -> None:
        """Count a paragraph or row if it is within no other."""
        self._place += not self._open
        self._open += 1

    def _read_row(self, element: Element) -> TableRow:
        properties = element.find(f"{WORD}trPr")
        row = TableRow(self._place)
        if properties is None:
            row.cells += self._cells(element)
            return row
        row.is_header = is_on(properties.find(f"{WORD}tblHeader"), VALUE)
        row.cells += _empty_cells(properties, "gridBefore")
        row.cells += self._cells(element)
        row.cells += _empty_cells(properties, "gridAfter")
        return row

    def _cells(self, row: Element) -> Iterator[TableCell]:
        for child in children(row):
            if child.tag == f"{WORD}tc":
                cell = _open_cell(child)
                if cell is None:
                    continue
                if not (cell.copies_left or cell.copies_above):
                    cell.blocks += self._blocks_within(child)
                yield cell
            elif not _is_left_out(child):
                yield from self._cells(child)

    def _read_paragraph(self, element: Element) -> Iterator[Paragraph]:
        """A paragraph; none if its end is deleted, so that its text begins the next one."""
        self._begin()
        properties = element.find(f"{WORD}pPr")
        style = self._find_style(properties)
        line = _Line(Paragraph(self._place), style.look)
        self._read_inline(element, line)
        self._open -= 1
        paragraph = line.paragraph
        text = "".join(line.parts)
        if _has_mark(properties, "del") or _has_mark(properties, "moveFrom"):
            self._carried.append(text)
            if paragraph.above or paragraph.below:
                yield Paragraph(self._place, above=paragraph.above, below=paragraph.below)
            return
        paragraph.text = "".join([*self._carried, text])
        self._carried.clear()
        paragraph.bold = line.bold
        self._number(paragraph, properties, style)
        yield paragraph

    def _find_style(self, properties: Element | None) -> Style:
        name = value_of(properties.find(f"{WORD}pStyle")) if properties is not None else ""
        return self._styles.find(name or self._styles.default)

    def _number(self, paragraph: Paragraph, properties: Element | None, style: Style) -> None:
        """Write the number of a heading or item before its text."""
        level = outline_level(properties)
        paragraph.level = style.level or 0 if level is None else level
        has_text = bool(paragraph.text.strip())
        if not has_text and _has_mark(properties, "vanish"):
            return
        label = self._numbering.label(*parse_list(properties), style)
        if has_text:
            paragraph.text = label.text + paragraph.text.lstrip()
            paragraph.item = label.is_item and not paragraph.level

    def _read_inline(self, element: Element, line: _Line) -> None:
        """Read the runs of a paragraph, and those of the links and the like in it."""
        for child in children(element):
            if child.tag == f"{WORD}r":
                self._read_run(child, line)
            elif child.tag in _EQUATIONS:
                line.add(equation_text(child))
            elif child.tag in _GONE:
                self.unread[HIDDEN] += 1
            elif not _is_left_out(child):
                self._read_inline(child, line)

    def _read_run(self, run: Element, line: _Line) -> None:
        properties = run.find(f"{WORD}rPr")
        look = line.look
        if properties is not None:
            style = self._styles.find(value_of(properties.find(f"{WORD}rStyle")))
            look = parse_look(properties).over(style.look).over(look)
        for piece in children(run):
            if piece.tag == f"{WORD}fldChar":
                _change_field(piece, line)
            elif piece.tag in _PROPERTIES or line.codes:
                continue
            elif look.is_read:
                self._read_piece(piece, line, look)
            else:
                self.unread[HIDDEN] += bool((piece.text or "").strip())

    def _read_piece(self, piece: Element, line: _Line, look: Look) -> None:
        if piece.tag == f"{WORD}t":
            line.add(plain_symbols(piece.text or "", look.font or ""), look)
        elif piece.tag in _BLANKS:
            line.parts.append(" ")
        elif piece.tag == f"{WORD}noBreakHyphen":
            line.add("-", look)
        elif piece.tag == f"{WORD}sym":
            line.add(symbol(piece.get(f"{WORD}char") or "", piece.get(f"{WORD}font") or ""), look)
        elif piece.tag in _NOTES:
            self._refer(piece, line)
        elif piece.tag == f"{WORD}ruby":
            self._read_ruby(piece, line)
        elif len(piece):
            line.anchor(self._drawn_blocks(piece))

    def _refer(self, reference: Element, line: _Line) -> None:
        """Add the text of a note below the paragraph; its number is not shown."""
        text = self._notes[_NOTES[reference.tag]].pop(reference.get(f"{WORD}id"), "")
        if text.strip():
            line.paragraph.below.append(Notes([TextRun(text, self._place)]))

    def _read_ruby(self, element: Element, line: _Line) -> None:
        base = element.find(f"{WORD}rubyBase")
        reading = element.find(f"{WORD}rt")
        if base is not None:
            self._read_inline(base, line)
        if reading is not None:
            above = _Line(line.paragraph, line.look)
            self._read_inline(reading, above)
            line.add(ruby("".join(above.parts)))

    def _drawn_blocks(self, element: Element) -> Iterator[Block]:
        """The text boxes, charts and diagrams of a drawing."""
        for child in children(element):
            if child.tag == f"{WORD}p":
                yield from self._read_paragraph(child)
            elif child.tag == f"{WORD}tbl":
                yield Table(list(self._rows(child)))
            elif child.tag == f"{CHART}chart":
                yield self._read_chart(child)
            elif child.tag == f"{DIAGRAM}relIds":
                yield from self._read_diagram(child)
            elif child.tag == f"{DRAWING}p":
                yield Paragraph(self._place, drawing_text(child))
            elif child.tag == _WORD_ART:
                yield Paragraph(self._place, child.get("string") or "")
            else:
                yield from self._drawn_blocks(child)

    def _read_chart(self, element: Element) -> Notes:
        tree = self._part(element.get(f"{RELATION}id"))
        runs = chart_runs(tree, self._place) if tree is not None else []
        return Notes(list(runs))

    def _read_diagram(self, element: Element) -> Iterator[Block]:
        tree = self._part(element.get(f"{RELATION}dm"))
        for paragraph in tree.iter(f"{DRAWING}p") if tree is not None else []:
            yield Paragraph(self._place, drawing_text(paragraph), item=True)

    def _part(self, key: str | None) -> Element | None:
        """A part that the document refers to; None if it is missing or was read before."""
        name = self._find_part(key)
        return self._package.tree(name) if name else None

    def _find_part(self, key: str | None) -> str:
        relation = self._relations.get(key)
        if relation is None or relation.name in self._read:
            return ""
        self._read.add(relation.name)
        return relation.name if relation.name in self._package.archive.names else ""

    def _read_chunk(self, element: Element) -> Notes:
        """Another document that is a part of this one; without runs if it cannot be read."""
        name = self._find_part(element.get(f"{RELATION}id"))
        if not name:
            return Notes()
        archive = self._package.archive
        try:
            parts = list(_chunk_runs(archive.read(name), archive, self._depth + 1))
        except UnreadableFile:
            parts = []
        runs = [part for part in parts if isinstance(part, TextRun)]
        self.unread["part in another format"] += not runs
        placed = list[TextRun]()
        for run in runs:
            self._place += run.opens and not self._open
            placed.append(replace(run, place=max(self._place, 1)))
        return Notes(placed)


def _chunk_runs(content: bytes, outer: Archive, depth: int) -> Iterable[TextRun | Unread]:
    """The runs of a part in another format: a Word document, a web page or plain text."""
    if content.startswith(b"PK"):
        return _read_archive(Archive(content, outer), depth) if depth <= _DEEPEST_CHUNK else []
    if is_rtf(content):
        return read_rtf(content)
    if is_web_archive(content):
        return read_web_archive(content)
    is_page = content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    return read_html(content) if is_page else read_text(decode_text(content))


def _is_left_out(element: Element) -> bool:
    """Whether an element has no text that is shown, such as the prompt of an empty control."""
    if element.tag == f"{WORD}sdt":
        return is_on(element.find(f"{WORD}sdtPr/{WORD}showingPlcHdr"), VALUE)
    return element.tag in _GONE or element.tag in _PROPERTIES


def _is_deleted(row: Element) -> bool:
    return row.find(f"{WORD}trPr/{WORD}del") is not None


def _is_hidden(row: Element) -> bool:
    return is_on(row.find(f"{WORD}trPr/{WORD}hidden"), VALUE)


def _has_mark(properties: Element | None, name: str) -> bool:
    """Whether the end of a paragraph is deleted, moved or hidden."""
    if properties is None:
        return False
    return is_on(properties.find(f"{WORD}rPr/{WORD}{name}"), VALUE)


def _empty_cells(properties: Element, name: str) -> list[TableCell]:
    """The columns that a row leaves out before or after its cells."""
    columns = parse_count(value_of(properties.find(f"{WORD}{name}")))
    return [TableCell(is_absent=True) for _ in range(min(columns, _WIDEST_CELL))]


def _open_cell(element: Element) -> TableCell | None:
    """A cell without its text; None if it is deleted."""
    properties = element.find(f"{WORD}tcPr")
    if properties is None:
        return TableCell()
    if properties.find(f"{WORD}cellDel") is not None:
        return None
    columns = parse_count(value_of(properties.find(f"{WORD}gridSpan")), 1)
    return TableCell(
        columns=min(max(columns, 1), _WIDEST_CELL),
        copies_left=_is_continued(properties.find(f"{WORD}hMerge")),
        copies_above=_is_continued(properties.find(f"{WORD}vMerge")),
    )


def _is_continued(merge: Element | None) -> bool:
    return merge is not None and merge.get(VALUE) != "restart"


def _change_field(mark: Element, line: _Line) -> None:
    """Begin or end a field, or the result of one."""
    kind = mark.get(f"{WORD}fldCharType")
    if kind == "begin":
        line.fields.append(_Field(_form_value(mark)))
        line.codes += 1
    elif line.fields and kind in ("separate", "end"):
        open_field = line.fields[-1]
        line.codes -= open_field.in_code
        open_field.in_code = False
        if kind == "end":
            line.fields.pop()
            if open_field.value and not open_field.has_result:
                line.add(open_field.value)


def _form_value(mark: Element) -> str:
    """The value of a check box or list of a form; it is not in the text."""
    box = mark.find(f"{WORD}ffData/{WORD}checkBox")
    if box is not None:
        checked = box.find(f"{WORD}checked")
        setting = checked if checked is not None else box.find(f"{WORD}default")
        return _CHECKED if is_on(setting, VALUE) else _UNCHECKED
    choices = mark.find(f"{WORD}ffData/{WORD}ddList")
    if choices is None:
        return ""
    result = choices.find(f"{WORD}result")
    chosen = result if result is not None else choices.find(f"{WORD}default")
    entries = choices.findall(f"{WORD}listEntry")
    number = parse_count(value_of(chosen))
    return value_of(entries[number]) if number < len(entries) else ""
