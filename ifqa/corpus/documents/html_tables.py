"""Tells tables of data in HTML from tables that lay out a page, and reads the rows of data."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ifqa.corpus.documents.decoding import TextRun, with_ends
from ifqa.corpus.documents.spans import SpanCell, make_row, spread_cells
from ifqa.corpus.documents.tables import table_runs
from ifqa.corpus.sentences import count_words

#: Elements that a cell of data does not hold.
LAYOUT_BLOCKS = frozenset("article blockquote fieldset footer form header hr main nav pre".split())
_LONGEST_CELL = 200  # words; longer text is read as text
_LONGEST_UNNAMED = 60  # words of a cell in a table without a header, if it has paragraphs
_LONGEST_ROW = 40  # words of a table of one row
_PARAGRAPHS = 3
_MOST_HEADERS = 3  # rows
_NUMBER = re.compile(r"\d{1,5}")
_ENDED = re.compile(r"[.,;:!?]$")

#: A row: its line, its cells by column, and whether it is in <thead>.
_Row = tuple[int, list[SpanCell], bool]


@dataclass(slots=True)
class Line:
    """A line of the page's text, as its pieces are added."""

    pieces: list[str]
    number: int
    opens: bool
    level: int
    item: bool
    is_main: bool  # whether it is in `main`
    menu: int  # the innermost of the elements around it that may be left out; 0 for none
    row: tuple[tuple[str, str], ...] = ()
    last: int = 0  # the number of the last line of the file that it covers

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def add(self, piece: str, number: int) -> None:
        """Add a piece that stands on line `number` of the file."""
        self.pieces.append(piece)
        if piece.strip():
            self.last = number

    def run(self) -> TextRun:
        return TextRun(
            self.text,
            self.number,
            self.opens,
            self.level,
            item=self.item,
            row=self.row,
            last=self.last,
        )


@dataclass(slots=True)
class _OpenCell:
    start: int  # of its lines
    is_header: bool
    columns: int
    rows: int
    end: int = -1
    has_scope: bool = False  # whether it is the header of its row


@dataclass(slots=True)
class _OpenRow:
    line: int
    in_head: bool
    cells: list[_OpenCell] = field(default_factory=list)


class Table:
    """A table, as its tags are added in order; its text is in the lines of the page."""

    def __init__(self, start: int, attributes: dict[str, str]) -> None:
        self.start = start  # of its lines in those of the page
        self.is_layout = attributes.get("role", "").lower() in ("presentation", "none")
        self.has_blocks = False  # whether a cell holds LAYOUT_BLOCKS or a table
        self._has_caption = False
        self._in_head = False
        self._rows: list[_OpenRow] = []
        self._cell: _OpenCell | None = None

    def start_caption(self) -> None:
        self._has_caption = True

    def start_group(self, name: str, end: int) -> None:
        """Start <thead>, <tbody> or <tfoot>, or end one, with no name."""
        self.end_cell(end)
        self._in_head = name == "thead"

    def start_row(self, line: int, end: int) -> None:
        self.end_cell(end)
        self._rows.append(_OpenRow(line, self._in_head))

    def start_cell(self, name: str, attributes: dict[str, str], line: int, start: int) -> None:
        self.end_cell(start)
        if not self._rows:
            self.start_row(line, start)
        self._cell = _OpenCell(
            start,
            name == "th",
            _span(attributes.get("colspan", "")),
            _span(attributes.get("rowspan", ""), of_zero=1000),
            has_scope=attributes.get("scope", "").lower() in ("row", "rowgroup"),
        )
        self._rows[-1].cells.append(self._cell)

    def end_cell(self, end: int) -> None:
        if self._cell is not None:
            self._cell.end = end
            self._cell = None

    def read(self, lines: Sequence[Line]) -> list[Line] | None:
        """The lines of a table of data as rows, or None if it is no such table.

        `lines` are the lines of the page from `start`.
        """
        self.end_cell(self.start + len(lines))
        rows = [row for row in self._rows if row.cells]
        if self.is_layout or not rows or not self._is_data(rows, lines):
            return None
        held = bytearray(len(lines))
        for row in rows:
            for cell in row.cells:
                first = cell.start - self.start
                end = cell.end - self.start
                held[first:end] = b"\1" * (end - first)
        read = [line for line, is_held in zip(lines, held, strict=True) if not is_held]
        pattern = lines[0] if lines else None
        ends = dict[int, int]()
        for row in rows:
            held_by_row = [line for cell in row.cells for line in self._cell_lines(cell, lines)]
            last = max((max(line.number, line.last) for line in held_by_row), default=0)
            ends[row.line] = max(last, ends.get(row.line, row.line))
        for run in with_ends(self._runs(rows, lines), ends):
            if pattern is not None:
                read.append(
                    Line(
                        [run.text],
                        run.place,
                        True,
                        run.level,
                        False,
                        pattern.is_main,
                        pattern.menu,
                        run.row,
                        run.last,
                    )
                )
        return read

    def _cell_lines(self, cell: _OpenCell, lines: Sequence[Line]) -> Sequence[Line]:
        return lines[cell.start - self.start : cell.end - self.start]

    def _is_data(self, rows: Sequence[_OpenRow], lines: Sequence[Line]) -> bool:
        cells = [cell for row in rows for cell in row.cells]
        if len(cells) < 2:
            return False
        is_named = self._has_caption or any(cell.is_header for cell in cells)
        if self.has_blocks and not is_named:
            return False
        total = 0
        for cell in cells:
            held = self._cell_lines(cell, lines)
            if any(line.level for line in held) and not cell.is_header:
                return False
            words = sum(count_words(line.text) for line in held)
            paragraphs = sum(line.opens for line in held)
            total += words
            if words > _LONGEST_CELL:
                return False
            if not is_named and words > _LONGEST_UNNAMED and paragraphs >= _PARAGRAPHS:
                return False
        return is_named or len(rows) > 1 or total <= _LONGEST_ROW

    def _runs(self, rows: Sequence[_OpenRow], lines: Sequence[Line]) -> Iterator[TextRun]:
        written = [
            [
                SpanCell(
                    _cell_text(self._cell_lines(cell, lines)),
                    cell.columns,
                    cell.rows,
                    is_header=cell.is_header and not cell.has_scope,
                    names_row=cell.has_scope,
                )
                for cell in row.cells
            ]
            for row in rows
        ]
        spread = spread_cells(written)
        table = [(row.line, cells, row.in_head) for row, cells in zip(rows, spread, strict=True)]
        yield from header_runs(table)


def header_runs(rows: Sequence[_Row]) -> Iterator[TextRun]:
    """The runs of a table whose cells say which of them are headers.

    A row over the whole width above the header is text. A row of headers further down begins a
    table of its own.
    """
    rows = list(rows)
    start = 0
    while start + 1 < len(rows) and not _filled(rows[start]):
        start += 1
    while start + 1 < len(rows) and _is_title(rows[start]):
        yield from table_runs(
            [(rows[start][0], [rows[start][1][0].text])], header=0, has_titles=False
        )
        start += 1
    is_headless = bool(start) and any(in_head for _, _, in_head in rows[:start])
    seen = set[tuple[str, ...]]()
    while start < len(rows):
        header = _count_headers(rows, start)
        names = tuple(cell.text for cell in rows[start][1])
        end = start + max(header, 1)
        while end < len(rows) and not _is_header(rows[end]):
            end += 1
        is_repeated = end == start + 1 and names in seen  # below the table
        if not is_repeated:
            declared = header or _undeclared(rows[start:end], is_headless)
            shown = (make_row(line, cells) for line, cells, _ in rows[start:end])
            yield from table_runs(shown, header=declared, has_titles=False)
        seen.add(names)
        start = end


def _filled(row: _Row) -> list[SpanCell]:
    return [cell for cell in row[1] if cell.text]


def _is_title(row: _Row) -> bool:
    """Whether one cell covers the whole row, which has several columns."""
    cells = row[1]
    return len(cells) > 1 and cells[0].columns >= len(cells) and bool(cells[0].text)


def _is_header(row: _Row) -> bool:
    """Whether a row names several columns, or one beside a column without a name."""
    filled = _filled(row)
    is_corner = len(row[1]) == 2 and not row[1][0].text
    several = len({id(cell) for cell in filled}) > 1
    return (several or is_corner) and all(cell.is_header for cell in filled)


def _count_headers(rows: Sequence[_Row], start: int) -> int:
    """The number of rows from `start` that the page declares as headers of the rows below."""
    count = 0
    most = min(_MOST_HEADERS, len(rows) - start - 1)
    while count < most and _filled(rows[start + count]):
        if not (rows[start + count][2] or _is_header(rows[start + count])):
            break
        count += 1
    return count


def _undeclared(rows: Sequence[_Row], is_headless: bool) -> int | None:
    """The number of header rows of a table that declares none: None if its cells decide.

    Headers of rows in the first column, from the first row on, or an empty <thead>, say that the
    columns have no names.
    """
    first = rows[0][1]
    names_rows = bool(first) and bool(first[0].text) and (first[0].is_header or first[0].names_row)
    return 0 if is_headless or (names_rows and len(rows) > 1) else None


def _cell_text(lines: Sequence[Line]) -> str:
    """The text of a cell in one line; items and rows within it are separated by commas."""
    parts = list[str]()
    for line in lines:
        text = line.text.strip()
        if not text:
            continue
        if parts and line.opens and (line.item or line.row) and not _ENDED.search(parts[-1]):
            parts[-1] += ","
        parts.append(text)
    return " ".join(parts)


def _span(value: str, of_zero: int = 1) -> int:
    """The columns or rows of a merged cell; a rowspan of 0 reaches to the end of its table."""
    number = _NUMBER.match(value.strip())
    return (int(number[0]) if number else 1) or of_zero
