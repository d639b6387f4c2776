"""A span reader that learns another's probabilities."""

import json
import math
import shutil
from pathlib import Path

import pytest
import torch
from refusals import refused
from tiny_library_encoder import tiny_library_encoder
from tiny_mpnet import tiny_mpnet

from ifqa.models.span_encoder import find_encoder
from ifqa.protocols import TrainingData
from ifqa.reading.span import network
from ifqa.reading.span.network import MAX_SPAN, encode_pair
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.records import Question
from ifqa.training.calibration import CalibrationTrainer
from ifqa.training.extractive import Extractive
from ifqa.training.extractive_phase import open_network
from ifqa.training.teacher import Teacher
from ifqa.training.trainer import configure_trainer

pytestmark = pytest.mark.slow

CASES = [
    ("If Ada had won two fewer cups, how many?", "7", "Ada, a rower from Kent, has won 9 cups."),
    ("If Bo had kept the name, what would it be?", "Old Mill", "Bo, once Old Mill, lies in Kent."),
    ("If Cy had stayed, where would he live?", "Oslo", "Cy painted in Oslo, then left for Rome."),
]
QUESTIONS = [
    Question(f"t/{n}", text, (answer,), (gold,)) for n, (text, answer, gold) in enumerate(CASES)
]
DATASET = TrainingData(QUESTIONS, [[] for _ in QUESTIONS], "ifqa/full", {"train.json": "ab"})
TEXTS = [text for question in QUESTIONS for text in (question.text, *question.gold_passages)]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_mpnet(tmp_path_factory.mktemp("student") / "encoder", *TEXTS)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """Trained weights on another encoder with the same tokens."""
    folder = tmp_path_factory.mktemp("teacher")
    other = tiny_mpnet(folder / "encoder", *TEXTS, seed=1)
    settings = {"epochs": 60, "batch": 3, "rank": 16, "learning_rate": 5e-3, "dropout": 0.0}
    train(folder / "weights", other, **settings)
    return folder / "weights"


def train(folder, encoder, dataset=DATASET, **settings):
    trainer = configure_trainer(Extractive, encoder=str(encoder), **settings)
    return trainer.train(dataset, folder)


def opened(weights):
    manifest = json.loads((weights / "manifest.json").read_text())
    return Teacher(weights, find_encoder(manifest["encoder"]["name"]), "cpu")


def pairs_of(folder):
    return [encode_pair(folder, question.text, question.gold_passages[0]) for question in QUESTIONS]


def candidates(pair, spans, computed):
    """The scores of a pair's candidates by what they are."""
    scores: dict[tuple[object, ...], float] = {}
    tokens = len(pair.offsets)
    for first in range(tokens):
        for more in range(min(MAX_SPAN, tokens - first)):
            scores["span", first, more] = spans[pair.start + first, more].item()
    for row, steps in enumerate(pair.computed):
        for number, texts in enumerate(steps):
            for operation, text in enumerate(texts):
                if text is not None:
                    scores["computed", row, number, operation] = computed[
                        row, number, operation
                    ].item()
    return scores


def probabilities(scores):
    total = sum(map(math.exp, scores.values()))
    return {candidate: math.exp(score) / total for candidate, score in scores.items()}


def all_candidates(pairs, scored):
    merged: dict[tuple[object, ...], float] = {("null",): 0.0}
    for number, (pair, spans, computed) in enumerate(zip(pairs, *scored, strict=True)):
        for candidate, score in candidates(pair, spans, computed).items():
            merged[number, *candidate] = score
    return merged


def test_the_loss_is_the_cross_entropy_over_all_candidates_of_a_question(encoder, teacher):
    student = open_network(find_encoder(str(encoder)), "", 3, 0.0)
    scorer = opened(teacher)
    pairs = pairs_of(encoder)
    with torch.no_grad():
        scored = student(pairs)
        taught = scorer.model(pairs_of(scorer.folder))
    right = probabilities(all_candidates(pairs, taught))
    learned = probabilities(all_candidates(pairs, scored))
    expected = -sum(share * math.log(learned[candidate]) for candidate, share in right.items())
    assert scorer.loss(pairs, *scored).item() == pytest.approx(expected, rel=1e-4)


def test_a_passage_that_the_student_reads_further_counts_as_far_as_both_read_it(
    encoder, teacher, monkeypatch
):
    scorer = opened(teacher)
    student = open_network(find_encoder(str(encoder)), "", 3, 0.0)
    question = "If Ada had won, who?"
    text = "Ada won. " * 120
    pair = encode_pair(encoder, question, text)
    monkeypatch.setattr(network, "MAX_TOKENS", 250)
    shorter = encode_pair(scorer.folder, question, text)
    assert len(shorter.offsets) < len(pair.offsets)
    with torch.no_grad():
        scored = student([pair])
        taught = scorer.model([shorter])
    right = probabilities(all_candidates([shorter], taught))
    both = all_candidates([pair], scored)
    learned = probabilities({candidate: both[candidate] for candidate in right})
    expected = -sum(share * math.log(learned[candidate]) for candidate, share in right.items())
    assert scorer.loss([pair], *scored).item() == pytest.approx(expected, rel=1e-4)


def test_a_student_comes_nearer_to_its_teacher(tmp_path, encoder, teacher):
    settings = {"epochs": 40, "batch": 3, "rank": 16, "learning_rate": 5e-3, "dropout": 0.0}
    scorer = opened(teacher)
    pairs = pairs_of(encoder)
    losses = {}
    for name, more in (("alone", {}), ("taught", {"teacher": str(teacher)})):
        train(tmp_path / name, encoder, **settings, **more)
        student = open_network(find_encoder(str(encoder)), str(tmp_path / name), 0, 0.0)
        with torch.no_grad():
            losses[name] = scorer.loss(pairs, *student(pairs)).item()
    assert losses["taught"] < losses["alone"]


def test_the_manifest_names_the_teacher(tmp_path, encoder, teacher):
    manifest = train(
        tmp_path / "taught", encoder, epochs=1, teacher=str(teacher), teacher_share=0.5
    )
    expected = {
        "sha256": fingerprint_weights(teacher),
        "share": 0.5,
        "trained": json.loads((teacher / "manifest.json").read_text()),
    }
    assert manifest["teacher"] == expected
    assert not {"teacher", "teacher_share"} & manifest["settings"].keys()
    with refused("holds another training"):
        train(tmp_path / "taught", encoder, epochs=1)


def test_a_teacher_with_other_tokens_is_refused(tmp_path, encoder):
    other = tiny_library_encoder(tmp_path / "pieces", "modernbert", "other words")
    train(tmp_path / "weights", other, epochs=1)
    with refused("parts texts into other tokens than the encoder that is trained"):
        train(tmp_path / "taught", encoder, epochs=1, teacher=str(tmp_path / "weights"))


def test_a_teacher_of_another_split_family_is_refused(tmp_path, encoder, teacher):
    few = TrainingData(QUESTIONS, [[] for _ in QUESTIONS], "ifqa/few", {"train.json": "cd"})
    with refused("was trained on ifqa/full and may not be used in a training on ifqa/few"):
        train(tmp_path / "taught", encoder, few, epochs=1, teacher=str(teacher))


def calibrate(folder, **settings):
    trainer = configure_trainer(CalibrationTrainer, folds=2, read_folds=1, **settings)
    return trainer.train(DATASET, folder)


def test_a_calibration_needs_teachers_that_did_not_read_the_fold_either(tmp_path, encoder, teacher):
    folder = tmp_path / "taught"
    train(folder, encoder, epochs=1, teacher=str(teacher))
    with refused("these weights had a teacher; --set teacher= names the folder `folds`"):
        calibrate(folder)
    shutil.copytree(teacher, tmp_path / "folds" / "0")
    with refused("0 was not trained on the other folds' questions"):
        calibrate(folder, teacher=str(tmp_path / "folds"))


def test_weights_without_a_teacher_are_calibrated_without_one(tmp_path, encoder):
    train(tmp_path / "weights", encoder, epochs=1)
    with refused("these weights had no teacher"):
        calibrate(tmp_path / "weights", teacher=str(Path("folds")))
