"""WIQA's questions from files in the released layout, from a user's own and from the bundled graphs."""

import json
from collections import Counter
from pathlib import Path

import pytest

from ifqa.benchmarks.wiqa.benchmark import HOPS, KINDS, SPLITS, SUBSETS, TOPICS
from ifqa.errors import IfqaError
from ifqa.plugins import open_benchmark
from ifqa.records import Prediction
from ifqa.scoring.aggregation import aggregate
from ifqa.scoring.per_question import row
from ifqa.scoring.scheme import declared
from ifqa.storage.resources import BUNDLED

SAMPLE = open_benchmark("sample-wiqa")
RELEASED = Path(__file__).parents[3].parent / "shared" / "data" / "wiqa" / "test-8-paragraphs.jsonl"
OFFERED = [{"label": "A", "text": "more"}, {"label": "B", "text": "less"}, {"label": "C", "text": "no effect"}]
GRAPH = {
    "graph_id": "7", "para_id": "3", "prompt": "", "paragraph": "Trees make seeds. Wind carries them.", "X": "more seeds are made",
    "Y": "more seeds are carried off", "W": ["the seeds stay"], "U": ["the wind stops"], "Z": ["a good summer"], "V": [],
    "para_outcome_accelerate": "MORE new trees", "para_outcome_decelerate": "LESS new trees", "Y_affects_outcome": "more",
}  # fmt: skip


def line(**changes):
    """A line of the release, with some of its values replaced."""
    question = {
        "stem": "suppose the wind stops happens, how will it affect MORE new trees.",
        "para_steps": ["Trees make seeds", "Wind carries them", ""],
        "answer_label": "less",
        "answer_label_as_choice": "B",
        "choices": OFFERED,
    }
    about = {"ques_id": "1", "graph_id": "7", "para_id": "3", "question_type": "INPARA_EFFECT", "path_len": 3}
    return {
        "question": {key: changes.get(key, value) for key, value in question.items()},
        "metadata": {key: changes.get(key, value) for key, value in about.items()},
    }


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "wiqa").mkdir(parents=True)
    return tmp_path / "data" / "wiqa"


def write(path, *lines):
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))


def opened(folder):
    return open_benchmark("wiqa", folder.parents[1])


def test_a_question_has_its_choices_paragraph_and_labels(folder):
    write(folder / "test.jsonl", line())
    (one,) = opened(folder).questions("test")
    assert one.id == "wiqa/test/1"
    assert (one.answers, one.choices) == (("less",), ("more", "less", "no effect"))
    assert one.context == "Trees make seeds Wind carries them" == one.gold_passages[0]
    assert one.group == "3"
    assert dict(one.labels) == {
        "type": "in_para", "hops": "2", "topic": "", "graph": "7", "source": "", "target": "",
        "phenomena": "qualitative, lexical match",
    }  # fmt: skip


def test_topics_and_nodes_are_told_where_their_files_are_there(folder):
    write(folder / "test.jsonl", line())
    write(folder / "graphs.jsonl", GRAPH)
    (folder / "topics.tsv").write_text("para_id\tprompt\ttopic\tpartition\npropara_3\tHow?\ttrees\ttest\n")
    benchmark = opened(folder)
    (one,) = benchmark.questions("test")
    assert [one.label(name) for name in ("topic", "source", "target")] == ["trees", "U", "A"]
    assert "trees" in [subset.name for subset in benchmark.subsets]
    assert benchmark.splits == ["train", "dev", "test"]


def test_made_questions_have_graphs_of_their_own(folder):
    write(folder / "made-train.jsonl", line())
    write(folder / "made-graphs.jsonl", GRAPH)
    benchmark = opened(folder)
    assert benchmark.splits == ["train", "dev", "test", "made-train"]
    (one,) = benchmark.questions("made-train")
    assert one.label("source") == "U"
    assert benchmark.family("made-train") == ""
    assert benchmark.family("dev") == "wiqa"


def test_an_explanation_is_read_as_text(folder):
    why = {"i": 0, "di": "less", "j": 1, "dj": "less", "de": "less"}
    write(folder / "train.jsonl", line() | {"explanation": why})
    (one,) = opened(folder).questions("train")
    assert one.label("explanation") == "less: Trees make seeds less: Wind carries them less: MORE new trees"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"answer_label_as_choice": "A"}, r"test.jsonl:1: 'answer_label_as_choice' is 'A'; less is choice B"),
        ({"answer_label": "unsure"}, r"test.jsonl:1: .*unknown value 'unsure'"),
        ({"choices": OFFERED[:2]}, r"test.jsonl:1: 'choices' is not A more, B less, C no effect"),
        ({"path_len": 1}, r"test.jsonl:1: .*path_len 1; wanted more or less, and 2 nodes"),
        ({"question_type": "OUTOFPARA_DISTRACTOR"}, r"test.jsonl:1: .*wanted no_effect and 0"),
        ({"stem": "what if the wind stops?"}, r"test.jsonl:1: .*is not: suppose CHANGE happens"),
        ({"ques_id": "a b"}, r"test.jsonl: the ques_id 'a b' has white space"),
    ],
)
def test_a_line_that_contradicts_itself_is_refused(folder, changes, said):
    write(folder / "test.jsonl", line(**changes))
    with pytest.raises(IfqaError, match=said) as refused:
        opened(folder).questions("test")
    assert "\n" not in str(refused.value)


def test_two_questions_with_one_id_are_refused(folder):
    write(folder / "test.jsonl", line(), line())
    with pytest.raises(IfqaError, match=r"test.jsonl:2: the id '1' is there twice"):
        opened(folder).questions("test")


def test_a_split_that_is_not_there_says_how_to_get_it(folder):
    with pytest.raises(IfqaError, match=r"test\.jsonl is missing; run: ifqa data wiqa"):
        opened(folder).questions("test")
    with pytest.raises(IfqaError, match=r"split of wiqa 'tset'.*test"):
        opened(folder).questions("tset")


def test_the_bundled_questions_know_their_topics_and_nodes():
    several = [one for split in SPLITS for one in SAMPLE.questions(split)]
    assert len({one.label("topic") for one in several}) == 12
    for one in several:
        assert one.label("target")
        assert bool(one.label("source")) == (one.label("type") != "no_effect")
        if one.label("source"):
            assert one.id.endswith(f"{one.label('source')}-{one.label('target')}#0")
    assert SAMPLE.family("test") == "sample-wiqa"


def test_an_answer_that_is_not_offered_is_wrong():
    questions = SAMPLE.questions("dev")
    by = declared("sample-wiqa")
    given = ["it grows", "", *(one.answers[0] for one in questions[2:])]
    predictions = [Prediction(one.id, answer) for one, answer in zip(questions, given, strict=True)]
    rows = [row(one, by, prediction=answer) for one, answer in zip(questions, predictions, strict=True)]
    scores = aggregate(rows, questions, by, None, predictions).scores(0)
    assert by.headline(scores["measures"]) == "accuracy"
    assert scores["measures"]["accuracy"]["value"] == round(100 * 60 / 62, 2)
    assert scores["n_failed"] == 1
    assert scores["measures"]["transitivity"]["value"] < 100
    counts = {name: part["questions"] for name, part in scores["subsets"].items()}
    assert [counts[name] for name in ("in_para", "out_of_para", "no_effect")] == [22, 20, 20]
    assert [counts[name] for name in ("1_hop", "2_hops", "3_hops")] == [18, 16, 8]
    assert {name: part["questions"] for name, part in scores["groups"].items()} == {"dune": 31, "muscle": 31}


def test_every_type_and_number_of_hops_is_among_the_bundled_questions():
    for split in SPLITS:
        questions = SAMPLE.questions(split)
        assert all(
            any(one.holds(question) for question in questions) for one in SUBSETS if one.name in {**KINDS, **HOPS}
        )
    assert {one.group for one in questions} == {"avalanche", "dew", "spider"}


def test_the_topics_of_table_3_are_subsets_of_the_released_questions(tmp_path):
    named = [one.name for one in open_benchmark("wiqa", tmp_path).subsets]
    assert named[-12:] == list(TOPICS)


@pytest.mark.skipif(not RELEASED.exists(), reason="the released questions are not here")
def test_released_questions_are_read_as_a_users_split(folder):
    (folder / "part.jsonl").write_bytes(RELEASED.read_bytes())
    questions = opened(folder).questions("part")
    counts = Counter((one.label("type"), one.label("hops")) for one in questions)
    assert counts == {
        ("no_effect", ""): 251,
        ("in_para", "1"): 46,
        ("in_para", "2"): 55,
        ("out_of_para", "2"): 119,
        ("out_of_para", "3"): 66,
    }
    assert len({one.group for one in questions}) == 8


def test_the_sample_is_the_package_s_own():
    assert SAMPLE.files("test") == [BUNDLED / "wiqa" / "test.jsonl"]
