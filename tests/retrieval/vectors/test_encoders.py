"""Encoders: the vectors of sentence-transformers and DPR in batches of any size, and refused
settings.
"""

import json
import shutil
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tiny_encoder import tiny, tiny_dpr, tokenizer
from transformers import DPRContextEncoder, DPRQuestionEncoder

from ifqa.models import devices
from ifqa.models.places import MINILM, minilm_folder
from ifqa.records import Passage
from ifqa.retrieval.vectors.encoders import EncoderSettings, open_encoder

TEXTS = [
    "red",
    "cat dog bird sun moon tree rock",
    "green bird",
    "ship " * 60,
    "gold iron",
    "blue",
    "wolf fish " * 9,
]
PASSAGES = [Passage(f"p{n}", f"moon {n}" if n % 2 else "", text) for n, text in enumerate(TEXTS)]
FACTS = {
    "pooling": "mean",
    "normalised": True,
    "query_prefix": "query: ",
    "passage_prefix": "passage: ",
    "titles": False,
    "max_tokens": 48,
    "precision": "float32",
    "dimension": 32,
}


def open_float(model, **settings):
    return open_encoder(
        EncoderSettings(model, **{"precision": "float32", "device": "cpu"} | settings)
    )


cached_open = cache(open_float)

VARIANTS: dict[str, dict[str, Any]] = {
    "mean": {},
    "cls": {"pooling": "cls", "normalise": False},
    "lasttoken, padded left": {"pooling": "lasttoken", "decoder": True},
    "mean, padded left, prompt left out": {
        "decoder": True,
        "normalise": False,
        "include_prompt": False,
    },
    "mean, prompt left out": {"include_prompt": False},
    "no prompts": {"prompts": None},
}


@pytest.fixture(scope="session", params=VARIANTS)
def model(request, tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("model"), **VARIANTS[request.param])


@pytest.fixture(scope="session")
def bert(tmp_path_factory):
    return tiny(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def dpr(tmp_path_factory):
    return tiny_dpr(tmp_path_factory.mktemp("dpr"))


def one_by_one(encode, texts):
    return np.stack([encode([text])[0] for text in texts])


assert_close = partial(np.testing.assert_allclose, atol=1e-5)


def test_vectors_are_those_of_sentence_transformers(model, monkeypatch):
    encoder = open_float(model)
    reference = SentenceTransformer(model, device="cpu")
    queries = one_by_one(reference.encode_query, TEXTS)
    passages = one_by_one(reference.encode_document, TEXTS)
    for budget, chunk in ((1, 3), (40, 5), (2048, 256)):
        monkeypatch.setitem(devices.BATCH_TOKENS, "cpu", budget)
        monkeypatch.setattr(devices, "CHUNK", chunk)
        assert_close(encoder.encode_queries(TEXTS), queries)
        assert_close(encoder.encode_passages(PASSAGES), passages)


def test_the_default_encoder_equals_sentence_transformers():
    texts = ["If Ann had not left, who would lead?", "A passage. " * 80, "x", "naïve 東京"]
    encoder = open_float(MINILM)
    reference = SentenceTransformer(str(minilm_folder()), device="cpu")
    passages = [Passage("p", "a title", text) for text in texts]
    assert_close(encoder.encode_queries(texts), one_by_one(reference.encode_query, texts))
    assert_close(encoder.encode_passages(passages), one_by_one(reference.encode_document, texts))
    assert (
        encoder.facts["max_tokens"],
        encoder.facts["dimension"],
        encoder.facts["normalised"],
    ) == (256, 384, True)


SET = {"query_prefix": "", "passage_prefix": "other: ", "max_tokens": 8}


def test_settings_are_reported(bert):
    assert open_float(bert).facts == FACTS | {"model": bert}
    encoder = open_float(bert, titles="yes", **SET)
    assert encoder.facts == FACTS | SET | {"model": bert, "titles": True}


def test_settings_change_what_is_encoded(bert):
    encoder = open_float(bert, titles="yes", **SET)
    reference = SentenceTransformer(bert, device="cpu")
    reference.max_seq_length = 8
    texts = [f"other: {passage.title} {passage.text}".replace(":  ", ": ") for passage in PASSAGES]
    assert_close(encoder.encode_passages(PASSAGES), one_by_one(reference.encode, texts))
    assert_close(encoder.encode_queries(TEXTS), one_by_one(reference.encode, TEXTS))


def copy_without(weight, folder, copy):
    """A copy of a model that lacks a weight."""
    shutil.copytree(folder, copy)
    [path] = copy.glob("**/model.safetensors")
    tensors = load_file(path)
    save_file(
        {name: tensor for name, tensor in tensors.items() if weight not in name},
        path,
        {"format": "pt"},
    )
    return str(copy)


def test_a_missing_weight_is_refused(bert, dpr, tmp_path):
    """transformers would initialise it at random, with other vectors in each process."""
    with refused(
        r"1 weights are missing or have a wrong shape, such as .*attention.self.query.weight"
    ):
        open_float(copy_without("layer.0.attention.self.query.weight", bert, tmp_path / "half"))
    open_float(copy_without("pooler.", bert, tmp_path / "no pooler"))
    shutil.copytree(Path(dpr).with_name("question_encoder"), tmp_path / "question_encoder")
    with refused("1 weights are missing"):
        open_float(copy_without("layer.1.output.dense.bias", dpr, tmp_path / "ctx_encoder"))


def dpr_vectors(kind, folder, inputs):
    """DPR's vectors by plain transformers: a (text,) or (title, text) at a time, of up to 40
    tokens, with token types 0.
    """
    network = kind.from_pretrained(folder).eval()
    vectors = []
    for texts in inputs:
        ids = tokenizer()(*texts, truncation=True, max_length=40, return_tensors="pt").input_ids
        with torch.no_grad():
            vectors.append(
                network(ids, token_type_ids=torch.zeros_like(ids)).pooler_output[0].numpy()
            )
    return np.stack(vectors)


ALONE = [(text,) for text in TEXTS]
batches = pytest.mark.parametrize("budget", [30, 2048])


@pytest.fixture
def small_batches(budget, monkeypatch):
    monkeypatch.setitem(devices.BATCH_TOKENS, "cpu", budget)


@batches
@pytest.mark.usefixtures("small_batches")
def test_dpr_reads_a_passage_as_a_pair(dpr):
    titled = [
        (passage.title, passage.text) if passage.title else (passage.text,) for passage in PASSAGES
    ]
    vectors = open_float(dpr, max_tokens=40).encode_passages(PASSAGES)
    assert_close(vectors, dpr_vectors(DPRContextEncoder, dpr, titled))


@batches
@pytest.mark.usefixtures("small_batches")
def test_dpr_reads_a_question_alone(dpr):
    questions = dpr.replace("ctx_encoder", "question_encoder")
    vectors = open_float(dpr, max_tokens=40).encode_queries(TEXTS)
    assert_close(vectors, dpr_vectors(DPRQuestionEncoder, questions, ALONE))


@batches
@pytest.mark.usefixtures("small_batches")
def test_dpr_reads_no_titles_if_so_configured(dpr):
    untitled = open_float(dpr, max_tokens=40, titles="no").encode_passages(PASSAGES)
    assert_close(untitled, dpr_vectors(DPRContextEncoder, dpr, ALONE))


def test_dpr_reports_its_two_models(dpr):
    facts = {
        "model": dpr,
        "query_model": dpr.replace("ctx_encoder", "question_encoder"),
        "pooling": "cls",
        "normalised": False,
        "titles": True,
    }
    assert open_float(dpr, max_tokens=40).facts == FACTS | facts | {
        "query_prefix": "",
        "passage_prefix": "",
        "max_tokens": 40,
    }


def test_no_texts_have_no_vectors(bert, dpr):
    for folder in (bert, dpr):
        encoder = cached_open(folder)
        assert encoder.encode_queries([]).shape == encoder.encode_passages([]).shape == (0, 32)


def test_a_lone_surrogate_has_a_vector(bert):
    assert np.isfinite(cached_open(bert).encode_queries(["red \ud800 cat"])).all()


@pytest.fixture
def static(tmp_path):
    """A folder with a static encoder: a vector for each token."""
    folder = str(tmp_path / "static")
    SentenceTransformer(
        modules=[StaticEmbedding(tokenizer(), embedding_dim=32)], device="cpu"
    ).save(folder)
    return folder


def test_a_static_encoder_reads_texts_of_any_length(static):
    assert open_float(static).facts["max_tokens"] is None


def test_the_facts_of_a_static_encoder_open_it_again(static):
    first = open_float(static)
    again = open_float(static, max_tokens=json.loads(json.dumps(first.facts))["max_tokens"])
    np.testing.assert_array_equal(first.encode_queries(TEXTS), again.encode_queries(TEXTS))


def test_a_static_encoder_takes_no_longest_text(static):
    with refused("max_tokens = 9: .* remove the setting"):
        open_float(static, max_tokens=9)


def test_a_missing_prefix_is_reported(tmp_path, capsys):
    open_float(tiny(tmp_path / "bge-small"))
    assert "prefix" not in capsys.readouterr().err
    open_float(tiny(tmp_path / "e5-small", prompts=None))
    assert "its files have no prefix" in capsys.readouterr().err


def half_beside_exact(folder):
    """The vectors in half precision, and the exact ones, of passages and then of queries."""
    exact = cached_open(folder)
    half = open_float(folder, precision="bfloat16")
    for method, inputs in (("encode_passages", PASSAGES[:3]), ("encode_queries", TEXTS[:3])):
        yield [getattr(encoder, method)(inputs) for encoder in (half, exact)]


def test_half_precision_keeps_direction(bert, dpr):
    for folder in (bert, dpr):
        for vectors, expected in half_beside_exact(folder):
            assert vectors.dtype == np.float32
            cosines = torch.cosine_similarity(torch.tensor(vectors), torch.tensor(expected))
            assert (cosines > 0.999).all()
            assert not np.array_equal(vectors, expected)


def test_half_precision_keeps_length(bert):
    for vectors, _ in half_beside_exact(bert):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"device": "cdua"}, "unknown device 'cdua'; did you mean 'cuda'"),
        ({"device": "cuda"}, "'cuda' is not available to torch here"),
        ({"max_tokens": -1}, "max_tokens: wanted 3 to"),
        ({"max_tokens": 1}, "max_tokens"),  # too few for a text and its special tokens
        ({"max_tokens": 1000}, "max_tokens"),  # more than the model has positions
        ({"query_model": "x"}, "query_model is for DPR"),
        ({"query_prefix": "x", "model": "dpr"}, "take no prefix"),
        (
            {"query_model": "/nowhere", "model": "dpr"},
            "found no model '/nowhere' in an installed package",
        ),
        ({"max_tokens": 301, "model": "dpr"}, "max_tokens"),
    ],
)
def test_an_invalid_setting_raises_a_one_line_error(bert, dpr, change, message, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    model = dpr if change.pop("model", "") else bert
    with refused(message):
        open_float(model, **change).encode_queries(["ship " * 400])
