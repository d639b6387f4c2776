"""The release's questions: records are read and written unchanged, and invalid ones are refused."""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from refusals import refused

from ifqa.companions.wiqa.graphs import read_graphs
from ifqa.companions.wiqa.question_generation import effect_questions
from ifqa.companions.wiqa.release import (
    check_label,
    parse_wiqa_question,
    read_topics,
    read_wiqa_questions,
    split_stem,
)
from ifqa.storage.files import read_jsonl
from ifqa.storage.resources import BUNDLED, PACKAGE

SHARED = [folder / "shared/data/wiqa/test-8-paragraphs.jsonl" for folder in PACKAGE.parents]
RELEASED = next((path for path in SHARED if path.exists()), Path("absent"))
GRAPHS = read_graphs(BUNDLED / "wiqa" / "graphs.jsonl")
RECORD = next(effect_questions(GRAPHS["bread-1"])).record()


@pytest.mark.skipif(not RELEASED.exists(), reason="the released questions are not here")
def test_released_questions_survive_reading():
    questions = read_wiqa_questions(RELEASED)
    assert [question.record() for question in questions] == [
        record for _, record in read_jsonl(RELEASED)
    ]
    stems = [question.question.stem for question in questions]
    assert stems == [
        "suppose {} happens, how will it affect {}.".format(*split_stem(stem)) for stem in stems
    ]
    assert len(stems) == 537


def changed(**changes):
    """The record with changed fields; keys are paths, such as question__stem."""
    record: Any = deepcopy(RECORD)
    for path, field in changes.items():
        *outer, key = path.split("__")
        (record[outer[0]] if outer else record)[key] = field
    return record


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            changed(question__answer_label_as_choice="B"),
            "'answer_label_as_choice' is 'B'; more is choice A",
        ),
        (
            changed(question__answer_label="much more"),
            "key 'answer_label': unknown value 'much more'",
        ),
        (changed(question__choices=[]), "'choices' is not A more, B less, C no effect"),
        (
            changed(question__stem="what if?"),
            "the question 'what if?' is not: suppose CHANGE happens",
        ),
        (
            changed(metadata__path_len=1),
            "has the label 'more' and path_len 1; wanted more or less, and at least 2 nodes",
        ),
        (changed(metadata__question_type="OUTOFPARA_DISTRACTOR"), "wanted no_effect and 0"),
        (changed(metadata__split="dev"), "unknown key 'split'"),
    ],
)
def test_an_invalid_question_is_refused_with_its_location(record, message):
    with refused(f"x:1: .*{re.escape(message)}"):
        parse_wiqa_question(record, "x:1")


def test_a_duplicate_id_and_a_label_that_contradicts_its_path_are_refused(tmp_path):
    path = tmp_path / "q.jsonl"
    duplicate = f"{json.dumps(RECORD)}\n" * 2
    for text, message in {
        duplicate: "q.jsonl:2: another question has the id",
        "\n": "no question in it",
    }.items():
        path.write_text(text)
        with refused(message):
            read_wiqa_questions(path)
    less = changed(question__answer_label="less", question__answer_label_as_choice="B")
    lost = changed(metadata__graph_id="lost")
    contradiction = "x: the label is less, but the path Z -> X -> Y gives more"
    for record, message in ((less, contradiction), (lost, "unknown graph 'lost'")):
        with refused(message):
            check_label(parse_wiqa_question(record, "x"), GRAPHS, "x")


def test_topics_are_read(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text(
        "para_id\tprompt\ttopic\tpartition\npropara_7\tHow?\tseeds\ttrain\n8\tWhy?\train\tdev\n\n"
    )
    assert read_topics(path) == {"7": ("seeds", "train"), "8": ("rain", "dev")}


def test_a_line_of_topics_without_a_column_is_named(tmp_path):
    path = tmp_path / "topics.tsv"
    path.write_text("para_id\tprompt\ttopic\tpartition\n7\tHow?\tseeds\n")
    with refused("topics.tsv:2: wanted columns para_id"):
        read_topics(path)
