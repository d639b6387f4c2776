"""Reads the rows of .csv, .tsv and .xlsx files, and the objects of .jsonl and .json files, with
their names.
"""

import csv
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO, StringIO
from itertools import chain, dropwhile, islice
from xml.etree.ElementTree import ParseError

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, split_lines
from ifqa.corpus.documents.office import BROKEN, Archive

_TITLE = "title"  # the column of a row's heading
_TOP, _PREAMBLE = 100, 20  # rows to inspect for the separator and the header; longest preamble
_LAST_ROW = 1_048_576  # of a sheet
_KEYS, _LONGEST_KEY = 3, 100  # keys above a value of JSON that are shown; their characters
_TOKEN = re.compile(r'\n|"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_FIELD = 1 << 26  # characters of a field, more than a file has; Python's default limit is 131,072


def read_csv(text: str, columns: Sequence[str], separator: str = "") -> Iterator[TextRun]:
    """The rows of a table below its header; rows above the header are kept as text.

    The second column of the same name is "name (2)"; a cell beyond the last column name is in
    "column 7", by its position.
    """
    lines = StringIO(text, newline="").readlines()
    separator = separator or max(",;\t|", key=lambda mark: _score_separator(lines, mark))
    yield from _table_runs(_read_rows(lines, separator), columns)


def _table_runs(rows: Iterator[tuple[int, list[str]]], columns: Sequence[str]) -> Iterator[TextRun]:
    """The numbered rows of a table: a preamble, its header, and what is below."""
    top = list(islice(rows, _TOP))
    header = _find_header([row for _, row in top])
    for line, row in top[:header]:
        if preamble := "; ".join(filter(None, map(str.strip, row))):
            yield TextRun(f"{preamble}.", line)
    names = _column_names(top[header][1]) if top else []
    _require_columns(columns, names)
    for line, row in chain(top[header + 1 :], rows):
        beyond = (f"column {place}" for place in range(len(names) + 1, len(row) + 1))
        yield from _row_runs(dict(zip(chain(names, beyond), row, strict=False)), columns, line)


def _read_rows(lines: Sequence[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """First line number, from 1, and cells of each row; an empty line has no cells."""
    csv.field_size_limit(_FIELD)
    reader = csv.reader(lines, delimiter=separator)
    first = 1
    for row in reader:
        yield first, row
        first = reader.line_num + 1


def _score_separator(lines: Sequence[str], separator: str) -> tuple[int, int]:
    """Number of the first rows that have the most common number of cells, and that number.

    (0, 0) if it is 1.
    """
    width, count = _common_width([row for _, row in _read_rows(lines[:_TOP], separator)])
    return (count, width) if width > 1 else (0, 0)


def _common_width(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The most common number of cells, and the number of rows that have it."""
    counts = Counter(map(len, filter(None, rows)))
    return max(counts.items(), key=lambda pair: (pair[1], pair[0]), default=(1, 0))


def _find_header(rows: Sequence[Sequence[str]]) -> int:
    """The index of the header row: the first row, or the one below a preamble.

    The rows of a preamble have one cell where the table has several, or less than half of the
    table's cells and an empty line below them. R and pandas leave the name of the index column
    empty, so the header of a table of two columns may have one name.
    """
    cells = [sum(map(bool, map(str.strip, row))) for row in rows]
    width, _ = _common_width(rows)
    empty = [n for n, count in enumerate(cells[:_PREAMBLE]) if not count]
    header = (
        empty[-1] + 1 if empty and all(count * 2 < width for count in cells[: empty[-1]]) else 0
    )
    while (
        header + 1 < len(rows)
        and width > 1
        and cells[header] <= (0 if len(rows[header]) == 2 else 1)
    ):
        header += 1
    # A row over groups of columns
    if header + 1 < len(rows) and 2 * cells[header] < cells[header + 1]:
        header += 1
    return min(header, len(rows) - 1)


def _column_names(header: Sequence[str]) -> list[str]:
    names = list[str]()
    seen = Counter[str]()
    for place, cell in enumerate(header, start=1):
        name = cell.strip() or f"column {place}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def read_xlsx(content: bytes, columns: Sequence[str]) -> Iterator[TextRun]:
    """The rows of a workbook's sheets, each a table; the values of formulas as they were saved."""
    from openpyxl import load_workbook

    warnings.filterwarnings("ignore", module="openpyxl")  # about parts that it does not read
    Archive(content).check()
    try:
        book = load_workbook(BytesIO(content), read_only=True, data_only=True, keep_links=False)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a sheet may declare a million columns
            cells = enumerate(islice(sheet.iter_rows(values_only=True), _LAST_ROW), start=1)
            rows = (
                (number, list(map(_value_text, row)))
                for number, row in cells
                if row or number <= _TOP
            )
            filled = dropwhile(lambda numbered: not any(numbered[1]), rows)
            for n, run in enumerate(_table_runs(filled, columns)):
                if not n:
                    yield TextRun(sheet.title, run.place, level=1, sheet=sheet.title)
                yield replace(run, level=2 * run.level, sheet=sheet.title)
    except (*BROKEN, AttributeError, IndexError, KeyError, ParseError, TypeError) as error:
        raise UnreadableFile(f"no workbook of Excel ({error})") from error


def _value_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.15g}"  # as Excel shows it
    return "" if value is None else str(value).removesuffix(" 00:00:00")  # a date without a time


def read_json(text: str, columns: Sequence[str]) -> Iterator[TextRun]:
    """An array of objects as rows, whose keys are the columns.

    Any other JSON as a paragraph "key: value" for each value.
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise UnreadableFile(
            "not JSON that can be read: its values are nested too deeply"
        ) from error
    except ValueError as error:
        raise UnreadableFile(f"not JSON ({error})") from error
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        yield from _json_values(text)
        return
    decoder = json.JSONDecoder()
    start = 0
    line = 1
    for _ in content:
        begin = text.index("{", start)
        line += text.count("\n", start, begin)
        row, end = decoder.raw_decode(text, begin)
        _require_columns(columns, list(row), f"line {line}: ")
        yield from _row_runs(row, columns, line)
        line = line + text.count("\n", begin, end)
        start = end


def _json_values(text: str) -> Iterator[TextRun]:
    """The values of valid JSON, each with its line and the innermost keys above it."""
    # the key in each open object or array; a string or number and its line
    line = 1
    keys = list[str]()
    held = ("", 0)
    for piece in chain(_TOKEN.findall(text), ","):
        if piece == "\n":
            line += 1
        elif piece in ("{", "["):
            keys.append("")
        elif piece == ":":
            keys[-1] = json.loads(held[0])[:_LONGEST_KEY]
            held = ("", 0)
        elif piece in (",", "}", "]"):
            if held[0] not in ("", "null", '""'):
                names = " › ".join(list(filter(None, keys))[-_KEYS:])
                shown = json.loads(held[0]) if held[0][0] == '"' else held[0]
                yield TextRun(
                    f"{names}: {_as_sentence(shown)}" if names else _as_sentence(shown), held[1]
                )
            held = "", 0
            if piece != ",":
                keys.pop()
        else:
            held = piece, line


def read_jsonl(text: str, columns: Sequence[str]) -> Iterator[TextRun]:
    """The objects of JSON lines, whose keys are the columns."""
    for number, line in enumerate(split_lines(text), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UnreadableFile(f"line {number} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise UnreadableFile(f"line {number}: wanted a JSON object, found {type(row).__name__}")
        _require_columns(columns, list(row), f"line {number}: ")
        yield from _row_runs(row, columns, number)


def _require_columns(columns: Sequence[str], names: Sequence[str], where: str = "") -> None:
    if missing := [column for column in columns if column not in names]:
        raise UnreadableFile(
            f"{where}no column {missing[0]!r}; found {', '.join(map(repr, names)) or 'none'}"
        )


def _row_runs(row: Mapping[str, object], columns: Sequence[str], line: int) -> Iterator[TextRun]:
    """A heading from the column `title`, and a paragraph "name: value" for each other column."""
    cells = {name: _cell_text(row[name]) for name in columns or row if name}
    title = next((name for name in cells if name.lower() == _TITLE), "") if len(cells) > 1 else ""
    if cells.get(title):
        yield TextRun(cells[title], line, True, 1)
    has_names = len(cells) - bool(title) > 1
    for name, text in cells.items():
        if text and name != title:
            yield TextRun(f"{name}: {_as_sentence(text)}" if has_names else text, line)


def _as_sentence(text: str) -> str:
    return text if text.rstrip().endswith((".", "!", "?")) else f"{text}."


def _cell_text(cell: object) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, list):
        return ", ".join(map(_cell_text, cell))
    return json.dumps(cell, ensure_ascii=False)
