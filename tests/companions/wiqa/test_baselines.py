"""Readers of multiple choice without a network: majority, polarity and adaboost."""

import json
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from refusals import refused
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from tiny_choice import worded

from ifqa.companions.wiqa import trainers
from ifqa.companions.wiqa.baselines import (
    AdaBoost,
    Majority,
    Polarity,
    count_words,
    decision_function,
)
from ifqa.companions.wiqa.direction_lexicon import direction, opposite, polarity
from ifqa.plugins import load_plugin
from ifqa.protocols import TrainingData
from ifqa.records import Passage, Question
from ifqa.training.trainer import configure_trainer

CHOICES = ("more", "less", "no effect")
CHANGES = "more rain falls;less rain falls;the sun shines;a dog barks;the wind stops;more clouds come".split(
    ";"
)
EFFECTS = "more mud;LESS mud;bigger puddles;dry paths".split(";")


def question_of(change, effect, answer="", number=0, choices=CHOICES):
    return Question(
        f"w/{number}",
        worded(change, effect),
        (answer,) * bool(answer),
        choices=choices,
        group="rain",
    )


def draw_questions(count, seed=0):
    """Questions whose answers follow from words of the change and the effect, except for some
    noise.
    """
    draw = random.Random(seed)
    questions = []
    for number in range(count):
        change = draw.choice(CHANGES)
        effect = draw.choice(EFFECTS)
        answer = "more" if ("more" in change) == ("LESS" not in effect) else "less"
        if "dog" in change:
            answer = "no effect"
        questions.append(
            question_of(
                change, effect, answer if draw.random() < 0.9 else draw.choice(CHOICES), number
            )
        )
    return questions


def test_majority_gives_the_most_frequent_training_answer(monkeypatch):
    training = [
        question_of("more rain falls", "more mud", answer) for answer in ("less", "more", "less")
    ]
    rainy = {"questions": training, "family": "rainy", "files": [Path(__file__)]}
    benchmark = SimpleNamespace(
        **{name: lambda split, part=part: part for name, part in rainy.items()}
    )
    monkeypatch.setattr(
        "ifqa.companions.wiqa.baselines.open_benchmark", lambda name, root: benchmark
    )
    reader = Majority(Majority.Settings(split="rainy/train"))
    questions = [
        question_of("a", "b", choices=choices) for choices in (CHOICES, ("LESS", "same"), ("x",))
    ]
    predictions = reader.answer(questions, [[]] * 3)
    assert [prediction.answer for prediction in predictions] == ["less", "LESS", ""]
    assert predictions[2].error == "the answer 'less' is not offered"
    assert (
        reader.family,
        Majority.training_family(Majority.Settings(split="rainy/train"), Path()),
        len(reader.trained_on),
    ) == (
        "rainy",
        "rainy",
        1,
    )
    assert Majority.fingerprint(Majority.Settings(split="rainy/train"), Path()) != ""
    assert (
        Majority(Majority.Settings(answer="more")).answer(questions[:1], [[]])[0].answer == "more"
    )
    for settings in ({}, {"split": "rainy/train", "answer": "more"}):
        with refused("wanted either split"):
            Majority(Majority.Settings(**settings))


POLARITIES = {
    "more rain falls": 1,
    "LESS mud": -1,
    "a dog barks": 0,
    "the pile does not grow": -1,
    "no rain falls": -1,
    "it never rains": -1,
    "nothing decreases": 1,
    "the path isn't dry": -1,
    "bigger and smaller stones": 0,
}


def test_a_description_has_a_polarity():
    assert {text: polarity(text) for text in POLARITIES} == POLARITIES


def test_a_choice_has_a_direction():
    assert [direction(choice) for choice in CHOICES] == [1, -1, 0]


def test_an_opposite_has_the_other_polarity():
    assert opposite("MORE warm air grows") == "LESS warm air shrinks"
    assert [opposite(text) for text in ("More mud", "a dog barks")] == ["Less mud", ""]


@pytest.mark.parametrize(
    ("change", "effect", "answer"),
    [
        ("more rain falls", "more mud", "more"),
        ("less rain falls", "LESS mud", "more"),
        ("less rain falls", "more mud", "less"),
        ("more rain falls", "smaller puddles", "less"),
    ],
)
def test_polarities_decide_the_answer(change, effect, answer):
    assert Polarity().answer([question_of(change, effect)], [[]])[0].answer == answer
    reordered = question_of(change, effect, choices=("less of it", "no effect", "more of it"))
    assert Polarity().answer([reordered], [[]])[0].answer == f"{answer} of it"


def test_an_undecided_polarity_is_drawn_by_the_questions_id():
    questions = [question_of("a dog barks", "more mud", number=n) for n in range(400)]
    answers = [prediction.answer for prediction in Polarity().answer(questions, [[]] * 400)]
    assert (
        answers
        == [prediction.answer for prediction in Polarity().answer(questions[::-1], [[]] * 400)][
            ::-1
        ]
    )
    assert {*answers} == {"more", "less"}
    assert 160 < answers.count("more") < 240
    [failed] = Polarity().answer([question_of("more rain", "mud", choices=("red", "less"))], [[]])
    assert (failed.answer, failed.error) == ("", "the choices do not offer both more and less")


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_trees_decide_as_scikit_learn_does(depth, classes):
    questions = [
        question for question in draw_questions(300) if question.answers[0] in CHOICES[:classes]
    ]
    words = ["change:more", "change:dog", "change:rain", "effect:less", "effect:mud", "effect:more"]
    counts = count_words([question.text for question in questions], words)
    boosted = AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=depth), n_estimators=20, random_state=0
    )
    boosted.fit(counts, [CHOICES.index(question.answers[0]) for question in questions])
    decisions = decision_function(trainers.export_trees(boosted), counts, classes)
    columns = decisions if classes > 2 else decisions[:, 1] - decisions[:, 0]
    np.testing.assert_allclose(columns, boosted.decision_function(counts), atol=1e-12)
    exact = np.exp(decisions / (classes - 1))
    np.testing.assert_allclose(
        exact / exact.sum(1, keepdims=True), boosted.predict_proba(counts), atol=1e-12
    )
    assert decisions.std() > 0.1


def train_adaboost(folder, depth=2):
    training = TrainingData(draw_questions(300), [[]] * 300, "rain", {"train.jsonl": "abc"})
    configure_trainer(trainers.AdaBoost, depth=depth).train(training, folder)
    return folder


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    return train_adaboost(tmp_path_factory.mktemp("adaboost"))


def test_adaboost_learns_the_answers(boosted):
    reader = AdaBoost(AdaBoost.Settings(checkpoint=str(boosted)))
    questions = draw_questions(60, seed=1)
    predictions = reader.answer(questions, [[]] * 60)
    assert (
        sum(
            guess.answer in question.answers
            for guess, question in zip(predictions, questions, strict=True)
        )
        > 45
    )
    assert all(prediction.score is not None and prediction.score < 0 for prediction in predictions)


def test_a_model_names_its_training(boosted):
    reader = AdaBoost(AdaBoost.Settings(checkpoint=str(boosted)))
    assert reader.family == "rain"
    assert reader.trained_on == {"abc"}
    assert AdaBoost.training_family(AdaBoost.Settings(checkpoint=str(boosted)), Path()) == "rain"


def test_the_words_of_change_are_apart_from_those_of_effect(boosted):
    assert set(json.loads((boosted / "model.json").read_text())["words"]) >= {
        "change:more",
        "effect:more",
    }


def test_a_model_has_a_fingerprint(boosted):
    assert len(AdaBoost.fingerprint(AdaBoost.Settings(checkpoint=str(boosted)), Path())) == 64


def test_adaboost_answers_with_the_words_of_the_choices(boosted):
    reader = AdaBoost(AdaBoost.Settings(checkpoint=str(boosted)))
    other_choices = [
        question_of("more rain", "more mud", choices=choices)
        for choices in (("up", "MORE"), ("x", "y"))
    ]
    first, second = reader.answer(other_choices, [[], []])
    assert first.answer == "MORE"
    assert first.score == 0.0
    assert second.failed


def test_another_reader_refuses_the_model(boosted):
    with refused("holds weights of reader 'adaboost'; name a folder that `ifqa train choice` made"):
        choice = load_plugin("reader", "choice")
        choice.fingerprint(choice.Settings(checkpoint=str(boosted)), Path())


def test_a_missing_model_is_refused(boosted):
    with refused("not found"):
        AdaBoost(AdaBoost.Settings(checkpoint=str(boosted / "nowhere")))


def test_adaboost_trains_to_the_same_bytes(boosted, tmp_path):
    train_adaboost(tmp_path)
    assert (tmp_path / "model.json").read_bytes() == (boosted / "model.json").read_bytes()


def test_a_finished_training_has_nothing_to_do(boosted, tmp_path):
    shutil.copytree(boosted, tmp_path, dirs_exist_ok=True)
    manifest = (tmp_path / "manifest.json").read_bytes()
    assert (train_adaboost(tmp_path) / "manifest.json").read_bytes() == manifest


def test_another_training_in_the_same_folder_is_refused(boosted, tmp_path):
    shutil.copytree(boosted, tmp_path, dirs_exist_ok=True)
    with refused(r"another training \(changed: settings\)"):
        train_adaboost(tmp_path, depth=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model: model["trees"][0]["left"].__setitem__(0, 0), "a tree points to a node"),
        (lambda model: model["trees"][0]["vote"].__setitem__(0, 7), "a tree points to a node"),
        (lambda model: model["words"].clear(), "a tree points to a node"),
        (lambda model: model["trees"][0].pop("weight"), "not as ifqa writes it .trees.0.weight"),
    ],
)
def test_damaged_trees_are_refused_in_one_line(boosted, tmp_path, change, message):
    model = json.loads((boosted / "model.json").read_text())
    change(model)
    (tmp_path / "manifest.json").write_bytes((boosted / "manifest.json").read_bytes())
    (tmp_path / "model.json").write_text(json.dumps(model))
    with refused(message):
        AdaBoost(AdaBoost.Settings(checkpoint=str(tmp_path)))


@pytest.fixture(params=["majority", "polarity", "adaboost"])
def reader(request, boosted):
    settings = {
        "majority": {"answer": "more"},
        "polarity": {},
        "adaboost": {"checkpoint": str(boosted)},
    }
    plugin = load_plugin("reader", request.param)
    return plugin(plugin.Settings(**settings[request.param]))


def test_passages_change_nothing(reader):
    questions = [question_of("more rain", "MORE mud"), question_of("less rain", "MORE mud")]
    passage = Passage("p", "Rain", "Less rain means less mud, and no effect on anything else.")
    assert reader.answer(questions, [[passage]] * 2) == reader.answer(questions, [[], []])


def test_open_questions_are_refused(reader):
    with refused("offers no choices"):
        reader.answer([Question("q", "If?")], [[]])


@pytest.mark.parametrize("reader", ["polarity", "adaboost"], indirect=True)
def test_questions_of_another_form_are_refused(reader):
    with refused("is not: suppose CHANGE happens"):
        reader.answer([Question("q", "If?", choices=CHOICES)], [[]])


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([Question("q", "If?", ("x",))], "none of 1 training questions has choices and an answer"),
        ([question_of("a", "b", "maybe")], "the answer 'maybe' is not offered"),
        ([question_of("a", "b", "more")] * 3, "all 3 training questions have the same answer"),
        (
            [question_of("a", "b", "more"), Question("q", "x", ("y",), choices=("y", "z"))],
            "learns one set of answers",
        ),
    ],
)
def test_unlearnable_questions_are_refused(questions, message, tmp_path):
    training = TrainingData(questions, [[]] * len(questions), "rain")
    folder = tmp_path / "weights"
    with refused(message):
        configure_trainer(trainers.AdaBoost).train(training, folder)
    assert not folder.exists()
