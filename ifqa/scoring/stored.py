"""Scores read back from an experiment's score folder; their shape is checked here and nowhere else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.scoring.summary import Content, Row
from ifqa.settings import Natural, Share, Stored, Text, check_stored, is_share
from ifqa.storage.files import read_json, read_jsonl

SCORES, ROWS = "scores.json", "per_question.jsonl"
Percent = Annotated[float, Field(ge=0, le=100)]


class _Mean(Stored):
    value: Percent
    low: Percent
    high: Percent
    questions: Natural = 0
    groups: Natural = 0


class _Macro(Stored):
    measures: dict[str, _Mean]


class _Part(_Macro):
    questions: Natural


class _Risk(_Mean):
    coverage: Percent


class _Bin(_Mean):
    questions: Natural
    confidence: Percent


class _Sureness(Stored):
    risks: list[_Risk] = Field(min_length=1)
    bins: list[_Bin] = Field(min_length=1)


class _Scores(_Part):
    n_failed: Natural
    n_abstained: Natural = 0
    sureness: _Sureness | None = None
    subsets: dict[str, _Part]
    of: Natural
    not_asked: Natural
    retry: Natural
    groups: dict[str, _Part] = Field(default_factory=dict)
    macro: _Macro = Field(default_factory=lambda: _Macro(measures={}))
    ceiling: Percent = 0.0
    chance: dict[str, Percent] = Field(default_factory=dict)


class _Row(Stored):
    id: Text
    subsets: list[str]
    gold_read: bool = False
    answer_read: bool = False
    failed: Share = 0.0
    abstained: Share = 0.0
    confidence: Share = 0.0
    answer: str = ""
    candidate: str = ""
    factual: str = ""


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
    check_stored(_Scores, value, where)
    scores = cast(Content, value)
    for key, beside in (("groups", "macro"), ("ceiling", "chance")):
        if key in scores and beside not in scores:
            raise IfqaError(f"{where}: not as ifqa writes it ({beside}: Field required beside {key})")
    return scores


def read_rows(folder: Path) -> list[Row]:
    """The row of each question of a score folder, in the questions' order; each measure is from 0 to 1.

    Raises:
        IfqaError: the file is missing or not JSON lines, or a value has the wrong type or range (named as file:line).
    """
    return [_row(record, f"{folder / ROWS}:{number}") for number, record in read_jsonl(folder / ROWS)]


def _row(record: Mapping[str, object], where: str) -> Row:
    check_stored(_Row, record, where)
    for key, value in record.items():
        if key not in _Row.model_fields and not is_share(value):
            raise IfqaError(f"{where}: not as ifqa writes it ({key}: wanted a number from 0 to 1, found {value!r:.80})")
    return cast(Row, record)
