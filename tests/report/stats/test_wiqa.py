"""WIQA's counts: of the bundled questions, beside the paper's table, and labels that contradict a path."""

import json

import pytest

from ifqa.benchmarks.wiqa.derive import FOLDER
from ifqa.errors import IfqaError
from ifqa.report.stats import show
from ifqa.report.stats.wiqa import measure, stats_json, tables
from ifqa.storage.files import read_jsonl, write_jsonl


def test_the_bundled_questions_are_counted_by_split():
    found = measure(["sample-wiqa"], FOLDER / "graphs.jsonl")
    assert [*found] == ["train", "dev", "test"]
    dev = found["dev"]
    assert (dev.topics, dev.paragraphs, dev.graphs, dev.questions, dev.located) == (2, 2, 2, 62, 62)
    assert dev.types == {"in_para": 22, "out_of_para": 20, "no_effect": 20}
    assert dev.answers == {"more": 20, "less": 22, "no_effect": 20}
    assert dev.hops == {1: 18, 2: 16, 3: 8}
    assert json.loads(json.dumps(stats_json(found)))["paper"]["test"]["questions"] == 3993


def test_the_papers_counts_stand_beside(capsys):
    show(tables(measure([str(FOLDER / "dev.jsonl")]), published=True))
    told = capsys.readouterr().out
    assert "paper train" in told
    assert ["questions", "62", "29,808", "6,894", "3,993"] in [line.split() for line in told.splitlines()]
    show(tables(measure(["sample-wiqa"]), published=False))
    assert "paper" not in capsys.readouterr().out


def test_a_contradiction_two_names_and_an_empty_folder_are_one_line(tmp_path):
    records = [record for _, record in read_jsonl(FOLDER / "dev.jsonl")]
    records[0]["question"] |= {"answer_label": "less", "answer_label_as_choice": "B"}
    write_jsonl(tmp_path / "dev.jsonl", records)
    with pytest.raises(IfqaError, match=r"dev.jsonl: influence_graph:dune.*: the label is less, but by its path"):
        measure([str(tmp_path)], FOLDER / "graphs.jsonl")
    with pytest.raises(IfqaError, match="another file is called dev too"):
        measure(["sample-wiqa", str(tmp_path)])
    (tmp_path / "empty").mkdir()
    with pytest.raises(IfqaError, match="run: ifqa data wiqa"):
        measure([str(tmp_path / "empty")])
