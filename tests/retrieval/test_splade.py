"""Learned sparse retrieval: weights by SPLADE's definition, inverted lists, and an index that is built, killed and opened."""

import shutil

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import SparseEncoder
from tiny_encoder import WORDS, tiny, tiny_mlm, tiny_splade
from transformers import AutoTokenizer, BertForMaskedLM
from vector_folder import write_passages

from ifqa.records import Question
from ifqa.retrieval.splade import Splade, open_sparse_encoder, query_weights
from ifqa.retrieval.vectors.vector_store import sample_passages

TEXTS = [f"{WORDS[n % 16]} {WORDS[n * 7 % 16]} {WORDS[n * n % 16]}" + " moon" * (n % 5) for n in range(60)]
QUESTIONS = [Question(f"q/{n}", text) for n, text in enumerate(["red moon", "cat fish dog", TEXTS[17], "wolf \udc80"])]
MAKERS = {"bare": tiny_mlm, "saved": tiny_splade, "looked up": lambda folder: tiny_splade(folder, looked_up=True)}


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp("model")) for name, make in MAKERS.items()}


@pytest.fixture
def passages(tmp_path):
    return write_passages(tmp_path / "passages", TEXTS)


def build(model, passages, folder, **settings):
    Splade.build(passages, folder, model=str(model), precision="float32", device="cpu", **settings)
    return Splade(folder, device="cpu")


def expected_weights(folder, texts):
    """log(1 + relu) of the words' logits, the highest of a text's tokens (Formal et al. 2021, SPLADE-max)."""
    network, tokens = BertForMaskedLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        logits = [network(**tokens(text, return_tensors="pt")).logits[0] for text in texts]
    return np.array([[max(np.log1p(max(logit, 0.0)) for logit in word) for word in text.T.tolist()] for text in logits])


@pytest.mark.parametrize("name", ["bare", "saved"])
def test_weights_follow_the_definition(models, name):
    expected = expected_weights(models[name], TEXTS[:9])
    actual = np.zeros_like(expected)
    queries = query_weights(open_sparse_encoder(models[name], "float32", "cpu"), TEXTS[:9])
    for row, (words, weights) in zip(actual, queries, strict=True):
        row[words] = weights
    assert np.allclose(actual, expected, atol=1e-5)
    assert (expected == 0).any()


@pytest.mark.parametrize("name", MAKERS)
def test_search_is_the_inner_product_as_in_sentence_transformers(models, passages, tmp_path, name):
    index = build(models[name], passages, tmp_path / "index")
    reference = SparseEncoder(models[name], device="cpu")
    texts = [question.text.encode("utf-8", "replace").decode() for question in QUESTIONS]
    scores = reference.similarity(reference.encode_query(texts), reference.encode_document(TEXTS)).numpy()
    for score, ranking in zip(scores, index.search(QUESTIONS, 7), strict=True):
        expected = sorted(score, reverse=True)[:7]
        assert [hit.score for hit in ranking] == pytest.approx(expected, rel=2e-3)
        assert [score[int(hit.passage_id[1:])] for hit in ranking] == pytest.approx(expected, rel=2e-3)
    assert len(index.search(QUESTIONS[:1], 99)[0]) == (scores[0] > 0).sum()
    assert index.search([], 7) == []


def test_titles_are_read_before_the_text_and_encode_everything_again(models, passages, tmp_path):
    model = models["saved"]
    reference = build(model, passages, tmp_path / "reference").search(QUESTIONS, 60)
    titled = build(model, passages, tmp_path / "reference", titles=True).search(QUESTIONS, 60)
    gold_texts = write_passages(tmp_path / "gold", [f"gold {text}" for text in TEXTS])
    assert titled == build(model, gold_texts, tmp_path / "gold index").search(QUESTIONS, 60) != reference


def test_the_forecast_is_the_size_of_the_index(models, tmp_path):
    texts = [passage.text for passage in sample_passages("cpu")]
    build(models["saved"], write_passages(tmp_path / "passages", texts), tmp_path / "index")
    cost = Splade.forecast(96, model=models["saved"], precision="float32", device="cpu")
    size = sum(np.load(path).nbytes for path in (tmp_path / "index").glob("[srw]*-*.npy"))
    assert cost.disk == pytest.approx(size + 96 * 16, rel=0.05)
    assert cost.seconds > 0
    assert "passages a second, measured now" in cost.about


def test_other_models_and_damaged_models_and_indexes_are_refused(models, passages, tmp_path):
    with refused("is not a learned sparse encoder: its files name SentenceTransformer"):
        open_sparse_encoder(tiny(tmp_path / "plain"), "float32", "cpu")
    with refused("has the similarity 'cosine'; wanted a model for inner product"):
        build(tiny_splade(tmp_path / "cosine", similarity="cosine"), passages, tmp_path / "index")
    for name, file in (("saved", "model.safetensors"), ("looked up", "document_0_Transformer/model.safetensors")):
        incomplete = shutil.copytree(models[name], tmp_path / name)
        weights = load_file(incomplete / file)
        weights.pop("cls.predictions.transform.dense.weight")
        save_file(weights, incomplete / file, {"format": "pt"})
        with refused("1 weights are missing"):
            open_sparse_encoder(str(incomplete), "float32", "cpu")
    model, index = shutil.copytree(models["saved"], tmp_path / "model"), tmp_path / "index"
    build(model, passages, index)
    rows = index / "rows-00001.npy"
    np.save(rows, np.load(rows)[:-1])
    with refused("do not match; build the index again"):
        Splade(index)
    rows.unlink()
    with refused(r"rows-00001\.npy"):
        Splade(index)
    (model / "config.json").write_text((model / "config.json").read_text() + " ")
    with refused("was built with a different"):
        Splade(index)
    (index / "splade.json").write_text("{}")
    with refused("build it again"):
        Splade(index)
