"""Dense retrieval through the stages, from passages to rankings, and refused settings."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused
from safetensors.torch import load_file, save_file
from tiny_encoder import WORDS, tiny, tiny_dpr

from ifqa.config.corpus import load_corpus
from ifqa.config.experiment import parse_experiment
from ifqa.formats.runs import read_run
from ifqa.pipeline import stages
from ifqa.pipeline.run import Run
from ifqa.pipeline.system import System
from ifqa.records import Passage, Question, gold_id
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.vectors import vector_store
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder
from ifqa.storage.artifacts import read_manifest
from ifqa.storage.files import sha256

TEXTS = [
    f"{WORDS[n % 16]} {WORDS[n * 7 % 16]} {WORDS[n * n % 16]} {'moon ' * (n % 5)}"
    for n in range(40)
]
CPU = Dense.Settings(device="cpu")
RECORDS: list[dict[str, Any]] = [
    {"idx": n, "question": f"{WORDS[n]} cat ?", "answers": ["x"], "context": TEXTS[n::10]}
    for n in range(10)
]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    tiny(folder / "model")
    tiny_dpr(folder / "dpr")
    return folder


@pytest.fixture(autouse=True)
def _files(here, monkeypatch, models):
    for family in ("full", "few"):
        path = Path(f"data/ifqa/{family}_split/dev.json")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(RECORDS))
    shutil.copytree(models, ".", dirs_exist_ok=True)
    Path("indexes").mkdir()
    monkeypatch.setattr(vector_store, "SHARD_PASSAGES", 16)


def manifest_of(folder):
    """The manifest of a finished artifact."""
    manifest = read_manifest(folder)
    assert manifest is not None
    return manifest


def build(**settings):
    lines = [
        '[[passages.sources]]\nformat = "gold"\nbenchmark = "ifqa"\nsplits = ["full-dev"]',
        "[index.dense]",
    ]
    settings = {
        "retriever": "dense",
        "model": "model",
        "precision": "float32",
        "device": "cpu",
    } | settings
    lines += [f"{key} = {json.dumps(setting)}" for key, setting in settings.items()]
    Path("indexes/mine.toml").write_text("\n".join(lines))
    corpus = load_corpus("mine")
    stages.build_passages(corpus)
    return stages.build_index(corpus, "dense")


def experiment(split="full-dev", **retriever):
    section = (
        retriever
        if "parts" in retriever
        else {"name": "dense", "k": 7, "device": "cpu"} | retriever
    )
    sections = {"benchmark": "ifqa", "split": split, "corpus": "mine", "retriever": section}
    return parse_experiment("mine", sections, "mine.toml")


def retrieve(**retriever):
    return read_run(stages.retrieve(Run(experiment(**retriever))) / "run.trec")


def exact_rankings(model="model", **settings):
    """Each question's (score, passage id), by the inner product with vectors in half precision."""
    encoder = open_encoder(EncoderSettings(model, precision="float32", device="cpu", **settings))
    texts = list(dict.fromkeys(text for record in RECORDS for text in record["context"]))
    vectors = (
        encoder.encode_passages([Passage("", "", text) for text in texts])
        .astype(np.float16)
        .astype(np.float64)
    )
    scores = (
        encoder.encode_queries([record["question"] for record in RECORDS]).astype(np.float64)
        @ vectors.T
    )
    return {
        f"ifqa/full-dev/{n}": sorted(
            ((s, gold_id(t)) for s, t in zip(row, texts, strict=True)), reverse=True
        )
        for n, row in enumerate(scores)
    }


def assert_close(rankings, expected):
    """Check that the scores are the seven best, and that each passage has its exact score."""
    assert rankings.keys() == expected.keys()
    for question, hits in rankings.items():
        scores = [hit.score for hit in hits]
        exact = {passage: score for score, passage in expected[question]}
        np.testing.assert_allclose(
            scores, [score for score, _ in expected[question][:7]], atol=1e-4
        )
        np.testing.assert_allclose(scores, [exact[hit.passage_id] for hit in hits], atol=1e-4)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": "dpr/ctx_encoder"},
        {"query_prefix": "other: ", "passage_prefix": "", "max_tokens": 6},
    ],
)
def test_rankings_are_those_of_all_inner_products(settings):
    folder = build(**settings)
    assert_close(retrieve(), exact_rankings(**settings))
    retriever = Dense(CPU, index=folder)
    assert retriever.search([], 3) == []
    [hits] = retriever.search([Question("q", "red")], 1000)
    assert len({hit.passage_id for hit in hits}) == len(hits) == len(set(TEXTS))
    for facts in ("[]", "{}"):
        (folder / "dense.json").write_text(facts)
        with refused(r"dense\.json: not as ifqa writes it .*; build it again: ifqa index CORPUS"):
            Dense(CPU, index=folder)


def test_a_flat_faiss_index_ranks_alike_with_and_without_vectors():
    for keep in (True, False):
        folder = build(factory="Flat", keep_vectors=keep)
        assert (any(folder.glob("vectors-*.npy")), any(folder.glob("ids-*.npy"))) == (keep, True)
        assert_close(retrieve(), exact_rankings())


@pytest.mark.parametrize(
    ("model", "changed"),
    [
        ("model", "model"),
        ("dpr/ctx_encoder", "dpr/ctx_encoder"),
        ("dpr/ctx_encoder", "dpr/question_encoder"),
    ],
)
def test_an_index_is_reused_until_its_weights_change(model, changed, capsys):
    for count in (0, 3):
        folder = build(model=model)
        retrieve()
        assert capsys.readouterr().err.count("up to date") == count
    before = manifest_of(folder)
    path = f"{changed}/model.safetensors"
    save_file(
        {name: weight.flip(0) for name, weight in load_file(path).items()}, path, {"format": "pt"}
    )
    with refused(r"was built with a different .*; build it again: ifqa index"):
        Dense(CPU, index=folder)
    with refused(r"made from other inputs .*; make it again: ifqa index mine"):
        retrieve()
    build(model=model)
    assert manifest_of(folder)["inputs"] != before["inputs"]
    assert_close(retrieve(), exact_rankings(model))


@pytest.mark.parametrize(
    "path", ["model/manifest.json", "dpr/manifest.json", "dpr/question_encoder/manifest.json"]
)
def test_a_model_of_a_family_is_refused_on_the_other_family(path):
    Path(path).write_text(json.dumps({"family": "ifqa/few", "sources": {}}))
    build(model="model" if path.startswith("model") else "dpr/ctx_encoder")
    with refused("'dense' was trained on ifqa/few and may not be tested on ifqa/full"):
        _ = System(Run(experiment("full-dev"))).retriever
    assert System(Run(experiment("few-dev"))).retriever.family == "ifqa/few"


def test_a_model_trained_on_the_same_questions_is_recorded():
    manifest = {
        "family": "ifqa/full",
        "sources": {"train": sha256(Path("data/ifqa/full_split/dev.json"))},
    }
    Path("model/manifest.json").write_text(json.dumps(manifest))
    build()
    parts = {"name": "fusion", "parts": [{"name": "dense", "device": "cpu"}, {"name": "gold"}]}
    for retriever in ({}, parts):
        folder = stages.retrieve(Run(experiment(**retriever)))
        assert manifest_of(folder)["record"]["trained_on_them"] is True


@pytest.mark.parametrize(
    ("built", "searched", "message"),
    [
        ({}, {"nprobe": 3}, "nprobe and ef_search need a FAISS index, but .* has none"),
        ({"keep_vectors": False}, {}, "keep_vectors = false leaves nothing to search; set factory"),
        ({"model": "nowhere/model/at/all"}, {}, "found no model 'nowhere/model/at/all'"),
        ({"precision": "int8"}, {}, "'precision': unknown value 'int8'"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(built, searched, message):
    with refused(message):
        build(**built)
        retrieve(**searched)
