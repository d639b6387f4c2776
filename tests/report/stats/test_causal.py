"""Causal questions counted by rule and data set, with precision and recall where they are labelled."""

import json
from pathlib import Path

import pytest
from command_line import ifqa_here

from ifqa.benchmarks.causalqa.release import ALL, PUBLISHED

ROWS = [
    ("Why is the sky blue?", "paq", True), ("What leads to rust?", "paq", True), ("Which show did he host?", "nq", False),
    ("Who wrote Emma?", "nq", True),
]  # fmt: skip


def ifqa(*arguments):
    return ifqa_here("stats", "causal", *arguments, folder=Path(), COLUMNS="120")


def counted(*arguments):
    return json.loads(ifqa(*arguments, "--json").stdout)


@pytest.fixture(autouse=True)
def _questions():
    lines = [json.dumps({"question": q, "dataset": d, "causal": c}) + "\n" for q, d, c in ROWS]
    Path("q.jsonl").write_text("".join(lines))


def test_each_reading_is_counted_by_rule_and_dataset_and_judged_by_the_labels():
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
    assert told["datasets"]["nq"] == {"questions": 2, "causal": {"notebook": 1, "table3": 0, "fixed": 0}}
    assert "paper" not in told  # nq is not what the paper calls it
    judged = {name: rules[name]["judged"]["any"] for name in ("notebook", "fixed")}
    assert [judged["notebook"][what][0] for what in ("precision", "recall")] == [1 / 2, 1 / 3]
    assert [judged["fixed"][what][0] for what in ("precision", "recall")] == [1, 2 / 3]
    assert rules["fixed"]["judged"]["R7"]["precision"] is None
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
    ],
)
def test_unknown_names_are_refused_in_one_line(arguments, message):
    told = ifqa(*arguments)
    assert (told.returncode, told.stderr.count("\n"), message in told.stderr) == (2, 1, True), told.stderr
