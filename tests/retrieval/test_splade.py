"""Learned sparse retrieval: weights as SPLADE defines them, inverted lists, and an index that is built, killed and opened."""

import shutil

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import SparseEncoder
from tiny_encoder import WORDS, tiny, tiny_mlm, tiny_splade
from transformers import AutoTokenizer, BertForMaskedLM
from vector_folder import after_a_kill, write_passages

from ifqa.records import Question
from ifqa.retrieval.splade import Splade, query_weights
from ifqa.retrieval.vectors.token_encoders import open_token_model
from ifqa.retrieval.vectors.vector_store import sample_passages

TEXTS = [f"{WORDS[n % 16]} {WORDS[n * 7 % 16]} {WORDS[n * n % 16]}" + " moon" * (n % 5) for n in range(60)]
ASKED = [Question(f"q/{n}", text) for n, text in enumerate(["red moon", "cat fish dog", TEXTS[17], "wolf \udc80"])]
MAKES = {"bare": tiny_mlm, "saved": tiny_splade, "looked up": lambda folder: tiny_splade(folder, looked_up=True)}


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp("model")) for name, make in MAKES.items()}


@pytest.fixture
def passages(tmp_path):
    return write_passages(tmp_path / "passages", TEXTS)


def built(models, passages, folder, name="saved", **settings):
    Splade.build(passages, folder, model=models[name], precision="float32", device="cpu", **settings)
    return Splade(folder, device="cpu")


def by_definition(folder, texts):
    """log(1 + relu) of the words' logits, the highest of a text's tokens (Formal et al. 2021, SPLADE-max)."""
    network, tokens = BertForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        logits = [network(**tokens(text, return_tensors="pt")).logits[0] for text in texts]
    return np.array([[max(np.log1p(max(logit, 0.0)) for logit in word) for word in text.T.tolist()] for text in logits])


def dense(weights, size):
    matrix = np.zeros((len(weights), size), np.float32)
    for row, (words, values) in zip(matrix, weights, strict=True):
        row[words] = values
    return matrix


@pytest.mark.parametrize("name", ["bare", "saved"])
def test_weights_are_those_of_the_definition(models, name):
    weights = query_weights(open_token_model("sparse", models[name], "float32", "cpu"), TEXTS[:9])
    wanted = by_definition(models[name], TEXTS[:9])
    assert np.allclose(dense(weights, wanted.shape[1]), wanted, atol=1e-5)
    assert (wanted == 0).any()


@pytest.mark.parametrize("name", MAKES)
def test_search_is_the_inner_product_as_sentence_transformers_has_it(models, passages, tmp_path, name):
    index = built(models, passages, tmp_path / "index", name)
    theirs = SparseEncoder(models[name], device="cpu")
    texts = [question.text.encode("utf-8", "replace").decode() for question in ASKED]
    scores = theirs.similarity(theirs.encode_query(texts), theirs.encode_document(TEXTS)).numpy()
    for score, ranking in zip(scores, index.search(ASKED, 7), strict=True):
        wanted = sorted(score, reverse=True)[:7]
        assert [hit.score for hit in ranking] == pytest.approx(wanted, rel=2e-3)
        assert [score[int(hit.passage_id[1:])] for hit in ranking] == pytest.approx(wanted, rel=2e-3)
    assert len(index.search(ASKED[:1], 99)[0]) == (scores[0] > 0).sum()
    assert index.search([], 7) == []


def test_a_killed_build_goes_on_and_only_other_settings_weigh_everything_again(models, passages, tmp_path):
    whole = built(models, passages, tmp_path / "whole")
    again, encoded = after_a_kill(lambda: built(models, passages, tmp_path / "killed"))
    assert (again.search(ASKED, 60), encoded) == (whole.search(ASKED, 60), [1])
    titled = built(models, passages, tmp_path / "killed", titles=True)
    other = built(models, write_passages(tmp_path / "other", [f"gold {text}" for text in TEXTS]), tmp_path / "by hand")
    assert titled.search(ASKED, 5) == other.search(ASKED, 5) != whole.search(ASKED, 5)


def test_the_forecast_is_the_size_of_such_an_index(models, tmp_path):
    built(
        models,
        write_passages(tmp_path / "passages", [passage.text for passage in sample_passages("cpu")]),
        tmp_path / "index",
    )
    cost = Splade.forecast(96, model=models["saved"], precision="float32", device="cpu")
    kept = sum(np.load(path).nbytes for path in (tmp_path / "index").glob("[srw]*-*.npy"))
    assert cost.disk == pytest.approx(kept + 96 * 16, rel=0.05)
    assert cost.seconds > 0
    assert "passages a second, measured now" in cost.about


def test_models_of_another_kind_and_damaged_models_and_indexes_are_refused(models, passages, tmp_path):
    with refused("is not a learned sparse encoder: its files name SentenceTransformer"):
        open_token_model("sparse", tiny(tmp_path / "plain"), "float32", "cpu")
    compares = tiny_splade(tmp_path / "cosine", similarity="cosine")
    with refused("has the similarity 'cosine'; wanted a model for inner product"):
        Splade.build(passages, tmp_path / "index", model=compares)
    for name, file in (("saved", "model.safetensors"), ("looked up", "document_0_Transformer/model.safetensors")):
        lacking = tmp_path / name
        shutil.copytree(models[name], lacking)
        weights = load_file(lacking / file)
        weights.pop("cls.predictions.transform.dense.weight")
        save_file(weights, lacking / file, {"format": "pt"})
        with refused("1 weights are missing"):
            open_token_model("sparse", str(lacking), "float32", "cpu")
    model, index = tmp_path / "model", tmp_path / "index"
    shutil.copytree(models["saved"], model)
    built({"saved": str(model)}, passages, index)
    rows = index / "rows-00001.npy"
    np.save(rows, np.load(rows)[:-1])
    with refused("do not match; build the index again"):
        Splade(index)
    rows.unlink()
    with refused(r"rows-00001\.npy"):
        Splade(index)
    (model / "config.json").write_text((model / "config.json").read_text() + " ")
    with refused("was built with another"):
        Splade(index)
    (index / "splade.json").write_text("{}")
    with refused("build it again"):
        Splade(index)
    with refused("no passages in"):
        Splade.build(write_passages(tmp_path / "none", []), index, model=models["saved"])
