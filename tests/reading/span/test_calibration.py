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

from ifqa.reading.span.calibration import CALIBRATION_FILE, Calibration, confidence_features, load_calibration
from ifqa.reading.span.reader import BUNDLED_WEIGHTS, Extractive
from ifqa.reading.span.weights import fingerprint_weights
from ifqa.records import Passage, Question

QUESTION = "If Ada had won the cup in 1911, who would have kept the Old Mill?"
TEXTS = ["The Old Mill was kept by Bo.", "Ada won a cup.", "Nothing of the kind."]
SCORED = [(3.0, "bo", 0), (1.0, "old mill", 0), (2.0, "bo", 1), (0.5, "cup", 1), (1.5, "kind", 2), (9.0, "", 2)]
#: A calibration that is sure of agreement and of nothing else.
AGREES = {"version": 2, "intercept": -3.0, "coefficients": {"agreement": 6.0}, "threshold": 0.4}


def test_features_compare_the_answers_of_all_passages():
    found = confidence_features(QUESTION, TEXTS, SCORED, "bo")
    right, others = math.exp(3) + math.exp(2), [math.exp(1), math.exp(0.5), math.exp(1.5)]
    assert found == pytest.approx(
        {
            "log_probability": math.log(right / (right + sum(others))),  # an empty candidate is no answer
            "margin": math.log(right / math.exp(1.5)),
            "score": 3.0, "agreement": 2 / 3, "passages": math.log(3), "words": 0.0, "repeated": 0.0, "number": 0.0,
            "known": 3 / 7,  # of ada, won, cup, 1911, kept, old, mill
            "known_anywhere": 6 / 7,
            "names": 3 / 4,  # of 1911, Ada, Old, Mill
        }
    )  # fmt: skip
    assert confidence_features(QUESTION, TEXTS, SCORED, "old mill")["repeated"] == 1.0
    assert confidence_features(QUESTION, ["1912"], [(0.0, "1912", 0)], "1912")["number"] == 1.0
    found = confidence_features("If directing Kent's plays", ["Direct, said Kent"], [(0.0, "x", 0)], "x")
    assert found["known"] == pytest.approx(2 / 3)  # in any form


@given(st.floats(-1000, 1000))
def test_a_confidence_is_the_logistic_function_of_the_odds(odds):
    found = Calibration(intercept=odds - 1, coefficients={"score": 2.0}).confidence({"score": 0.5, "margin": 7.0})
    assert found == pytest.approx(1 / (1 + math.exp(-odds)) if odds > -700 else 0)


@pytest.fixture
def weights(tmp_path):
    folder = tmp_path / "weights"
    shutil.copytree(BUNDLED_WEIGHTS, folder)

    def write(**changed):
        stored = AGREES | {"weights": fingerprint_weights(folder)} | changed
        (folder / CALIBRATION_FILE).write_text(
            json.dumps({key: value for key, value in stored.items() if value is not None})
        )
        return folder

    write()
    return write


QUESTIONS = [Question("t/0", "If the Veldmar bridge had kept its original name, what would it be called?")]
READ = [
    "The Veldmar bridge, originally named the Anselm Crossing, was opened in 1911.",
    "The river Tollen is known for trout.",
]
PASSAGES = [[Passage(f"a{n}", "", text) for n, text in enumerate(READ)]]


def test_without_a_calibration_there_is_no_confidence(tmp_path):
    shutil.copytree(BUNDLED_WEIGHTS, tmp_path / "bare", ignore=shutil.ignore_patterns(CALIBRATION_FILE))
    reader = Extractive(weights=str(tmp_path / "bare"))
    [found] = reader.answer(QUESTIONS, PASSAGES)
    assert (found.answer, found.confidence, reader.abstain_threshold) == ("Anselm Crossing", None, 0.0)
    with refused(r"has no calibration\.json, which threshold = 0\.3 needs; fit it: ifqa train calibration"):
        Extractive(weights=str(tmp_path / "bare"), threshold=0.3)


def test_the_reader_gives_calibrated_confidence_and_abstains_below_its_threshold(weights):
    folder = str(weights())
    plain, [(_, found)] = Extractive(weights=folder), Extractive(weights=folder).read(QUESTIONS, PASSAGES)
    [answer] = plain.answer(QUESTIONS, PASSAGES)
    assert found["agreement"] == 0.5
    assert answer.confidence == pytest.approx(0.5)
    assert plain.abstain_threshold == 0.4
    for threshold, kept in ((0.45, True), (0.55, False)):
        reader = Extractive(weights=folder, threshold=threshold)
        assert reader.abstain_threshold == threshold
        wanted = answer if kept else replace(answer, answer="", candidate="Anselm Crossing")
        assert reader.answer(QUESTIONS, PASSAGES) == [wanted]
    [failed] = plain.answer(QUESTIONS, [[]])
    assert (failed.error, failed.confidence) == ("no passages", None)
    before = Extractive.fingerprint(weights=folder)
    assert Extractive.fingerprint(weights=str(weights(intercept=-2.0))) != before
    (weights() / CALIBRATION_FILE).unlink()
    assert Extractive.fingerprint(weights=folder) == fingerprint_weights(Path(folder))


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"weights": "of others"}, "fitted for other weights than those beside it; fit it again: ifqa train"),
        ({"version": 9}, "version 9, wanted 2; fit it again"),
        ({"coefficients": {"mood": 1.0}}, r"not as ifqa writes it \(coefficients\.mood"),
        ({"intercept": None}, r"not as ifqa writes it \(intercept: Field required"),
        ({"intercept": float("nan")}, "intercept"),
        ({"threshold": 2.0}, r"not as ifqa writes it \(threshold"),
    ],
)
def test_a_calibration_that_does_not_fit_is_refused(weights, changed, complaint):
    folder = weights(**changed)
    with refused(complaint):
        load_calibration(folder, fingerprint_weights(folder))
