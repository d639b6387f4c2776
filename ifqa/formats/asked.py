"""Questions to ask, from a file of one a line, a table with a column `question`, or any file that `ifqa convert` reads."""

import csv
from collections.abc import Iterator
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.formats.questions import distinct, read_questions
from ifqa.records import Question
from ifqa.storage.files import read_lines


def read_asked(path: Path) -> list[Question]:
    """The questions of a .txt (one a line), a .csv (columns `question` and optionally `id`), a .jsonl, a .json or a .tsv.

    Raises:
        IfqaError: the file is missing, has another format or no questions, or two questions have the same id.
    """
    if path.suffix not in (".txt", ".csv"):
        return read_questions(path)
    found = list(_lines(path) if path.suffix == ".txt" else _rows(path))
    return distinct(path, found)


def _lines(path: Path) -> Iterator[Question]:
    for number, line in read_lines(path):
        if line.strip():
            yield Question(str(number), line.strip())


def _rows(path: Path) -> Iterator[Question]:
    rows = csv.reader((f"{line}\n" for _, line in read_lines(path)), strict=True)
    try:
        names = [name.strip().lower() for name in next(rows, [])]
        if "question" not in names:
            raise IfqaError(f"{path}:1: wanted a column 'question'; found {', '.join(map(repr, names)) or 'none'}")
        for number, row in enumerate(filter(None, rows), start=1):
            cells = dict(zip(names, row, strict=False))
            if not cells.get("question", "").strip():
                raise IfqaError(f"{path}:{rows.line_num}: the question is empty; wanted text")
            yield Question(cells.get("id", "").strip() or str(number), cells["question"].strip())
    except csv.Error as error:
        raise IfqaError(f"{path}:{rows.line_num}: not a row of a table ({error})") from error
