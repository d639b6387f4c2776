"""The benchmark `file`: your own questions.

Its split is the path of a file of JSON lines, CSV or parquet, compressed or not; also of a file in
the format of SQuAD or MRQA.

A line of JSON, and the same question in CSV, with "|" between answers:

    {"question": "If ..., who ...?", "answers": ["Ada", "Ada Lovelace"], "passages": ["..."],
    "group": "people", "label": "easy"}

    question,answers,passages,group,label
    "If ..., who ...?",Ada | Ada Lovelace,...,people,easy

`question` and `answers` (or `answer`, `golden_answers`) are required. `passages` are the gold
passages: the texts that hold the facts. Each `group` and each `label` gets scores; groups also get
their mean. The optional keys are `id` (default: the row's number; a digest of the question is
added, so that an answer is never scored on another question with this id), `choices`, `context` (a
text that comes with the question), and `source`, `licence` and `provenance` (where the question
comes from). A CSV cell may be a JSON list: ["a", "b"].

A question with the label `unanswerable` and without an answer, as SQuAD 2.0 has and `ifqa init
--draft` writes some, is for `ifqa calibrate` alone: there is nothing to score an answer to it
against, so it is not asked here.
"""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ifqa.errors import FormatError, MissingInput, unknown_name
from ifqa.formats.runs import check_id
from ifqa.formats.tables import TABLE_SUFFIXES, read_rows, row_id, split_cell, unpacked_suffix
from ifqa.formatting import pluralize
from ifqa.protocols import Benchmark, Subset
from ifqa.records import Question
from ifqa.scoring.measures.numeric import NUMERIC, OTHER
from ifqa.scoring.scheme import GOLD_READ, MACRO
from ifqa.storage.files import cached_by_file, text_field, texts_field, write_jsonl

logger = logging.getLogger(__name__)

LABEL = "label"  # name of the user's labels; a question may have more than one
UNANSWERABLE = "unanswerable"  # the label of a question that the documents do not answer
_ORIGIN = ("source", "licence")  # kept as labels
_ANSWER_KEYS = ("answers", "answer", "golden_answers")
_COLUMNS = (
    "question",
    "context",
    "group",
    "passages",
    "choices",
    LABEL,
    *_ANSWER_KEYS,
    "id",
    "idx",
    "qid",
    "question_id",
    *_ORIGIN,
    "provenance",  # free text for people
    "metadata",  # FlashRAG's, not used
)
_DIGITS = 8  # of the digest in an id
_RESERVED = {NUMERIC.name, OTHER.name, GOLD_READ, MACRO}  # names of other subsets
_SUFFIXES = re.compile(r"\.\w+(\.(gz|xz|bz2))?$")


class File(Benchmark):
    """Questions of one file, scored like IfQA's, and by the file's groups and labels."""

    name = "file"
    takes = ("root",)
    subsets = (NUMERIC, OTHER)

    def __init__(self, root: Path = Path()) -> None:
        self.folder = root

    def files(self, split: str) -> list[Path]:
        """The file."""
        path = self.folder / split
        if not path.is_file():
            raise MissingInput(
                f"{self.name} {split}: {path} is missing; add it, or name another file as the split"
            )
        return [path]

    def questions(self, split: str) -> list[Question]:
        """The questions of a file, in its order."""
        (path,) = self.files(split)
        return list(_read_questions(path))

    def parts(self, split: str) -> tuple[Sequence[Subset], str]:
        """The usual subsets, and one for each label in the file.

        And "group" if its questions have groups, else "".
        """
        if not (self.folder / split).is_file():
            return self.subsets, ""
        questions = self.questions(split)
        labels = dict.fromkeys(label for question in questions for _, label in question.labels)
        return [*self.subsets, *map(_label_subset, labels)], "group" if questions[0].group else ""

    def unit(self, split: str) -> str:
        """The passages, if questions share them, as those on a paragraph of SQuAD do."""
        if not (self.folder / split).is_file():
            return "question"
        questions = self.questions(split)
        passages = {question.unit("passages") for question in questions}
        return "question" if len(passages) == len(questions) else "passages"


def _label_subset(label: str) -> Subset:
    return Subset(
        label,
        lambda question: (LABEL, label) in question.labels,
        in_tables=True,
        about=f"those labelled {label}",
    )


def write_questions(path: Path, questions: Sequence[Question]) -> int:
    """Write the questions that have answers in this benchmark's JSON lines.

    Returns how many were written.
    """
    records = []
    for question in (question for question in questions if question.answers):
        record = {
            "id": check_id(question.id),
            "question": question.text,
            "context": question.context,
            "group": question.group,
            "answers": question.answers,
            "passages": question.gold_passages,
            "choices": question.choices,
            LABEL: tuple(label for name, label in question.labels if name == LABEL),
        }
        records.append({key: field for key, field in record.items() if field})
    if not records:
        raise FormatError(f"{path} would be empty: wanted questions with answers, found none")
    return write_jsonl(path, records)


@cached_by_file(4)
def _read_questions(path: Path) -> tuple[Question, ...]:
    is_table = unpacked_suffix(path) in TABLE_SUFFIXES
    name = "_".join(_SUFFIXES.sub("", path.name).encode("utf-8", "replace").decode().split())
    questions: dict[str, Question] = {}
    unanswerable = 0
    for number, (where, row) in enumerate(read_rows(path, "question"), start=1):
        cells = {
            key: cell
            for key, cell in row.items()
            if not (cell is None or (isinstance(cell, str) and not cell.strip()))
        }
        if unknown := next(
            (key for key in row if key not in _COLUMNS and (key or key in cells)), None
        ):
            raise FormatError(
                f"{where}: {unknown_name('column' if is_table else 'key', unknown, _COLUMNS)}"
            )
        if _has_no_answer(cells, where, is_table):
            unanswerable += 1
            continue
        question = _parse_question(cells, str(number), where, f"file/{name}", is_table)
        identifier = question.id.rpartition("-")[0]
        if identifier in questions:
            raise FormatError(
                f"{where}: another question has the id {identifier.rpartition('/')[2]!r}; "
                "wanted unique ids"
            )
        questions[identifier] = question
    if not questions:
        raise FormatError(f"{path}: wanted questions with answers, found none")
    repeated = Counter(
        (question.text, question.context, question.choices) for question in questions.values()
    )
    if copies := len(questions) - len(repeated):
        logger.warning(
            f"{path}: {pluralize(copies, 'question')} with the text of another, under another id; "
            "each counts as a question of its own"
        )
    if unanswerable:
        logger.info(f"{path}: {pluralize(unanswerable, 'question')} without an answer left out")
    if len({bool(question.group) for question in questions.values()}) > 1:
        raise FormatError(
            f"{path}: some questions have a 'group', others have none; give all a group, or none"
        )
    return tuple(questions.values())


def _has_no_answer(row: dict[str, object], where: str, is_table: bool) -> bool:
    """Whether a row says of its question that it has no answer."""
    if any(row.get(key) for key in _ANSWER_KEYS):
        return False
    return UNANSWERABLE in _parse_texts(row, LABEL, where, is_table)


def _parse_question(
    row: dict[str, object], number: str, where: str, prefix: str, is_table: bool
) -> Question:
    """The question of a row from which blank cells were removed."""
    identifier = row_id(row, where) or number
    if identifier.split() != [identifier]:
        raise FormatError(
            f"{where}: id {identifier!r} holds white space, which separates fields in "
            "rankings; use - or _"
        )
    keys = [key for key in _ANSWER_KEYS if key in row]
    if len(keys) > 1:
        found = " and ".join(map(repr, keys))
        raise FormatError(f"{where}: found both {found}; wanted only one of them")
    answers = _parse_texts(row, keys[0], where, is_table) if keys else ()
    passages, choices, labels = (
        _parse_texts(row, name, where, is_table) for name in ("passages", "choices", LABEL)
    )
    if not answers:
        raise FormatError(f"{where}: no answer; wanted at least one text under 'answers'")
    if invalid := next(
        (label for label in labels if label in _RESERVED or set(label) & set(".@")), ""
    ):
        reserved = ", ".join(sorted(_RESERVED))
        raise FormatError(
            f"{where}: label {invalid!r}: wanted a label without '.' or '@' that is not {reserved}"
        )
    texts = {
        name: text_field(row, name, where).strip()
        for name in ("context", "group", *_ORIGIN)
        if name in row
    }
    text = text_field(row, "question", where).strip()
    context = texts.get("context", "")
    digest = hashlib.sha256(json.dumps([text, context, *choices]).encode()).hexdigest()
    origin = ((name, texts[name]) for name in _ORIGIN if name in texts)
    return Question(
        f"{prefix}/{identifier}-{digest[:_DIGITS]}",
        text,
        answers,
        passages,
        choices=choices,
        context=context,
        group=texts.get("group", ""),
        labels=(*((LABEL, label) for label in labels), *origin),
    )


def _parse_texts(row: dict[str, object], name: str, where: str, is_table: bool) -> tuple[str, ...]:
    """The texts of a key or a column, stripped.

    "|" separates texts in a cell, except in passages, which may hold tables.
    """
    texts = row.get(name, [])
    if is_table:
        texts = split_cell(texts, f"{where}: {name!r}", "" if name == "passages" else "|")
    elif isinstance(texts, str):
        texts = [texts] if texts.strip() else []
    return tuple(dict.fromkeys(text.strip() for text in texts_field({name: texts}, name, where)))
