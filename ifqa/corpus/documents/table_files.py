"""Reads the rows of .csv and .tsv files, and the objects of .jsonl and .json files, with their
names.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, split_lines, with_ends
from ifqa.corpus.documents.tables import TOP, require_columns, row_runs, table_runs
from ifqa.corpus.sentences import ENDS

_KEYS, _LONGEST_KEY = 3, 100  # keys above a value of JSON that are shown; their characters
_TOKEN = re.compile(r'\n|"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+')
_FIELD = 1 << 26  # characters of a field, more than a file has; Python's default limit is 131,072
_QUOTED = re.compile(r'"[^"]*"')
#: A comma that parts no cells: of a decimal number, or within a text.
_INNER_COMMA = re.compile(r"(?<=\d),(?=\d)|,(?= )")


def read_csv(text: str, columns: Sequence[str], separator: str = "") -> Iterator[TextRun]:
    """The rows of a table."""
    lines = StringIO(text, newline="").readlines()
    separator = separator or max(",;\t|", key=lambda mark: _score_separator(lines, mark))
    is_spaced = _has_spaces_before_quotes(lines[:TOP], separator)
    ends = dict[int, int]()
    yield from with_ends(table_runs(_read_rows(lines, separator, is_spaced, ends), columns), ends)


def _read_rows(
    lines: Sequence[str], separator: str, is_spaced: bool, ends: dict[int, int]
) -> Iterator[tuple[int, list[str]]]:
    """First line number, from 1, and cells of each row; an empty line has no cells.

    `ends` gets the last line of each row of several lines, by the first. `is_spaced`: whether
    spaces may be before the quotation mark of a cell. A line whose mark joins it to others without
    ending a cell is a row by itself, and its marks are text.
    """
    csv.field_size_limit(_FIELD)
    first = 0
    while first < len(lines):
        start = first
        reader = csv.reader(
            (lines[place] for place in range(start, len(lines))),
            delimiter=separator,
            skipinitialspace=is_spaced,
        )
        for row in reader:
            end = start + reader.line_num
            is_joined = end - first > 1
            if is_joined and not _has_whole_quotes("".join(lines[first:end]), separator):
                [row] = csv.reader([lines[first]], delimiter=separator, quoting=csv.QUOTE_NONE)
                yield first + 1, row
                first += 1
                break
            if is_joined:
                ends[first + 1] = end
            yield first + 1, row
            first = end


def _has_whole_quotes(text: str, separator: str) -> bool:
    """Whether each line break in the text of a row is in a quoted cell that ends.

    A cell in quotation marks has no tabs in a file that tabs part.
    """
    mark = re.escape(separator)
    inner = r'[^"\t]' if separator == "\t" else r'[^"]'
    cell = rf'(?:\A|(?<={mark}))\s*"(?:{inner}|"")*+"(?={mark}|\s*\Z)'
    return "\n" not in re.sub(cell, "", text.replace("\r", "\n")).rstrip("\n")


def _score_separator(lines: Sequence[str], separator: str) -> tuple[int, bool, int, bool]:
    """How well a mark parts the first rows into cells; of two marks the higher score is better.

    First the number of the rows that have the most common number of cells decides, then this
    number. A comma loses to another mark if all commas, or, where both are equal, half of them, are
    of decimal numbers or within texts.
    """
    csv.field_size_limit(_FIELD)
    top = lines[:TOP]
    width, count = _common_width(list(csv.reader(top, delimiter=separator)))
    if width < 2:
        return 0, False, 0, False
    share = _share_of_inner_commas(top) if separator == "," else 0.0
    return count, share < 1, width, share < 0.5


def _share_of_inner_commas(lines: Sequence[str]) -> float:
    """The share of the commas outside quotation marks that part no cells by their look."""
    text = _QUOTED.sub("", "".join(lines))
    return len(_INNER_COMMA.findall(text)) / max(text.count(","), 1)


def _has_spaces_before_quotes(lines: Sequence[str], separator: str) -> bool:
    """Whether cells are quoted after a space: `1, "one, two"`.

    Not if a mark after a space begins no quoted cell: `nail, "5`.
    """
    if not any(f'{separator} "' in line for line in lines):
        return False
    csv.field_size_limit(_FIELD)
    try:
        for _ in csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True):
            pass
    except csv.Error:
        return False
    return True


def _common_width(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """The most common number of cells, and the number of rows that have it."""
    counts = Counter(map(len, filter(None, rows)))
    return max(counts.items(), key=lambda pair: (pair[1], pair[0]), default=(1, 0))


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
        if _is_json_lines(text):
            yield from read_jsonl(text, columns)
            return
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
        last = line + text.count("\n", begin, end)
        yield from with_ends(_object_runs(row, columns, line), {line: last})
        line = last
        start = end


def _is_json_lines(text: str) -> bool:
    """Whether the first line with text is a JSON object by itself."""
    first = text.lstrip().partition("\n")[0]
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


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
        yield from _object_runs(row, columns, number)


def _object_runs(row: Mapping[str, object], columns: Sequence[str], line: int) -> Iterator[TextRun]:
    """An object as a row, whose keys are the columns."""
    require_columns(columns, list(row), f"line {line}: ")
    yield from row_runs([(name, _cell_text(cell)) for name, cell in row.items()], columns, line)


def _as_sentence(text: str) -> str:
    return text if text.rstrip().endswith(ENDS) else f"{text}."


def _cell_text(cell: object) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, list):
        return ", ".join(map(_cell_text, cell))
    return json.dumps(cell, ensure_ascii=False)
