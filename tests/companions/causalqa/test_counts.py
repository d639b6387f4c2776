"""Causal questions counted by rule and data set, and by class, with precision and recall where they
are labelled.
"""

import json
from pathlib import Path

import pytest
from command_line import ifqa_here

from ifqa.companions.causalqa.release import ALL, PUBLISHED
from ifqa.storage.files import write_jsonl

ROWS = [
    ("Why is the sky blue?", "paq", True),
    ("What leads to rust?", "paq", True),
    ("Which show did he host?", "nq", False),
    ("Who wrote Emma?", "nq", True),
]


ANNOTATED = """dataset\tid\tsemantic\tpragmatic
x\t1\tcause\tknowledge
x\t2\tcause\tsolution
x\t3\tresult\tknowledge
y\t1\tnone\topinion
"""
TEXTS = {
    "x 1": "Why did the dam break?",
    "x 2": "Who wrote Emma?",
    "x 3": "salt",
    "y 1": "Who knew?",
}


def ifqa(*arguments, verb="causal"):
    return ifqa_here("stats", verb, *arguments, folder=Path(), COLUMNS="120")


def counted(*arguments, verb="causal"):
    return json.loads(ifqa(*arguments, "--json", verb=verb).stdout)


@pytest.fixture(autouse=True)
def _questions(here):
    write_jsonl(Path("q.jsonl"), [{"question": q, "dataset": d, "causal": c} for q, d, c in ROWS])
    write_jsonl(
        Path("t.jsonl"),
        [{"dataset": k[0], "id": k[2], "question": text} for k, text in TEXTS.items()],
    )
    write_jsonl(Path("few.jsonl"), [{"dataset": "x", "id": 1, "question": "Why?"}])
    Path("a.tsv").write_text(ANNOTATED)


def test_each_reading_is_counted_by_rule():
    told = counted("q.jsonl")
    rules = told["rules"]
    assert told["questions"] == 4
    assert [(name, rule["matched"]["any"]) for name, rule in rules.items()] == [
        ("notebook", 2),
        ("table3", 2),
        ("fixed", 2),
    ]
    assert rules["notebook"]["matched"]["R3"] == rules["fixed"]["matched"]["R5"] == 1
    assert rules["fixed"]["share"]["any"] == 0.5


def test_each_reading_is_counted_by_dataset():
    told = counted("q.jsonl")
    assert told["datasets"]["nq"] == {
        "questions": 2,
        "causal": {"notebook": 1, "table3": 0, "fixed": 0},
    }
    assert "paper" not in told  # nq is not what the paper calls it


def test_each_reading_is_judged_by_the_labels():
    rules = counted("q.jsonl")["rules"]
    judged = {name: rules[name]["judged"]["any"] for name in ("notebook", "fixed")}
    assert [judged["notebook"][what][0] for what in ("precision", "recall")] == [1 / 2, 1 / 3]
    assert [judged["fixed"][what][0] for what in ("precision", "recall")] == [1, 2 / 3]
    assert rules["fixed"]["judged"]["R7"]["precision"] is None


def test_a_reading_can_be_chosen():
    assert counted("q.jsonl", "--rules", "fixed")["rules"].keys() == {"fixed"}


def test_the_papers_values_stand_beside_its_own_datasets():
    assert sum(counts.questions for counts in PUBLISHED.values()) == ALL.questions
    told = counted("q.jsonl", "--dataset", "paq")
    assert told["paper"]["datasets"] == {"paq": {"questions": 64_875_601, "percent": 1.2}}
    shown = ifqa("q.jsonl", "--dataset", "paq").stdout
    assert "64,875,601" in shown
    assert "1,079,436" in shown
    assert "1,079,436" not in ifqa("q.jsonl").stdout


def test_a_benchmark_is_counted_by_split_or_whole():
    Path("sample").mkdir()  # a folder of that name does not hide the benchmark
    assert [counted(name)["questions"] for name in ("sample:dev", "sample")] == [83, 200]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q.jsonl", "--rules", "table4"], "unknown rules 'table4'"),
        (["q.jsonl", "--dataset", "nq"], "unknown dataset of the paper 'nq'"),
        (["none.jsonl"], "file not found: none.jsonl"),
        (["q.jsonl.zip"], "unknown benchmark 'q.jsonl.zip'"),
        (["sample:test"], "unknown split of sample 'test'"),
        (["ifqa"], "no split in"),
        (["typology"], "wanted a file of annotations, or --questions FILE; found neither"),
        (["typology", "c.tsv"], "file not found: c.tsv"),
        (
            ["typology", "a.tsv", "--questions", "few.jsonl"],
            "no question text for 3 annotations, such as 'x 2'; add it",
        ),
    ],
)
def test_what_cannot_be_counted_is_refused_in_one_line(arguments, message):
    told = ifqa(*arguments[1:], verb="typology") if arguments[0] == "typology" else ifqa(*arguments)
    assert told.returncode == 2, told.stderr
    assert told.stderr.count("\n") == 1, told.stderr
    assert message in told.stderr


def test_the_classes_are_counted():
    counts = counted("a.tsv", verb="typology")["counts"]["annotator"]
    assert counts["semantic"]["cause"] == 2
    assert counts["semantic"]["goal"] == 0
    assert counts["pragmatic"]["knowledge"] == 2


def test_the_labeller_is_judged_by_the_annotations():
    told = counted("a.tsv", "--questions", "t.jsonl", verb="typology")
    score = told["labeller"]["semantic"]["all"]
    assert score["right"] == 2
    assert score["given"] == 3
    assert score["of"] == 4
    assert score["coverage"][0] == 0.75


def test_the_judgement_of_the_labeller_is_printed():
    printed = ifqa("a.tsv", "--questions", "t.jsonl", verb="typology").stdout
    assert "The labeller, judged by the annotations" in printed


def test_the_labeller_counts_questions_without_annotations():
    told = counted("--questions", "t.jsonl", verb="typology")
    alone = told["counts"]["labeller"]["semantic"]
    assert alone["cause"] == 1
    assert alone["none"] == 2
    assert alone[""] == 1
