"""WIQA's questions from files in the released layout and from the bundled graphs.

The published values of its tables.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest

from ifqa.companions.wiqa.benchmark import KINDS, SPLITS, TOPICS
from ifqa.companions.wiqa.counts import PUBLISHED
from ifqa.companions.wiqa.graphs import read_graphs
from ifqa.companions.wiqa.question_generation import FOLDER, effect_questions, no_effect_questions
from ifqa.companions.wiqa.release import read_wiqa_questions
from ifqa.config.experiment import load_experiment
from ifqa.errors import IfqaError
from ifqa.plugins import open_benchmark
from ifqa.records import Prediction
from ifqa.scoring.aggregation import aggregate_rows
from ifqa.scoring.per_question import score_question
from ifqa.scoring.scheme import load_scheme
from ifqa.storage.files import read_jsonl, write_jsonl
from ifqa.storage.resources import BUNDLED

SAMPLE = open_benchmark("sample-wiqa")
GRAPH = {
    "graph_id": "7",
    "para_id": "3",
    "prompt": "",
    "paragraph": "Trees make seeds. Wind carries them.",
    "X": "more seeds are made",
    "Y": "more seeds are carried off",
    "W": ["the seeds stay"],
    "U": ["the wind stops"],
    "Z": ["a good summer"],
    "V": [],
    "para_outcome_accelerate": "MORE new trees",
    "para_outcome_decelerate": "LESS new trees",
    "Y_affects_outcome": "more",
}


def line(**changes):
    """A line of the release, with changed metadata."""
    question = {
        "stem": "suppose the wind stops happens, how will it affect MORE new trees.",
        "answer_label": "less",
        "para_steps": ["Trees make seeds", "Wind carries them", ""],
        "answer_label_as_choice": "B",
        "choices": [
            {"label": "A", "text": "more"},
            {"label": "B", "text": "less"},
            {"label": "C", "text": "no effect"},
        ],
    }
    metadata = {
        "ques_id": "1",
        "graph_id": "7",
        "para_id": "3",
        "question_type": "INPARA_EFFECT",
        "path_len": 3,
    }
    return {"question": question, "metadata": metadata | changes}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "wiqa").mkdir(parents=True)
    return tmp_path / "data" / "wiqa"


def wiqa(folder):
    return open_benchmark("wiqa", folder.parents[1])


@pytest.fixture
def first(folder):
    write_jsonl(folder / "test.jsonl", [line()])
    (question,) = wiqa(folder).questions("test")
    return question


def test_a_question_has_its_id(first):
    assert first.id == "wiqa/test/1"
    assert first.group == "3"


def test_a_question_has_its_choices(first):
    assert first.answers == ("less",)
    assert first.choices == ("more", "less", "no effect")


def test_a_question_has_its_paragraph(first):
    assert first.context == "Trees make seeds Wind carries them" == first.gold_passages[0]


def test_a_question_has_its_labels(first):
    assert dict(first.labels) == {
        "type": "in_para",
        "hops": "2",
        "topic": "",
        "graph": "7",
        "source": "",
        "target": "",
    }


@pytest.fixture
def known(folder):
    """A folder whose topics and graphs are known; its question has an explanation."""
    write_jsonl(folder / "test.jsonl", [line() | {"explanation": {"i": 0, "di": "less"}}])
    write_jsonl(folder / "graphs.jsonl", [GRAPH])
    (folder / "topics.tsv").write_text(
        "para_id\tprompt\ttopic\tpartition\npropara_3\tHow?\ttrees\ttest\n"
    )
    return folder


def test_what_is_known_of_a_question_is_a_label(known):
    (question,) = wiqa(known).questions("test")
    assert [question.label(name) for name in ("topic", "source", "target")] == ["trees", "U", "A"]


def test_known_topics_are_subsets(known):
    assert "trees" in [subset.name for subset in wiqa(known).subsets]


def test_the_usual_topics_are_subsets_where_none_is_known(known):
    assert [subset.name for subset in open_benchmark("wiqa", known).subsets][-12:] == list(TOPICS)


def test_splits_are_those_of_the_release(known):
    assert wiqa(known).splits == ["train", "dev", "test"]


@pytest.fixture
def made(known):
    (known / "graphs.jsonl").rename(known / "made-graphs.jsonl")
    write_jsonl(known / "made-train.jsonl", [line()])
    return wiqa(known)


def test_made_questions_are_a_split(made):
    assert made.splits == ["train", "dev", "test", "made-train"]


def test_made_questions_know_the_nodes_of_made_graphs(made):
    assert [question.label("source") for question in made.questions("made-train")] == ["U"]


def test_made_questions_have_no_family(made):
    assert made.family("made-train") == ""
    assert made.family("dev") == "wiqa"


def test_a_missing_split_is_refused(folder):
    with pytest.raises(IfqaError, match=r"test\.jsonl is missing; run: ifqa data wiqa"):
        wiqa(folder).questions("test")


def test_an_unknown_split_is_refused(folder):
    with pytest.raises(IfqaError, match=r"split of wiqa 'tset'.*test"):
        wiqa(folder).questions("tset")


def test_an_invalid_id_is_refused(folder):
    write_jsonl(folder / "test.jsonl", [line(ques_id="a b")])
    with pytest.raises(IfqaError, match=r"test.jsonl: ques_id 'a b' holds white space"):
        wiqa(folder).questions("test")


def test_the_bundled_questions_know_their_topics():
    questions = [question for split in SPLITS for question in SAMPLE.questions(split)]
    assert len({question.label("topic") for question in questions}) == 12


def test_the_bundled_questions_know_their_nodes():
    questions = [question for split in SPLITS for question in SAMPLE.questions(split)]
    for question in questions:
        source = question.label("source")
        target = question.label("target")
        assert target
        assert bool(source) == (question.label("type") != "no_effect")
        assert not source or question.id.endswith(f"{source}-{target}#0")


def test_the_bundled_questions_have_a_family():
    assert SAMPLE.family("test") == "sample-wiqa"


def test_the_bundled_questions_name_their_file():
    assert SAMPLE.files("test") == [BUNDLED / "wiqa" / "test.jsonl"]


def test_an_answer_that_is_not_a_choice_is_wrong():
    questions = SAMPLE.questions("dev")
    scheme = load_scheme("sample-wiqa")
    answers = ["it grows", "", *(question.answers[0] for question in questions[2:])]
    predictions = [
        Prediction(question.id, answer) for question, answer in zip(questions, answers, strict=True)
    ]
    pairs = zip(questions, predictions, strict=True)
    rows = [
        score_question(question, scheme, prediction=prediction) for question, prediction in pairs
    ]
    scores = aggregate_rows(rows, questions, scheme, None, predictions).scores(0)
    assert scheme.headline(scores["measures"]) == "accuracy"
    assert scores["measures"]["accuracy"]["value"] == pytest.approx(100 * 60 / 62)
    assert scores["n_failed"] == 1
    assert scores["measures"]["transitivity"]["value"] < 100
    counts = {
        name: part["questions"]
        for kind in ("subsets", "groups")
        for name, part in scores[kind].items()
    }
    expected = {
        "in_para": 22,
        "out_of_para": 20,
        "no_effect": 20,
        "1_hop": 18,
        "2_hops": 16,
        "3_hops": 8,
    }
    assert counts.items() >= (expected | {"dune": 31, "muscle": 31}).items()


ROWS = ("majority", "polarity", "adaboost", "decomp-attn", "choice-no-paragraph", "choice")


def values(row):
    experiment = load_experiment(f"wiqa-{row}")
    assert (experiment.benchmark, experiment.split) == ("wiqa", "test")
    return {row.measure: row.value for row in experiment.expected}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_the_values_of_its_tables(row):
    published = values(row)
    parts = [*(f"{kind}.accuracy" for kind in KINDS), "accuracy"]
    parts += [f"{topic}.accuracy" for topic in TOPICS] if row.startswith("choice") else []
    assert list(published) == parts


@pytest.mark.parametrize("row", ROWS)
def test_the_total_of_a_row_is_the_mean_over_the_types_questions(row):
    published = values(row)
    counts = {kind: PUBLISHED[kind][2] for kind in KINDS}
    total = sum(published[f"{kind}.accuracy"] * count for kind, count in counts.items()) / sum(
        counts.values()
    )
    assert abs(published["accuracy"] - total) < 0.03  # values have two digits


def test_only_the_reader_of_the_paragraph_gets_it():
    assert [row for row in ROWS if load_experiment(f"wiqa-{row}").retriever] == ["choice"]
    assert values("human") == {"accuracy": 96.33}


PROCESSES = {record["para_id"]: record for _, record in read_jsonl(FOLDER / "processes.jsonl")}
GRAPHS = read_graphs(FOLDER / "graphs.jsonl")


def test_each_of_twelve_graphs_has_its_process_of_five_to_eight_sentences():
    assert (
        len(PROCESSES)
        == len(GRAPHS)
        == len({process["topic"] for process in PROCESSES.values()})
        == 12
    )
    assert Counter(process["split"] for process in PROCESSES.values()) == {
        "train": 7,
        "test": 3,
        "dev": 2,
    }
    for graph in GRAPHS.values():
        steps = PROCESSES[graph.paragraph_id]["steps"]
        assert 5 <= len(steps) <= 8
        assert graph.paragraph == ". ".join(steps) + "."
        assert [len(phrasings) for phrasings in graph.nodes.values()] == [2, 2, 1, 2, 1, 2, 1, 1]


def make_complete_questions(graphs):
    """All questions of each graph, with one random phrasing per node, and half as many without
    effect.

    They include every chain with all its hops, which the measures of consistency need.
    """
    phrased = []
    for graph in graphs:
        draw = random.Random(f"0:{graph.id}")
        phrased.append(
            replace(
                graph, nodes={name: (draw.choice(texts),) for name, texts in graph.nodes.items()}
            )
        )
    questions = []
    for graph in phrased:
        with_effect = [*effect_questions(graph, first_hop=True)]
        foreign = [other for other in phrased if other.paragraph_id != graph.paragraph_id]
        draw = random.Random(f"0:{graph.id}:no effect")
        questions += with_effect + no_effect_questions(graph, foreign, len(with_effect) // 2, draw)
    return questions


@pytest.mark.parametrize("split", SPLITS)
def test_the_questions_are_those_of_the_graphs(split):
    questions = read_wiqa_questions(FOLDER / f"{split}.jsonl")
    graphs = [graph for graph in GRAPHS.values() if PROCESSES[graph.paragraph_id]["split"] == split]
    assert questions == make_complete_questions(graphs)
