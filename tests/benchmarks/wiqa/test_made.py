"""Questions from files of graphs: test paragraphs stay out of training, and invalid input writes nothing."""

import json

import pytest

from ifqa.benchmarks.wiqa.graphs import read_graphs
from ifqa.benchmarks.wiqa.question_generation import FOLDER, write_questions
from ifqa.benchmarks.wiqa.release import read_wiqa_questions
from ifqa.errors import IfqaError
from ifqa.storage.files import read_jsonl, write_jsonl

RECORDS = [record for _, record in read_jsonl(FOLDER / "graphs.jsonl")]


@pytest.fixture
def graphs_file(tmp_path):
    """Ten graphs of paragraphs without a known split."""
    path = tmp_path / "own.jsonl"
    write_jsonl(path, [record | {"graph_id": f"g{n}", "para_id": f"p{n}"} for n, record in enumerate(RECORDS[:10])])
    return path


def paragraphs(folder, split):
    return {question.metadata.para_id for question in read_wiqa_questions(folder / f"data/wiqa/made-{split}.jsonl")}


def test_the_sample_keeps_its_splits(tmp_path):
    lines = [*write_questions(tmp_path, ["sample-wiqa"], 0)]
    assert len(lines) == 4
    assert paragraphs(tmp_path, "dev") == {"dune", "muscle"}
    assert len(read_graphs(tmp_path / "data/wiqa/made-graphs.jsonl")) == 12
    questions = read_wiqa_questions(tmp_path / "data/wiqa/made-train.jsonl")
    assert f"{len(questions):,} questions from 7 graphs, 7 paragraphs" in lines[0]


def test_a_paragraph_of_the_released_test_split_is_not_trained_on(tmp_path, graphs_file):
    [*write_questions(tmp_path, [str(graphs_file)], 0)]
    trained = sorted(paragraphs(tmp_path, "train"))
    assert len(trained) == 8
    record = read_wiqa_questions(FOLDER / "test.jsonl")[0].record()
    metadata = {"ques_id": "1", "graph_id": "1", "para_id": trained[0], "question_type": "INPARA_EFFECT", "path_len": 2}
    (tmp_path / "data/wiqa/test.jsonl").write_text(json.dumps(record | {"metadata": metadata}))
    topics = f"para_id\tprompt\ttopic\tpartition\npropara_{trained[1]}\t?\tx\tdev\n"
    (tmp_path / "data/wiqa/topics.tsv").write_text(topics)
    [*write_questions(tmp_path, [str(graphs_file)], 0)]
    assert trained[0] in paragraphs(tmp_path, "test")
    assert trained[1] in paragraphs(tmp_path, "dev")


def test_graphs_without_effect_are_left_out_and_invalid_graphs_keep_the_earlier_files(tmp_path, graphs_file, capsys):
    records = [record for _, record in read_jsonl(graphs_file)]
    without_effect = [record | {"Y_affects_outcome": "no_effect"} for record in records]
    write_jsonl(graphs_file, [without_effect[0], *records[1:]])
    assert "made-graphs.jsonl: 9 graphs" in [*write_questions(tmp_path, [str(graphs_file)], 0)][-1]
    assert "1 graph left out" in capsys.readouterr().err
    before = {path: path.read_bytes() for path in (tmp_path / "data/wiqa").iterdir()}
    with pytest.raises(IfqaError, match=r"graph_id 'g0' is in two of the files"):
        [*write_questions(tmp_path, [str(graphs_file)] * 2, 0)]
    graphs_file.write_text(graphs_file.read_text() + "{}")
    with pytest.raises(IfqaError, match=r"own.jsonl:11: key"):
        [*write_questions(tmp_path, ["sample-wiqa", str(graphs_file)], 0)]
    write_jsonl(graphs_file, without_effect)
    with pytest.raises(IfqaError, match="no graph leads to its outcome"):
        [*write_questions(tmp_path, [str(graphs_file)], 0)]
    assert {path: path.read_bytes() for path in (tmp_path / "data/wiqa").iterdir()} == before
