"""Annotation tasks in a file: the JSON that Label Studio imports and exports, or CSV, a row for each annotation.

    [{"data": {"passage_id": "12-0", "passage": "…"}}, …]                                          a task, to be imported
    [{"id": 1, "data": {…}, "annotations": [{"completed_by": 7, "result": [{"from_name": "question",
        "type": "textarea", "value": {"text": ["If …?"]}}]}]}]                                     and as it is exported

In CSV the data are columns, and so are the fields to fill in. Both are read as rows: names -> a text, or a list of texts.
The layout is that of labelstud.io/guide/task_format, the export named "JSON".
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ifqa.errors import IfqaError
from ifqa.formats.ctxs import entries, starts_list
from ifqa.formats.rows import kind_of, read_rows
from ifqa.storage.files import create, unicode_text, write

Value = str | list[str]
Row = dict[str, Value]
WORKER = "worker"  # the row's key and column for who annotated
_VALUES = ("text", "choices")  # where Label Studio puts what was written, and what was chosen
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes a cell that begins so


@dataclass(frozen=True)
class Field:
    """A field to fill in: a text, or one of `choices`."""

    name: str
    about: str
    choices: tuple[str, ...] = ()
    required: bool = True
    several: bool = False  # several texts, each its own entry


def write_tasks(
    path: Path, rows: Sequence[Mapping[str, Value]], fields: Sequence[Field], copies: int = 1, force: bool = False
) -> list[Path]:
    """Write tasks to fill in: `.json` for Label Studio, with the labelling interface beside it as `.xml`, or `.csv`.

    Args:
        path: the file; its suffix says which format.
        rows: the data of each task, with the same keys; `passage` is the text that is shown.
        fields: to fill in.
        copies: rows of CSV for each task, one a worker. In Label Studio workers share a task.
        force: whether files that are there are overwritten.

    Returns:
        The files written.

    Raises:
        IfqaError: the suffix is another, there is no task, or a file is there already.
    """
    files = refuse_existing(path, force)
    if not rows:
        raise IfqaError(f"{path} would hold no task; nothing is written")
    if path.suffix == ".csv":
        with create(path) as handle:
            for line in _csv(rows, fields, copies):
                write(handle, line.encode("utf-8", "surrogatepass"))
        return files
    with create(path) as handle:
        text = json.dumps([{"data": dict(row)} for row in rows], indent=1, ensure_ascii=False)
        write(handle, text.encode("utf-8", "surrogatepass") + b"\n")
    with create(files[1]) as handle:
        write(handle, labelling_interface(rows[0], fields).encode())
    return files


def refuse_existing(path: Path, force: bool = False) -> list[Path]:
    """The files that `write_tasks` writes.

    Raises:
        IfqaError: the suffix is neither .json nor .csv, or a file is there already, and not to be overwritten.
    """
    if path.suffix not in (".json", ".csv"):
        raise IfqaError(
            f"{path}: wanted a file that ends in .json (Label Studio) or .csv; found {path.suffix or 'no suffix'!r}"
        )
    files = [path] if path.suffix == ".csv" else [path, path.with_suffix(".xml")]
    if there := [one for one in files if one.exists() and not force]:
        raise IfqaError(f"{there[0]} is there already; overwrite it with --force")
    return files


def labelling_interface(row: Mapping[str, Value], fields: Sequence[Field]) -> str:
    """Label Studio's labelling interface (its settings, "Labeling Interface", "Code"): the data of a row, then the fields."""
    lines = ["<View>"]
    for name in row:
        if name == "passage":
            lines.append('  <Text name="passage" value="$passage"/>')
        elif isinstance(row[name], str) and not name.endswith("_id"):
            lines += [
                f'  <Header size="5" value={quoteattr(name.replace("_", " "))}/>',
                f'  <Text name="{name}_" value="${name}"/>',
            ]
    for one in fields:
        lines.append(f'  <Header size="4" value={quoteattr(one.about)}/>')
        common = f'name="{one.name}" toName="passage" required="{str(one.required).lower()}"'
        if one.choices:
            lines.append(f'  <Choices {common} choice="single">')
            lines += [f"    <Choice value={quoteattr(choice)}/>" for choice in one.choices]
            lines.append("  </Choices>")
        else:
            most = "" if one.several else ' maxSubmissions="1"'
            lines.append(f'  <TextArea {common} rows="2" editable="true"{most}/>')
    return "\n".join([*lines, "</View>", ""])


def _csv(rows: Sequence[Mapping[str, Value]], fields: Sequence[Field], copies: int) -> Iterator[str]:
    names = [*rows[0], *(one.name for one in fields), WORKER]
    for cells in (names, *([_cell(row.get(name, "")) for name in names] for row in rows for _ in range(copies))):
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        yield line.getvalue()


def _cell(value: Value) -> str:
    """A value as a cell. What a spreadsheet would compute, and a text that begins as a list, are written as a list."""
    if isinstance(value, str) and not value.startswith((*_FORMULA, "[")):
        return value
    return json.dumps([value] if isinstance(value, str) else value, ensure_ascii=False) if value else ""


def are_tasks(path: Path) -> bool:
    """Whether a file holds annotation tasks: a table, or a JSON list whose first entry has Label Studio's `data`."""
    if kind_of(path) == ".csv":
        return True
    if kind_of(path) != ".json" or not starts_list(path):
        return False
    first = next(entries(path), {})
    return isinstance(first.get("data"), dict)


def read_tasks(path: Path) -> Iterator[tuple[str, Row]]:
    """Each annotation of a file as a row, with its place in the file; a task that nobody annotated is a row of its data.

    A skipped annotation (`was_cancelled`) is left out. Cells of CSV may be lists as in JSON.

    Raises:
        IfqaError: the file is missing or of another layout; the message has the place.
    """
    if kind_of(path) == ".csv":
        for where, cells in read_rows(path, "passage"):
            yield where, {name: _of_cell(str(value), name, where) for name, value in cells.items()}
        return
    for number, entry in enumerate(entries(path), start=1):
        yield from _of_entry(entry, f"{path}: task {number}")


def _of_cell(cell: str, name: str, where: str) -> Value:
    cell = cell.strip()
    if not cell.startswith('["'):
        return cell
    try:
        return _texts(json.loads(cell), name, where)
    except (ValueError, RecursionError) as error:
        raise IfqaError(f'{where}: {name!r} begins as a list, and is none: wanted ["…", "…"] ({error})') from error


def _of_entry(entry: Mapping[str, object], where: str) -> Iterator[tuple[str, Row]]:
    data = entry.get("data")
    if not isinstance(data, dict):
        raise IfqaError(
            f"{where}: wanted an object with 'data' and 'annotations', as Label Studio exports; found {_keys(entry)}"
        )
    given: Row = {str(key): _plain(value, str(key), where) for key, value in data.items()}
    annotations = entry.get("annotations", [])
    if not isinstance(annotations, list) or not all(isinstance(one, dict) for one in annotations):
        raise IfqaError(f"{where}: 'annotations' must be a list of objects")
    done = [one for one in annotations if not one.get("was_cancelled")]
    if not done:
        yield where, given
    for one in done:
        yield where, given | dict(_results(one, where)) | {WORKER: _worker(one)}


def _results(annotation: Mapping[str, object], where: str) -> Iterator[tuple[str, Value]]:
    results = annotation.get("result", [])
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise IfqaError(f"{where}: 'result' must be a list of objects")
    found: dict[str, list[str]] = {}
    for one in results:
        name, value = one.get("from_name"), one.get("value")
        if not isinstance(name, str) or not isinstance(value, dict):
            raise IfqaError(f"{where}: wanted results with 'from_name' and 'value', found {_keys(one)}")
        for key in _VALUES:
            if key in value:
                texts = _plain(value[key], name, where)
                found.setdefault(name, []).extend([texts] if isinstance(texts, str) else texts)
    for name, several in found.items():
        yield name, several[0] if len(several) == 1 else several


def _plain(value: object, name: str, where: str) -> Value:
    if value is None or isinstance(value, str | int | float):
        return unicode_text("" if value is None else str(value).strip(), name, where)
    return _texts(value, name, where)


def _texts(value: object, name: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise IfqaError(f"{where}: {name!r} must be a text or a list of texts")
    return [unicode_text(one.strip(), name, where) for one in value if one.strip()]


def _worker(annotation: Mapping[str, object]) -> str:
    """Who annotated: Label Studio gives a number, or an object with the person's e-mail address."""
    by = annotation.get("completed_by", "")
    if isinstance(by, dict):
        by = by.get("email", by.get("id", ""))
    return str(by)


def _keys(entry: Mapping[str, object]) -> str:
    return ", ".join(map(repr, list(entry)[:8])) or "no keys"


def first_of(value: Value) -> str:
    """A value as one text: several are joined by a blank line."""
    return value if isinstance(value, str) else "\n\n".join(value)


def all_of(value: Value) -> list[str]:
    """A value as texts: of a single text each line that is not blank is one."""
    lines: Iterable[str] = value.splitlines() if isinstance(value, str) else value
    return [line.strip() for line in lines if line.strip()]
