"""Reads documents of Word 97 to 2003 (.doc)."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from struct import error, unpack_from

from ifqa.corpus.documents import html, text_files, word
from ifqa.corpus.documents import word_binary as binary
from ifqa.corpus.documents.compound_file import SIGNATURE
from ifqa.corpus.documents.decoding import (
    HIDDEN,
    TextRun,
    Unread,
    UnreadableFile,
    decode_text,
    is_binary,
)
from ifqa.corpus.documents.legacy_lists import Lists
from ifqa.corpus.documents.marks import lowered, raised
from ifqa.corpus.documents.rtf import is_rtf, read_rtf
from ifqa.corpus.documents.symbols import is_symbol_font, plain_symbols, symbol
from ifqa.corpus.documents.web_archive import is_web_archive, read_web_archive
from ifqa.corpus.documents.word_binary import (
    Properties,
    WordFile,
    parse_properties,
    split_table,
)
from ifqa.corpus.documents.word_blocks import WordCell, WordRow, paragraph_run, word_table_runs

_END = re.compile("[\r\x07\x0c]")  # of a paragraph: its mark, a cell's or row's, or a break
_FIELD = re.compile("[\x13\x14\x15]")  # begin, separator and end of a field
_HALF = re.compile("[\ud800-\udfff]")  # of a character that takes two positions
_HIDDEN_PIECE = re.compile(rb"[\x01-\x0f\x11-\x1f]+")
_SIGN = re.compile("[\uf000-\uf0ff]")  # of fonts such as Symbol
_PAGE = re.compile(rb"<(?:html|!doctype html)\b", re.I)
#: Characters that stand for something else: breaks, hyphens, pictures, and marks of notes.
_SPECIAL: dict[int, str | None] = {0x0B: "\n", 0x0E: "\n", 0x1E: "-", 0x1F: None}
_SPECIAL |= dict.fromkeys((*range(9), 0x13, 0x14, 0x15), None)
# Numbers of properties. Of characters
#: Hidden, deleted, struck, struck twice -> its bit in the mask of what is not read.
_BITS = {0x083C: 1, 0x0800: 2, 0x0837: 4, 0x2A53: 8}
_INSTRUCTION = 16  # the bit of fields' instructions
_CHARACTER_STYLE = 0x4A30
_SCRIPT = 0x2A48
_SHIFT = 0x4845
_SYMBOL = 0x6A09
_FONTS = (0x4A4F, 0x4A50, 0x4A51)
# Of paragraphs
_STYLE = 0
_OUTLINE = 0x2640
_LEVEL = 0x260A
_LIST = 0x460B
_IN_TABLE = 0x2416
_DEPTH = 0x6649
_INNER_CELL = 0x244B
_ROW_END = 0x2417
# Of rows
_EDGES, _HEADER = 0xD608, 0x3404
_TITLE = 62  # the number of a built-in style; those of headings are 1 to 9
_DEEPEST_STYLE = 16  # styles that each are based on the next


def read_word(content: bytes) -> Iterable[TextRun | Unread]:
    """A document by its bytes: Word opens RTF, web pages and text by the suffix .doc too."""
    if content.startswith(SIGNATURE):
        return read_doc(content)
    if is_rtf(content):
        return read_rtf(content)
    if content.startswith(b"PK"):
        return word.read_docx(content)
    if is_web_archive(content):
        return read_web_archive(content)
    if is_binary(content):
        raise UnreadableFile("not a document of Word 97 or later")
    if _PAGE.search(content[:2000]):
        return html.read_html(content)
    return text_files.read_text(decode_text(content))


def read_doc(content: bytes) -> Iterator[TextRun | Unread]:
    """The paragraphs and table rows of a document, counted from 1, without running heads.

    Footnotes, endnotes and text boxes follow the paragraph that they are in.
    """
    try:
        yield from _Document(WordFile(content)).runs()
    except (error, IndexError) as damage:
        raise UnreadableFile("not a complete Word document: its formats are damaged") from damage


@dataclass(frozen=True, slots=True)
class _Style:
    number: int  # of a built-in style
    base: int
    properties: Properties
    characters: Properties  # of its text


@dataclass(frozen=True, slots=True)
class _Paragraph:
    text: str
    properties: Properties
    notes: Sequence[range]  # the positions of the notes and text boxes that are in it
    ends_cell: bool  # or a row
    is_hidden: bool  # whether it has text, none of which is read

    def has(self, number: int) -> bool:
        return any(self.properties.get(number, b""))


class _Document:
    """The runs of a document."""

    def __init__(self, file: WordFile) -> None:
        self._file = file
        self._paragraph_formats = file.paragraph_runs()
        self._styles = _read_styles(file)
        self._lists = Lists(file.table(binary.LISTS), file.table(binary.LIST_USES))
        self._notes = _find_notes(file)
        fonts = _read_fonts(file.table(binary.FONTS))
        self._hidden = bytearray(len(file.text))  # the bits of each character; 0 if it is read
        self._marks = list[tuple[int, int, "_Mark"]]()
        self._hide_by_styles()
        for start, end, properties in file.positions_of(file.character_runs()):
            self._hide(start, end, properties)
            if mark := _Mark.of(properties, fonts):
                self._marks.append((start, end, mark))
        for start, end in _find_instructions(file.text):
            self._change_bits(start, end, _INSTRUCTION, on=True)

    def runs(self) -> Iterator[TextRun | Unread]:
        yield from self._blocks(self._paragraphs(range(self._file.lengths[0]), self._notes))
        if pieces := len(_HIDDEN_PIECE.findall(self._hidden)):
            yield Unread(HIDDEN, pieces)

    def _hide_by_styles(self) -> None:
        """Hide the paragraphs whose style hides its text."""
        bits = {number: self._style_bits(number) for number in self._styles}
        if not any(bits.values()):
            return
        for start, end, properties in self._file.positions_of(self._paragraph_formats):
            style = int.from_bytes(properties.get(_STYLE, b""), "little")
            if bits.get(style):
                self._change_bits(start, end, bits[style], on=True)

    def _style_bits(self, style: int) -> int:
        """The bits of what a style, or one that it is based on, hides."""
        bits = 0
        known = 0
        for each in self._styles_of(style):
            for number, bit in _BITS.items():
                if number in each.characters and not known & bit:
                    known |= bit
                    bits |= bit * any(each.characters[number])
        return bits

    def _hide(self, start: int, end: int, properties: Properties) -> None:
        if _CHARACTER_STYLE in properties:
            style = int.from_bytes(properties[_CHARACTER_STYLE], "little")
            self._change_bits(start, end, self._style_bits(style), on=None)
        for number, bit in _BITS.items():
            value = properties.get(number, b"\x80")[:1]
            if value != b"\x80":  # as the style says; 129 is its opposite
                is_on = None if value == b"\x81" else value == b"\1"
                self._change_bits(start, end, bit, is_on)

    def _change_bits(self, start: int, end: int, bits: int, on: bool | None) -> None:
        """Set or clear bits of characters; None turns them."""
        if not bits:
            return
        if on is None:
            table = bytes(byte ^ bits for byte in range(256))
        elif on:
            table = bytes(byte | bits for byte in range(256))
        else:
            table = bytes(byte & ~bits for byte in range(256))
        self._hidden[start:end] = self._hidden[start:end].translate(table)

    def _paragraphs(
        self, positions: range, notes: Sequence[tuple[int, range]]
    ) -> Iterator[_Paragraph]:
        text = self._file.text
        start = positions.start
        end = min(positions.stop, len(text))
        while start < end:
            mark = _END.search(text, start, end)
            stop = mark.start() if mark else end
            after = mark.end() if mark else end
            first, last = (bisect_left(notes, (place,)) for place in (start, after))
            shown = self._text(start, stop)
            yield _Paragraph(
                shown,
                self._paragraph_formats.at(self._file.place_of(after - 1)),
                [note for _, note in notes[first:last]],
                mark is not None and mark[0] == "\x07",
                not shown.strip() and any(self._hidden[start:stop]),
            )
            start = after

    def _text(self, start: int, end: int) -> str:
        """The text at positions, without what is hidden, with superscripts and signs marked."""
        parts = list[str]()
        index = max(bisect_left(self._marks, (start,)) - 1, 0)
        while start < end:
            while index < len(self._marks) and self._marks[index][1] <= start:
                index += 1
            following, stop, mark = (
                self._marks[index] if index < len(self._marks) else (end, end, None)
            )
            if following > start or mark is None:
                stop = min(following, end)
                parts.append(_write_plain(self._kept(start, stop)))
            else:
                stop = min(stop, end)
                parts.append(mark.write(self._kept(start, stop)))
            start = stop
        text = "".join(parts)
        if _HALF.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        return text

    def _kept(self, start: int, end: int) -> str:
        text = self._file.text[start:end]
        hidden = self._hidden[start:end]
        if not any(hidden):
            return text
        return "".join(char for char, bits in zip(text, hidden, strict=True) if not bits)

    def _blocks(self, paragraphs: Iterable[_Paragraph]) -> Iterator[TextRun]:
        """The runs of paragraphs and tables in order, with their places."""
        number = 1
        table = _Table()
        apart = list[TextRun]()  # notes in the table
        for paragraph in paragraphs:
            style = int.from_bytes(paragraph.properties.get(_STYLE, b""), "little")
            # Word does not count what it does not show
            label = None if paragraph.is_hidden else self._label(paragraph.properties, style)
            notes = self._notes_of(paragraph, number)
            if paragraph.has(_IN_TABLE) or paragraph.has(_DEPTH):
                apart += notes
                number += table.add(paragraph, label, number)
                continue
            yield from table.runs()
            yield from apart
            table = _Table()
            apart = []
            if paragraph.text.strip():
                level = self._heading_level(paragraph.properties, style)
                yield paragraph_run(paragraph.text, number, level, label)
            yield from notes
            number += 1
        yield from table.runs()
        yield from apart

    def _notes_of(self, paragraph: _Paragraph, number: int) -> Iterator[TextRun]:
        for positions in paragraph.notes:
            for run in self._blocks(self._paragraphs(positions, ())):
                yield replace(run, place=number)

    def _heading_level(self, properties: Properties, style: int) -> int:
        if level := properties.get(_OUTLINE):
            return level[0] + 1 if level[0] < 9 else 0
        for each in self._styles_of(style):
            if 1 <= each.number <= 9:
                return each.number
            if level := each.properties.get(_OUTLINE):
                return level[0] + 1 if level[0] < 9 else 0
            if each.number == _TITLE:
                return 1
        return 0

    def _label(self, properties: Properties, style: int) -> str | None:
        """The number or bullet of an item, by the paragraph or its style."""
        sources = [properties, *(each.properties for each in self._styles_of(style))]
        uses = [each[_LIST] for each in sources if _LIST in each]
        levels = [each[_LEVEL] for each in sources if each.get(_LEVEL)]
        if not uses:
            return None
        use = int.from_bytes(uses[0], "little")
        return self._lists.label(use, levels[0][0] if levels else 0)

    def _styles_of(self, style: int) -> Iterator[_Style]:
        """A style, and those that it is based on."""
        for _ in range(_DEEPEST_STYLE):
            if style not in self._styles:
                return
            yield self._styles[style]
            style = self._styles[style].base


class _Table:
    """The rows of a table, as its paragraphs are added in order."""

    def __init__(self) -> None:
        self._rows = list[WordRow]()
        self._cells = list[str]()
        self._cell = list[str]()  # the paragraphs of the open cell

    def add(self, paragraph: _Paragraph, label: str | None, number: int) -> int:
        """Add a paragraph; the number of rows that it ends, 0 or 1."""
        if paragraph.ends_cell and paragraph.has(_ROW_END):
            self._rows.append(_read_row(self._cells, paragraph.properties, number))
            self._cells = []
            return 1
        run = paragraph_run(paragraph.text, number, label=label)
        self._cell.append(f"{run.text}; " if paragraph.has(_INNER_CELL) else run.text)
        if paragraph.ends_cell:
            self._cells.append("\n".join(self._cell))
            self._cell = []
        return 0

    def runs(self) -> Iterator[TextRun]:
        cells = [*self._cells, "\n".join(self._cell)]
        if any(cells):  # the row has no end
            place = self._rows[-1].place + 1 if self._rows else 1
            self._rows.append(_read_row(cells, {}, place))
        yield from word_table_runs(self._rows) if self._rows else ()


@dataclass(frozen=True, slots=True)
class _Mark:
    """How characters are shown."""

    script: int  # above 0 for a superscript, below 0 for a subscript
    sign: str | None  # that is shown instead of the character
    font: str  # of symbols that they are in; empty for another

    @classmethod
    def of(cls, properties: Properties, fonts: Sequence[str]) -> "_Mark | None":
        """None for plain characters."""
        script = {1: 1, 2: -1}.get(int.from_bytes(properties.get(_SCRIPT, b""), "little"), 0)
        script = script or int.from_bytes(properties.get(_SHIFT, b""), "little", signed=True)
        names = [_font_name(properties[number], fonts) for number in _FONTS if number in properties]
        font = next(filter(is_symbol_font, names), "")
        sign = None
        if len(properties.get(_SYMBOL, b"")) == 4:
            name = _font_name(properties[_SYMBOL][:2], fonts)
            sign = symbol(properties[_SYMBOL][:1:-1].hex(), name)
        return cls(script, sign, font) if script or sign is not None or font else None

    def write(self, text: str) -> str:
        if self.sign is not None:
            text = self.sign * len(text)
        text = _write_plain(_SIGN.sub(lambda match: plain_symbols(match[0], self.font), text))
        if not self.script or not text.strip():
            return text
        return raised(text) if self.script > 0 else lowered(text)


def _font_name(number: bytes, fonts: Sequence[str]) -> str:
    index = int.from_bytes(number, "little")
    return fonts[index] if index < len(fonts) else ""


def _write_plain(text: str) -> str:
    return _SIGN.sub("", text.translate(_SPECIAL))


def _find_instructions(text: str) -> Iterator[tuple[int, int]]:
    """The positions of the instructions of fields, whose results are shown."""
    open_fields = list[list[int]]()  # the begin and the separator of each
    found = list[tuple[int, int]]()
    for match in _FIELD.finditer(text):
        if match[0] == "\x13":
            open_fields.append([match.start(), -1])
        elif open_fields and match[0] == "\x14":
            open_fields[-1][1] = match.start()
        elif open_fields:
            begin, separator = open_fields.pop()
            found.append((begin, separator if separator >= 0 else match.start()))
    covered = 0
    for begin, end in sorted(found):  # an instruction may have fields in it
        if max(begin, covered) < end:
            yield max(begin, covered), end
            covered = end


def _find_notes(file: WordFile) -> list[tuple[int, range]]:
    """The footnotes, endnotes and text boxes: where they are in the body, and their texts."""
    body, footnotes, *between, endnotes, boxes = file.lengths
    start = body + footnotes + sum(between)
    shapes = zip(*split_table(file.table(binary.SHAPES), 26), strict=False)
    anchors = {record[:4]: position for position, record in shapes}
    box_ends, records = split_table(file.table(binary.BOX_TEXTS), 22)
    box_places = [anchors.get(record[14:18], max(body - 1, 0)) for record in records]
    return sorted(
        [
            *_place_notes(file, binary.NOTES, binary.NOTE_TEXTS, range(body, body + footnotes)),
            *_place_notes(
                file, binary.ENDNOTES, binary.ENDNOTE_TEXTS, range(start, start + endnotes)
            ),
            *_place_texts(box_places, box_ends, range(start + endnotes, start + endnotes + boxes)),
        ],
        key=lambda note: (note[0], note[1].start),
    )


def _place_notes(
    file: WordFile, references: int, texts: int, story: range
) -> Iterator[tuple[int, range]]:
    places, _ = split_table(file.table(references), 2)
    ends, _ = split_table(file.table(texts), 0)
    return _place_texts(places, ends, story)


def _place_texts(
    places: Sequence[int], ends: Sequence[int], story: range
) -> Iterator[tuple[int, range]]:
    """The place of each text of a story, and its positions."""
    before = 0
    for place, (first, end) in zip(places, pairwise(ends), strict=False):
        if before <= first < end <= len(story):
            yield place, range(story.start + first, story.start + end)
            before = end


def _read_fonts(table: bytes) -> list[str]:
    """The names of the fonts, by their numbers."""
    names = list[str]()
    at = 4
    for _ in range(unpack_from("<H", table)[0] if len(table) >= 4 else 0):
        if at >= len(table):
            break
        size = table[at] + 1
        name = table[at + 40 : at + size].decode("utf-16-le", "ignore")
        names.append(name.partition("\0")[0])
        at += size
    return names


def _read_styles(file: WordFile) -> Mapping[int, _Style]:
    table = file.table(binary.STYLES)
    styles = dict[int, _Style]()
    if len(table) < 6:
        return styles
    header, count, base_size = unpack_from("<HHH", table)
    at = 2 + header
    for number in range(count):
        if at + 2 > len(table):
            break
        size = unpack_from("<H", table, at)[0]
        style = table[at + 2 : at + 2 + size]
        at += 2 + size + size % 2
        if len(style) < base_size + 4:
            continue
        built_in, kind = unpack_from("<HH", style)
        start = base_size + 4 + 2 * unpack_from("<H", style, base_size)[0]
        formats = list(_style_formats(style, start))
        is_paragraph = kind & 15 == 1 and formats
        paragraph = file.paragraph_properties(formats[0]) if is_paragraph else {}
        text = b"".join(formats[1:2] if is_paragraph else formats[:1])
        characters = parse_properties(text) if kind & 15 in (1, 2) else {}
        styles[number] = _Style(built_in & 0xFFF, kind >> 4, paragraph, characters)
    return styles


def _style_formats(style: bytes, at: int) -> Iterator[bytes]:
    """The properties of a style: those of its paragraphs, unless it is of characters, and text."""
    while at + 2 <= len(style):
        size = unpack_from("<H", style, at)[0]
        yield style[at + 2 : at + 2 + size]
        at += 2 + size + size % 2


def _read_row(cells: Sequence[str], properties: Properties, number: int) -> WordRow:
    """A row with the edges of its cells."""
    table = properties.get(_EDGES, b"")
    count = table[0] if table else 0
    header = any(properties.get(_HEADER, b""))
    if len(table) < 1 + 2 * (count + 1) or count < len(cells):
        return WordRow(number, [WordCell(text) for text in cells], is_header=header)
    left, *edges = unpack_from(f"<{count + 1}h", table, 1)
    flags_at = 1 + 2 * (count + 1)
    row = list[WordCell]()
    for place, (text, right) in enumerate(zip(cells, edges, strict=False)):
        flags = int.from_bytes(table[flags_at + 20 * place : flags_at + 20 * place + 2], "little")
        merges_left = place > 0 and bool(flags & 3) and not text.strip()
        row.append(WordCell(text, right, merges_left, flags >> 5 & 3 == 1))
    return WordRow(number, row, left, header)
