"""The confidence of a language model is fitted for the model and the prompt of an experiment."""

import random
from pathlib import Path

import pytest
from refusals import refused

from ifqa.config.experiment import load_experiment
from ifqa.llms.replay import Replay
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.pipeline.system import System
from ifqa.pipeline.train import train
from ifqa.scoring.measures.confidence import AUROC
from ifqa.storage.files import read_json, sha256
from ifqa.storage.resources import BUNDLED
from ifqa.training.llm_calibration import LlmAnswer, cross_validate_answers, fit_answers

LOGPROBS = ("log_probability", "mean_log_probability")


def answers(count, with_logprobs, seed=1):
    """Answers of which those with a higher "signal" are more often right."""
    draw = random.Random(seed)
    rows = []
    for n in range(count):
        signal = draw.gauss(0, 1)
        features = {"signal": signal, "constant": 1.0}
        if n < with_logprobs:
            features |= dict.fromkeys(LOGPROBS, -signal)
        rows.append(LlmAnswer(n % 4, signal + draw.gauss(0, 0.5) > 0, features))
    return rows


def measures_of(rows):
    """The measures of cross-validation; all are defined."""
    return {name: score or 0.0 for name, score in cross_validate_answers(rows).items()}


def test_a_feature_that_tells_right_from_wrong_is_found():
    _, fit = fit_answers(answers(200, 0))
    sure, unsure = (fit.confidence({"signal": value, "constant": 1.0}) for value in (2.0, -2.0))
    assert sure > 0.95
    assert unsure < 0.05


def test_a_constant_feature_has_no_coefficient():
    _, fit = fit_answers(answers(200, 0))
    assert fit.coefficients["constant"] == pytest.approx(0.0)


def test_log_probabilities_have_a_fit_of_their_own():
    with_logprobs, without_logprobs = fit_answers(answers(200, 100))
    assert with_logprobs is not None
    assert set(LOGPROBS) <= with_logprobs.coefficients.keys()
    assert without_logprobs.coefficients.keys() == {"signal", "constant"}


def test_too_few_replies_with_log_probabilities_have_no_fit():
    with_logprobs, _ = fit_answers(answers(200, 29))
    assert with_logprobs is None


@pytest.mark.parametrize("right", [True, False])
def test_answers_that_are_all_right_or_all_wrong_are_refused(right):
    rows = [row._replace(right=right) for row in answers(100, 0)]
    with refused("wanted 30 answers or more, some right"):
        fit_answers(rows)


def test_too_few_answers_are_refused():
    with refused("wanted 30 answers or more"):
        fit_answers(answers(29, 0))


def test_measures_are_of_confidences_that_were_fitted_on_other_folds():
    measured = measures_of(answers(400, 0))
    assert 90 < measured["AUROC of right answers"] <= 100
    assert 0 <= measured["ECE"] < 15


def test_the_ranking_of_right_answers_has_another_name_than_that_of_gold_passages():
    assert AUROC.name not in measures_of(answers(400, 0))


def test_a_feature_without_meaning_has_no_ranking():
    draw = random.Random(3)
    rows = [row._replace(right=draw.random() < 0.5) for row in answers(400, 0)]
    assert 35 < measures_of(rows)["AUROC of right answers"] < 65


def test_a_question_without_an_answer_counts_as_wrong():
    rows = answers(200, 0)
    empty = [LlmAnswer(n % 4, False, {}) for n in range(200)]
    assert measures_of(rows + empty)["EM-80"] < measures_of(rows)["EM-80"]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The path of a calibration for the sample's recorded completions."""
    folder = tmp_path_factory.mktemp("calibrated")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        path = train_llm("sample-llm")
        return folder / path


def train_llm(experiment, **settings):
    chosen = {"reader": "llm", "questions": 60, **settings}
    return train(
        "calibration", "sample", "hard", Path("models/extractive"), chosen, experiment=experiment
    )


@pytest.mark.slow
def test_a_calibration_names_its_model(fitted):
    content = read_json(fitted)
    assert content["model"] == "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M"
    assert content["prompt"] == "open-book"
    assert content["fitted_on"]["questions"] == 60


@pytest.mark.slow
def test_the_cost_is_told_before_the_model_is_asked(fitted, monkeypatch, caplog):
    monkeypatch.chdir(fitted.parents[2])
    caplog.set_level("INFO")
    train_llm("sample-llm", questions=40)
    told = caplog.text.partition("asking ")[2]
    assert told.startswith(
        "Qwen2.5-Coder-1.5B-Instruct, Q4_K_M 40 questions with the prompt open-book: 0 calls, "
    )


@pytest.mark.slow
def test_a_model_that_was_tuned_on_the_questions_gets_a_warning(fitted, monkeypatch, caplog):
    monkeypatch.chdir(fitted.parents[2])
    digest = sha256(BUNDLED / "sample" / "hard.json")
    monkeypatch.setattr(Replay, "trained_on", frozenset({digest}))
    train_llm("sample-llm", questions=40)
    assert "hard.json: it answers these questions more often than others" in caplog.text


@pytest.mark.slow
def test_a_fitted_model_answers_with_a_confidence(fitted, monkeypatch):
    monkeypatch.chdir(fitted.parents[2])
    with System(Run(load_experiment("sample-llm"))) as system:
        question = system.run.questions[0]
        answer = system.ask(question)
    assert answer.confidence is not None
    assert not answer.uncalibrated


@pytest.mark.slow
def test_a_model_that_was_not_fitted_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = Run(load_experiment("sample-llm"))
    with open_system(run) as system:
        answer = system.ask(run.questions[0])
    assert answer.confidence is None
    assert answer.uncalibrated.startswith("not calibrated for Qwen2.5-Coder-1.5B")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"average": 2}, "'average'|average: only for --reader extractive"),
        ({"device": "cuda"}, "device: only for --reader extractive"),
    ],
)
def test_settings_of_the_span_reader_are_refused(settings, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused(message):
        train_llm("sample-llm", **settings)


def test_questions_are_refused_for_the_span_reader(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused("questions: only for --reader llm"):
        train("calibration", "sample", "dev", Path("models/extractive"), {"questions": 9})


def test_an_experiment_is_needed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused("wanted an experiment with the model"):
        train_llm("")


def test_an_experiment_with_another_reader_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused("its reader is extractive; wanted llm"):
        train_llm("sample")


def test_a_folder_for_weights_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused("names weights of the span reader"):
        train(
            "calibration",
            "sample",
            "hard",
            Path("else"),
            {"reader": "llm"},
            experiment="sample-llm",
        )
