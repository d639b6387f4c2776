"""Questions from graphs against brute force over the raw records; balance, splits and files."""

import json
import random
from collections import Counter
from itertools import product

import pytest

from ifqa.companions.wiqa.graphs import parse_graph, read_graphs
from ifqa.companions.wiqa.question_generation import (
    FOLDER,
    assign_splits,
    balance_labels,
    make_balanced_questions,
    write_questions,
)
from ifqa.companions.wiqa.question_generation import effect_questions as with_effect
from ifqa.companions.wiqa.question_generation import no_effect_questions as without_effect
from ifqa.companions.wiqa.release import read_wiqa_questions
from ifqa.errors import IfqaError
from ifqa.storage.files import read_jsonl, write_jsonl

RECORDS = [record for _, record in read_jsonl(FOLDER / "graphs.jsonl")]
GRAPHS = [parse_graph(record, "x") for record in RECORDS]
BREAD = GRAPHS[0]


def by_hand(record):
    """Stem -> (answer, nodes of the path), by the paths of the paper's Figure 2, without a
    graph.
    """
    good = record["para_outcome_accelerate"]
    bad = record["para_outcome_decelerate"]
    if record["Y_affects_outcome"] == "less":
        good, bad = bad, good
    texts = {
        name: [phrasings] if isinstance(phrasings, str) else phrasings
        for name, phrasings in record.items()
    }
    texts |= {"+": [good], "-": [bad]}
    more = {"ZY": 3, "VW": 3, "Z+": 4, "V-": 4, "XY": 2, "X+": 3, "U-": 3, "Y+": 2, "W-": 2}
    less = {
        "VY": 3,
        "ZW": 3,
        "V+": 4,
        "Z-": 4,
        "XW": 2,
        "X-": 3,
        "UY": 2,
        "U+": 3,
        "Y-": 2,
        "W+": 2,
    }
    return {
        f"suppose {change} happens, how will it affect {effect}.": (answer, nodes)
        for answer, pairs in (("more", more), ("less", less))
        for ends, nodes in pairs.items()
        for change, effect in product(texts[ends[0]], texts[ends[1]])
    }


def test_questions_with_an_effect_are_those_by_hand():
    for record, graph in zip(RECORDS, GRAPHS, strict=True):
        questions = [*with_effect(graph)]
        labels = {
            question.question.stem: (question.question.answer_label, question.metadata.path_len)
            for question in questions
        }
        assert labels == by_hand(record)
        assert (
            len(questions)
            == len({question.metadata.ques_id for question in questions})
            == len(labels)
            == 37
        )
        outside = {f"suppose {text} happens" for name in "ZV" for text in record[name]}
        for question in questions:
            assert (question.kind == "out_of_para") == (
                question.question.stem.partition(",")[0] in outside
            )


def test_questions_on_the_first_hop_from_outside_are_optional_and_a_graph_without_effect_has_none():
    labels = {
        effect.question.stem: effect.question.answer_label
        for effect in with_effect(BREAD, first_hop=True)
    }
    new = labels.keys() - {effect.question.stem for effect in with_effect(BREAD)}
    assert {stem.partition("affect ")[2] for stem in new} == {"the yeast gives off more gas."}
    assert Counter(labels[stem] for stem in new) == {"more": 2, "less": 2}
    assert [*with_effect(parse_graph(RECORDS[0] | {"Y_affects_outcome": "no_effect"}, "x"))] == []
    (question, *_) = with_effect(parse_graph(RECORDS[0] | {"Y": "the dough swells."}, "x"))
    assert question.question.stem.endswith("how will it affect the dough swells.")


def test_a_change_without_effect_comes_from_another_paragraph():
    questions = without_effect(BREAD, GRAPHS, 200, random.Random(0))
    foreign = {text for graph in GRAPHS[1:] for text in graph.changes}
    effects = {text for name in "XYWAD" for text in BREAD.nodes[name]}
    for question in questions:
        change, _, effect = question.question.stem.removeprefix("suppose ").partition(
            " happens, how will it affect "
        )
        assert (change in foreign, effect.removesuffix(".") in effects) == (True, True)
        labels = (question.question.answer_label, question.kind, question.metadata.path_len)
        assert labels == ("no_effect", "no_effect", 0)
    assert len({question.question.stem for question in questions}) == 200
    few = without_effect(BREAD, GRAPHS[:2], 10_000, random.Random(0))
    assert len(few) == 10 * 6  # compost has 10 changes, bread has 6 phrasings of effects
    same = parse_graph(RECORDS[0] | {"para_id": "twin", "graph_id": "twin"}, "x")
    assert without_effect(BREAD, [BREAD, same], 10, random.Random(0)) == []


def test_balance_cuts_the_more_frequent_answers():
    questions = [effect for graph in GRAPHS for effect in with_effect(graph)]
    questions += without_effect(BREAD, GRAPHS, 400, random.Random(0))
    before = Counter((question.kind, question.question.answer_label) for question in questions)
    assert before["in_para", "less"] > before["in_para", "more"]
    after = balance_labels(questions, 1)
    counts = Counter((question.kind, question.question.answer_label) for question in after)
    assert counts["in_para", "less"] == counts["in_para", "more"] == before["in_para", "more"]
    assert counts["out_of_para", "less"] == counts["out_of_para", "more"]
    assert counts["no_effect", "no_effect"] == sum(counts.values()) // 3
    assert after == balance_labels(questions, 1) != balance_labels(questions, 2)
    assert [question for question in questions if question in after] == after
    drawn = make_balanced_questions(GRAPHS, 3)
    assert drawn == make_balanced_questions(GRAPHS, 3) != make_balanced_questions(GRAPHS, 4)
    assert len(set(Counter(question.question.answer_label for question in drawn).values())) == 1


def test_paragraphs_keep_their_known_split_and_others_are_divided():
    names = [str(n) for n in range(100)]
    parts = assign_splits(iter(names), 0, {"5": "test", "x": "dev"})
    assert parts["5"] == "test"
    assert Counter(parts.values()) == {"train": 79, "dev": 10, "test": 11}
    assert parts == assign_splits(names, 0, {"5": "test"}) != assign_splits(names, 1, {"5": "test"})


@pytest.fixture
def graphs_file(tmp_path):
    """Ten graphs of paragraphs without a known split."""
    path = tmp_path / "own.jsonl"
    write_jsonl(
        path,
        [
            record | {"graph_id": f"g{n}", "para_id": f"p{n}"}
            for n, record in enumerate(RECORDS[:10])
        ],
    )
    return path


def paragraphs(folder, split):
    return {
        question.metadata.para_id
        for question in read_wiqa_questions(folder / f"data/wiqa/made-{split}.jsonl")
    }


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
    metadata = {
        "ques_id": "1",
        "graph_id": "1",
        "para_id": trained[0],
        "question_type": "INPARA_EFFECT",
        "path_len": 2,
    }
    (tmp_path / "data/wiqa/test.jsonl").write_text(json.dumps(record | {"metadata": metadata}))
    topics = f"para_id\tprompt\ttopic\tpartition\npropara_{trained[1]}\t?\tx\tdev\n"
    (tmp_path / "data/wiqa/topics.tsv").write_text(topics)
    [*write_questions(tmp_path, [str(graphs_file)], 0)]
    assert trained[0] in paragraphs(tmp_path, "test")
    assert trained[1] in paragraphs(tmp_path, "dev")


def test_graphs_without_effect_are_left_out_and_invalid_graphs_keep_the_earlier_files(
    tmp_path, graphs_file, capsys
):
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
