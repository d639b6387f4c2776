"""Questions to ask, from any file that `ifqa.formats.rows` or `ifqa.formats.questions` reads."""

from dataclasses import replace
from pathlib import Path

from ifqa.formats import rows
from ifqa.formats.questions import distinct, read_questions
from ifqa.records import Question


def read_asked(path: Path) -> list[Question]:
    """The questions of a .txt (one a line), a .csv or .tsv (columns `question` and optionally `id`), a .jsonl or a .json.

    Raises:
        IfqaError: the file is missing, has another format or no questions, or two questions have the same id.
    """
    if rows.kind_of(path) in (".jsonl", ".json"):
        return read_questions(path)  # with choices and answers
    return distinct(path, [replace(one, text=one.text.strip()) for one in rows.read_asked(path)])
