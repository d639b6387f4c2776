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
    return [need.name for need in requirements(Run(experiment)) if not need.present]


def of(**tables):
    return parse_experiment("mine", {"benchmark": "sample", "split": "dev", **tables}, "mine.toml")


def closed_book(**llm):
    return of(reader={"name": "llm", "prompt": "closed-book"}, llm={"name": "openai", "model": "m"} | llm)


def test_missing_questions_sources_models_and_checkpoints_are_named():
    assert missing(load_experiment("sample")) == missing(load_experiment("sample-closed-book")) == []
    assert missing(load_experiment("table3-full-dpr")) == [
        "ifqa full-test",
        "data/enwiki/enwiki-*-pages-articles-multistream*.xml*.bz2",
        "facebook/dpr-ctx_encoder-single-nq-base",
        "facebook/dpr-question_encoder-single-nq-base",
        "an API key",
    ]
    for experiment, checkpoint, folder in (
        (load_experiment("table4-bm25-fid"), "models/figure2-bm25-fid-large", "figure2-bm25-fid-large"),
        (of(reader={"name": "unifiedqa", "checkpoint": "models/unifiedqa-{group}"}), "models/unifiedqa-{group}", "unifiedqa-hotpotqa"),
    ):  # fmt: skip
        assert f"the checkpoint {checkpoint}" in missing(experiment)
        Path("models", folder).mkdir(parents=True)
        assert f"the checkpoint {checkpoint}" not in missing(experiment)


def test_a_reranker_that_ships_with_the_package_needs_nothing():
    for model, wanted in (("ifqa", []), ("extractive", []), ("no/such", ["no/such"])):
        table = {"name": "rerank", "model": model, "parts": [{"name": "bm25"}]}
        assert missing(of(corpus="sample", retriever=table)) == wanted


def test_the_encoder_of_the_span_readers_weights_is_needed_until_it_is_there():
    experiment = of(reader={"name": "extractive", "weights": "mine"})
    assert missing(experiment) == ["mine"]
    Path("mine").mkdir()
    encoder = {"name": "sentence-transformers/all-mpnet-base-v2", "sha256": "78"}
    Path("mine/manifest.json").write_text(json.dumps({"family": "ifqa/full", "encoder": encoder}))
    [need] = [requirement for requirement in requirements(Run(experiment)) if not requirement.present]
    assert need == Requirement(encoder["name"], "fetch it with: ifqa data all-mpnet-base-v2")
    Path("models/all-mpnet-base-v2").mkdir(parents=True)
    assert missing(experiment) == []


def test_an_api_key_is_needed_only_for_remote_servers(monkeypatch):
    assert missing(closed_book()) == ["an API key"]
    assert missing(closed_book(base_url="http://localhost:11434/v1")) == []
    assert missing(closed_book(base_url="https://api.example.com/v1")) == ["an API key"]
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
    assert missing(closed_book()) == []
