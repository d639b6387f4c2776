"""Relevance judgements (qrels) in TREC's format: `question 0 passage relevance`."""

import re
from collections.abc import Mapping
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.storage.files import create, read_lines, unicode_text, write


def write_qrels(path: Path, judged: Mapping[str, Mapping[str, int]]) -> int:
    """Write the relevance of each question's judged passages, by question and passage id; returns the number of lines.

    Raises:
        IfqaError: an id is empty, or holds white space or half a surrogate pair.
    """
    with create(path) as handle:
        for question_id, passages in judged.items():
            for passage_id, relevance in passages.items():
                write(handle, f"{id_word(question_id)} 0 {id_word(passage_id)} {relevance}\n".encode())
    return sum(map(len, judged.values()))


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """The relevance of each question's judged passages, in the file's order.

    Raises:
        IfqaError: a line does not have four fields, a relevance is no whole number, or a passage is judged twice.
    """
    judged: dict[str, dict[str, int]] = {}
    for number, line in read_lines(path):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != 4 or not re.fullmatch(r"[+-]?[0-9]{1,9}", fields[3]):
            raise IfqaError(
                f"{path}:{number}: wanted 'question 0 passage relevance', a whole number; found {line[:80]!r}"
            )
        question_id, _, passage_id, relevance = fields
        if passage_id in judged.setdefault(question_id, {}):
            raise IfqaError(f"{path}:{number}: passage {passage_id} is judged twice for {question_id}")
        judged[question_id][passage_id] = int(relevance)
    return judged


def id_word(name: str) -> str:
    """An id, checked for formats that are split at white space.

    Raises:
        IfqaError: it is empty, or holds white space or half a surrogate pair.
    """
    if name.split() != [name] or name.startswith("\ufeff"):  # which readers take for a byte order mark
        raise IfqaError(f"id {name!r} is empty or holds white space, at which this format is split; give it another")
    return unicode_text(name, "id", f"id {name!r}")
