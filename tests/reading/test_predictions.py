"""Answers of other systems: matched by id, or else by text."""

import json

import pytest
from refusals import refused

from ifqa.reading.predictions import Predictions
from ifqa.records import Question


def reader(folder, *pairs):
    """A reader of a FlashRAG file with these (id, question, answer)."""
    items = [
        {"id": name, "question": text, "golden_answers": [], "output": {"pred": answer}}
        for name, text, answer in pairs
    ]
    (folder / "intermediate_data.json").write_text(json.dumps(items))
    return Predictions(Predictions.Settings(path=str(folder / "intermediate_data.json")))


def answers(predictions, *questions):
    found = predictions.answer(list(questions), [()] * len(questions))
    return [prediction.answer if not prediction.error else None for prediction in found]


def test_other_tools_name_questions_by_their_text(tmp_path):
    predictions = reader(tmp_path, ("test_0", "If so,\n who?", "Ada"), ("test_1", "If not?", "Bo"))
    asked = [Question("q/1", "If not?"), Question("q/2", "If so, who? "), Question("q/3", "Or?")]
    assert answers(predictions, *asked) == ["Bo", "Ada", None]


def test_an_id_of_the_benchmark_comes_before_the_text(tmp_path):
    predictions = reader(tmp_path, ("q/1", "Who?", "Ada"), ("q/2", "Who?", "Bo"))
    assert answers(predictions, Question("q/2", "Who?"), Question("q/1", "Who?")) == ["Bo", "Ada"]


def test_a_text_with_two_answers_is_refused(tmp_path):
    predictions = reader(tmp_path, ("0", "Who?", "Ada"), ("1", "Who?", "Bo"))
    with refused("several answers to 'Who.'; wanted the ids"):
        answers(predictions, Question("q/1", "Who?"))


def test_two_questions_of_one_text_are_refused(tmp_path):
    predictions = reader(tmp_path, ("0", "Who?", "Ada"))
    with refused("q/1 and q/1/twin have the same text; wanted their ids"):
        answers(predictions, Question("q/1", "Who?"), Question("q/1/twin", "Who?"))


def test_a_file_of_other_questions_is_refused(tmp_path):
    with refused("none of the first 1 questions, such as 'Where.', .* it has 'Who.'"):
        answers(reader(tmp_path, ("0", "Who?", "Ada")), Question("q/1", "Where?"))


def test_a_later_part_of_the_questions_may_be_missing(tmp_path):
    predictions = reader(tmp_path, ("0", "Who?", "Ada"))
    assert answers(predictions, Question("q/1", "Who?")) == ["Ada"]
    assert answers(predictions, Question("q/2", "Where?")) == [None]


@pytest.mark.parametrize("again", ["Ada", "Bo"])
def test_a_question_that_is_answered_twice_is_refused(tmp_path, again):
    with refused("question 0 is answered twice"):
        reader(tmp_path, ("0", "Who?", "Ada"), ("0", "Who?", again))
