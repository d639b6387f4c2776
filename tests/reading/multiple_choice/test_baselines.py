"""Readers of multiple choice without a network: majority, polarity and adaboost."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier
from tiny_choice import worded

from ifqa.plugins import load_plugin
from ifqa.protocols import TrainingData
from ifqa.reading.multiple_choice.baselines import (
    AdaBoost,
    Majority,
    Polarity,
    TreeEnsemble,
    count_words,
    decision_function,
)
from ifqa.reading.multiple_choice.wiqa_question import direction, opposite, polarity
from ifqa.records import Passage, Question
from ifqa.training import multiple_choice
from ifqa.training.trainer import configure_trainer

CHOICES = ("more", "less", "no effect")
CHANGES = "more rain falls;less rain falls;the sun shines;a dog barks;the wind stops;more clouds come".split(";")
EFFECTS = "more mud;LESS mud;bigger puddles;dry paths".split(";")


def asked(change, effect, answer="", number=0):
    return Question(f"w/{number}", worded(change, effect), (answer,) * bool(answer), choices=CHOICES, group="rain")


def made(count, seed=0):
    """Questions whose answers follow from a word of the change and one of the effect, except for some noise."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        change, effect = draw.choice(CHANGES), draw.choice(EFFECTS)
        answer = "no effect" if "dog" in change else "more" if ("more" in change) == ("LESS" not in effect) else "less"
        found.append(asked(change, effect, answer if draw.random() < 0.9 else draw.choice(CHOICES), number))
    return found


class Rainy:
    """A benchmark from outside, with a family."""

    def questions(self, split: str) -> list[Question]:
        return [asked("more rain falls", "more mud", answer) for answer in ("less", "more", "less")]

    def family(self, split: str) -> str:
        return "rainy"

    def files(self, split: str) -> list[Path]:
        return [Path(__file__)]


def test_majority_gives_the_most_frequent_training_answer(monkeypatch):
    monkeypatch.setattr("ifqa.reading.multiple_choice.baselines.open_benchmark", lambda name, root: Rainy())
    reader = Majority(split="rainy/train")
    questions = [replace(asked("a", "b"), choices=several) for several in (CHOICES, ("LESS", "same"), ("x",))]
    predictions = reader.answer(questions, [[]] * 3)
    assert [prediction.answer for prediction in predictions] == ["less", "LESS", ""]
    assert predictions[2].error == "the answer 'less' is not offered"
    assert (reader.family, Majority.training_family("rainy/train"), len(reader.trained_on)) == ("rainy", "rainy", 1)
    assert Majority.fingerprint("rainy/train") != ""
    assert Majority(answer="more").answer(questions[:1], [[]])[0].answer == "more"
    for settings in ({}, {"split": "rainy/train", "answer": "more"}):
        with refused("wanted either split"):
            Majority(**settings)


POLARITIES = {
    "more rain falls": 1, "LESS mud": -1, "a dog barks": 0, "the pile does not grow": -1, "no rain falls": -1, "it never rains": -1,
    "nothing decreases": 1, "the path isn't dry": -1, "bigger and smaller stones": 0,
}  # fmt: skip


def test_polarity_of_a_description_and_of_its_opposite():
    assert {text: polarity(text) for text in POLARITIES} == POLARITIES
    assert [direction(choice) for choice in CHOICES] == [1, -1, 0]
    assert opposite("MORE warm air grows") == "LESS warm air shrinks"
    assert [opposite(text) for text in ("More mud", "a dog barks")] == ["Less mud", ""]


@pytest.mark.parametrize(
    ("change", "effect", "answer"),
    [
        ("more rain falls", "more mud", "more"), ("less rain falls", "LESS mud", "more"),
        ("less rain falls", "more mud", "less"), ("more rain falls", "smaller puddles", "less"),
    ],
)  # fmt: skip
def test_equal_polarities_mean_more_and_others_less(change, effect, answer):
    assert Polarity().answer([asked(change, effect)], [[]])[0].answer == answer
    turned = replace(asked(change, effect), choices=("less of it", "no effect", "more of it"))
    assert Polarity().answer([turned], [[]])[0].answer == f"{answer} of it"


def test_an_undecided_polarity_is_drawn_by_the_questions_id():
    questions = [asked("a dog barks", "more mud", number=n) for n in range(400)]
    found = [prediction.answer for prediction in Polarity().answer(questions, [[]] * 400)]
    assert found == [prediction.answer for prediction in Polarity().answer(questions[::-1], [[]] * 400)][::-1]
    assert {*found} == {"more", "less"}
    assert 160 < found.count("more") < 240
    [failed] = Polarity().answer([replace(asked("more rain", "mud"), choices=("red", "less"))], [[]])
    assert (failed.answer, failed.error) == ("", "no two choices say more and less")


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("classes", [2, 3])
def test_trees_decide_as_scikit_learn_does(depth, classes):
    questions = [one for one in made(300) if one.answers[0] in CHOICES[:classes]]
    words = ["change:more", "change:dog", "change:rain", "effect:less", "effect:mud", "effect:more"]
    counts = count_words([question.text for question in questions], words)
    boosted = AdaBoostClassifier(DecisionTreeClassifier(max_depth=depth), n_estimators=20, random_state=0)
    boosted.fit(counts, [CHOICES.index(question.answers[0]) for question in questions])
    ours = decision_function(multiple_choice.export_trees(boosted), counts, classes)
    theirs = boosted.decision_function(counts)
    np.testing.assert_allclose(ours if classes > 2 else ours[:, 1] - ours[:, 0], theirs, atol=1e-12)
    exact = np.exp(ours / (classes - 1))
    np.testing.assert_allclose(exact / exact.sum(1, keepdims=True), boosted.predict_proba(counts), atol=1e-12)
    assert ours.std() > 0.1


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adaboost")
    data = TrainingData(made(300), [[]] * 300, "rain", {"train.jsonl": "abc"})
    configure_trainer(multiple_choice.AdaBoost, depth=2).train(data, folder)
    return folder


def test_adaboost_learns_words_of_change_and_effect_apart(boosted):
    reader = AdaBoost(checkpoint=str(boosted))
    questions = made(60, seed=1)
    found = reader.answer(questions, [[]] * 60)
    assert sum(one.answer in question.answers for one, question in zip(found, questions, strict=True)) > 45
    assert all(one.score is not None and one.score < 0 for one in found)
    assert (reader.family, reader.trained_on, AdaBoost.training_family(str(boosted))) == ("rain", {"abc"}, "rain")
    assert set(json.loads((boosted / "model.json").read_text())["words"]) >= {"change:more", "effect:more"}
    assert len(AdaBoost.fingerprint(str(boosted))) == 64
    some = [replace(asked("more rain falls", "more mud"), choices=several) for several in (("up", "MORE"), ("x", "y"))]
    first, second = reader.answer(some, [[], []])
    assert (first.answer, first.score, second.failed) == ("MORE", 0.0, True)  # of choices that were not learnt
    with refused("holds weights of reader 'adaboost'; name a folder that `ifqa train choice` made"):
        load_plugin("reader", "choice").fingerprint(str(boosted))
    with refused("not found"):
        AdaBoost(checkpoint=str(boosted / "nowhere"))


def test_adaboost_trains_to_the_same_bytes_and_refuses_another(boosted, tmp_path):
    material = TrainingData(made(300), [[]] * 300, "rain", {"train.jsonl": "abc"})
    configure_trainer(multiple_choice.AdaBoost, depth=2).train(material, tmp_path)
    assert (tmp_path / "model.json").read_bytes() == (boosted / "model.json").read_bytes()
    before = (tmp_path / "manifest.json").read_bytes()
    configure_trainer(multiple_choice.AdaBoost, depth=2).train(material, tmp_path)  # nothing to do
    assert (tmp_path / "manifest.json").read_bytes() == before
    with refused(r"another training \(changed: settings\)"):
        configure_trainer(multiple_choice.AdaBoost, depth=1).train(material, tmp_path)


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
    TreeEnsemble.model_validate(model)
    change(model)
    (tmp_path / "manifest.json").write_bytes((boosted / "manifest.json").read_bytes())
    (tmp_path / "model.json").write_text(json.dumps(model))
    with refused(message):
        AdaBoost(checkpoint=str(tmp_path))


@pytest.mark.parametrize("name", ["majority", "polarity", "adaboost"])
def test_passages_change_nothing_and_open_questions_and_other_words_are_refused(name, boosted):
    reader = load_plugin("reader", name)(
        **{"majority": {"answer": "more"}, "adaboost": {"checkpoint": str(boosted)}}.get(name, {})
    )
    questions = [asked("more rain", "MORE mud"), asked("less rain", "MORE mud")]
    passage = Passage("p", "Rain", "Less rain means less mud, and no effect on anything else.")
    assert reader.answer(questions, [[passage]] * 2) == reader.answer(questions, [[], []])
    with refused("offers no choices"):
        reader.answer([Question("q", "If?")], [[]])
    if name != "majority":
        with refused("is not: suppose CHANGE happens"):
            reader.answer([Question("q", "If?", choices=CHOICES)], [[]])


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ([Question("q", "If?", ("x",))], "none of 1 training questions has choices and an answer"),
        ([asked("a", "b", "maybe")], "the answer 'maybe' is not offered"),
        ([asked("a", "b", "more")] * 3, "all 3 training questions have the same answer"),
        ([asked("a", "b", "more"), Question("q", "x", ("y",), choices=("y", "z"))], "learns one set of answers"),
    ],
)
def test_what_cannot_be_learnt_is_refused(questions, message, tmp_path):
    with refused(message):
        configure_trainer(multiple_choice.AdaBoost).train(
            TrainingData(questions, [[]] * len(questions), "rain"), tmp_path / "made"
        )
    assert not (tmp_path / "made").exists()
