"""Tables: the rows of .csv and .tsv files, and the objects of .jsonl files, by the names of their columns."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO

from ifqa.corpus.documents.text import Run, Unreadable, lines_of

_TITLE = "title"  # a column of this name is its row's heading
_FIELD = 1 << 24  # characters of a field; Python's own limit is 131,072


def read_csv(text: str, columns: Sequence[str], separator: str = "") -> Iterator[Run]:
    """The rows of a table whose first row names its columns; the separator is found in that row if it is not given.

    Raises:
        Unreadable: a named column is not there, or the quotes do not fit.
    """
    separator = separator or max(",;\t|", key=text.partition("\n")[0].count)
    csv.field_size_limit(_FIELD)
    rows = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        names = [name.strip() for name in next(rows, [])]
        _require(columns, names)
        line = rows.line_num + 1
        for row in rows:
            yield from _row(dict(zip(names, row, strict=False)), columns, line)
            line = rows.line_num + 1
    except csv.Error as error:
        raise Unreadable(f"line {rows.line_num}: not a row of a table ({error})") from error


def read_jsonl(text: str, columns: Sequence[str]) -> Iterator[Run]:
    """The objects of JSON lines, whose keys are the columns.

    Raises:
        Unreadable: a line is no object, or has none of the named columns.
    """
    for number, line in enumerate(lines_of(text), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"line {number} is not JSON ({error})") from error
        if not isinstance(row, dict):
            raise Unreadable(f"line {number}: wanted a JSON object, found {type(row).__name__}")
        _require(columns, list(row), f"line {number}: ")
        yield from _row(row, columns, number)


def _require(columns: Sequence[str], names: Sequence[str], where: str = "") -> None:
    if missing := [one for one in columns if one not in names]:
        raise Unreadable(f"{where}no column {missing[0]!r}; found {', '.join(map(repr, names)) or 'none'}")


def _row(row: Mapping[str, object], columns: Sequence[str], line: int) -> Iterator[Run]:
    """A heading from the column `title` if there is one, and a paragraph for each other column, "name: value"."""
    cells = {name: _shown(row[name]) for name in columns or row if name}
    title = next((name for name in cells if name.lower() == _TITLE), "") if len(cells) > 1 else ""
    if cells.get(title):
        yield Run(cells[title], line, True, 1)
    shown = [(name, text) for name, text in cells.items() if text and name != title]
    for number, (name, text) in enumerate(shown):
        several = len(cells) - bool(title) > 1
        ended = "" if text.rstrip().endswith((".", "!", "?")) or not several else "."
        yield Run(f"{name}: {text}{ended}" if several else text, line, number == 0 or not several)


def _shown(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return json.dumps(value, ensure_ascii=False)
