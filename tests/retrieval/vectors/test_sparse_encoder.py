"""Learned sparse encoders: weights by SPLADE's definition and by sentence-transformers, and refused
models.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import SparseEncoder
from tiny_encoder import WORDS, tiny, tiny_mlm, tiny_splade
from transformers import AutoTokenizer, BertForMaskedLM

from ifqa.records import Passage
from ifqa.retrieval.vectors.sparse_encoder import (
    open_sparse_encoder,
    passage_weights,
    query_weights,
)

TEXTS = [
    f"{WORDS[n % 16]} {WORDS[n * 7 % 16]} {WORDS[n * n % 16]}" + " moon" * (n % 5)
    for n in range(12)
]
MAKERS: dict[str, Callable[[Path], str]] = {
    "bare": tiny_mlm,
    "saved": tiny_splade,
    "looked up": lambda folder: tiny_splade(folder, looked_up=True),
}


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp("model")) for name, make in MAKERS.items()}


def dense(weights, words):
    rows = np.zeros((len(weights), words))
    for row, words_of_text in zip(rows, weights, strict=True):
        row[list(words_of_text)] = list(words_of_text.values())
    return rows


def expected_weights(folder, texts):
    """log(1 + relu) of the words' logits, the highest of a text's tokens (Formal et al. 2021,
    SPLADE-max).
    """
    network = BertForMaskedLM.from_pretrained(folder).eval()
    tokens = AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        logits = [network(**tokens(text, return_tensors="pt")).logits[0] for text in texts]
    return np.array(
        [
            [max(np.log1p(max(logit, 0.0)) for logit in word) for word in text.T.tolist()]
            for text in logits
        ]
    )


@pytest.mark.parametrize("name", ["bare", "saved"])
def test_weights_follow_the_definition(models, name):
    expected = expected_weights(models[name], TEXTS[:9])
    actual = dense(
        query_weights(open_sparse_encoder(models[name], "float32", "cpu"), TEXTS[:9]),
        expected.shape[1],
    )
    assert np.allclose(actual, expected, atol=1e-5)
    assert (expected == 0).any()


@pytest.mark.parametrize("name", MAKERS)
def test_questions_and_passages_have_the_weights_of_sentence_transformers(models, name):
    model = open_sparse_encoder(models[name], "float32", "cpu")
    reference = SparseEncoder(models[name], device="cpu")
    expected = reference.encode_document([f"gold {text}" for text in TEXTS]).to_dense().numpy()
    passages = [Passage("p", "gold", text) for text in TEXTS]
    assert np.allclose(
        dense(passage_weights(model, True, passages), expected.shape[1]), expected, atol=1e-5
    )
    untitled = dense(passage_weights(model, False, passages), expected.shape[1])
    assert np.allclose(untitled, reference.encode_document(TEXTS).to_dense().numpy(), atol=1e-5)
    query = reference.encode_query(["wolf ?"]).to_dense().numpy()
    assert np.allclose(
        dense(query_weights(model, ["wolf \udc80"]), expected.shape[1]), query, atol=1e-5
    )
    assert query_weights(model, []) == []


def test_other_models_and_damaged_models_are_refused(models, tmp_path):
    with refused("is not a learned sparse encoder: its files name SentenceTransformer"):
        open_sparse_encoder(tiny(tmp_path / "plain"), "float32", "cpu")
    with refused("has the similarity 'cosine'; wanted a model for inner product"):
        open_sparse_encoder(tiny_splade(tmp_path / "cosine", similarity="cosine"), "float32", "cpu")
    for name, file in (
        ("saved", "model.safetensors"),
        ("looked up", "document_0_Transformer/model.safetensors"),
    ):
        incomplete = shutil.copytree(models[name], tmp_path / name)
        weights = load_file(incomplete / file)
        weights.pop("cls.predictions.transform.dense.weight")
        save_file(weights, incomplete / file, {"format": "pt"})
        with refused("1 weights are missing"):
            open_sparse_encoder(str(incomplete), "float32", "cpu")
