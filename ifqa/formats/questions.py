"""Reads questions from the formats of other tools, and writes them as Pyserini topics."""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ifqa.errors import FormatError
from ifqa.formats import tables
from ifqa.formats.runs import check_id
from ifqa.formats.tables import read_rows, row_id, unpacked_suffix
from ifqa.records import Question
from ifqa.storage.files import (
    atomic_write,
    text_field,
    texts_field,
    typed_field,
    unicode_text,
    write_bytes,
)

# Kept as labels, for the manifests of models trained on the questions
_ORIGIN_KEYS = ("source", "licence")
_DPR_ANSWERS = re.compile(r"""^[^\t]*\t"?\[['"].*\]"?\s*$""")
_CAUSAL_LABELS = {"": "", "true": "true", "1": "true", "false": "false", "0": "false"}
# SQuAD and DPR, nq_open, lm-eval tasks, FlashRAG
_ANSWER_KEYS = ("answers", "answer", "target", "golden_answers")


def write_topics(path: Path, questions: Sequence[Question]) -> int:
    """Write Pyserini topics, `id TAB text`, with single spaces; return their number.

    Raises FormatError as `check_id` does.
    """
    with atomic_write(path) as handle:
        for question in questions:
            text = unicode_text(" ".join(question.text.split()), "question", question.id)
            write_bytes(handle, f"{check_id(question.id)}\t{text}\n".encode())
    return len(questions)


def iter_questions(path: Path) -> Iterator[Question]:
    """Each question of a file: its text, id, dataset (as `group`) and label "causal" ("true" or
    "false").

    A row has `question`, and may have `id` (or `idx`, `qid`, `question_id`; without one, its number
    from 1), `dataset` and `causal`. A table without a header has `id TAB question` (Pyserini
    topics), `question TAB ['answer', ...]` (DPR), or one question per line.
    """
    return _parse_file(path, _parse_brief)


def read_questions(path: Path) -> list[Question]:
    """The questions of a file, with unique ids, and with their answers, passages and choices if it
    has them.

    Besides the fields of `iter_questions`, a record may have `answers`, `answer`, `target` or
    `golden_answers` (a text, a list, or the objects of SQuAD or TriviaQA); `passages` or `context`
    (a text or a list); `choices`; `source` and `licence`, which become labels. This covers SQuAD,
    MRQA, lm-eval, FlashRAG, the IfQA release, DPR and FiD. SQuAD's impossible questions have no
    answers. A cell of a table has texts between "|" (passages: one text), or a JSON list.
    """
    is_table = unpacked_suffix(path) in tables.TABLE_SUFFIXES
    questions = list(_parse_file(path, _parse_cells if is_table else _parse_full))
    if is_table:
        questions = [replace(question, text=question.text.strip()) for question in questions]
    return check_unique_ids(path, questions)


def check_unique_ids(path: Path, questions: list[Question]) -> list[Question]:
    """The questions; raises FormatError if there are none, or if two have the same id."""
    if not questions:
        raise FormatError(f"{path}: wanted questions, found none")
    seen: set[str] = set()
    for question in questions:
        if question.id in seen:
            raise FormatError(
                f"{path}: two questions have the id {question.id!r}; wanted unique ids"
            )
        seen.add(question.id)
    return questions


def _parse_file(
    path: Path, parse: Callable[[dict[str, object], str, int], Question]
) -> Iterator[Question]:
    kind = unpacked_suffix(path)
    number = 0
    first, lines = tables.read_first_line(path) if kind in tables.TABLE_SUFFIXES else ("", iter(()))
    if kind in tables.TABLE_SUFFIXES and _DPR_ANSWERS.search(first):
        questions = _parse_dpr(path, lines)
    elif kind in (".tsv", ".txt") and "question" not in tables.parse_header(first, kind, path):
        questions = _parse_headerless(path, lines, "\t" in first)
    else:
        rows = enumerate(read_rows(path, "question"), start=1)
        questions = (parse(row, where, number) for number, (where, row) in rows)
    for number, question in enumerate(questions, start=1):  # noqa: B007
        yield question
    if not number:
        raise FormatError(f"{path}: wanted questions, found none")


def _parse_headerless(
    path: Path, lines: Iterable[tuple[int, str]], are_topics: bool
) -> Iterator[Question]:
    """The questions of a table without a header."""
    for number, line in lines:
        name, tab, text = line.partition("\t") if are_topics else (str(number), "", line)
        if not line.strip():
            continue
        if (
            are_topics != bool(tab)
            or "\t" in text
            or name.split() != [name.strip()]
            or not text.strip()
        ):
            layout = (
                "'id TAB question', without white space in the id," if are_topics else "a question"
            )
            raise FormatError(
                f"{path}:{number}: wanted {layout} as in the first line; found {line[:80]!r}"
            )
        yield Question(name.strip(), text)


def _parse_dpr(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[Question]:
    """The questions of a file of DPR, also Anserini's topics of it: the answers are a list of
    Python.
    """
    for number, line in lines:
        if not line.strip():
            continue
        where = f"{path}:{number}"
        text, *cells = tables.split_line(line.strip(), "\t", where)
        try:
            [answers] = map(ast.literal_eval, cells)
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            layout = "\"question TAB ['answer', ...]\""
            raise FormatError(
                f"{where}: wanted {layout} as in the first line; found {line[:80]!r}"
            ) from error
        record = {"question": text, "answers": answers}
        yield Question(
            str(number),
            text_field(record, "question", where),
            texts_field(record, "answers", where),
        )


def _parse_brief(row: dict[str, object], where: str, number: int) -> Question:
    group = row.get("dataset")
    cell = row.get("causal")
    if group is not None and not isinstance(group, str):
        raise FormatError(f"{where}: 'dataset' must be text, found {type(group).__name__}")
    causal = "" if cell is None else str(cell).strip().lower()
    if causal not in _CAUSAL_LABELS:
        raise FormatError(f"{where}: 'causal' must be true or false, found {cell!r:.40}")
    labels = (("causal", _CAUSAL_LABELS[causal]),) if causal else ()
    text = text_field(row, "question", where)
    return Question(row_id(row, where) or str(number), text, group=group or "", labels=labels)


def _parse_cells(row: dict[str, object], where: str, number: int) -> Question:
    lists = dict.fromkeys((*_ANSWER_KEYS, "choices"), "|") | {"passages": "", "context": ""}
    cells = {
        key: tables.split_cell(row[key], f"{where}: {key!r}", mark)
        for key, mark in lists.items()
        if row.get(key)
    }
    return _parse_full({**row, **cells}, where, number)


def _parse_full(record: dict[str, object], where: str, number: int) -> Question:
    key = next((key for key in _ANSWER_KEYS if key in record), "")
    answers = record.get(key)
    if isinstance(answers, dict):  # SQuAD and TriviaQA as the library `datasets` loads them
        answers = answers.get("text", answers.get("aliases"))
    # With offsets, as in SQuAD
    if isinstance(answers, list) and any(isinstance(answer, dict) for answer in answers):
        texts = [
            typed_field(answer, "text", str, where) if isinstance(answer, dict) else answer
            for answer in answers
        ]
        answers = list(dict.fromkeys(texts))  # annotators often give the same answer
    gold_key = "passages" if "passages" in record else "context"
    return Question(
        row_id(record, where) or str(number),
        text_field(record, "question", where),
        _parse_texts(answers, key, where),
        _parse_texts(record.get(gold_key), gold_key, where),
        _parse_texts(record.get("choices"), "choices", where),
        labels=tuple(
            (name, text_field(record, name, where)) for name in _ORIGIN_KEYS if record.get(name)
        ),
    )


def _parse_texts(texts: object, key: str, where: str) -> tuple[str, ...]:
    """A tuple from a text or a list of texts; empty for None and for a blank text."""
    if texts is None or (isinstance(texts, str) and not texts.strip()):
        return ()
    return texts_field({key: [texts] if isinstance(texts, str) else texts}, key, where)
