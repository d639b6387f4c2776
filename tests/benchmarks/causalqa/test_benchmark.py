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
    read = ("causalqa/original-valid/paq/7", "why is it so?", "It is so because.", ("because",), "paq", ())
    assert (first.id, first.text, first.context, first.answers, first.group, first.gold_passages) == read
    assert (first.label("rules"), second.context, second.labels) == ("R1", "", ())


def test_a_split_is_all_datasets_in_the_papers_order_and_splits_of_a_family_share_questions():
    for name in reversed(DATASETS):
        write(f"random-train/{name}.jsonl", LINE)
    assert [question.group for question in CausalQA().questions("random-train")] == list(DATASETS)
    assert [question.group for question in CausalQA().questions("random-train/squad2+paq")] == ["squad2", "paq"]
    families = {"original-train/paq": "causalqa/original", "original-valid": "causalqa/original", "mine": ""}
    families["random-valid"] = "causalqa/random"
    write("mine.jsonl", LINE)
    assert {split: CausalQA().family(split) for split in families} == families


def test_datasets_that_are_missing_or_without_a_question_are_all_named():
    write("original-valid/paq.jsonl", LINE)
    write("original-valid/squad2.jsonl", LINE)
    write("original-valid/gooaq.jsonl")
    missing = ", ".join(name for name in DATASETS if name not in ("paq", "squad2"))
    said = rf"missing or without a question are {missing}; run: .*split = 'original-valid/paq\+squad2'"
    with pytest.raises(IfqaError, match=said):
        CausalQA().questions("original-valid")
    with pytest.raises(IfqaError, match=r"wanted 1 dataset in .* are eli5; run: ifqa data causalqa$"):
        CausalQA().files("original-valid/eli5")
    for split, said in {"valid": "original-valid", "original-valid/pac": "dataset of causalqa 'pac'.*paq"}.items():
        with pytest.raises(IfqaError, match=said):
            CausalQA().questions(split)


def test_a_file_of_ones_own_names_each_lines_dataset():
    own = {"id": "7", "question": "why?", "answers": ["one", "two"]}
    write("mine.jsonl", own | {"dataset": "gooaq"}, own | {"dataset": "paq"})
    found = {question.id: (question.group, question.answers) for question in CausalQA().questions("mine")}
    assert found == {f"causalqa/mine/{name}/7": (name, ("one", "two")) for name in ("gooaq", "paq")}
    splits = CausalQA().splits
    assert len(splits) == 4 + 4 * 10 + 1
    assert {"original-valid", "random-train/triviaqa", "mine"} <= set(splits)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([LINE | {"answers": []}], "mine.jsonl:1: 'answers' is empty"),
        ([LINE | {"dataset": "wiqa"}], "mine.jsonl:1: 'dataset' is 'wiqa'; wanted one of paq"),
        ([LINE | {"id": "a b"}], "mine.jsonl:1: 'id' is 'a b'; wanted one without white space"),
        ([{"id": "1", "question": "why?"}], "key 'answers' is missing"),
        ([LINE, LINE], "two questions have the id 'causalqa/mine/paq/7'"),
        ([], "wanted questions, found none"),
    ],
)
def test_a_wrong_line_is_named(lines, said):
    write("mine.jsonl", *({"dataset": "paq"} | line for line in lines))
    with pytest.raises(IfqaError, match=said):
        CausalQA().questions("mine")
