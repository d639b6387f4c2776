"""Annotation tasks in which people write questions and vote on them, as Label Studio's JSON.

A first worker gets a passage and writes a question with its answer. The fields are those of the IfQA paper (Yu et al., EMNLP
2023): question, answer, other valid answers, answer type, and whether the question is about another passage ("free-form
annotation"). A second and a third worker vote on each question. The majority decides, and the writer counts as a vote for it.

A task file is the JSON that Label Studio imports and exports (labelstud.io/guide/task_format, the export named "JSON"):

    [{"data": {"passage_id": "12-0", "passage": "…"}}, …]                                          for import
    [{"id": 1, "data": {…}, "annotations": [{"completed_by": 7, "result": [{"from_name": "question",
        "type": "textarea", "value": {"text": ["If …?"]}}]}]}]                                     exported
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from ifqa.errors import ConfigError, FormatError
from ifqa.formats.ctxs import is_json_list, iter_entries
from ifqa.formats.tables import objects_field, unpacked_suffix
from ifqa.records import Question
from ifqa.scoring.statistics import krippendorff_alpha
from ifqa.storage.files import atomic_write, typed_field, unicode_text, write_bytes

Row = dict[str, list[str]]  # field of the data or of an annotation -> its non-blank texts
TaskRow = Mapping[str, str | list[str]]  # the data of a task
WORKER = "worker"  # the row's key for the annotator
LABEL = "label"  # the label's name in the benchmark `file`
FREE_FORM = "free-form"
KINDS = ("entity", "number", "date", "others")
RIGHT = "right"
VERDICTS = (RIGHT, "wrong answer", "not answerable", "not counterfactual")
_YES_NO = ("no", "yes")


@dataclass(frozen=True)
class AnnotationField:
    """A field to fill in: free text, or one of `choices`."""

    name: str
    about: str
    choices: tuple[str, ...] = ()
    multiple: bool = False  # any number of texts; else exactly one


WRITING_FIELDS = (
    AnnotationField("question", "A question that supposes something that did not happen: If ..., who would ...?"),
    AnnotationField("answer", "Its answer in the imagined world, as short as possible"),
    AnnotationField(
        "other_answers", "Other valid answers, and other forms of the answer: 5, five. One per line", multiple=True
    ),
    AnnotationField("answer_type", "The kind of answer", KINDS),
    AnnotationField("free_form", "Is the question about a passage other than this one?", _YES_NO),
    AnnotationField(
        "other_passages", "Further passages that it needs; if free-form: all of them. One per line", multiple=True
    ),
)
VERIFICATION_FIELDS = (
    AnnotationField(
        "verdict",
        "Is the question counterfactual, can it be answered from the passages, and is the answer right?",
        VERDICTS,
    ),
    AnnotationField("another_answer", "Other valid answers, if there are any. One per line", multiple=True),
)


def write_tasks(
    path: Path, rows: Sequence[TaskRow], fields: Sequence[AnnotationField], force: bool = False
) -> list[Path]:
    """Write annotation tasks as `.json` for Label Studio, with its labelling interface in an `.xml` next to it.

    `rows` are the data of each task, all with the same keys; annotators see `passage` and fill in `fields`. `force` overwrites
    existing files. Returns the files.
    """
    files = refuse_existing(path, force)
    if not rows:
        raise ConfigError(f"{path} would hold no tasks; nothing was written")
    tasks = json.dumps([{"data": dict(row)} for row in rows], indent=1, ensure_ascii=False)
    for file, text in zip(files, (f"{tasks}\n", _labelling_interface(rows[0], fields)), strict=True):
        with atomic_write(file) as handle:
            write_bytes(handle, text.encode("utf-8", "surrogatepass"))
    return files


def refuse_existing(path: Path, force: bool = False) -> list[Path]:
    """The files that `write_tasks` writes; raises ConfigError for another suffix, or if a file exists and `force` is not set."""
    if path.suffix != ".json":
        raise ConfigError(f"{path}: wanted a .json file, for Label Studio; found {path.suffix or 'no suffix'!r}")
    files = [path, path.with_suffix(".xml")]
    if existing := [file for file in files if file.exists() and not force]:
        raise ConfigError(f"{existing[0]} exists already; overwrite it with --force")
    return files


def _labelling_interface(row: TaskRow, fields: Sequence[AnnotationField]) -> str:
    """Label Studio's labelling configuration (Settings, "Labeling Interface", "Code"): the data of a row, then the fields."""
    lines = ["<View>"]
    for name, cell in row.items():
        if name == "passage":
            lines.append('  <Text name="passage" value="$passage"/>')
        elif isinstance(cell, str) and not name.endswith("_id"):
            lines.append(f'  <Header size="5" value={quoteattr(name.replace("_", " "))}/>')
            lines.append(f'  <Text name="{name}_" value="${name}"/>')
    for column in fields:
        lines.append(f'  <Header size="4" value={quoteattr(column.about)}/>')
        common = f'name="{column.name}" toName="passage" required="{str(not column.multiple).lower()}"'
        if column.choices:
            choices = "".join(f"<Choice value={quoteattr(choice)}/>" for choice in column.choices)
            lines.append(f'  <Choices {common} choice="single">{choices}</Choices>')
        else:
            limit = "" if column.multiple else ' maxSubmissions="1"'
            lines.append(f'  <TextArea {common} rows="2" editable="true"{limit}/>')
    return "\n".join([*lines, "</View>", ""])


def holds_tasks(path: Path) -> bool:
    """Whether a file holds annotation tasks: a JSON list with Label Studio's `data`."""
    if unpacked_suffix(path) != ".json" or not is_json_list(path):
        return False
    return isinstance(next(iter_entries(path), {}).get("data"), dict)


def read_tasks(path: Path) -> list[tuple[str, Row]]:
    """Each annotation of a file as a row, with its location; a task without annotations gives a row of its data.

    Skipped annotations are left out.
    """
    rows: list[tuple[str, Row]] = []
    for number, task in enumerate(iter_entries(path), start=1):
        where = f"{path}: task {number}"
        row = {name: _parse_texts(texts, name, where) for name, texts in typed_field(task, "data", dict, where).items()}
        annotations = [
            _parse_annotation(annotation, where)
            for annotation in objects_field({"annotations": [], **task}, "annotations", where)
            if not annotation.get("was_cancelled")
        ]
        rows += [(where, row | fields) for fields in annotations or [{}]]
    return rows


def _parse_annotation(annotation: Mapping[str, object], where: str) -> Row:
    """The fields of an annotation that Label Studio exported."""
    fields: Row = {}
    for region in objects_field(annotation, "result", where):
        name, answer = typed_field(region, "from_name", str, where), typed_field(region, "value", dict, where)
        fields.setdefault(name, []).extend(_parse_texts(answer.get("text", answer.get("choices")), name, where))
    worker = annotation.get("completed_by")  # a number, or an object with the worker's e-mail address
    if isinstance(worker, dict):
        worker = worker.get("email", worker.get("id"))
    return fields | {WORKER: _parse_texts(worker, WORKER, where)}


def _parse_texts(texts: object, name: str, where: str) -> list[str]:
    if texts is None or isinstance(texts, str | int | float):
        texts = [] if texts is None else [str(texts)]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise FormatError(f"{where}: {name!r} must be a text or a list of texts")
    return [unicode_text(text.strip(), name, where) for text in texts if text.strip()]


def _split_lines(texts: Sequence[str]) -> list[str]:
    """The texts of a field; a single text is split into its non-blank lines."""
    lines = texts[0].splitlines() if len(texts) == 1 else texts
    return [line.strip() for line in lines if line.strip()]


class AnnotationSet(NamedTuple):
    """The accepted questions of an annotation file, in its order, and a summary of the file."""

    questions: list[Question]
    summary: str


def read_annotated(path: Path) -> AnnotationSet:
    """The questions of an annotation file: all written questions, or in a file of votes those that were accepted.

    Raises FormatError, with the location, for an invalid row, a second vote on a question, and a vote on one's own question.
    """
    rows = read_tasks(path)
    if any("question_id" in row for _, row in rows):
        return _count_votes(rows, path)
    written, unused = _parse_questions(rows)
    if not written:
        raise FormatError(f"{path}: wanted questions about the passages; found none")
    summary = f"{len(written):,} questions; {unused:,} passages without one"
    return AnnotationSet([question for question, _ in written], summary)


def verification_tasks(path: Path) -> list[dict[str, str | list[str]]]:
    """The voting tasks for the second and third worker, from a file of written questions; refuses a file of votes."""
    rows = read_tasks(path)
    if any("question_id" in row for _, row in rows):
        raise FormatError(f"{path} already holds votes; wanted the file of written questions")
    return [
        {
            "question_id": question.id,
            "passage": "\n\n".join(question.gold_passages),
            "passages": list(question.gold_passages),
            "question": question.text,
            "answers": list(question.answers),
            "answer_type": question.labels[0][1],
            "free_form": _YES_NO[len(question.labels) > 1],
            "writer": writer,
        }
        for question, writer in _parse_questions(rows)[0]
    ]


def _parse_questions(rows: Sequence[tuple[str, Row]]) -> tuple[list[tuple[Question, str]], int]:
    """The questions of rows, each with its writer, and the number of passages without a question."""
    questions: list[tuple[Question, str]] = []
    counts: Counter[str] = Counter()  # questions of each passage
    for where, row in rows:
        name = _require_text(row, "passage_id", where)
        if name.split() != [name]:
            raise FormatError(f"{where}: passage_id {name!r} holds white space; wanted the task's own id")
        if not any(row.get(column.name) for column in WRITING_FIELDS if not column.choices):
            counts[name] += 0
            continue
        counts[name] += 1
        labels = _parse_labels(row, where)
        others = _split_lines(row.get("other_passages", []))
        if len(labels) > 1 and not others:
            raise FormatError(f"{where}: a free-form question needs 'other_passages'; found none")
        passages = others if len(labels) > 1 else [_require_text(row, "passage", where), *others]
        question = Question(
            f"{name}-{counts[name]}" if counts[name] > 1 else name,
            _require_text(row, "question", where),
            tuple(dict.fromkeys([_require_text(row, "answer", where), *_split_lines(row.get("other_answers", []))])),
            tuple(dict.fromkeys(passages)),
            labels=labels,
        )
        questions.append((question, "".join(row.get(WORKER, []))))
    return questions, sum(count == 0 for count in counts.values())


def _count_votes(rows: Sequence[tuple[str, Row]], path: Path) -> AnnotationSet:
    questions: dict[str, Question] = {}
    votes: dict[str, dict[str, tuple[str, list[str]]]] = {}  # question -> worker -> verdict and other answers
    for where, row in rows:
        name, text = (_require_text(row, key, where) for key in ("question_id", "question"))
        if not row.get("answers") or not row.get("passages"):
            raise FormatError(f"{where}: 'passages' or 'answers' is empty; wanted the tasks unchanged")
        question = Question(name, text, tuple(row["answers"]), tuple(row["passages"]), labels=_parse_labels(row, where))
        if questions.setdefault(name, question) != question:
            raise FormatError(f"{where}: question {name} differs from an earlier row; wanted the tasks unchanged")
        by_worker = votes.setdefault(name, {})
        if row.get("verdict"):
            worker = _require_text(row, WORKER, where)
            if worker in (*by_worker, *row.get("writer", [])):
                problem = f"votes twice on question {name}" if worker in by_worker else "votes on their own question"
                raise FormatError(
                    f"{where}: {worker!r} {problem}; wanted one vote per worker, and none from the writer"
                )
            verdict = _parse_choice(row, "verdict", VERDICTS, where)
            by_worker[worker] = verdict, _split_lines(row.get("another_answer", []))
    verdicts = [[verdict for verdict, _ in by_worker.values()] for by_worker in votes.values() if by_worker]
    if not verdicts:
        raise FormatError(f"{path}: wanted verdicts on the questions; found none")
    accepted: list[Question] = []
    dropped: Counter[str] = Counter()
    for name, question in questions.items():
        ballots = votes[name].values()
        against = Counter(verdict for verdict, _ in ballots if verdict != RIGHT)
        if not ballots:
            dropped["without a vote"] += 1
        elif 1 + len(ballots) - against.total() <= against.total():  # the writer votes for it
            dropped[against.most_common(1)[0][0]] += 1
        else:
            new_answers = [answer for verdict, answers in ballots if verdict == RIGHT for answer in answers]
            accepted.append(replace(question, answers=tuple(dict.fromkeys([*question.answers, *new_answers]))))
    workers = {worker for by_worker in votes.values() for worker in by_worker}
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in dropped.most_common())
    agreement = krippendorff_alpha(verdicts)
    summary = (
        f"{len(accepted):,} questions kept by {sum(map(len, verdicts)):,} votes of {len(workers):,} workers; "
        f"{dropped.total():,} dropped{f' ({reasons})' if reasons else ''}; Krippendorff's alpha of the verdicts: "
        f"{'not defined' if agreement is None else f'{agreement:.3f}'}"
    )
    return AnnotationSet(accepted, summary)


def _parse_labels(row: Row, where: str) -> tuple[tuple[str, str], ...]:
    """The labels of a question: its answer type, and "free-form" if the question is."""
    kind = _parse_choice(row, "answer_type", KINDS, where)
    free_form = _parse_choice(row, "free_form", _YES_NO, where, default="no")
    return ((LABEL, kind), (LABEL, FREE_FORM)) if free_form == "yes" else ((LABEL, kind),)


def _require_text(row: Row, name: str, where: str) -> str:
    text = "\n\n".join(row.get(name, []))
    if not text:
        raise FormatError(f"{where}: {name!r} is empty; fill it in")
    return text


def _parse_choice(row: Row, name: str, choices: Sequence[str], where: str, default: str = "") -> str:
    text = "".join(row.get(name, [])).lower() or default
    if text not in choices:
        raise FormatError(f"{where}: {name!r} must be one of {', '.join(choices)}; found {text!r:.60}")
    return text
