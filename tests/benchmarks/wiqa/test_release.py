"""The release's questions: the released records come back character by character, and bad ones are one line."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

from ifqa.benchmarks.wiqa.graphs import read_graphs
from ifqa.benchmarks.wiqa.question_generation import effect_questions
from ifqa.benchmarks.wiqa.release import check_label, parse_wiqa_question, read_topics, read_wiqa_questions
from ifqa.errors import IfqaError
from ifqa.reading.multiple_choice.wiqa_question import split_stem
from ifqa.storage.files import read_jsonl
from ifqa.storage.resources import BUNDLED, PACKAGE

SHARED = [folder / "shared/data/wiqa/test-8-paragraphs.jsonl" for folder in PACKAGE.parents]
RELEASED = next((path for path in SHARED if path.exists()), Path("absent"))
GRAPHS = read_graphs(BUNDLED / "wiqa" / "graphs.jsonl")
RECORD = next(effect_questions(GRAPHS["bread-1"])).record()


@pytest.mark.skipif(not RELEASED.exists(), reason="the released questions are not here")
def test_released_questions_come_back_character_by_character():
    items = read_wiqa_questions(RELEASED)
    assert [item.record() for item in items] == [record for _, record in read_jsonl(RELEASED)]
    stems = ["suppose {} happens, how will it affect {}.".format(*split_stem(item.question.stem)) for item in items]
    assert stems == [item.question.stem for item in items]
    assert len(items) == 537


def changed(**changes):
    """The record with values changed; the keys name the place, as question__stem."""
    record = deepcopy(RECORD)
    for place, value in changes.items():
        *outer, key = place.split("__")
        (record[outer[0]] if outer else record)[key] = value
    return record


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (changed(question__answer_label_as_choice="B"), "'answer_label_as_choice' is 'B'; more is choice A"),
        (changed(question__answer_label="much more"), "key 'answer_label': unknown value 'much more'"),
        (changed(question__choices=[]), "'choices' is not A more, B less, C no effect"),
        (changed(question__stem="what if?"), "the question 'what if?' is not: suppose CHANGE happens"),
        (changed(metadata__path_len=1), "has the label 'more' and path_len 1; wanted more or less, and 2 nodes at least"),
        (changed(metadata__question_type="OUTOFPARA_DISTRACTOR"), "wanted no_effect and 0"),
        (changed(metadata__split="dev"), "unknown key 'split'"),
        (changed(explanation={"i": 2, "di": "more", "j": 9, "dj": "more", "de": "more"}), "wanted 0 to 6, i before j"),
    ],
)  # fmt: skip
def test_a_bad_question_is_one_line_with_its_place(record, message):
    with pytest.raises(IfqaError) as told:
        parse_wiqa_question(record, "x:1")
    assert str(told.value).startswith("x:1: ")
    assert message in str(told.value)


def test_an_id_that_is_there_twice_and_a_label_that_contradicts_its_path_are_refused(tmp_path):
    path = tmp_path / "q.jsonl"
    for text, said in {
        f"{json.dumps(RECORD)}\n" * 2: "q.jsonl:2: the id .* is there twice",
        "\n": "no question in it",
    }.items():
        path.write_text(text)
        with pytest.raises(IfqaError, match=said):
            read_wiqa_questions(path)
    less = changed(question__answer_label="less", question__answer_label_as_choice="B")
    lost = changed(metadata__graph_id="lost")
    path_of = "x: the label is less, but by its path Z -> X -> Y it is more"
    for record, said in ((less, path_of), (lost, "unknown graph 'lost'")):
        with pytest.raises(IfqaError, match=said):
            check_label(parse_wiqa_question(record, "x"), GRAPHS, "x")


def test_topics_and_splits_of_paragraphs(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text("para_id\tprompt\ttopic\tpartition\npropara_7\tHow?\tseeds\ttrain\n8\tWhy?\train\tdev\n\n")
    assert read_topics(path) == {"7": ("seeds", "train"), "8": ("rain", "dev")}
    path.write_text("para_id\tprompt\ttopic\tpartition\n7\tHow?\tseeds\n")
    with pytest.raises(IfqaError, match=r"topics.tsv:2: wanted columns para_id"):
        read_topics(path)
