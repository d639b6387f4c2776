"""Pairs of questions: an answer by the supposition or the passage, or the one that the twin
gets.
"""

import json
from pathlib import Path

import pytest
from prediction_files import write_predictions

from ifqa.benchmarks.obedience import OBEYED, REAL_WORLD, RIGHT, Obedience, recalls
from ifqa.config.experiment import parse_experiment
from ifqa.errors import IfqaError
from ifqa.pipeline import stages
from ifqa.pipeline.opening import refuse_other_families
from ifqa.pipeline.run import Run
from ifqa.records import Prediction
from ifqa.scoring.measures.exact_match import normalize
from ifqa.scoring.scheme import load_scheme
from ifqa.scoring.stored_scores import read_scores


def scores(questions, answers):
    """Obeyed, the world's and right, if the questions get these answers; None fails."""
    predictions = [
        Prediction(question.id, answer or "", error="" if answer is not None else "failed")
        for question, answer in zip(questions, answers, strict=True)
    ]
    return [measure.score(questions, predictions) for measure in (OBEYED, REAL_WORLD, RIGHT)]


def confiqa(folder, **changes):
    record = {
        "question": "Who wrote it?",
        "cf_context": "Bo wrote it.",
        "cf_answer": "Bo",
        "cf_alias": ["Bob"],
    }
    record |= {"orig_answer": "Ada", "orig_alias": ["Ada L."]} | changes
    path = folder / "data/confiqa/ConFiQA-QA.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([record]))
    return Obedience(folder)


def test_the_twin_of_a_question_has_no_if_clause_and_that_of_a_passage_question_no_passage(
    tmp_path,
):
    questions = confiqa(tmp_path).questions("sample-dev+confiqa-qa")
    assert {question.group for question in questions} == {"sample-dev", "confiqa-qa"}
    assert len({question.id for question in questions}) == len(questions) == 2 * len(questions[::2])
    for question, twin in zip(questions[::2], questions[1::2], strict=True):
        assert question.label("pair") == twin.label("pair") == question.id
        assert twin.id == f"{question.id}/twin"
        if question.group == "sample-dev":
            assert twin.text.rstrip("?").casefold() in question.text.casefold()
            assert len(twin.text) < len(question.text)
            assert twin.context == question.context != ""
        else:
            assert (twin.text, twin.context, question.context) == (
                question.text,
                "",
                "Bo wrote it.",
            )


def test_a_right_answer_obeys_unless_the_twin_gets_it_too(tmp_path):
    pair = confiqa(tmp_path).questions("confiqa-qa")
    assert scores(pair, ["Bob", "Ada"]) == [1, 0, 1]
    assert scores(pair, ["bo", "Bo"]) == [0, 0, 1]
    assert scores(pair, ["Cy", "the Cy"]) == [0, 1, 0]  # the same wrong answer
    # The world's answer, which the twin does not get
    assert scores(pair, ["Ada L.", "Cy"]) == [0, 1, 0]
    assert scores(pair, ["Cy", "Ada"]) == [0, 0, 0]
    assert scores(pair, ["", ""]) == [0, 0, 0]  # no answer is not the world's
    assert scores(pair, [None, "Ada"]) == [0, 0, 0]
    assert scores(pair, ["Bo", None]) == [1, 0, 1]
    assert scores(pair[::-1], ["Ada", "Bo"]) == [1, 0, 1]  # in any order


def test_an_abstention_is_not_right_if_nothing_is_left_of_the_gold_answer(tmp_path):
    pair = confiqa(tmp_path, cf_answer="A", cf_alias=[]).questions("confiqa-qa")
    predictions = [
        Prediction(pair[0].id, "", candidate="Rome"),
        Prediction(pair[1].id, "Paris"),
    ]
    assert [each.score(pair, predictions) for each in (OBEYED, REAL_WORLD, RIGHT)] == [0, 0, 0]


@pytest.mark.parametrize("answer", ["", " "])
def test_an_empty_answer_is_not_right_if_nothing_is_left_of_the_gold_answer(answer, tmp_path):
    pair = confiqa(tmp_path, cf_answer="A", cf_alias=[]).questions("confiqa-qa")
    assert scores(pair, [answer, "Paris"]) == [0, 0, 0]


def test_an_answer_of_which_nothing_is_left_obeys_unless_the_twin_gets_it_too(tmp_path):
    pair = confiqa(tmp_path, cf_answer="A", cf_alias=[]).questions("confiqa-qa")
    assert scores(pair, ["A", "Paris"]) == [1, 0, 1]
    assert scores(pair, ["A", "a"]) == [0, 0, 1]


def test_the_world_is_better_low_and_pairs_are_resampled_together():
    scheme = load_scheme("obedience", split="sample-dev")
    assert [(measure.name, measure.best, measure.unit) for measure in scheme.measures] == [
        ("obeyed", "high", "pair"),
        ("real_world", "low", "pair"),
        ("right", "high", "pair"),
        ("Pc", "high", "pair"),
        ("Po", "low", "pair"),
        ("MR", "low", "pair"),
    ]
    assert scheme.groups == "part"


def confiqa_scores(answers, split="confiqa-qa", others=()):
    """The scores of a reader that gives these answers to ConFiQA's questions, `others` first."""
    questions = [q for q in Obedience(Path()).questions(split) if not q.id.endswith("/twin")]
    given = dict(zip([q.id for q in questions], [*others, *answers], strict=True))
    name = f"mine-{len(answers)}-{len(others)}"
    stages.run(Run(write_predictions(name, given, "obedience", split)))
    return read_scores(Path("experiments", name, "score"))


ANSWERS = ["Bob, of course", "It was Ada", "Bo told Ada L.", "Cy", "bobsled"]


@pytest.fixture
def five_records(here):
    confiqa(here)
    path = here / "data/confiqa/ConFiQA-QA.json"
    path.write_text(json.dumps(json.loads(path.read_text()) * len(ANSWERS)))


@pytest.mark.usefixtures("five_records")
def test_the_measures_of_confiqa_are_those_of_its_authors():
    hits = {
        name: sum(max(normalize(text) in normalize(answer) for text in texts) for answer in ANSWERS)
        for name, texts in (("Pc", ["Bo", "Bob"]), ("Po", ["Ada", "Ada L."]))
    }
    scores = confiqa_scores(ANSWERS)["measures"]
    assert scores["Pc"]["value"] == 100 * hits["Pc"] / len(ANSWERS) == 60
    assert scores["Po"]["value"] == 100 * hits["Po"] / len(ANSWERS) == 40
    assert scores["MR"]["value"] == pytest.approx(100 * hits["Po"] / (hits["Po"] + hits["Pc"]))


@pytest.mark.usefixtures("five_records")
def test_the_measures_of_confiqa_leave_out_other_parts():
    count = len(Obedience().questions("sample-dev")) // 2
    alone = confiqa_scores(ANSWERS)["measures"]
    scores = confiqa_scores(ANSWERS, "sample-dev+confiqa-qa", ["Bo"] * count)
    assert {name: scores["measures"][name]["value"] for name in ("Pc", "Po", "MR")} == {
        name: alone[name]["value"] for name in ("Pc", "Po", "MR")
    }
    assert scores["measures"]["Pc"]["questions"] == 2 * len(ANSWERS)
    assert not {"Pc", "Po", "MR"} & scores["groups"]["sample-dev"]["measures"].keys()


@pytest.mark.usefixtures("five_records")
def test_answers_that_hold_neither_have_no_memorization_ratio():
    scores = confiqa_scores(["Cy"] * len(ANSWERS))["measures"]
    assert (scores["Pc"]["value"], scores["Po"]["value"]) == (0, 0)
    assert "MR" not in scores


def test_a_gold_answer_of_articles_alone_is_never_held():
    assert not recalls("an answer", ["The", "a."])


def test_a_reader_of_ifqa_is_of_its_family():
    assert Obedience().family("nq-swap+few-dev") == "ifqa/few"
    assert Obedience().family("sample-dev") == ""
    with pytest.raises(IfqaError, match="ifqa/few and ifqa/full share questions; name one of them"):
        Obedience().family("few-dev+full-dev")


def test_weights_of_another_family_are_refused(tmp_path):
    tables = {
        "benchmark": "obedience",
        "split": "full-dev",
        "reader": {"name": "llm", "prompt": "closed-book", "demos": "ifqa/few-train", "shots": 1},
        "llm": {"model": "m"},
    }
    experiment = parse_experiment("mine", tables, "mine.toml", tmp_path)
    complaint = "shows demonstrations of ifqa/few and may not be tested on ifqa/full"
    with pytest.raises(IfqaError, match=complaint):
        refuse_other_families(Run(experiment))


@pytest.mark.parametrize(
    ("split", "changes", "message"),
    [
        ("sampel-dev", {}, "did you mean 'sample-dev'"),
        ("nq-swap", {}, "nq-swap-held.jsonl is missing"),
        ("full-dev", {}, "run: ifqa data ifqa"),
        ("confiqa-qa", {"cf_answer": None}, "ConFiQA-QA.json: record 0: 'cf_answer' must be"),
        ("confiqa-qa", {"orig_alias": "Ada"}, "ConFiQA-QA.json: record 0"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, split, changes, message):
    with pytest.raises(IfqaError, match=message):
        confiqa(tmp_path, **changes).questions(split)
