"""Scores that are read back: what a stage wrote is accepted, and anything else is refused with its
place.
"""

import json

import pytest

from ifqa.errors import IfqaError
from ifqa.scoring.stored_scores import parse_scores, read_rows

MEAN = {"value": 50.0, "low": 40.0, "high": 60}
SUBSETS = {"numeric": {"questions": 1, "measures": {"EM": MEAN}}}
SCORES = {
    "questions": 2,
    "of": 2,
    "n_failed": 0,
    "not_asked": 0,
    "retry": 0,
    "measures": {"EM": MEAN},
    "subsets": SUBSETS,
}
ROW = {
    "id": "a/b/1",
    "subsets": ["numeric"],
    "EM": 1,
    "F1": 0.5,
    "gold_read": True,
    "answer": "x",
    "failed": 0.0,
}


def test_what_a_later_version_adds_to_scores_is_read():
    parts = {"one": {"questions": 2, "measures": {"EM": MEAN | {"questions": 1}}}}
    whole = SCORES | {
        "groups": parts,
        "macro": {"measures": {"EM": MEAN}},
        "ceiling": 9.0,
        "chance": {"answer@1": 1.0},
    }
    assert parse_scores(whole | {"later": [1]}, "x") == whole | {"later": [1]}


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"measures": ...}, "measures"),
        ({"measures": 3}, "measures"),
        ({"of": ...}, "of"),
        ({"questions": -1}, "questions"),
        ({"n_failed": 1.5}, "n_failed"),
        ({"measures": {"EM": MEAN | {"low": "a"}}}, "measures.EM.low"),
        ({"measures": {"EM": MEAN | {"value": float("nan")}}}, "measures.EM.value"),
        ({"measures": {"EM": MEAN | {"high": 1e308}}}, "measures.EM.high"),
        ({"subsets": {"numeric": {"measures": {}}}}, "subsets.numeric.questions"),
        ({"groups": {}}, "macro"),
        ({"ceiling": 5.0}, "chance"),
    ],
)
def test_scores_of_another_shape_are_refused(change, place):
    changed = {key: value for key, value in {**SCORES, **change}.items() if value is not ...}
    with pytest.raises(IfqaError, match=rf"^x: not as ifqa writes it \({place}: "):
        parse_scores(changed, "x")
    with pytest.raises(IfqaError, match="x: not as ifqa writes it"):
        parse_scores([changed], "x")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"id": ...}, "id"),
        ({"subsets": "numeric"}, "subsets"),
        ({"EM": "1"}, "EM"),
        ({"EM": 2}, "EM"),
        ({"EM": 10**400}, "EM"),
        ({"answer": None}, "answer"),
        ({"gold_read": 1}, "gold_read"),
        ({"failed": "no"}, "failed"),
    ],
)
def test_a_row_of_another_shape_is_refused_by_its_line(tmp_path, change, place):
    changed = {key: value for key, value in {**ROW, **change}.items() if value is not ...}
    (tmp_path / "per_question.jsonl").write_text(
        json.dumps(ROW) + "\n" + json.dumps(changed) + "\n"
    )
    with pytest.raises(
        IfqaError, match=rf"per_question\.jsonl:2: not as ifqa writes it \({place}: "
    ):
        read_rows(tmp_path)
