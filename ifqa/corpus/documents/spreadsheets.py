"""Reads the sheets of workbooks: .xlsx by openpyxl, and .xls, .xlsb and .ods by calamine.

Hidden sheets, and rows and columns that were hidden by hand, are not read; rows that a filter hides
are. calamine gives values without their formats, so 12.5% is read as 0.125 from the older kinds.
"""

import posixpath
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import ParseError
from zipfile import ZIP_DEFLATED, ZipFile

from ifqa.corpus.documents.archive import BROKEN, Archive
from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile
from ifqa.corpus.documents.number_formats import format_value
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
    rb"|f\b[^<>]*(?:/>|>[^<]*</(?:\w+:)?f>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*"
    rb"(</(?:\w+:)?c>))"
)
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
            layouts[sheet.get("name") or ""] = _read_layout(archive.chunks(part, _CHUNK))
    return layouts


def _read_layout(chunks: Iterable[bytes]) -> _Layout:
    layout = _Layout()
    rest = b""
    for chunk in chunks:
        # An element may be cut at the end of a chunk
        whole, mark, rest = (rest + chunk).rpartition(b"</row>" if b"</row>" in chunk else b">")
        for match in _ELEMENT.finditer(whole + mark):
            _add_element(layout, match)
    for match in _ELEMENT.finditer(rest):
        _add_element(layout, match)
    return layout


def _add_element(layout: _Layout, match: re.Match[bytes]) -> None:
    name = match[1]
    if name is None:
        layout.uncomputed += 1
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

    if content.startswith(b"PK"):
        Archive(content).check()
    try:
        book = CalamineWorkbook.from_filelike(BytesIO(content))
        for number, facts in enumerate(book.sheets_metadata):
            if facts.visible != SheetVisibleEnum.Visible:
                yield Unread("hidden sheet")
                continue
            sheet = book.get_sheet_by_index(number)
            merged = [_from_zero(area) for area in sheet.merged_cell_ranges or ()]
            rows = _spread_merged(_value_rows(sheet), merged)
            yield from _sheet_runs(facts.name, rows, columns)
    except CalamineError as error:
        raise UnreadableFile(f"no workbook that can be read ({error})") from error


def _value_rows(sheet: Any) -> Iterator[Row]:
    """Number and texts of each row, the empty ones at the top too."""
    for number, cells in enumerate(sheet.to_python(skip_empty_area=False), start=1):
        yield Row(number, [format_value(cell, "General") for cell in cells])


def _from_zero(area: Any) -> _Merge:
    """A merged range of calamine, whose rows and columns count from 0."""
    (top, left), (bottom, right) = area
    return top + 1, bottom + 1, left + 1, right + 1
