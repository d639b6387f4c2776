"""Rows and questions of a file, one at a time, so that a million take no more memory than one.

| file | its rows |
|---|---|
| `.jsonl` | objects, one a line |
| `.json` | a list of objects; SQuAD's object; or columns, `{"question": {"id": "text"}}`, as pandas writes them |
| `.csv`, `.tsv`, `.txt` | columns that a first line names, one of them as the caller wants |
| `.tsv`, `.txt`, and DPR's `.csv` | `id TAB question` (Pyserini), `question TAB ['answer']` (DPR), or a question a line |

Names of columns may be in capitals, and rows of empty cells are none. Files may be packed: `.xz`, `.gz`, `.bz2`. A `.json`
that is no list is read as a whole.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.formats.ctxs import entries, starts_list
from ifqa.formats.questions import distinct, read_questions, read_value, squad
from ifqa.records import Question
from ifqa.storage.files import LONGEST_LINE, read_lines, text_field, unicode_text

Row = tuple[str, dict[str, object]]  # "file:line" or "file: entry n", and the row's values by name

_PACKED = (".gz", ".xz", ".bz2")
_KINDS = (".jsonl", ".json", ".csv", ".tsv", ".txt")
_IDS = ("id", "idx", "qid", "question_id")


def kind_of(path: Path) -> str:
    """The suffix of a file that can be read here, without that of its packing; empty for another file."""
    name = next((path.name.removesuffix(end) for end in _PACKED if path.name.endswith(end)), path.name)
    suffix = Path(name).suffix
    return suffix if suffix in _KINDS else ""


def read_rows(path: Path, wanted: str) -> Iterator[Row]:
    """Each row of a file with named columns, or of JSON.

    Args:
        path: the file.
        wanted: a column that the file must have, by which a first line is known to name columns.

    Raises:
        IfqaError: the file is missing, damaged or of another kind, or no column has that name.
    """
    kind = kind_of(path)
    if kind in (".jsonl", ".json"):
        yield from _json(path)
    elif kind:
        lines, first, cells = _begun(path, kind)
        if wanted not in cells:
            raise IfqaError(
                f"{path}:1: wanted a first line that names columns, one of them {wanted!r}; found {first[:80]!r}"
            )
        yield from _columns(path, lines, _delimiter(kind, first))
    else:
        raise IfqaError(f"{path}: wanted a {', '.join(_KINDS)} file, packed or not; found the suffix {path.suffix!r}")


def iter_questions(path: Path) -> Iterator[Question]:
    """Each question of a file: its text, its id, its dataset as `group`, and "true" or "false" as its label "causal".

    A row has `question`, and may have `id` (or `idx`, `qid`, `question_id`; else its number from 1), `dataset` and `causal`.

    Raises:
        IfqaError: as `read_rows`, or a row is not as above, or there is none.
    """
    kind = kind_of(path)
    bare = False
    if kind not in ("", ".jsonl", ".json"):
        lines, first, cells = _begun(path, kind)
        bare = "question" not in cells and (kind != ".csv" or "\t" in first)
    questions = _bare(path, lines, kind, first) if bare else _named(path)
    count = 0
    for count, question in enumerate(questions, start=1):  # noqa: B007
        yield question
    if not count:
        raise IfqaError(f"{path}: wanted questions, found none")


def load_questions(path: Path) -> list[Question]:
    """The questions to ask of a file, each with an id of its own; those of JSON with their choices and answers.

    Raises:
        IfqaError: as `iter_questions` or `read_questions`, or two questions have the same id.
    """
    if kind_of(path) in (".jsonl", ".json"):
        return read_questions(path)
    return distinct(path, [replace(question, text=question.text.strip()) for question in iter_questions(path)])


def _named(path: Path) -> Iterator[Question]:
    for number, (where, row) in enumerate(read_rows(path, "question"), start=1):
        yield _question(row, where, number)


def _question(row: dict[str, object], where: str, number: int) -> Question:
    group = row.get("dataset")
    if group is not None and not isinstance(group, str):
        raise IfqaError(f"{where}: 'dataset' must be text, found {type(group).__name__}")
    labels = (("causal", _truth(row["causal"], where)),) if row.get("causal") not in (None, "") else ()
    text = text_field(row, "question", where)
    return Question(row_id(row, where) or str(number), text, group=group or "", labels=labels)


def row_id(row: Mapping[str, object], where: str) -> str:
    """The id of a row; empty if it has none.

    Raises:
        IfqaError: it is neither a text nor a whole number.
    """
    value = next((row[key] for key in _IDS if row.get(key) not in (None, "")), "")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise IfqaError(f"{where}: 'id' must be text or a whole number, found {type(value).__name__}")
    return unicode_text(str(value).strip(), "id", where)


def _truth(value: object, where: str) -> str:
    text = str(value).strip().lower()
    if text not in ("true", "false", "1", "0"):
        raise IfqaError(f"{where}: 'causal' must be true or false, found {value!r:.40}")
    return "true" if text in ("true", "1") else "false"


def _json(path: Path) -> Iterator[Row]:
    if kind_of(path) == ".jsonl" or starts_list(path):
        for number, entry in enumerate(entries(path), start=1):
            yield f"{path}: entry {number}", entry
        return
    value = read_value(path)
    if isinstance(value, dict) and isinstance(value.get("data"), list):
        for question in squad(value["data"], str(path)):
            yield f"{path}: {question.id}", {"id": question.id, "question": question.text}
        return
    columns = (
        {key: column for key, column in value.items() if isinstance(column, dict)} if isinstance(value, dict) else {}
    )
    if not isinstance(value, dict) or not columns or len(columns) < len(value):
        raise IfqaError(
            f"{path}: wanted a list of objects, SQuAD's object, or an object of columns; found none of them"
        )
    for name in dict.fromkeys(chain.from_iterable(columns.values())):
        yield f"{path}: {name}", {"id": name} | {key: column[name] for key, column in columns.items() if name in column}


def _begun(path: Path, kind: str) -> tuple[Iterator[tuple[int, str]], str, list[str]]:
    """All numbered lines, the first of them, and its cells."""
    lines = read_lines(path)
    begin = list(islice(lines, 1))
    first = begin[0][1] if begin else ""
    cells = next(csv.reader([first], delimiter=_delimiter(kind, first)), [])
    return chain(begin, lines), first, _names(cells)


def _delimiter(kind: str, first: str) -> str:
    if kind != ".csv" or "\t" in first:
        return "\t"
    return ";" if ";" in first and "," not in first else ","  # as spreadsheets write it where a comma begins decimals


def _names(cells: Iterable[str]) -> list[str]:
    return [cell.strip().lower() for cell in cells]


def _columns(path: Path, lines: Iterable[tuple[int, str]], delimiter: str) -> Iterator[Row]:
    """The rows below a first line that names the columns. A quoted cell may go over several lines."""
    csv.field_size_limit(LONGEST_LINE)
    rows = csv.reader((f"{line}\n" for _, line in lines), delimiter=delimiter, strict=delimiter != "\t")
    try:
        names = _names(next(rows))
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise IfqaError(f"{path}:1: two columns are called {twice!r}; wanted a name of its own for each")
        for cells in rows:
            where = f"{path}:{rows.line_num}"
            if delimiter == "\t" and any("\n" in cell for cell in cells):
                raise IfqaError(f"{where}: a cell goes over several lines; is a quotation mark not closed?")
            if cells and len(cells) != len(names):
                raise IfqaError(f"{where}: wanted {len(names)} columns as in line 1, found {len(cells)}")
            if any(cell.strip() for cell in cells):
                yield where, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise IfqaError(f"{path}:{rows.line_num}: not CSV that can be read ({error})") from error


def _bare(path: Path, lines: Iterable[tuple[int, str]], kind: str, first: str) -> Iterator[Question]:
    """Questions without names of columns; the first line tells which layout all lines have."""
    second = first.partition("\t")[2].strip()
    if not second:
        layout = "a question"
    elif second.startswith("[") and second.endswith("]"):
        layout = "question TAB ['answer']"
    else:
        layout = "id TAB question"
    for number, line in lines:
        if not line.strip():
            continue
        cells = next(csv.reader([line], delimiter="\t")) if kind == ".csv" else line.split("\t")
        if len(cells) != (1 if layout == "a question" else 2) or not all(cell.strip() for cell in cells):
            raise IfqaError(f"{path}:{number}: wanted '{layout}' as in the first line; found {line[:80]!r}")
        name, text = (str(number), cells[0]) if layout != "id TAB question" else (cells[0].strip(), cells[1])
        yield Question(name, text)
