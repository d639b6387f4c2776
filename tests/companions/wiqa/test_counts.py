"""WIQA's counts: of the bundled questions, beside the paper's table, and labels that contradict a
path.
"""

import shutil
from typing import Any

import pytest

from ifqa.companions.wiqa.counts import KINDS, measure
from ifqa.companions.wiqa.question_generation import FOLDER
from ifqa.errors import IfqaError
from ifqa.plugins import open_benchmark
from ifqa.report.stats import show_counts
from ifqa.storage.files import read_jsonl, write_jsonl


def test_the_bundled_questions_are_counted_by_split():
    counts = measure(["sample-wiqa"], FOLDER / "graphs.jsonl")
    assert [*counts] == ["train", "dev", "test"]
    dev = counts["dev"]
    assert {
        key: dev[key] for key in ("topics", "paragraphs", "graphs", "questions", "located")
    } == {
        "topics": 2,
        "paragraphs": 2,
        "graphs": 2,
        "questions": 62,
        "located": 62,
    }
    assert [dev[kind] for kind in KINDS] == [22, 20, 20]
    assert [dev[hops] for hops in ("1 hop", "2 hops", "3 hops")] == [18, 16, 8]


def shown(capsys, *sources):
    """What `ifqa stats wiqa` prints."""
    show_counts(open_benchmark("wiqa").counts()["wiqa"]([*map(str, sources)]))
    return capsys.readouterr().out


def test_the_papers_counts_stand_beside_those_of_a_file(capsys):
    lines = [line.split() for line in shown(capsys, FOLDER / "dev.jsonl").splitlines()]
    assert lines[0] == ["dev", *"paper train paper dev paper test".split()]
    assert ["questions", "62", "29,808", "6,894", "3,993"] in lines


def test_the_bundled_questions_are_not_compared_with_the_paper(capsys):
    assert "paper" not in shown(capsys, "sample-wiqa")


def test_the_benchmarks_own_folder_is_counted_by_default(tmp_path):
    (tmp_path / "data/wiqa").mkdir(parents=True)
    shutil.copy(FOLDER / "dev.jsonl", tmp_path / "data/wiqa")
    count = open_benchmark("wiqa", tmp_path).counts()["wiqa"]
    content: Any = count().content
    assert content["splits"]["dev"]["questions"] == 62


def test_a_contradiction_is_one_line(tmp_path):
    records = [record for _, record in read_jsonl(FOLDER / "dev.jsonl")]
    records[0]["question"] |= {"answer_label": "less", "answer_label_as_choice": "B"}
    write_jsonl(tmp_path / "dev.jsonl", records)
    with pytest.raises(
        IfqaError, match=r"dev.jsonl: influence_graph:dune.*: the label is less, but the path"
    ):
        measure([str(tmp_path)], FOLDER / "graphs.jsonl")


def test_two_files_of_one_name_are_one_line(tmp_path):
    shutil.copy(FOLDER / "dev.jsonl", tmp_path)
    with pytest.raises(IfqaError, match="another file is also named dev"):
        measure(["sample-wiqa", str(tmp_path)])


def test_an_empty_folder_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(IfqaError, match="run: ifqa data wiqa"):
        measure([str(tmp_path / "empty")])
