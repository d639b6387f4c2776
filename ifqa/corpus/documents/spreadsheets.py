"""Reads the sheets of workbooks: .xlsx by openpyxl, and .xls, .xlsb and .ods by calamine.

Hidden sheets, and rows and columns that were hidden by hand, are not read; rows that a filter hides
are. calamine gives values without their formats, so 12.5% is read as 0.125 from the older kinds.
"""

import posixpath
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, ParseError
from zipfile import ZIP_DEFLATED, ZipFile

from ifqa.corpus.documents.archive import BROKEN, Archive
from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile
from ifqa.corpus.documents.number_formats import format_value
from ifqa.corpus.documents.office import DRAWING, Package, children
from ifqa.corpus.documents.rows import Row
from ifqa.corpus.documents.tables import table_runs

if TYPE_CHECKING:
    from openpyxl.cell.read_only import ReadOnlyCell

_LAST_ROW = 1_048_576  # of a sheet
_MOST_EMPTY = 100  # rows between two rows that are kept; further empty rows say nothing
_WIDEST_MERGE = 256  # columns of a merged cell in which its value is repeated
_MOST_MERGES = 256  # merged cells in a row
_WORKBOOK = "xl/workbook.xml"
_CHUNK = 1 << 20  # bytes of a sheet's XML that are searched at once
_ELEMENT = re.compile(
    rb"<(?:\w+:)?(?:(row|col|mergeCell|filterColumn)\b([^<>]*)>"
    # A cell of a formula with an empty value or none
    rb"|c\b([^<>]*)>\s*<(?:\w+:)?f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*"
    rb"(<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>)"
)
_IS_TEXT = re.compile(rb"\bt=[\"']str[\"']")
#: Of a sheet of OpenDocument: a tag with its attributes, whose values may contain ">".
_OPEN_ELEMENT = re.compile(
    rb"<(/?)(table:table|table:table-row|table:(?:covered-)?table-cell|office:annotation|"
    rb"draw:text-box)(?=[\s/>])((?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)>"
)
_OPEN_CONTENT = "content.xml"
_DURATION = re.compile(r"PT(\d{1,6})H(\d{1,3})M(\d{1,3})(?:[.,]\d+)?S")
_ATTRIBUTE = re.compile(rb"\b(\w+)=[\"']([^\"']*)[\"']")
_RANGE = re.compile(rb"([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})")
_STRICT = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/(\w+)")
_Merge = tuple[int, int, int, int]  # first and last row, first and last column, from 1


@dataclass(slots=True)
class _Layout:
    """What a sheet's XML says beside its cells."""

    merged: list[_Merge] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    uncomputed: int = 0  # formulas without a saved value
    comments: int = 0
    boxes: int = 0  # shapes with text
    has_filter: bool = False


def read_xlsx(content: bytes, columns: Sequence[str]) -> Iterator[TextRun | Unread]:
    """The rows of a workbook's sheets, whose blocks are tables; cells as the sheet shows them.

    Formulas have the values that were saved with them.
    """
    from openpyxl import load_workbook

    warnings.filterwarnings("ignore", module="openpyxl")  # about parts that it does not read
    archive = Archive(content)
    archive.check()
    if _WORKBOOK not in archive.names:
        raise UnreadableFile(f"no workbook of Excel (there is no {_WORKBOOK} in it)")
    try:
        layouts = _read_layouts(archive)
        usual = _loosen_names(archive, content)
        book = load_workbook(BytesIO(usual), read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            if sheet.sheet_state != "visible":
                yield Unread("hidden sheet")
                continue
            layout = layouts.get(sheet.title, _Layout())
            yield from _told(layout)
            sheet.reset_dimensions()  # a sheet may declare a million columns
            numbered = enumerate(islice(sheet.iter_rows(), _LAST_ROW), start=1)
            rows = _spread_merged(_shown_rows(numbered), layout.merged)
            yield from _sheet_runs(sheet.title, _without_hidden(rows, layout), columns)
    except (*BROKEN, AttributeError, IndexError, KeyError, ParseError, TypeError) as error:
        raise UnreadableFile(f"no workbook of Excel ({error})") from error


def _loosen_names(archive: Archive, content: bytes) -> bytes:
    """A workbook with the usual names of elements in place of ISO's strict ones.

    openpyxl does not know the latter.
    """
    if not _STRICT.search(archive.read(_WORKBOOK)):
        return content
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as target:
        for name in sorted(archive.names):
            if name.endswith((".xml", ".rels")):
                part = archive.read(name)
                target.writestr(
                    name, _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/\2", part)
                )
    return packed.getvalue()


def _told(layout: _Layout) -> Iterator[Unread]:
    counts = {
        "hidden row": 0 if layout.has_filter else len(layout.hidden_rows),
        "hidden column": len(layout.hidden_columns),
        "formula without a saved value": layout.uncomputed,
        "comment": layout.comments,
        "text box": layout.boxes,
    }
    yield from (Unread(what, count) for what, count in counts.items() if count)


def _shown_rows(numbered: Iterable[tuple[int, Sequence["ReadOnlyCell"]]]) -> Iterator[Row]:
    """Number and texts of each row."""
    empty = 0
    for number, cells in numbered:
        texts = [_shown_text(cell) for cell in cells]
        empty = 0 if any(texts) else empty + 1
        if empty <= _MOST_EMPTY:
            yield Row(number, texts)


def _shown_text(cell: "ReadOnlyCell") -> str:
    """The text that a cell shows; none if it is struck out."""
    if cell.value is None:
        return ""
    if not cell.has_style:
        return format_value(cell.value, "General")
    if cell.font.strike:
        return ""
    return format_value(cell.value, cell.number_format or "General")


def _spread_merged(rows: Iterable[Row], merged: Sequence[_Merge]) -> Iterator[Row]:
    """The rows with the value of a merged cell in each place that it covers."""
    waiting = sorted(merged, reverse=True)
    opened = list[tuple[_Merge, str]]()
    for row in rows:
        number, texts, _ = row
        while waiting and waiting[-1][0] <= number:
            merge = waiting.pop()
            first = merge[2] - 1
            value = texts[first] if merge[0] == number and first < len(texts) else ""
            if value:
                opened.append((merge, value))
        opened = [(merge, value) for merge, value in opened if merge[1] >= number][:_MOST_MERGES]
        yield _fill_merged(row, opened) if opened and any(texts) else row


def _fill_merged(row: Row, opened: Sequence[tuple[_Merge, str]]) -> Row:
    filled = list(row.cells)
    covered = set[int]()
    for (_, _, first, last), value in opened:
        end = min(last, first + _WIDEST_MERGE)
        filled += [""] * (end - len(filled))
        filled[first - 1 : end] = [value] * (end - first + 1)
        covered.update(range(first, end))
    return Row(row.place, filled, covered)


def _without_hidden(rows: Iterable[Row], layout: _Layout) -> Iterator[Row]:
    """The rows and columns that are shown; a cell that is merged beyond hidden ones is shown."""
    hidden = layout.hidden_columns
    for row in rows:
        if row.place in layout.hidden_rows and not layout.has_filter:
            continue
        yield _without_columns(row, hidden) if hidden else row


def _without_columns(row: Row, hidden: Set[int]) -> Row:
    texts = list[str]()
    covered = set[int]()
    is_cut = False  # whether the cell that goes on here began in a hidden column
    for place, text in enumerate(row.cells):
        goes_on = place in row.covered
        if place + 1 in hidden:
            is_cut = is_cut or not goes_on
            continue
        if goes_on and not is_cut:
            covered.add(len(texts))
        texts.append(text)
        is_cut = False
    return Row(row.place, texts, covered)


def _sheet_runs(title: str, rows: Iterable[Row], columns: Sequence[str]) -> Iterator[TextRun]:
    """The runs of a sheet below its title; a heading in it is below the title too."""
    for n, run in enumerate(table_runs(rows, columns)):
        if not n:
            yield TextRun(title, run.place, level=1, sheet=title)
        yield replace(run, level=2 * run.level, outside=2 * run.outside, sheet=title)


def _read_layouts(archive: Archive) -> Mapping[str, _Layout]:
    """Title -> layout of each sheet."""
    targets = {
        relation.get("Id"): relation.get("Target") or ""
        for relation in archive.tree("xl/_rels/workbook.xml.rels")
    }
    layouts = {}
    for sheet in archive.tree(_WORKBOOK).iter():
        if sheet.tag.rpartition("}")[2] != "sheet":
            continue
        key = next((text for name, text in sheet.items() if name.endswith("}id")), "")
        part = posixpath.normpath(posixpath.join("/xl", targets.get(key, ""))).lstrip("/")
        if part in archive.names:
            layout = _Layout()
            for match in _find_elements(archive.chunks(part, _CHUNK), _ELEMENT, b"</row>"):
                _add_element(layout, match)
            with suppress(UnreadableFile):  # what is only counted need not be readable
                _count_drawn(layout, Package(archive, _WORKBOOK), part)
            layouts[sheet.get("name") or ""] = layout
    return layouts


def _find_elements(
    chunks: Iterable[bytes], pattern: re.Pattern[bytes], end: bytes
) -> Iterator[re.Match[bytes]]:
    """The matches of a pattern in XML; each lies before an `end`, or in one of the chunks."""
    rest = b""
    for chunk in chunks:
        # An element may be cut at the end of a chunk
        whole, mark, rest = (rest + chunk).rpartition(end if end in chunk else b">")
        yield from pattern.finditer(whole + mark)
    yield from pattern.finditer(rest)


def _count_drawn(layout: _Layout, package: Package, part: str) -> None:
    """Count the comments of a sheet, and its shapes with text."""
    for relation in package.relations(part).values():
        if relation.name not in package.archive.names:
            continue
        if relation.kind == "comments":
            elements = package.tree(relation.name).iter()
            layout.comments += sum(each.tag.rpartition("}")[2] == "comment" for each in elements)
        elif relation.kind == "drawing":
            layout.boxes += _count_boxes(package.tree(relation.name))


def _count_boxes(element: Element) -> int:
    """The number of shapes with text."""
    if element.tag.rpartition("}")[2] == "sp":
        return int(any((text.text or "").strip() for text in element.iter(f"{DRAWING}t")))
    return sum(map(_count_boxes, children(element)))


def _add_element(layout: _Layout, match: re.Match[bytes]) -> None:
    name = match[1]
    if name is None:
        # The value of a formula may be an empty text
        layout.uncomputed += not (match[4] and _IS_TEXT.search(match[3]))
        return
    if name == b"filterColumn":
        layout.has_filter = True
        return
    facts = dict(_ATTRIBUTE.findall(match[2]))
    is_hidden = facts.get(b"hidden") in (b"1", b"true")
    if name == b"mergeCell":
        if area := _RANGE.fullmatch(facts.get(b"ref", b"")):
            left, top, right, bottom = area.groups()
            layout.merged.append((int(top), int(bottom), _column(left), _column(right)))
    elif name == b"row" and is_hidden and facts.get(b"r", b"").isdigit():
        layout.hidden_rows.add(int(facts[b"r"]))
    elif name == b"col" and is_hidden:
        first = int(facts.get(b"min", b"0"))
        layout.hidden_columns.update(range(first, min(int(facts.get(b"max", b"0")), 16_384) + 1))


def _column(letters: bytes) -> int:
    """The number of a column, from 1."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def read_old_workbook(content: bytes, columns: Sequence[str]) -> Iterator[TextRun | Unread]:
    """The rows of a workbook in Excel's older formats or in OpenDocument's."""
    from python_calamine import CalamineError, CalamineWorkbook, SheetVisibleEnum

    layouts = list[_Layout]()
    if content.startswith(b"PK"):
        archive = Archive(content)
        archive.check()
        if _OPEN_CONTENT in archive.names:
            layouts = list(_read_open_layouts(archive.chunks(_OPEN_CONTENT, _CHUNK)))
    try:
        book = CalamineWorkbook.from_filelike(BytesIO(content))
        for number, facts in enumerate(book.sheets_metadata):
            if facts.visible != SheetVisibleEnum.Visible:
                yield Unread("hidden sheet")
                continue
            sheet = book.get_sheet_by_index(number)
            if number < len(layouts):
                yield from _told(layouts[number])
                merged = layouts[number].merged
            else:
                merged = [_from_zero(area) for area in sheet.merged_cell_ranges or ()]
            rows = _spread_merged(_value_rows(sheet), merged)
            yield from _sheet_runs(facts.name, rows, columns)
    except CalamineError as error:
        raise UnreadableFile(f"no workbook that can be read ({error})") from error


def _value_rows(sheet: Any) -> Iterator[Row]:
    """Number and texts of each row, the empty ones at the top too."""
    for number, cells in enumerate(sheet.to_python(skip_empty_area=False), start=1):
        yield Row(number, [format_value(_as_duration(cell), "General") for cell in cells])


def _as_duration(cell: object) -> object:
    """A cell, whose duration calamine leaves as OpenDocument writes it: "PT26H30M00S"."""
    match = _DURATION.fullmatch(cell) if isinstance(cell, str) else None
    if match is None:
        return cell
    hours, minutes, seconds = map(int, match.groups())
    return timedelta(hours=hours, minutes=minutes, seconds=seconds)


def _read_open_layouts(chunks: Iterable[bytes]) -> Iterator[_Layout]:
    """The layout of each sheet of OpenDocument, whose merged cells calamine does not tell."""
    layout = _Layout()
    depth = 0  # tables within one another
    row = 0
    column = 0
    after = 1  # the number of the next row
    for match in _find_elements(chunks, _OPEN_ELEMENT, b">"):
        is_end = bool(match[1])
        name = match[2].decode()
        if name == "table:table" and not is_end:
            depth += 1
            if depth == 1:
                layout = _Layout()
                after = 1
        if name == "table:table" and (is_end or match[3].endswith(b"/")):
            depth -= 1
            if depth == 0:
                yield layout
        elif name == "table:table" or is_end or depth != 1:
            continue
        elif name == "office:annotation":
            layout.comments += 1
        elif name == "draw:text-box":
            layout.boxes += 1
        elif name == "table:table-row":
            row = after
            column = 1
            after += _number_in(match[3], b"number-rows-repeated")
        else:
            rows = _number_in(match[3], b"number-rows-spanned")
            columns = _number_in(match[3], b"number-columns-spanned")
            if rows > 1 or columns > 1:
                layout.merged.append((row, row + rows - 1, column, column + columns - 1))
            column += _number_in(match[3], b"number-columns-repeated")


def _number_in(attributes: bytes, name: bytes) -> int:
    """The number of an attribute, at least 1."""
    match = re.search(rb"\btable:" + name + rb"\s*=\s*[\"'](\d{1,7})[\"']", attributes)
    return max(int(match[1]), 1) if match else 1


def _from_zero(area: Any) -> _Merge:
    """A merged range of calamine, whose rows and columns count from 0."""
    (top, left), (bottom, right) = area
    return top + 1, bottom + 1, left + 1, right + 1
