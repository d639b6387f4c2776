"""What `ifqa list` says of an experiment: scored, ready, or what is missing."""

import json
from pathlib import Path

import pytest

from ifqa.config.experiment import load_experiment, parse_experiment
from ifqa.pipeline.check import requirements
from ifqa.pipeline.run import Run
from ifqa.protocols import Requirement


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def missing(experiment):
    return [need.what for need in requirements(Run(experiment)) if not need.here]


def closed_book(**llm):
    tables = {"benchmark": "sample", "split": "dev", "reader": {"name": "llm", "prompt": "closed-book"}}
    return parse_experiment("mine", tables | {"llm": {"name": "openai", "model": "m"} | llm}, "mine.toml")


def test_the_sample_is_ready_before_anything_is_built():
    assert missing(load_experiment("sample")) == []


def test_recorded_completions_need_no_key():
    assert missing(load_experiment("sample-closed-book")) == []


def test_missing_questions_sources_and_models_are_named():
    assert missing(load_experiment("table3-full-dpr")) == [
        "ifqa full-test",
        "data/enwiki/enwiki-*-pages-articles-multistream*.xml*.bz2",
        "facebook/dpr-ctx_encoder-single-nq-base",
        "facebook/dpr-question_encoder-single-nq-base",
        "an API key",
    ]


def test_a_reranker_that_ships_with_the_package_needs_nothing():
    def of(model):
        table = {"name": "rerank", "model": model, "parts": [{"name": "bm25"}]}
        return parse_experiment(
            "mine", {"benchmark": "sample", "split": "dev", "corpus": "sample", "retriever": table}, ""
        )

    assert [missing(of(model)) for model in ("ifqa", "extractive", "no/such")] == [[], [], ["no/such"]]


def test_a_checkpoint_is_needed_until_its_folder_is_there():
    experiment = load_experiment("table4-bm25-fid")
    assert "the checkpoint models/figure2-bm25-fid-large" in missing(experiment)
    Path("models/figure2-bm25-fid-large").mkdir(parents=True)
    assert "the checkpoint models/figure2-bm25-fid-large" not in missing(experiment)


def test_the_encoder_of_the_span_readers_weights_is_needed_until_it_is_there():
    table = {"name": "extractive", "weights": "mine"}
    experiment = parse_experiment("x", {"benchmark": "sample", "split": "dev", "reader": table}, "x")
    assert missing(experiment) == ["mine"]
    Path("mine").mkdir()
    encoder = {"name": "sentence-transformers/all-mpnet-base-v2", "sha256": "78"}
    Path("mine/manifest.json").write_text(json.dumps({"family": "ifqa/full", "encoder": encoder}))
    [need] = [one for one in requirements(Run(experiment)) if not one.here]
    assert need == Requirement(encoder["name"], "fetch it with: ifqa data all-mpnet-base-v2")
    Path("models/all-mpnet-base-v2").mkdir(parents=True)
    assert missing(experiment) == []


def test_an_api_key_is_needed_only_for_remote_servers(monkeypatch):
    assert missing(closed_book()) == ["an API key"]
    assert missing(closed_book(base_url="http://localhost:11434/v1")) == []
    assert missing(closed_book(base_url="https://api.example.com/v1")) == ["an API key"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    assert missing(closed_book()) == []
    assert missing(closed_book(base_url="https://api.example.com/v1")) == ["an API key"]
    monkeypatch.setenv("IFQA_KEYS", "api.example.com=OPENAI_API_KEY")
    assert missing(closed_book(base_url="https://api.example.com/v1")) == []


def test_a_model_of_any_dataset_will_do_until_the_questions_are_read():
    table = {"name": "unifiedqa", "checkpoint": "models/unifiedqa-{group}"}
    experiment = parse_experiment("x", {"benchmark": "sample", "split": "dev", "reader": table}, "x")
    assert missing(experiment) == ["the checkpoint models/unifiedqa-{group}"]
    Path("models/unifiedqa-hotpotqa").mkdir(parents=True)
    assert missing(experiment) == []
