"""Dense retrieval through the stages: from passages by an index to rankings, and what may not be used together."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from test_hub import tiny, tiny_dpr

from ifqa import stages
from ifqa.artifacts import read_manifest
from ifqa.dense import encode
from ifqa.dense.encoder import open_encoder
from ifqa.errors import IfqaError
from ifqa.experiment import load_corpus, parse_experiment
from ifqa.files import sha256
from ifqa.inputs import open_retriever
from ifqa.records import Passage, Question, gold_id
from ifqa.retrievers.dense import Dense
from ifqa.runs import read_run

THINGS = "red blue green cat dog bird sun moon tree rock fish ship gold iron salt wolf".split()
TEXTS = [f"{THINGS[n % 16]} {THINGS[n * 7 % 16]} {THINGS[n * n % 16]} {'moon ' * (n % 5)}" for n in range(40)]
RECORDS = [{"idx": n, "question": f"{THINGS[n]} cat ?", "answers": ["x"], "context": TEXTS[n::10]} for n in range(10)]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for seed in range(2):
        tiny(folder / f"unit{seed}", seed=seed)
    tiny_dpr(folder / "dpr")
    return folder


@pytest.fixture(autouse=True)
def _a_place_of_its_own(tmp_path, monkeypatch, models):
    monkeypatch.chdir(tmp_path)
    for setting in ("full", "few"):
        path = Path(f"data/ifqa/{setting}_split/dev.json")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(RECORDS))
    shutil.copytree(models / "unit0", "model")
    shutil.copytree(models / "dpr", "dpr")
    monkeypatch.setattr(encode, "PIECE", 16)
    encode.encoder_of.cache_clear()


def corpus(**settings):
    lines = ['[[passages.sources]]\nformat = "gold"\nbenchmark = "ifqa"\nsplits = ["full-dev"]', "[index.dense]"]
    settings = {"retriever": "dense", "model": "model", "precision": "float32", "device": "cpu"} | settings
    Path("indexes").mkdir(exist_ok=True)
    Path("indexes/mine.toml").write_text(
        "\n".join([*lines, *(f"{key} = {json.dumps(v)}" for key, v in settings.items())])
    )
    return load_corpus("mine")


def build(**settings):
    made = corpus(**settings)
    stages.build_passages(made)
    return stages.build_index(made, "dense")


def experiment(split="full-dev", retriever=None):
    table = {"name": "dense", "k": 7, "device": "cpu"} | (retriever or {})
    tables = {"benchmark": "ifqa", "split": split, "corpus": "mine", "retriever": table}
    return parse_experiment("mine", tables, "mine.toml")


def found(split="full-dev", **retriever):
    return read_run(stages.retrieve(experiment(split, retriever)) / "run.trec")


def by_hand(model="model", **settings):
    """Every passage scored by its inner product in half precision, as vectors are kept."""
    encoder = open_encoder(model, precision="float32", device="cpu", **settings)
    texts = list(dict.fromkeys(text for record in RECORDS for text in record["context"]))
    vectors = encoder.encode_passages([Passage("", "", text) for text in texts]).astype(np.float16).astype(np.float64)
    scores = encoder.encode_queries([record["question"] for record in RECORDS]).astype(np.float64) @ vectors.T
    return {
        f"ifqa/full-dev/{n}": sorted(((s, gold_id(t)) for s, t in zip(row, texts, strict=True)), reverse=True)
        for n, row in enumerate(scores)
    }


@pytest.mark.parametrize("model", ["model", "dpr/ctx_encoder"])
def test_rankings_are_those_of_all_inner_products(model):
    build(model=model)
    wanted, rankings = by_hand(model), found()
    assert rankings.keys() == wanted.keys()
    for question, hits in rankings.items():
        np.testing.assert_allclose([hit.score for hit in hits], [score for score, _ in wanted[question][:7]], atol=1e-4)
        scores = {passage: score for score, passage in wanted[question]}
        assert [scores[hit.passage_id] for hit in hits] == pytest.approx([hit.score for hit in hits], abs=1e-4)


def test_a_flat_index_of_faiss_ranks_alike_with_and_without_the_vectors():
    pytest.importorskip("faiss", reason="needs the extra cpu")
    build()
    exact = found()
    build(factory="Flat")
    flat = found()
    folder = build(factory="Flat", keep_vectors=False)
    assert not list(folder.glob("vectors-*.npy"))
    assert list(folder.glob("ids-*.npy"))
    for rankings in (flat, found()):
        for question, hits in rankings.items():
            np.testing.assert_allclose([one.score for one in hits], [one.score for one in exact[question]], atol=1e-4)
            assert [one.passage_id for one in hits][:3] == [one.passage_id for one in exact[question]][:3]


def test_settings_of_the_build_are_those_of_the_search():
    build(query_prefix="other: ", passage_prefix="", max_tokens=6)
    facts = open_retriever(experiment()).encoder.facts
    assert (facts["query_prefix"], facts["passage_prefix"], facts["max_tokens"]) == ("other: ", "", 6)
    wanted = by_hand(query_prefix="other: ", passage_prefix="", max_tokens=6)
    for question, hits in found().items():
        np.testing.assert_allclose([one.score for one in hits], [score for score, _ in wanted[question][:7]], atol=1e-4)


def test_more_than_there_are_is_all_and_none_is_refused():
    retriever = Dense(build(), device="cpu")
    ((*hits,),) = retriever.search([Question("q", "red")], 1000)
    assert (
        len({hit.passage_id for hit in hits}) == len(hits) == len({text for one in RECORDS for text in one["context"]})
    )
    assert retriever.search([], 3) == []
    with pytest.raises(IfqaError, match="at least 1; found 0"):
        retriever.search([Question("q", "red")], 0)


def change(path):
    """Other weights of the same size."""
    from safetensors.torch import load_file, save_file

    torch.manual_seed(5)
    save_file({name: torch.randn_like(one) for name, one in load_file(path).items()}, path, {"format": "pt"})


@pytest.mark.parametrize(
    ("model", "changed"),
    [("model", "model"), ("dpr/ctx_encoder", "dpr/ctx_encoder"), ("dpr/ctx_encoder", "dpr/question_encoder")],
)
def test_an_index_of_other_weights_is_neither_opened_nor_searched_nor_taken_for_built(model, changed):
    folder = build(model=model)
    found()
    before = read_manifest(folder)
    change(f"{changed}/model.safetensors")
    with pytest.raises(IfqaError, match="was built with another .*; build it again: ifqa index"):
        Dense(folder, device="cpu")
    with pytest.raises(IfqaError, match="made from something else .*; make it again: ifqa index mine"):
        found()
    build(model=model)
    assert read_manifest(folder)["wanted"] != before["wanted"]
    wanted = by_hand(model)
    for question, hits in found().items():
        np.testing.assert_allclose([one.score for one in hits], [score for score, _ in wanted[question][:7]], atol=1e-4)


def test_what_is_built_is_used_again_and_another_setting_is_another_index(capsys):
    build()
    found()
    capsys.readouterr()
    build()
    found()
    assert capsys.readouterr().err.count("nothing to do") == 3
    before = read_manifest(Path("experiments/mine/retrieve"))["wanted"]["indexes"]
    build(passage_prefix="other: ")
    found()
    assert read_manifest(Path("experiments/mine/retrieve"))["wanted"]["indexes"] != before


@pytest.mark.parametrize("place", ["model/manifest.json", "dpr/manifest.json", "dpr/question_encoder/manifest.json"])
def test_a_model_of_one_setting_is_refused_on_the_questions_of_the_other(place):
    sources = {"dev": sha256(Path("data/ifqa/full_split/dev.json"))}
    Path(place).write_text(json.dumps({"setting": "ifqa/few", "sources": sources}))
    build(model="model" if place.startswith("model") else "dpr/ctx_encoder")
    with pytest.raises(IfqaError, match="'dense' was trained on ifqa/few and may not be tested on ifqa/full"):
        open_retriever(experiment("full-dev"))
    assert open_retriever(experiment("few-dev")).setting == "ifqa/few"


@pytest.mark.parametrize("name", ["dense", "fusion"])
def test_a_model_that_was_trained_on_the_very_questions_is_told_of(name):
    manifest = {"setting": "ifqa/full", "sources": {"train": sha256(Path("data/ifqa/full_split/dev.json"))}}
    Path("model/manifest.json").write_text(json.dumps(manifest))
    build()
    own = {"name": "dense", "device": "cpu"}
    chosen = own if name == "dense" else {"name": "fusion", "parts": [own, {"name": "gold"}]}
    tables = {"benchmark": "ifqa", "split": "full-dev", "corpus": "mine", "retriever": chosen}
    folder = stages.retrieve(parse_experiment("mine", tables, "mine.toml"))
    assert read_manifest(folder)["made"]["trained_on_them"] is True


def test_what_a_build_takes_is_told_with_the_defaults_too():
    told = Dense.forecast(1000, model="model", device="cpu", precision="float32", factory="SQ8")
    assert told.disk > 1000 * 32
    assert told.seconds > 0
    assert Dense.forecast(1000, device="cpu").disk > 1000 * 2 * 384  # of the default encoder


@pytest.mark.parametrize(
    ("built", "searched", "message"),
    [
        ({}, {"nprobe": 3}, "nprobe is for a FAISS index, and .* is searched exactly; leave it out"),
        ({}, {"ef_search": 3}, "ef_search is for a FAISS index"),
        ({"keep_vectors": False}, {}, "keep_vectors = false leaves nothing to search in; name a factory"),
        ({"model": "nowhere/model/at/all"}, {}, "is neither a folder here nor a name of the hub"),
        ({"model": "indexes"}, {}, "indexes holds no model"),
        ({"device": "cdua"}, {}, "unknown device 'cdua'; did you mean 'cuda'"),
        ({"query_prefix": 5}, {}, "query_prefix"),
        ({"titels": "yes"}, {}, "'titels'; did you mean 'titles'"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(built, searched, message):
    with pytest.raises(IfqaError, match=message) as caught:
        build(**built)
        found(**searched)
    assert "\n" not in str(caught.value)
