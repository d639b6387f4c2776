"""Late interaction: MaxSim by its definition, as a model of the reranker."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from safetensors.torch import load_file, save_file
from three_passages import Scripted
from tiny_encoder import WORDS, tiny, tiny_late_interaction
from transformers import AutoTokenizer, BertModel

from ifqa.records import Passage, Question
from ifqa.retrieval import late_interaction
from ifqa.retrieval.composition import Part
from ifqa.retrieval.late_interaction import LateInteraction, is_late_interaction
from ifqa.retrieval.rerank import Rerank

pytestmark = pytest.mark.slow

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_late_interaction(tmp_path_factory.mktemp("late"))


@pytest.fixture(scope="module")
def model(folder):
    with pytest.MonkeyPatch.context() as patch:  # else it depends on the processor
        patch.setattr(late_interaction, "half_precision", lambda device: torch.float32)
        return LateInteraction(folder, "cpu")


def network_folder(folder):
    (first, *_) = json.loads((Path(folder) / "modules.json").read_text())
    return Path(folder) / first["path"]


@pytest.fixture(scope="module")
def token_vectors(folder):
    """A function: the vectors of a text's tokens, of length 1, by transformers alone."""
    tokens = AutoTokenizer.from_pretrained(network_folder(folder))
    network = BertModel.from_pretrained(network_folder(folder)).eval()
    [projection] = Path(folder).glob("*_Dense/model.safetensors")
    weights = load_file(projection)["linear.weight"]

    @torch.inference_mode()
    def encode(text):
        hidden = network(**tokens(text, return_tensors="pt")).last_hidden_state[0]
        return torch.nn.functional.normalize(hidden @ weights.T, dim=1).numpy()

    return encode


@given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
def test_a_score_is_the_sum_of_the_best_products_of_each_token(model, token_vectors, pairs):
    expected = [
        (token_vectors(question) @ token_vectors(text).T).max(1).sum() for question, text in pairs
    ]
    assert np.allclose(model.relevance(pairs), expected, atol=1e-4)


def test_no_pairs_have_no_scores(model):
    assert len(model.relevance([])) == 0


def test_a_lone_surrogate_is_read(model):
    assert np.isfinite(model.relevance([("wolf \ud800", "ship \udc80")])).all()


def test_the_reranker_orders_by_it(folder, model):
    passages = {"a": "wolf ship", "b": "gold iron salt", "c": "cat"}
    question = Question("q", "red wolf ship")
    settings = Rerank.Settings(model=folder, device="cpu", model_weight=1.0)
    reranker = Rerank(
        settings,
        parts=[Part(Scripted(), 3)],
        passages=lambda ids: [Passage(name, "", passages[name]) for name in ids],
    )
    [ranking] = reranker.search([question], 3)
    scores = model.relevance([(question.text, text) for text in passages.values()])
    expected = [name for _, name in sorted(zip(-scores, passages, strict=True))]
    assert [hit.passage_id for hit in ranking] == expected


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config_sentence_transformers.json", {"model_type": "ColBERT"}),
        ("config.json", {"architectures": ["HF_ColBERT"]}),
    ],
)
def test_models_of_pylate_or_stanford_are_known_by_their_files(tmp_path, file, content):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / file).write_text(json.dumps(content))
    assert is_late_interaction(str(tmp_path))


def test_a_model_with_one_vector_a_text_is_none(tmp_path):
    assert not is_late_interaction(tiny(tmp_path / "model"))


def test_a_model_that_lacks_weights_is_refused(folder, tmp_path):
    damaged = shutil.copytree(folder, tmp_path / "model")
    path = network_folder(damaged) / "model.safetensors"
    weights = load_file(path)
    weights.pop("encoder.layer.0.attention.self.query.weight")
    save_file(weights, path, {"format": "pt"})
    with refused("1 weights are missing"):
        LateInteraction(str(damaged), "cpu")


def test_files_that_are_no_model_are_refused(tmp_path):
    (tmp_path / "config.json").write_text("[]")
    with refused("config.json: wanted a JSON object, found list"):
        is_late_interaction(str(tmp_path))
