"""Reads the tables of reStructuredText: grids, simple tables, and lists or CSV of a directive."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from ifqa.corpus.documents.decoding import TextRun, with_ends
from ifqa.corpus.documents.spans import SpanCell, make_row, spread_cells
from ifqa.corpus.documents.tables import table_runs

GRID_RULE = re.compile(r"\s*\+(?:[-=]+\+)+\s*")
SIMPLE_RULE = re.compile(r"\s*=+(?:\s+=+)+\s*")
_SPAN_RULE = re.compile(r"\s*-+(?:\s+-+)*\s*")
_SEGMENT = re.compile(r"[=-]+")
_LIST_ROW = re.compile(r"(\s*\*\s+)-(?:\s+(.*))?$")
_LIST_CELL = re.compile(r"(\s*)-(?:\s+(.*))?$")
_MOST_COLUMNS = 200
_DELIMITERS = {"tab": "\t", "space": " "}
_FIELD = 1 << 26  # characters of a field, more than a file has; Python's default limit is 131,072


def find_grid_end(lines: Sequence[str], start: int) -> int:
    """The index after the last line of a grid that begins at `start`."""
    end = start
    while end < len(lines) and lines[end].lstrip()[:1] in ("+", "|"):
        end += 1
    return end


class _GridCell:
    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.rows = 1
        self.lines: list[str] = []

    def cell(self) -> SpanCell:
        return SpanCell(" ".join(self.lines), self.columns, self.rows)


def grid_runs(lines: Sequence[str], place: int) -> Iterator[TextRun]:
    """The rows of a grid, whose first line is at `place`."""
    edges = sorted(
        {
            position
            for line in lines
            if GRID_RULE.fullmatch(line)
            for position, char in enumerate(line)
            if char == "+"
        }
    )
    edges = edges[:_MOST_COLUMNS]
    starts = {edge: column for column, edge in enumerate(edges)}
    rows = list[tuple[int, dict[int, _GridCell]]]()
    cells = dict[int, _GridCell]()  # the open ones, by the column that they begin in
    header = 0
    for number, line in enumerate(lines, start=place):
        ruled = _ruled_columns(line, edges)
        if ruled:
            for column in [column for column in cells if column in ruled]:
                del cells[column]
            for cell in cells.values():
                cell.rows += 1
            if "=" in line and len(rows) and GRID_RULE.fullmatch(line):
                header = len(rows)
            rows.append((number + 1, {}))
        for first, end, text in _pieces(line, edges, starts):
            if rows and first not in ruled:
                if first not in cells:
                    cells[first] = rows[-1][1][first] = _GridCell(end - first)
                cells[first].lines.append(text)
    filled = [(number, row) for number, row in rows if row]
    spread = spread_cells([[row[key].cell() for key in sorted(row)] for _, row in filled])
    ends = {
        number: number + max(len(cell.lines) for cell in row.values()) - 1 for number, row in filled
    }
    yield from _runs([number for number, _ in filled], spread, header or None, ends)


def _ruled_columns(line: str, edges: Sequence[int]) -> set[int]:
    """The columns that a rule ends in a line."""
    return {
        column
        for column, (start, end) in enumerate(pairwise(edges))
        if end < len(line)
        and line[start] in "+|"
        and line[start + 1] in "-="
        and not line[start + 1 : end].strip("-=+")
    }


def _pieces(
    line: str, edges: Sequence[int], starts: Mapping[int, int]
) -> Iterator[tuple[int, int, str]]:
    """First column, the column after the last, and text of each cell in a line."""
    bars = [edge for edge in edges if edge < len(line) and line[edge] in "|+"]
    for start, end in pairwise(bars):
        yield starts[start], starts[end], line[start + 1 : end].strip()


def simple_runs(lines: Sequence[str], place: int) -> Iterator[TextRun]:
    """The rows of a simple table, with its rules, whose first line is at `place`."""
    starts = [match.start() for match in _SEGMENT.finditer(lines[0])][:_MOST_COLUMNS]
    rows = list[tuple[int, list[str], list[SpanCell]]]()  # line, lines of text, merged cells
    ends = dict[int, int]()
    header = 0
    for number, line in enumerate(lines[1:], start=place + 1):
        if SIMPLE_RULE.fullmatch(line):
            header = header or len(rows)
        elif _SPAN_RULE.fullmatch(line) and rows:
            segments = [match.start() for match in _SEGMENT.finditer(line)]
            rows[-1][2].extend(_merged_cells(rows[-1][1], starts, segments))
        elif line.strip():
            if line[: starts[1]].strip() or not rows:
                rows.append((number, [], []))
            rows[-1][1].append(line)
            ends[rows[-1][0]] = number
    cells = [merged or _merged_cells(held, starts, starts) for _, held, merged in rows]
    has_header = 0 < header < len(rows)
    numbers = [number for number, _, _ in rows]
    yield from _runs(numbers, spread_cells(cells), header if has_header else None, ends)


def _merged_cells(
    lines: Sequence[str], starts: Sequence[int], segments: Sequence[int]
) -> list[SpanCell]:
    """The cells that begin at `segments`, over the columns that begin at `starts`."""
    cells = list[SpanCell]()
    for start, end in pairwise([*segments, -1]):
        parts = (line[start : end if end >= 0 else None].strip() for line in lines)
        columns = sum(start <= each and (each < end or end < 0) for each in starts)
        text = " ".join(filter(None, parts))
        cells.append(SpanCell("" if text == "\\" else text, max(columns, 1)))
    return cells


def list_table_runs(
    lines: Sequence[str], place: int, options: Mapping[str, str]
) -> Iterator[TextRun]:
    """The rows of the directive `list-table`, whose body begins at `place`."""
    rows = list[tuple[int, list[str]]]()
    ends = dict[int, int]()
    indent = -1  # of the dash of each cell
    for number, line in enumerate(lines, start=place):
        row = _LIST_ROW.match(line)
        cell = _LIST_CELL.match(line)
        if row and indent in (-1, len(row[1])):
            indent = len(row[1])
            rows.append((number, [row[2] or ""]))
        elif cell and rows and len(cell[1]) == indent:
            rows[-1][1].append(cell[2] or "")
        elif rows and line.strip():
            rows[-1][1][-1] += f" {line.strip()}"
        if rows and line.strip():
            ends[rows[-1][0]] = number
    runs = table_runs(rows, header=_header_rows(options) or None, has_titles=False)
    yield from with_ends(runs, ends)


def csv_table_runs(
    lines: Sequence[str], place: int, options: Mapping[str, str]
) -> Iterator[TextRun]:
    """The rows of the directive `csv-table`, whose body begins at `place`."""
    csv.field_size_limit(_FIELD)
    named = options.get("delim", ",").strip()
    delimiter = _DELIMITERS.get(named, named)
    delimiter = delimiter if len(delimiter) == 1 and delimiter not in '"\r\n' else ","
    rows = list[tuple[int, list[str]]]()
    if options.get("header"):
        names = csv.reader([options["header"]], delimiter=delimiter, skipinitialspace=True)
        rows += [(place, row) for row in names]
    header = len(rows) + _header_rows(options)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    ends = dict[int, int]()
    first = place
    for row in reader:
        rows.append((first, [cell.strip() for cell in row]))
        ends[first] = place + reader.line_num - 1
        first = place + reader.line_num
    filled = [row for row in rows if any(row[1])]
    yield from with_ends(table_runs(filled, header=header or None, has_titles=False), ends)


def _header_rows(options: Mapping[str, str]) -> int:
    value = options.get("header-rows", "").strip()
    return int(value) if value.isdecimal() and len(value) < 4 else 0


def _runs(
    places: Sequence[int],
    rows: Sequence[Sequence[SpanCell]],
    header: int | None,
    ends: Mapping[int, int],
) -> Iterator[TextRun]:
    shown = map(make_row, places, rows)
    yield from with_ends(table_runs(shown, header=header, has_titles=False), ends)
