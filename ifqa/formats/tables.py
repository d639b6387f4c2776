"""Streams the rows of a table or a JSON file, compressed or not.

| file | rows |
|---|---|
| `.jsonl` | one object per line, or MRQA's format |
| `.json` | a list of objects, or SQuAD's format |
| `.parquet` | its rows; needs pyarrow |
| `.csv`, `.tsv`, `.txt` | lines below a header, which must have the column that the caller names |

Column names are case-insensitive, and rows of empty cells are skipped. Files may be compressed:
`.xz`, `.gz`, `.bz2`.
"""

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO

from ifqa.errors import FormatError, MissingInput
from ifqa.formats.ctxs import is_json_list, iter_entries
from ifqa.storage.files import (
    LONGEST_LINE,
    read_jsonl,
    read_lines,
    read_packed_json,
    typed_field,
    unicode_text,
)

Row = tuple[str, dict[str, object]]  # "file:line" or "file: entry n", and the row's values by name

_COMPRESSED_SUFFIXES = (".gz", ".xz", ".bz2")
#: Files with typed values, and files with texts only.
JSON_SUFFIXES = (".jsonl", ".json", ".parquet")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt")
_ROWS = 10  # rows of a parquet file in memory: a dictionary-encoded text may be in all of them
_ROWS_SIZE = 1 << 28  # bytes of these rows; ten articles at MediaWiki's limit are 20 MB
_ID_COLUMNS = ("id", "idx", "qid", "question_id")


def unpacked_suffix(path: Path) -> str:
    """A file's suffix before `.gz`, `.xz` or `.bz2`; empty if `read_rows` cannot read the file."""
    name = next(
        (path.name.removesuffix(end) for end in _COMPRESSED_SUFFIXES if path.name.endswith(end)),
        path.name,
    )
    suffix = Path(name).suffix
    return suffix if suffix in JSON_SUFFIXES + TABLE_SUFFIXES else ""


def read_rows(path: Path, required: str) -> Iterator[Row]:
    """Each row of a JSON file, or of a table, whose first line, the header, must have the
    `required` column.
    """
    kind = unpacked_suffix(path)
    if not kind:
        suffixes = ", ".join(JSON_SUFFIXES + TABLE_SUFFIXES)
        raise FormatError(
            f"{path}: wanted a {suffixes} file, compressed or not; found {path.suffix!r}"
        )
    if kind == ".jsonl":
        for number, record in read_jsonl(path):
            yield from _read_mrqa(record, f"{path}:{number}")
    elif kind == ".parquet":
        with open(path, "rb") as handle:
            yield from ((f"{path}:{number}", row) for number, row, _ in read_parquet(path, handle))
    elif kind == ".json" and is_json_list(path):
        yield from (
            (f"{path}: entry {number}", entry)
            for number, entry in enumerate(iter_entries(path), start=1)
        )
    elif kind == ".json":
        yield from _read_squad(path)
    else:
        first, lines = read_first_line(path)
        if required not in parse_header(first, kind, path):
            raise FormatError(
                f"{path}:1: wanted a header with the column {required!r}; found {first[:80]!r}"
            )
        yield from _read_table(path, lines, _delimiter(kind, first))


def read_parquet(
    file: Path, handle: IO[bytes], columns: Collection[str] | None = None
) -> Iterator[tuple[int, dict[str, object], int]]:
    """Number and columns of each row of a parquet file, and the bytes read so far, estimated from
    the share of rows.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ModuleNotFoundError as error:
        raise MissingInput(
            f"{file}: parquet needs pyarrow; install it with: pip install 'ifqa[parquet]'"
        ) from error
    number = 0
    size = file.stat().st_size
    try:
        table = ParquetFile(handle)
        chosen = [name for name in table.schema_arrow.names if columns is None or name in columns]
        for batch in table.iter_batches(_ROWS, columns=chosen, use_threads=False):
            if batch.nbytes > _ROWS_SIZE:
                raise FormatError(
                    f"{file}:{number + 1}: {batch.nbytes:,} bytes in {_ROWS} rows; "
                    "wanted a few MB a row"
                )
            for record in batch.to_pylist():
                number += 1
                yield number, record, size * number // table.metadata.num_rows
    except (ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FormatError(
            f"{file}: not a complete parquet file ({error}); fetch it again"
        ) from error


def row_id(row: Mapping[str, object], where: str) -> str:
    """A row's id, which must be text or a whole number; empty if the row has none."""
    name = next((row[key] for key in _ID_COLUMNS if row.get(key) not in (None, "")), "")
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise FormatError(
            f"{where}: 'id' must be text or a whole number, found {type(name).__name__}"
        )
    return unicode_text(str(name).strip(), "id", where)


def _read_mrqa(record: dict[str, object], where: str) -> Iterator[Row]:
    """The questions of a line of MRQA, each with its context as `passages`; none for its header.

    Any other line is a row by itself.
    """
    if record.keys() == {"header"}:
        return
    if "qas" not in record or "context" not in record:
        yield where, record
        return
    for qa in objects_field(record, "qas", where):
        yield where, _squad_row(qa, typed_field(record, "context", str, where))


def _squad_row(qa: dict[str, object], passage: str) -> dict[str, object]:
    """A question of SQuAD or MRQA with its paragraph, and without what else annotators gave.

    An impossible question has no answers, and the label "unanswerable".
    """
    row = {key: value for key, value in qa.items() if key in ("id", "qid", "question")}
    row["passages"] = passage
    if qa.get("is_impossible") is True:
        return row | {"answers": [], "label": "unanswerable"}
    answers = qa.get("answers", [])
    if isinstance(answers, list):  # with offsets, and often the same from several annotators
        texts = [text.get("text") if isinstance(text, dict) else text for text in answers]
        answers = [text for n, text in enumerate(texts) if text not in texts[:n]]
    return row | {"answers": answers}


def _read_squad(path: Path) -> Iterator[Row]:
    """The questions of a SQuAD file, each with its paragraph as `passages`."""
    for number, article in enumerate(
        objects_field(read_packed_json(path), "data", str(path)), start=1
    ):
        where = f"{path}: article {number}"
        for paragraph in objects_field(article, "paragraphs", where):
            for qa in objects_field(paragraph, "qas", where):
                yield where, _squad_row(qa, typed_field(paragraph, "context", str, where))


def objects_field(record: object, key: str, where: str) -> list[dict[str, object]]:
    """The list of objects under a key of an object; raises FormatError for any other value."""
    if not isinstance(record, dict):
        raise FormatError(f"{where}: wanted an object, found {type(record).__name__}")
    elements = typed_field(record, key, list, where)
    for element in elements:
        if not isinstance(element, dict):
            raise FormatError(
                f"{where}: {key!r} must be a list of objects, found {type(element).__name__} in it"
            )
    return elements


def read_first_line(path: Path) -> tuple[str, Iterator[tuple[int, str]]]:
    """The first line of a table, and an iterator over all its numbered lines, the first
    included.
    """
    lines = read_lines(path)
    first = next(lines, (1, ""))
    return first[1], chain([first], lines)


def parse_header(first: str, kind: str, path: Path) -> list[str]:
    """The column names of a header line."""
    return [
        cell.strip().lower() for cell in split_line(first, _delimiter(kind, first), f"{path}:1")
    ]


def split_line(line: str, delimiter: str, where: str) -> list[str]:
    """The cells of a line of a table; FormatError if it has a lone carriage return."""
    csv.field_size_limit(LONGEST_LINE)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error as error:
        problem = str(error).partition(" - ")[0]
        mend = "save the file with the line ends of Unix or Windows"
        raise FormatError(f"{where}: invalid line ({problem}); {mend}") from error


def split_cell(cell: object, where: str, separator: str = "|") -> object:
    """The texts of a cell of a table: a JSON list of texts, or texts between separators.

    Other values are unchanged.
    """
    if not isinstance(cell, str):
        return cell
    if not cell.lstrip().startswith('["'):
        return [
            text.strip()
            for text in (cell.split(separator) if separator else [cell])
            if text.strip()
        ]
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f'{where} starts like a list but is not one; wanted ["…", "…"] ({error})'
        ) from error


def join_cell(texts: Sequence[str], separator: str = "|") -> str:
    """The cell that `split_cell` reads as these texts; without a separator, a single text."""
    parted = bool(separator) and any(separator in text for text in texts)
    cell = f" {separator} ".join(texts)
    if parted or cell.lstrip().startswith('["'):
        return json.dumps(list(texts), ensure_ascii=False)
    return cell


def _delimiter(kind: str, first: str) -> str:
    if kind != ".csv" or "\t" in first:
        return "\t"
    # Spreadsheets write ";" in locales with a decimal comma
    return ";" if ";" in first and "," not in first else ","


def _read_table(path: Path, lines: Iterable[tuple[int, str]], delimiter: str) -> Iterator[Row]:
    """The rows below a header. A quoted cell may span several lines."""
    rows = csv.reader(
        (f"{line}\n" for _, line in lines), delimiter=delimiter, strict=delimiter != "\t"
    )
    try:
        names = [cell.strip().lower() for cell in next(rows)]
        if duplicate := next((name for name in names if names.count(name) > 1), ""):
            raise FormatError(
                f"{path}:1: two columns are called {duplicate!r}; wanted unique names"
            )
        for cells in rows:
            where = f"{path}:{rows.line_num}"
            if delimiter == "\t" and any("\n" in cell for cell in cells):
                raise FormatError(
                    f"{where}: a cell spans several lines; is a quotation mark left open?"
                )
            if cells and len(cells) != len(names):
                raise FormatError(
                    f"{where}: wanted {len(names)} columns as in line 1, found {len(cells)}"
                )
            if any(cell.strip() for cell in cells):
                yield where, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise FormatError(f"{path}:{rows.line_num}: invalid CSV ({error})") from error
