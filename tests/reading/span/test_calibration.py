"""Features of confidence, and the calibration beside the reader's weights."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.reading.span.calibration import (
    CALIBRATION_FILE,
    DOCUMENTS_FILE,
    Calibration,
    confidence_features,
    load_calibration,
)
from ifqa.reading.span.reader import BUNDLED_WEIGHTS, Extractive, weights_folder
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.records import Passage, Question

QUESTION = "If Ada had won the cup in 1911, who would have kept the Old Mill?"
TEXTS = ["The Old Mill was kept by Bo.", "Ada won a cup.", "Nothing of the kind."]
SCORED = [
    (3.0, "bo", 0),
    (1.0, "old mill", 0),
    (2.0, "bo", 1),
    (0.5, "cup", 1),
    (1.5, "kind", 2),
    (9.0, "", 2),
]
#: A calibration with agreement as the only feature.
AGREES = {
    "version": 3,
    "intercept": -3.0,
    "coefficients": {"agreement": 6.0},
    "answerable_threshold": 0.4,
}


def test_features_compare_the_answers_of_all_passages():
    right = math.exp(3) + math.exp(2)
    others = [math.exp(1), math.exp(0.5), math.exp(1.5)]
    assert confidence_features(QUESTION, TEXTS, SCORED, "bo") == pytest.approx(
        {
            # An empty candidate is no answer
            "log_probability": math.log(right / (right + sum(others))),
            "margin": math.log(right / math.exp(1.5)),
            "score": 3.0,
            "agreement": 2 / 3,
            "passages": math.log(3),
            "words": 0.0,
            "repeated": 0.0,
            "number": 0.0,
            "known": 3 / 7,  # of ada, won, cup, 1911, kept, old, mill
            "known_anywhere": 6 / 7,
            "names": 3 / 4,  # of 1911, Ada, Old, Mill
        }
    )
    assert confidence_features(QUESTION, TEXTS, SCORED, "old mill")["repeated"] == 1.0
    assert confidence_features(QUESTION, ["1912"], [(0.0, "1912", 0)], "1912")["number"] == 1.0
    inflected = confidence_features(
        "If directing Kent's plays", ["Direct, said Kent"], [(0.0, "x", 0)], "x"
    )
    assert inflected["known"] == pytest.approx(2 / 3)


@given(st.floats(-1000, 1000))
def test_confidence_is_the_logistic_function_of_the_odds(odds):
    confidence = Calibration(intercept=odds - 1, coefficients={"score": 2.0}).confidence(
        {"score": 0.5, "margin": 7.0}
    )
    assert confidence == pytest.approx(1 / (1 + math.exp(-odds)) if odds > -700 else 0)


def extractive(**settings):
    return Extractive(Extractive.Settings(**settings))


def reader_fingerprint(folder):
    return Extractive.fingerprint(Extractive.Settings(weights=str(folder)), Path())


@pytest.fixture
def calibrate(tmp_path):
    """Writes a calibration beside a copy of the bundled weights; returns the folder."""
    folder = shutil.copytree(BUNDLED_WEIGHTS, tmp_path / "weights")

    def write(**changes):
        stored = AGREES | {"weights": fingerprint_weights(folder)} | changes
        stored = {key: setting for key, setting in stored.items() if setting is not None}
        (folder / CALIBRATION_FILE).write_text(json.dumps(stored))
        return folder

    return write


QUESTIONS = [
    Question("t/0", "If the Veldmar bridge had kept its original name, what would it be called?")
]
BRIDGE = Passage(
    "a0", "", "The Veldmar bridge, originally named the Anselm Crossing, was opened in 1911."
)
PASSAGES = [[BRIDGE, Passage("a1", "", "The river Tollen is known for trout.")]]


def test_without_a_calibration_there_is_no_confidence(tmp_path):
    shutil.copytree(
        BUNDLED_WEIGHTS, tmp_path / "bare", ignore=shutil.ignore_patterns(CALIBRATION_FILE)
    )
    reader = extractive(weights=str(tmp_path / "bare"))
    [prediction] = reader.answer(QUESTIONS, PASSAGES)
    assert (prediction.answer, prediction.confidence, reader.abstain_threshold) == (
        "Anselm Crossing",
        None,
        0.0,
    )
    with refused(r"has no calibration\.json for threshold = 0\.3; fit it: ifqa train calibration"):
        extractive(weights=str(tmp_path / "bare"), threshold=0.3)


def test_the_reader_gives_calibrated_confidence_and_abstains_below_its_threshold(calibrate):
    folder = str(calibrate())
    plain = extractive(weights=folder)
    [answer] = plain.read(QUESTIONS, PASSAGES)
    [prediction] = plain.answer(QUESTIONS, PASSAGES)
    assert answer.features["agreement"] == 0.5
    assert prediction.confidence == pytest.approx(0.5)
    assert (plain.abstain_threshold, plain.answerable_threshold) == (0.0, 0.4)
    abstention = replace(prediction, answer="", candidate="Anselm Crossing")
    for threshold, expected in ((0.45, prediction), (0.55, abstention)):
        reader = extractive(weights=folder, threshold=threshold)
        assert (reader.abstain_threshold, reader.answerable_threshold) == (threshold, 0.0)
        assert reader.answer(QUESTIONS, PASSAGES) == [expected]
    [failed] = plain.answer(QUESTIONS, [[]])
    assert (failed.error, failed.confidence) == ("no passages", None)


def test_the_fingerprint_covers_weights_and_calibration(calibrate):
    folder = calibrate()
    fingerprint = reader_fingerprint(folder)
    assert reader_fingerprint(calibrate(intercept=-2.0)) != fingerprint
    (folder / CALIBRATION_FILE).unlink()
    assert reader_fingerprint(folder) == fingerprint_weights(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"weights": "of others"},
            "was not fitted for the weights next to it; fit it again: ifqa train",
        ),
        ({"version": 9}, "version 9, wanted 3; fit it again"),
        ({"coefficients": {"mood": 1.0}}, r"not as ifqa writes it \(coefficients\.mood"),
        ({"intercept": None}, r"not as ifqa writes it \(intercept: Field required"),
        ({"intercept": float("nan")}, "intercept"),
        ({"answerable_threshold": 2.0}, r"not as ifqa writes it \(answerable_threshold"),
    ],
)
def test_a_calibration_of_other_weights_or_with_wrong_keys_is_refused(calibrate, changes, message):
    folder = calibrate(**changes)
    with refused(message):
        load_calibration(folder, fingerprint_weights(folder))


@pytest.fixture
def with_document_thresholds(calibrate):
    """A function: the folder of weights with thresholds for documents, fitted for the weights with
    this hash.
    """

    def store(weights=""):
        folder = calibrate()
        digest = weights or fingerprint_weights(folder)
        stored = {"confidence": 0.3, "answerable": 0.7, "weights": digest}
        (folder / DOCUMENTS_FILE).write_text(json.dumps(stored))
        return str(folder)

    return store


def test_a_reader_has_thresholds_of_its_own_for_documents(with_document_thresholds):
    assert extractive(weights=with_document_thresholds()).document_thresholds == (0.3, 0.7)


def test_the_default_weights_advise_with_what_was_measured():
    measured = {
        name: json.loads((weights_folder(name) / DOCUMENTS_FILE).read_text())
        for name in ("", "extractive-large")
    }
    advice = extractive().advice
    assert f"of {measured['']['measured']} questions" in advice
    assert f"answer {measured['extractive-large']['right']} right" in advice
    assert f"these {measured['']['right']}, at" in advice


def test_weights_of_ones_own_advise_nothing(with_document_thresholds):
    assert extractive(weights=with_document_thresholds()).advice == ""


def test_a_threshold_that_is_set_holds_for_documents_too(with_document_thresholds):
    reader = extractive(weights=with_document_thresholds(), threshold=0.5)
    assert (reader.abstain_threshold, reader.document_thresholds) == (0.5, None)


def test_thresholds_for_documents_leave_readings_as_they_are(calibrate, with_document_thresholds):
    folder = calibrate()
    (folder / DOCUMENTS_FILE).unlink()
    before = reader_fingerprint(folder)
    assert reader_fingerprint(with_document_thresholds()) == before


def test_thresholds_that_were_fitted_for_other_weights_are_refused(with_document_thresholds):
    with refused(r"documents\.json was not fitted for the weights next to it; remove the file"):
        extractive(weights=with_document_thresholds("other"))
