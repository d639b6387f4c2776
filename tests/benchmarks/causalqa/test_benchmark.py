"""CausalQA from its built files, and from a user's own."""

import json
from pathlib import Path

import pytest

from ifqa.benchmarks.causalqa.benchmark import DATASETS, CausalQA
from ifqa.errors import IfqaError

LINE = {"id": "7", "question": "why is it so?", "context": "It is so because.", "answers": ["because"], "rules": ["R1"]}
DATA = Path("data/causalqa")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, *lines):
    (DATA / path).parent.mkdir(parents=True, exist_ok=True)
    (DATA / path).write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_a_dataset_is_read_with_its_context_group_and_rules():
    write("original-valid/paq.jsonl", LINE, LINE | {"id": "8", "context": "", "rules": []})
    first, second = CausalQA().questions("original-valid/paq")
    assert first.id == "causalqa/original-valid/paq/7"
    assert (first.text, first.context, first.answers) == ("why is it so?", "It is so because.", ("because",))
    assert (first.group, first.label("rules"), first.gold_passages) == ("paq", "R1", ())
    assert (second.context, second.labels) == ("", ())


def test_a_split_is_all_datasets_in_the_papers_order():
    for name in reversed(DATASETS):
        write(f"random-train/{name}.jsonl", LINE)
    assert [one.group for one in CausalQA().questions("random-train")] == list(DATASETS)
    assert [one.group for one in CausalQA().questions("random-train/squad2+paq")] == ["squad2", "paq"]


def test_datasets_that_are_missing_are_all_named():
    write("original-valid/paq.jsonl", LINE)
    write("original-valid/squad2.jsonl", LINE)
    missing = ", ".join(one for one in DATASETS if one not in ("paq", "squad2"))
    with pytest.raises(
        IfqaError, match=rf"missing or without a question are {missing}; run: .*split = 'original-valid/paq\+squad2'"
    ):
        CausalQA().questions("original-valid")
    with pytest.raises(IfqaError, match=r"wanted 1 dataset in .* are eli5; run: ifqa data causalqa$"):
        CausalQA().files("original-valid/eli5")


def test_the_splits_are_listed_with_each_dataset_and_own_files():
    write("mine.jsonl", LINE | {"dataset": "paq"})
    splits = CausalQA().splits
    assert len(splits) == 4 + 4 * 10 + 1
    assert {"original-valid", "random-train/triviaqa", "mine"} <= set(splits)


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ("valid", "original-valid"),
        ("original-valid/pac", "dataset of causalqa 'pac'.*paq"),
    ],
)
def test_what_is_no_split_is_refused(split, said):
    with pytest.raises(IfqaError, match=said):
        CausalQA().questions(split)


def test_a_file_of_ones_own_names_each_lines_dataset():
    own = {"id": "7", "question": "why?", "answers": ["one", "two"]}
    write("mine.jsonl", own | {"dataset": "gooaq"}, own | {"dataset": "paq"})
    found = CausalQA().questions("mine")
    assert [(one.id, one.group, one.answers) for one in found] == [
        ("causalqa/mine/gooaq/7", "gooaq", ("one", "two")),
        ("causalqa/mine/paq/7", "paq", ("one", "two")),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (LINE | {"answers": []}, "mine.jsonl:1: 'answers' is empty"),
        (LINE | {"dataset": "wiqa"}, "mine.jsonl:1: 'dataset' is 'wiqa'; wanted one of paq"),
        (LINE | {"id": "a b"}, "mine.jsonl:1: 'id' is 'a b'; wanted one without white space"),
        (LINE | {"context": ["a"]}, "'context' must be str, found list"),
        ({"id": "1", "question": "why?", "dataset": "paq"}, "key 'answers' is missing"),
    ],
)
def test_a_wrong_line_is_named(line, said):
    write("mine.jsonl", {"dataset": "paq"} | line)
    with pytest.raises(IfqaError, match=said):
        CausalQA().questions("mine")


def test_an_id_twice_and_an_empty_file_are_refused():
    write("original-valid/paq.jsonl", LINE, LINE)
    with pytest.raises(IfqaError, match="two questions have the id 'causalqa/original-valid/paq/7'"):
        CausalQA().questions("original-valid/paq")
    write("mine.jsonl")
    with pytest.raises(IfqaError, match="wanted questions, found none"):
        CausalQA().questions("mine")


def test_a_dataset_without_a_question_in_a_split_is_named_as_missing():
    for name in DATASETS:
        write(f"original-valid/{name}.jsonl", *([] if name == "gooaq" else [LINE]))
    with pytest.raises(IfqaError, match=r"without a question are gooaq; run: .*'original-valid/paq\+msmarco"):
        CausalQA().questions("original-valid")


def test_original_and_random_splits_are_families_that_share_questions():
    assert CausalQA().family("original-train/paq") == CausalQA().family("original-valid") == "causalqa/original"
    assert CausalQA().family("random-valid") == "causalqa/random"
    write("mine.jsonl", LINE)
    assert CausalQA().family("mine") == ""
