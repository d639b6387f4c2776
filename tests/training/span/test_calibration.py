"""Fitting the extractive reader's confidence on folds of its training questions."""

import json
import random
import shutil
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refusals import refused
from sklearn.linear_model import LogisticRegression

from ifqa.models.places import minilm_folder
from ifqa.protocols import TrainingData
from ifqa.reading.span.calibration import CALIBRATION_FILE, Calibration
from ifqa.reading.span.reader import BUNDLED_WEIGHTS, Extractive
from ifqa.records import Passage, Question
from ifqa.storage.files import sha256
from ifqa.training import calibration
from ifqa.training.calibration import (
    CalibrationTrainer,
    confidence_of,
    cross_validate,
    fit_calibration,
)
from ifqa.training.trainer import assign_folds, configure_trainer

pytestmark = pytest.mark.slow

TOWNS = "Oslo Lima Bonn Riga Kyiv Rome Bern Cork".split()
QUESTIONS = [
    Question(
        f"t/{n}",
        f"If painter {n} had stayed a painter, where would he live?",
        (town if n % 2 else "nowhere",),
        (
            (
                f"Painter number {n} of the old guild painted in {town} until he left it for the "
                "sea and never came back."
            ),
        ),
    )
    for n, town in enumerate(TOWNS)
]
RANKINGS = [
    [
        Passage(f"p{n}", "", text)
        for n, text in enumerate([question.gold_passages[0], "Bo wrote plays in Ulm.", "No."])
    ]
    for question in QUESTIONS
]
DATASET = TrainingData(
    [
        replace(question, answers=(*question.answers, TOWNS[n]))
        for n, question in enumerate(QUESTIONS)
    ],
    RANKINGS,
    "ifqa/full",
    {"train.json": "abc"},
)


def train(dataset, folder, **settings):
    return configure_trainer(CalibrationTrainer, **settings).train(dataset, folder)


def draw_rows(count, seed=0):
    """Rows where right answers have high margins, and readings without gold passages are never
    right.
    """
    rng = random.Random(seed)
    rows = []
    for n in range(count):
        for removed in (False, True):
            margin = rng.random() * 4 - 3 * removed
            right = not removed and rng.random() < 1 / (1 + np.exp(-2 * margin + 3))
            rows.append(
                {
                    "fold": n % 4,
                    "id": f"q{n}",
                    "gold_read": not removed and n % 5 > 0,
                    "removed": removed,
                    "alone": False,
                    "right": right,
                    "answerable": 1 / (1 + np.exp(-margin)),
                    "features": {"margin": margin, "words": 0.0, "passages": 5 + rng.random()},
                }
            )
    return rows


def test_confidences_are_those_of_a_weighted_logistic_regression():
    rows = draw_rows(300)
    fitted = fit_calibration(rows, 0.2, 0.1)
    ours = Calibration.model_validate(fitted)
    features = np.array([[row["features"]["margin"], row["features"]["passages"]] for row in rows])
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    # A quarter of the others: a fifth of all
    weights = [1.0 if not row["removed"] else 0.25 for row in rows]
    other = LogisticRegression(C=1.0).fit(
        scaled, [row["right"] for row in rows], sample_weight=weights
    )
    expected = other.predict_proba(scaled)[:, 1]
    assert [confidence_of(row, ours) for row in rows] == pytest.approx(list(expected), abs=1e-3)
    assert fitted["coefficients"]["words"] == 0.0


def test_a_tenth_of_the_questions_with_a_gold_passage_lie_below_the_threshold():
    rows = draw_rows(500)
    rows[2] |= {"features": {}, "answerable": 0.0}  # no answer: no confidence
    fitted = fit_calibration(rows, 0.2, 0.1)
    assert confidence_of(rows[2], Calibration.model_validate(fitted)) == 0.0
    answerable = np.array([row["answerable"] for row in rows if row["gold_read"]])
    assert (answerable < fitted["answerable_threshold"]).sum() == len(answerable) // 10
    assert fit_calibration(rows, 0.2, 0.0)["answerable_threshold"] == answerable.min()
    # A single passage has no say in it
    alone = [row | {"alone": True, "answerable": 0.0} for row in rows]
    assert (
        fit_calibration([*rows, *alone], 0.2, 0.1)["answerable_threshold"]
        == fitted["answerable_threshold"]
    )
    for right in (True, False):
        with refused(r"of 20 answers on the folds are right; wanted some right and some wrong"):
            fit_calibration([row | {"right": right} for row in draw_rows(10)], 0.2, 0.1)


def test_what_is_measured_is_of_folds_that_were_not_fitted_on():
    scores: Any = cross_validate(draw_rows(400), 0.2, 0.1)
    assert scores["false_abstentions"] == pytest.approx(10, abs=4)
    assert (
        scores["true_abstentions"] > 60,
        scores["AUROC of answerable"] > 80,
        scores["ECE"] < 8,
    ) == (
        True,
        True,
        True,
    )
    # features without information in the other folds have none in this fold
    noise = [
        row | {"features": {"margin": random.Random(n).random()}}
        for n, row in enumerate(draw_rows(200))
    ]
    right = 100 * np.mean([row["right"] for row in noise if not row["removed"]])
    assert cross_validate(noise, 0.2, 0.1)["EM-50"] == pytest.approx(right, abs=10)


def test_each_fold_is_read_by_a_reader_that_was_trained_on_the_others(
    tmp_path, weights, monkeypatch
):
    shutil.copytree(weights, tmp_path, dirs_exist_ok=True)
    trained = []
    read = []

    def train_fold(dataset, folder, settings):
        stored = json.loads((tmp_path / "manifest.json").read_text())["settings"]
        assert settings == stored | {
            "average": 1,
            "encoder": str(minilm_folder()),
            "device": "cpu",
            "start": "",
        }
        trained.append({question.id for question in dataset.questions})
        gold = {
            text
            for question in QUESTIONS
            for text in question.gold_passages
            if question.id not in trained[-1]
        }
        assert gold.isdisjoint(passage.text for ranking in dataset.rankings for passage in ranking)
        shutil.copytree(weights, folder, dirs_exist_ok=True)

    # So that there is something to fit
    def half_right(fold, question, prediction, shown, removed, alone):
        read.append((question.id, removed, [passage.id for passage in shown]))
        right = int(question.id[2:]) % 2 == 1 and not removed
        return row(fold, question, prediction, shown, removed, alone) | {"right": right}

    row = calibration._row

    def reader_trainer(_, **settings):
        return SimpleNamespace(train=partial(train_fold, settings=settings))

    monkeypatch.setattr(calibration, "configure_trainer", reader_trainer)
    monkeypatch.setattr(calibration, "_row", half_right)
    content = train(DATASET, tmp_path, folds=2, passages=2)
    ids = {question.id for question in QUESTIONS}
    assert (trained[0] | trained[1], trained[0] & trained[1]) == (ids, set())
    assert (
        {question_id for question_id, _, _ in read[: 3 * len(trained[1])]}
        == trained[1]
        == ids - trained[0]
    )
    assert {(removed, *passages) for _, removed, passages in read} == {
        (False, "p0", "p1"),
        (True, "p1", "p2"),
        (False, "p0"),
    }
    reader = Extractive(Extractive.Settings(weights=str(tmp_path)))
    assert (reader.answerable_threshold, content["fitted_on"]["rows"]) == (
        content["answerable_threshold"],
        24,
    )
    assert content == json.loads((tmp_path / CALIBRATION_FILE).read_text())
    [answer] = reader.answer(DATASET.questions[:1], RANKINGS[:1])
    assert answer.confidence is not None
    assert 0 < answer.confidence < 1
    trained.clear()
    content = train(DATASET, tmp_path, folds=2, passages=2, read_folds=1)
    assert (len(trained), content["measured"]) == (1, {})
    assert (content["fitted_on"]["rows"], content["fitted_on"]["questions"]) == (12, 4)


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (
            lambda folder: (folder / "manifest.json").unlink(),
            "no weights with a manifest; train them: ifqa train",
        ),
        (
            lambda folder: (folder / "heads.safetensors").write_bytes(b"x"),
            r"heads\.safetensors is missing or altered",
        ),
        (None, r"was trained on train\.json, not on dev\.json; name its training split"),
    ],
)
def test_other_weights_or_another_start_are_refused(tmp_path, weights, spoil, complaint):
    shutil.copytree(weights, tmp_path, dirs_exist_ok=True)
    if spoil:
        spoil(tmp_path)
    with refused(complaint):
        train(DATASET if spoil else replace(DATASET, sources={"dev.json": "abd"}), tmp_path)
    assert not (tmp_path / CALIBRATION_FILE).exists()
    shutil.copytree(weights, tmp_path, dirs_exist_ok=True)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"start": {"sha256": "ab"}}))
    for start in ("", str(weights)):
        with refused(r"was not trained from the weights in .*; name the folder with --set start="):
            train(DATASET, tmp_path, start=start)
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"settings": {"practice": 2}}))
    with refused(
        "was trained by an earlier version of ifqa, with 'practice'; train the weights again"
    ):
        train(DATASET, tmp_path)


@pytest.fixture
def weights(tmp_path):
    """The shipped weights, as if they had been trained on these questions."""
    folder = tmp_path / "shipped"
    shutil.copytree(BUNDLED_WEIGHTS, folder, ignore=shutil.ignore_patterns(CALIBRATION_FILE))
    manifest = json.loads((BUNDLED_WEIGHTS / "manifest.json").read_text())
    manifest.pop("start", None)
    manifest.pop("teacher", None)
    manifest["settings"].pop("practice", None)  # of the version that trained the shipped weights
    files = {path.name: sha256(path) for path in folder.glob("*.safetensors")}
    (folder / "manifest.json").write_text(
        json.dumps(manifest | {"sources": DATASET.sources, "files": files})
    )
    return folder


def test_equal_questions_and_those_that_share_a_gold_passage_are_in_one_fold():
    linked = [
        Question("a", "One?", (), ("x", "y")),
        Question("b", "Two?", (), ("Y!", "z")),
        Question("c", "one"),
    ]
    others = [Question(f"o/{n}", f"Other {n}?", (), (f"gold {n}",)) for n in range(5)]
    folds = assign_folds([*linked, *others], 2, 0)
    assert (len(set(folds[:3])), sorted(map(folds.count, (0, 1)))) == (1, [4, 4])
    assert assign_folds([*linked, *others], 2, 0) == folds
