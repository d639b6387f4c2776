"""Scores read back from an experiment's score folder; their shape is checked here and nowhere else."""

from collections.abc import Mapping
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.scoring.per_question import Content, Row
from ifqa.settings import check_shape, is_share
from ifqa.storage.files import read_json, read_jsonl

SCORES, ROWS = "scores.json", "per_question.jsonl"


def read_scores(folder: Path) -> Content:
    """The scores of a score folder.

    Raises:
        IfqaError: the file is missing or not JSON, or a value has the wrong type or range.
    """
    return scores_in(read_json(folder / SCORES), str(folder / SCORES))


def scores_in(value: object, where: str) -> Content:
    """Scores from a file; `where` names it in the error.

    Raises:
        IfqaError: a value is missing, or has the wrong type or range.
    """
    scores = check_shape(Content, value, where)
    beside = {"groups": "macro", "ceiling": "chance"}
    for key in ("of", "not_asked", "retry", *(beside[known] for known in beside if known in scores)):
        if key not in scores:
            raise IfqaError(f"{where}: not as ifqa writes it ({key}: Field required)")
    return scores


def read_rows(folder: Path) -> list[Row]:
    """The row of each question of a score folder, in the questions' order; each measure is from 0 to 1.

    Raises:
        IfqaError: the file is missing or not JSON lines, or a value has the wrong type or range (named as file:line).
    """
    return [_row(record, f"{folder / ROWS}:{number}") for number, record in read_jsonl(folder / ROWS)]


def _row(record: Mapping[str, object], where: str) -> Row:
    row = check_shape(Row, record, where)
    for key, value in record.items():
        if key not in Row.__annotations__ and not is_share(value):
            raise IfqaError(f"{where}: not as ifqa writes it ({key}: wanted a number from 0 to 1, found {value!r:.80})")
    return row
