"""The benchmark `file`: questions of your own. Its split is the path of their file, JSON lines or CSV, packed or not.

A line of JSON, and the same question as CSV, with several answers separated by "|":

    {"question": "If ..., who ...?", "answers": ["Ada", "Ada Lovelace"], "passages": ["..."], "group": "people", "label": "easy"}

    question,answers,passages,group,label
    "If ..., who ...?",Ada | Ada Lovelace,...,people,easy

`question` and `answers` are needed. `passages` are the gold passages: the texts that hold the facts. Scores are told by `group`,
with the mean over groups, and for each `label` over the questions that have it. There may also be `id` (else the row's number;
with either goes a digest of the question, so that no answer is scored on another question of the same number),
`choices`, `context`, a text that comes with the question, and `source`, `licence` and `provenance`, which say where the question
is from. A cell of CSV may be a list as in JSON: ["a", "b"].
"""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ifqa.errors import IfqaError, unknown_name
from ifqa.formats.runs import check_id
from ifqa.formats.tables import read_rows, row_id, unpacked_suffix
from ifqa.protocols import Benchmark, Subset
from ifqa.records import Question
from ifqa.scoring.measures.numeric import NUMERIC, OTHER
from ifqa.scoring.scheme import GOLD_READ, MACRO
from ifqa.storage.files import atomic_write, cached_by_file, json_line, text_field, texts_field, write_bytes

LABEL = "label"  # the name of the labels; a question may have several
_ORIGIN = ("source", "licence")  # kept as labels
_COLUMNS = (
    "question", "context", "group", "answers", "passages", "choices", LABEL, "answer", "id", "idx", "qid", "question_id",
    *_ORIGIN, "provenance",  # the last is for people, in any form
)  # fmt: skip
_DIGITS = 8  # of a digest
_RESERVED = {NUMERIC.name, OTHER.name, GOLD_READ, MACRO}  # other subsets have these names
_SUFFIXES = re.compile(r"\.\w+(\.(gz|xz|bz2))?$")


class File(Benchmark):
    """Questions of one file, scored as IfQA's are, and by group and label where the file has them."""

    name = "file"
    subsets = (NUMERIC, OTHER)

    def __init__(self, root: Path = Path()) -> None:
        self.folder = root

    def files(self, split: str) -> list[Path]:
        """The one file."""
        path = self.folder / split
        if not path.is_file():
            raise IfqaError(
                f"{self.name} {split}: {path} is not there; put it there, or name another file as the split"
            )
        return [path]

    def questions(self, split: str) -> list[Question]:
        """The questions of a file, in its order."""
        (path,) = self.files(split)
        return list(_read_questions(path))

    def parts(self, split: str) -> tuple[Sequence[Subset], str]:
        """A subset for each label of the file's questions, and groups if they have some; without the file the usual subsets."""
        if not (self.folder / split).is_file():
            return self.subsets, ""
        questions = self.questions(split)
        labels = dict.fromkeys(value for question in questions for _, value in question.labels)
        labelled = (
            Subset(label, partial(_has_label, label), in_tables=True, about=f"those labelled {label}")
            for label in labels
        )
        return [*self.subsets, *labelled], "group" if questions[0].group else ""


def _has_label(label: str, question: Question) -> bool:
    return (LABEL, label) in question.labels


def write_questions(path: Path, questions: Sequence[Question]) -> int:
    """Write questions as JSON lines of this benchmark; returns how many. It wants answers: questions without are left out."""
    answered = [question for question in questions if question.answers]
    if not answered:
        raise IfqaError(f"{path} would hold no question: wanted one with an answer, found none")
    with atomic_write(path) as handle:
        for question in answered:
            record = {
                "id": check_id(question.id), "question": question.text, "context": question.context, "group": question.group,
                "answers": question.answers, "passages": question.gold_passages, "choices": question.choices,
                LABEL: tuple(value for name, value in question.labels if name == LABEL),
            }  # fmt: skip
            write_bytes(handle, json_line({key: value for key, value in record.items() if value}))
    return len(answered)


@cached_by_file(4)
def _read_questions(path: Path) -> tuple[Question, ...]:
    cells = unpacked_suffix(path) not in (".jsonl", ".json")
    name = "_".join(_SUFFIXES.sub("", path.name).encode("utf-8", "replace").decode().split())
    questions: dict[str, Question] = {}
    for number, (where, row) in enumerate(read_rows(path, "question"), start=1):
        values = {key: value for key, value in row.items() if not _is_blank(value)}
        if strange := next((key for key in row if key not in _COLUMNS and (key or key in values)), None):
            raise IfqaError(f"{where}: {unknown_name('column' if cells else 'key', strange, _COLUMNS)}")
        question = _parse_question(values, str(number), where, f"file/{name}", cells)
        identifier = question.id.rpartition("-")[0]
        if identifier in questions:
            raise IfqaError(f"{where}: another question has the id {identifier.rpartition('/')[2]!r}; wanted each once")
        questions[identifier] = question
    if not questions:
        raise IfqaError(f"{path}: wanted questions, found none")
    if len({bool(question.group) for question in questions.values()}) > 1:
        raise IfqaError(f"{path}: some questions have a 'group', others have none; give one to each or to none")
    return tuple(questions.values())


def _parse_question(row: dict[str, object], number: str, where: str, prefix: str, cells: bool) -> Question:
    """A question of a row without blank values."""
    identifier = row_id(row, where) or number
    if identifier.split() != [identifier]:
        raise IfqaError(
            f"{where}: id {identifier!r} holds white space, at which rankings are split; put a - or _ there"
        )
    if "answers" in row and "answer" in row:
        raise IfqaError(f"{where}: both 'answers' and 'answer'; wanted one of them")
    answers = _parse_texts(row, "answers" if "answers" in row else "answer", where, cells)
    passages, choices, labels = (_parse_texts(row, name, where, cells) for name in ("passages", "choices", LABEL))
    if not answers:
        raise IfqaError(f"{where}: no answer; wanted one text at least as 'answers', to score by")
    if wrong := next((label for label in labels if label in _RESERVED or set(label) & set(".@")), ""):
        raise IfqaError(
            f"{where}: label {wrong!r}: wanted one without '.' and '@' that is not {', '.join(sorted(_RESERVED))}"
        )
    texts = {name: text_field(row, name, where).strip() for name in ("context", "group", *_ORIGIN) if name in row}
    text, context = text_field(row, "question", where).strip(), texts.get("context", "")
    digest = hashlib.sha256(json.dumps([text, context, *choices]).encode()).hexdigest()
    origin = ((name, texts[name]) for name in _ORIGIN if name in texts)
    return Question(
        f"{prefix}/{identifier}-{digest[:_DIGITS]}", text, answers, passages, choices=choices, context=context,
        group=texts.get("group", ""), labels=(*((LABEL, label) for label in labels), *origin),
    )  # fmt: skip


def _parse_texts(row: dict[str, object], name: str, where: str, cells: bool) -> tuple[str, ...]:
    """The texts of a key or a column, without blanks around them; a "|" parts them in a cell, unless it may be one of a table."""
    value = row.get(name, [])
    if cells and isinstance(value, str) and value.lstrip().startswith('["'):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise IfqaError(f'{where}: {name!r} begins as a list, and is none: wanted ["…", "…"] ({error})') from error
    elif isinstance(value, str):
        parts = value.split("|") if cells and name != "passages" else [value]
        value = [text for text in parts if text.strip()]
    return tuple(dict.fromkeys(text.strip() for text in texts_field({name: value}, name, where)))


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())
