import json
from pathlib import Path

import pytest
from command_line import ifqa_here

from ifqa.benchmarks.causalqa.release import ALL, PUBLISHED
from ifqa.benchmarks.causalqa.rules import RULES
from ifqa.errors import IfqaError
from ifqa.report.stats.causal import measure, stats_json


def ifqa(*arguments):
    return ifqa_here(*arguments, folder=Path(), COLUMNS="120")


ROWS = [  # question, dataset, causal
    ("Why is the sky blue?", "paq", True),
    ("What leads to rust?", "paq", True),
    ("Which show did he host?", "nq", False),
    ("Who wrote Emma?", "nq", True),
]


@pytest.fixture
def questions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"question": q, "dataset": d, "causal": c}) + "\n" for q, d, c in ROWS]
    Path("q.jsonl").write_text("".join(lines))
    return "q.jsonl"


def test_each_reading_is_counted_by_rule_and_dataset(questions):
    told = json.loads(ifqa("stats", "causal", questions, "--json").stdout)
    assert told["questions"] == 4
    assert {one: found["matched"]["any"] for one, found in told["rules"].items()} == {
        "notebook": 2,
        "table3": 2,
        "fixed": 2,
    }
    assert told["rules"]["notebook"]["matched"]["R3"] == told["rules"]["fixed"]["matched"]["R5"] == 1
    assert told["rules"]["fixed"]["share"]["any"] == 0.5
    assert told["datasets"]["nq"] == {"questions": 2, "causal": {"notebook": 1, "table3": 0, "fixed": 0}}
    assert "paper" not in told  # nq is not what the paper calls it


def test_precision_and_recall_are_those_of_the_labels(questions):
    judged = json.loads(ifqa("stats", "causal", questions, "--json").stdout)["rules"]
    assert [judged["notebook"]["judged"]["any"][what][0] for what in ("precision", "recall")] == [1 / 2, 1 / 3]
    assert [judged["fixed"]["judged"]["any"][what][0] for what in ("precision", "recall")] == [1, 2 / 3]
    assert judged["fixed"]["judged"]["R7"]["precision"] is None


def test_the_rules_to_count_can_be_chosen(questions):
    assert json.loads(ifqa("stats", "causal", questions, "--rules", "fixed", "--json").stdout)["rules"].keys() == {
        "fixed"
    }


def test_the_papers_values_stand_beside_its_own_datasets(questions):
    told = json.loads(ifqa("stats", "causal", questions, "--dataset", "paq", "--json").stdout)
    assert told["paper"]["datasets"] == {"paq": {"questions": 64_875_601, "percent": 1.2}}
    shown = ifqa("stats", "causal", questions, "--dataset", "paq").stdout
    assert "64,875,601" in shown
    assert "1,079,436" in shown
    assert "1,079,436" not in ifqa("stats", "causal", questions).stdout


def test_the_papers_datasets_add_up_to_its_total():
    assert sum(one.questions for one in PUBLISHED.values()) == ALL.questions


def test_a_benchmark_is_counted_by_split_or_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sample").mkdir()  # a folder of that name does not hide the benchmark
    split, whole = (
        json.loads(ifqa("stats", "causal", one, "--json").stdout)["questions"] for one in ("sample:dev", "sample")
    )
    assert (split, whole) == (83, 200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q.jsonl", "--rules", "table4"], "unknown rules 'table4'"),
        (["q.jsonl", "--dataset", "nq"], "unknown dataset of the paper 'nq'"),
        (["none.jsonl"], "file not found: none.jsonl"),
        (["q.jsonl.zip"], "unknown benchmark 'q.jsonl.zip'"),
        (["sample:test"], "unknown split of sample 'test'"),
        (["ifqa"], "none of its splits is in"),
    ],
)
@pytest.mark.usefixtures("questions")
def test_what_cannot_be_counted_is_refused_in_one_line(arguments, message):
    told = ifqa("stats", "causal", *arguments)
    assert (told.returncode, told.stderr.count("\n"), message in told.stderr) == (2, 1, True), told.stderr


def test_an_unknown_reading_is_refused_from_python(questions):
    with pytest.raises(IfqaError, match="unknown rules"):
        measure(questions, ["table4"])
    assert stats_json(measure(questions))["rules"].keys() == RULES.keys()
