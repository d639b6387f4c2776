"""Questions from files of graphs: splits that keep test paragraphs out of training, and nothing written for bad input."""

import json

import pytest

from ifqa.benchmarks.wiqa.graphs import read_graphs
from ifqa.benchmarks.wiqa.question_generation import FOLDER, write_questions
from ifqa.benchmarks.wiqa.release import read_wiqa_questions
from ifqa.errors import IfqaError
from ifqa.storage.files import read_jsonl, write_jsonl

RECORDS = [record for _, record in read_jsonl(FOLDER / "graphs.jsonl")]


@pytest.fixture
def own(tmp_path):
    """Ten graphs of paragraphs that no split knows."""
    path = tmp_path / "own.jsonl"
    write_jsonl(path, [record | {"graph_id": f"g{n}", "para_id": f"p{n}"} for n, record in enumerate(RECORDS[:10])])
    return path


def paragraphs(folder, split):
    return {item.metadata.para_id for item in read_wiqa_questions(folder / f"data/wiqa/made-{split}.jsonl")}


def test_the_sample_keeps_its_splits(tmp_path):
    lines = [*write_questions(tmp_path, ["sample-wiqa"], 0)]
    assert len(lines) == 4
    assert paragraphs(tmp_path, "dev") == {"dune", "muscle"}
    assert len(read_graphs(tmp_path / "data/wiqa/made-graphs.jsonl")) == 12
    items = read_wiqa_questions(tmp_path / "data/wiqa/made-train.jsonl")
    assert f"{len(items):,} questions of 7 graphs, 7 paragraphs" in lines[0]


def test_a_paragraph_of_the_released_test_split_is_not_trained_on(tmp_path, own):
    [*write_questions(tmp_path, [str(own)], 0)]
    trained = sorted(paragraphs(tmp_path, "train"))
    assert len(trained) == 8
    record = read_wiqa_questions(FOLDER / "test.jsonl")[0].record()
    about = {"ques_id": "1", "graph_id": "1", "para_id": trained[0], "question_type": "INPARA_EFFECT", "path_len": 2}
    (tmp_path / "data/wiqa/test.jsonl").write_text(json.dumps(record | {"metadata": about}))
    topics = f"para_id\tprompt\ttopic\tpartition\npropara_{trained[1]}\t?\tx\tdev\n"
    (tmp_path / "data/wiqa/topics.tsv").write_text(topics)
    [*write_questions(tmp_path, [str(own)], 0)]
    assert trained[0] in paragraphs(tmp_path, "test")
    assert trained[1] in paragraphs(tmp_path, "dev")


def test_graphs_without_effect_are_left_out_and_bad_graphs_leave_what_was_made_before(tmp_path, own, capsys):
    records = [record for _, record in read_jsonl(own)]
    write_jsonl(own, [records[0] | {"Y_affects_outcome": "no_effect"}, *records[1:]])
    assert "made-graphs.jsonl: 9 graphs" in [*write_questions(tmp_path, [str(own)], 0)][-1]
    assert "1 graph left out" in capsys.readouterr().err
    before = {path: path.read_bytes() for path in (tmp_path / "data/wiqa").iterdir()}
    with pytest.raises(IfqaError, match=r"graph_id 'g0' is in two of the files"):
        [*write_questions(tmp_path, [str(own), str(own)], 0)]
    own.write_text(own.read_text() + "{}")
    with pytest.raises(IfqaError, match=r"own.jsonl:11: key"):
        [*write_questions(tmp_path, ["sample-wiqa", str(own)], 0)]
    write_jsonl(own, [record | {"Y_affects_outcome": "no_effect"} for record in records])
    with pytest.raises(IfqaError, match="no graph leads to its outcome"):
        [*write_questions(tmp_path, [str(own)], 0)]
    assert {path: path.read_bytes() for path in (tmp_path / "data/wiqa").iterdir()} == before
