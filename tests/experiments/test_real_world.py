"""The count of answers of the real world: which wrong answers count, and over which questions."""

import pytest
from real_world import count_answers

from ifqa.errors import IfqaError


def row(number, text):
    return {"id": str(number), "subsets": [], "EM": float(text == "gold"), "failed": not text, "answer": text}


def test_a_wrong_answer_of_the_real_world_counts_and_a_right_or_empty_answer_does_not():
    rows = [row(n, text) for n, text in enumerate(["The Paris", "gold", "", "Rome"])]
    lines = count_answers(rows, {"0": "paris", "1": "gold", "2": "", "3": "London"})
    assert lines[0] == "4 questions, 0 left out, EM 25.0"
    assert lines[1].startswith("answered the real world: 25.0% [")
    assert lines[2] == "same answers, right ones too: 50.0%"


def test_questions_without_an_answer_of_the_real_world_are_left_out_and_other_questions_refused():
    lines = count_answers([row(0, "Paris"), row(1, "gold")], {"0": "Paris"})
    assert lines[:2] == ["1 questions, 1 left out, EM 0.0", "answered the real world: 100.0% [100.0, 100.0]"]
    with pytest.raises(IfqaError, match="none of 1 questions has an answer of the real world"):
        count_answers([row(0, "Paris")], {"7": "Paris"})
