"""Questions that people write about passages, the votes of those who verify them, and the files of both.

A first worker gets a passage and writes a question with its answer. The fields are those of the IfQA paper (Yu et al., EMNLP
2023): question, answer, other valid answers, the kind of answer, and whether the question is about the passage given or about
another one ("free-form annotation"). A second and a third worker then vote on each question. It is kept if most of its workers
are for it, its writer among them: with two votes, one for it is enough.

A file of tasks is the JSON that Label Studio imports and exports (labelstud.io/guide/task_format, the export named "JSON"), or
CSV, a row for each annotation:

    [{"data": {"passage_id": "12-0", "passage": "…"}}, …]                                          a task, to be imported
    [{"id": 1, "data": {…}, "annotations": [{"completed_by": 7, "result": [{"from_name": "question",
        "type": "textarea", "value": {"text": ["If …?"]}}]}]}]                                     and as it is exported

In CSV the data are columns, and so are the fields to fill in. Both are read as rows: names -> a text, or a list of texts.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

from ifqa.errors import IfqaError
from ifqa.formats.ctxs import entries, starts_list
from ifqa.formats.rows import kind_of, read_rows
from ifqa.records import Question
from ifqa.scoring.statistics import alpha
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
    if there := [file for file in files if file.exists() and not force]:
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
    for field in fields:
        lines.append(f'  <Header size="4" value={quoteattr(field.about)}/>')
        common = f'name="{field.name}" toName="passage" required="{str(field.required).lower()}"'
        if field.choices:
            lines.append(f'  <Choices {common} choice="single">')
            lines += [f"    <Choice value={quoteattr(choice)}/>" for choice in field.choices]
            lines.append("  </Choices>")
        else:
            most = "" if field.several else ' maxSubmissions="1"'
            lines.append(f'  <TextArea {common} rows="2" editable="true"{most}/>')
    return "\n".join([*lines, "</View>", ""])


def _csv(rows: Sequence[Mapping[str, Value]], fields: Sequence[Field], copies: int) -> Iterator[str]:
    names = [*rows[0], *(field.name for field in fields), WORKER]
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
    row: Row = {str(key): _plain(value, str(key), where) for key, value in data.items()}
    annotations = entry.get("annotations", [])
    if not isinstance(annotations, list) or not all(isinstance(annotation, dict) for annotation in annotations):
        raise IfqaError(f"{where}: 'annotations' must be a list of objects")
    done = [annotation for annotation in annotations if not annotation.get("was_cancelled")]
    if not done:
        yield where, row
    for annotation in done:
        yield where, row | dict(_results(annotation, where)) | {WORKER: _worker(annotation)}


def _results(annotation: Mapping[str, object], where: str) -> Iterator[tuple[str, Value]]:
    results = annotation.get("result", [])
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise IfqaError(f"{where}: 'result' must be a list of objects")
    values: dict[str, list[str]] = {}
    for result in results:
        name, value = result.get("from_name"), result.get("value")
        if not isinstance(name, str) or not isinstance(value, dict):
            raise IfqaError(f"{where}: wanted results with 'from_name' and 'value', found {_keys(result)}")
        for key in _VALUES:
            if key in value:
                texts = _plain(value[key], name, where)
                values.setdefault(name, []).extend([texts] if isinstance(texts, str) else texts)
    for name, texts_of in values.items():
        yield name, texts_of[0] if len(texts_of) == 1 else texts_of


def _plain(value: object, name: str, where: str) -> Value:
    if value is None or isinstance(value, str | int | float):
        return unicode_text("" if value is None else str(value).strip(), name, where)
    return _texts(value, name, where)


def _texts(value: object, name: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise IfqaError(f"{where}: {name!r} must be a text or a list of texts")
    return [unicode_text(text.strip(), name, where) for text in value if text.strip()]


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


LABEL = "label"  # the name of labels in the benchmark `file`
FREE_FORM = "free-form"
KINDS = ("entity", "number", "date", "others")
RIGHT = "right"
VERDICTS = (RIGHT, "wrong answer", "not answerable", "not counterfactual")
WRITING = (
    Field("question", "A question that supposes something that did not happen: If ..., who would ...?"),
    Field("answer", "Its answer in the imagined world, as short as possible"),
    Field(
        "other_answers", "Other valid answers, and other forms of it: 5, five. One a line", required=False, several=True
    ),
    Field("answer_type", "The kind of answer", KINDS),
    Field("free_form", "Is the question about another passage than this one?", ("no", "yes")),
    Field(
        "other_passages",
        "Further passages that it needs; of free form: its passages. One a line",
        required=False,
        several=True,
    ),
)
VERIFYING = (
    Field(
        "verdict",
        "Is the question counterfactual, can it be answered from the passages, is the answer right?",
        VERDICTS,
    ),
    Field("another_answer", "Another valid answer, if there is one. One a line", required=False, several=True),
)
_CARRIED = ("question_id", "passage", "passages", "question", "answers", "answer_type", "free_form", "writer")


@dataclass(frozen=True)
class Written:
    """A question as its worker wrote it; the labels are the kind of its answer and, if so, "free-form"."""

    question: Question
    writer: str = ""


@dataclass(frozen=True)
class Vote:
    """What a worker says of a question, and other answers that the worker holds valid."""

    question_id: str
    worker: str
    verdict: str
    answers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Annotated:
    """The questions of an annotation file.

    Attributes:
        questions: those to keep, in the file's order.
        unused: passages that no question was written about.
        votes: of a file of votes, every vote; else empty.
        dropped: of a file of votes, the questions that are not kept, by what most votes against them say.
        agreement: Krippendorff's alpha of the verdicts; None if it is not defined.
    """

    questions: tuple[Question, ...]
    unused: int = 0
    votes: tuple[Vote, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    agreement: float | None = None

    def __str__(self) -> str:
        if not self.votes:
            return f"{len(self.questions):,} questions; {self.unused:,} passages without one"
        against = ", ".join(f"{count:,} {why}" for why, count in self.dropped)
        workers = len({vote.worker for vote in self.votes})
        agreed = "not defined" if self.agreement is None else f"{self.agreement:.3f}"
        return (
            f"{len(self.questions):,} questions kept by {len(self.votes):,} votes of {workers:,} workers; "
            f"{sum(count for _, count in self.dropped):,} dropped{f' ({against})' if against else ''}; "
            f"Krippendorff's alpha of the verdicts: {agreed}"
        )


def read_annotated(path: Path) -> Annotated:
    """The questions of an annotation file: all that were written, or of a file of votes those that the votes keep.

    Raises:
        IfqaError: the file has another layout, a field is empty or has a value that is none of its choices, or a worker
            votes twice on a question, or on one of his own. The message has the place.
    """
    rows = list(read_tasks(path))
    if any("question_id" in row for _, row in rows):
        return _verified(rows, path)
    written, unused = _written(rows)
    if not written:
        raise IfqaError(f"{path}: wanted questions that were written about the passages; found none")
    return Annotated(tuple(question.question for question in written), unused)


def verification_tasks(path: Path) -> list[Row]:
    """The tasks for the second and third worker, from a file of written questions.

    Raises:
        IfqaError: as `read_annotated`, or the file is itself one of votes.
    """
    rows = list(read_tasks(path))
    if any("question_id" in row for _, row in rows):
        raise IfqaError(f"{path} holds votes already; wanted the file in which questions were written")
    tasks: list[Row] = []
    for written in _written(rows)[0]:
        question, labels = written.question, [value for _, value in written.question.labels]
        passages = list(question.gold_passages)
        values: Sequence[Value] = (
            question.id, "\n\n".join(passages), passages, question.text, list(question.answers), labels[0],
            "yes" if FREE_FORM in labels else "no", written.writer,
        )  # fmt: skip
        tasks.append(dict(zip(_CARRIED, values, strict=True)))
    return tasks


def _written(rows: Iterable[tuple[str, Row]]) -> tuple[list[Written], int]:
    """The questions of rows, and the number of passages without one."""
    written: list[Written] = []
    about: Counter[str] = Counter()
    for where, row in rows:
        name = _required(row, "passage_id", where)
        if not any(first_of(row.get(field.name, "")).strip() for field in WRITING if not field.choices):
            about[name] += 0
            continue
        about[name] += 1
        number = f"-{about[name]}" if about[name] > 1 else ""
        written.append(Written(_question(row, f"{name}{number}", where), first_of(row.get(WORKER, ""))))
    return written, sum(count == 0 for count in about.values())


def _question(row: Row, name: str, where: str) -> Question:
    if name.split() != [name]:
        raise IfqaError(f"{where}: passage_id {name!r} holds white space; wanted the id that the task came with")
    free = _choice(row, "free_form", ("no", "yes"), where, default="no") == "yes"
    others = all_of(row.get("other_passages", ""))
    if free and not others:
        raise IfqaError(f"{where}: a question of free form names its passages in 'other_passages'; found none")
    shown = [] if free else [_required(row, "passage", where)]
    answers = [_required(row, "answer", where), *all_of(row.get("other_answers", ""))]
    labels = [_choice(row, "answer_type", KINDS, where), *([FREE_FORM] if free else [])]
    return Question(
        name,
        _required(row, "question", where),
        tuple(dict.fromkeys(answers)),
        tuple(dict.fromkeys([*shown, *others])),
        labels=tuple((LABEL, one) for one in labels),
    )


def _verified(rows: Sequence[tuple[str, Row]], path: Path) -> Annotated:
    questions: dict[str, Question] = {}
    votes: dict[str, dict[str, Vote]] = {}
    for where, row in rows:
        question = _carried(row, where)
        if questions.setdefault(question.id, question) != question:
            raise IfqaError(
                f"{where}: question {question.id} is another one in an earlier row; wanted the tasks unchanged"
            )
        if not first_of(row.get("verdict", "")).strip():
            continue
        vote = Vote(
            question.id,
            _required(row, WORKER, where),
            _choice(row, "verdict", VERDICTS, where),
            tuple(all_of(row.get("another_answer", ""))),
        )
        if vote.worker == first_of(row.get("writer", "")):
            raise IfqaError(f"{where}: {vote.worker!r} votes on a question of his own; wanted another worker")
        if votes.setdefault(question.id, {}).setdefault(vote.worker, vote) is not vote:
            raise IfqaError(f"{where}: {vote.worker!r} votes twice on question {question.id}; wanted one vote each")
    if not votes:
        raise IfqaError(f"{path}: wanted a verdict on the questions; found none filled in")
    kept: list[Question] = []
    dropped: Counter[str] = Counter()
    for name, question in questions.items():
        cast_on_it = list(votes.get(name, {}).values())
        against = Counter(vote.verdict for vote in cast_on_it if vote.verdict != RIGHT)
        if not cast_on_it:
            dropped["without a vote"] += 1
        elif 1 + len(cast_on_it) - against.total() <= against.total():  # the writer is for it
            dropped[against.most_common(1)[0][0]] += 1
        else:
            more = [answer for vote in cast_on_it if vote.verdict == RIGHT for answer in vote.answers]
            kept.append(replace(question, answers=tuple(dict.fromkeys([*question.answers, *more]))))
    cast = tuple(vote for by_worker in votes.values() for vote in by_worker.values())
    agreement = alpha([[vote.verdict for vote in by_worker.values()] for by_worker in votes.values()])
    return Annotated(tuple(kept), 0, cast, tuple(dropped.most_common()), agreement)


def _carried(row: Row, where: str) -> Question:
    """The question that a task of verification is about."""
    kind = _choice(row, "answer_type", KINDS, where)
    free = _choice(row, "free_form", ("no", "yes"), where, default="no") == "yes"
    passages, answers = ([one] if isinstance(one := row.get(key, ""), str) else one for key in ("passages", "answers"))
    if not all(passages) or not all(answers):
        raise IfqaError(f"{where}: 'passages' or 'answers' is empty; wanted the tasks as they were written")
    labels = tuple((LABEL, one) for one in [kind, *([FREE_FORM] if free else [])])
    name, text = _required(row, "question_id", where), _required(row, "question", where)
    return Question(name, text, tuple(answers), tuple(passages), labels=labels)


def _required(row: Mapping[str, Value], name: str, where: str) -> str:
    text = first_of(row.get(name, "")).strip()
    if not text:
        raise IfqaError(f"{where}: {name!r} is empty; wanted it filled in")
    return text


def _choice(row: Mapping[str, Value], name: str, choices: Sequence[str], where: str, default: str = "") -> str:
    text = first_of(row.get(name, "")).strip().lower() or default
    if text not in choices:
        raise IfqaError(f"{where}: {name!r} must be one of {', '.join(choices)}; found {text!r:.60}")
    return text
