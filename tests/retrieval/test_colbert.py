"""Late interaction: token vectors and MaxSim by ColBERT's definition, and an index that is built, killed and opened."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder
from tiny_encoder import WORDS, tiny, tiny_colbert, tiny_mlm
from transformers import AutoTokenizer, BertModel
from vector_folder import write_passages

from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.retrieval.colbert import ColBERT, TokenVectors, maxsim, query_vectors
from ifqa.retrieval.composition import Part
from ifqa.retrieval.vectors.token_encoders import open_token_model
from ifqa.retrieval.vectors.vector_store import Shards

TEXTS = [f"{WORDS[n % 16]} : {WORDS[n * 7 % 16]} {WORDS[n * n % 16]}" + " moon" * (n % 5) for n in range(60)]
QUESTIONS = [Question(f"q/{n}", text) for n, text in enumerate(["red moon", "cat fish dog", TEXTS[17], "wolf \udc80"])]


class Fixed(Retriever):
    """The same passages for every question, with equal scores."""

    def __init__(self, ids, generated):
        self.ranking = SearchResult([Hit(passage_id, 1.0) for passage_id in ids], generated)

    def search(self, questions, k):
        return [self.ranking[:k] for _ in questions]


def part(ids=tuple(f"p{n}" for n in range(60)), generated=None, k=40):
    return Part(Fixed(ids, generated), k)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return tiny_colbert(tmp_path_factory.mktemp("colbert"))


@pytest.fixture
def passages(tmp_path):
    return write_passages(tmp_path / "passages", TEXTS)


def build(model, passages, folder, **settings):
    ColBERT.build(passages, folder, model=model, precision="float32", device="cpu", **settings)
    return ColBERT(folder, parts=[part()], device="cpu")


@cache
def load_parts(folder):
    projection = load_file(f"{folder}/1_Dense/model.safetensors")["linear.weight"]
    return BertModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder), projection


def token_vectors(folder, text, skipped=()):
    """Unit vectors of a text's tokens: BERT's outputs, projected (Khattab and Zaharia 2020, section 3.2)."""
    network, tokenizer, projection = load_parts(folder)
    ids = tokenizer(text)["input_ids"]
    with torch.inference_mode():
        outputs = network(torch.tensor([ids])).last_hidden_state[0] @ projection.T
    rows = [row for row, token in enumerate(ids) if token not in tokenizer.convert_tokens_to_ids(list(skipped))]
    return torch.nn.functional.normalize(outputs[rows], dim=1).tolist()


def maxsim_by_loops(query, tokens):
    return sum(max(float(np.dot(vector, token)) for token in tokens) for vector in query)


def test_search_is_maxsim_by_its_definition_and_as_in_sentence_transformers(model, passages, tmp_path):
    build(model, passages, tmp_path / "index")
    index = ColBERT(tmp_path / "index", parts=[part(k=9)], device="cpu")
    reference = MultiVectorEncoder(model, device="cpu")
    texts = [question.text.encode("utf-8", "replace").decode() for question in QUESTIONS]
    scores = reference.similarity(reference.encode_query(texts), reference.encode_document(TEXTS[:9])).numpy()
    stored = [token_vectors(model, f"passage: {text}", ":") for text in TEXTS[:9]]
    for text, score, ranking in zip(texts, scores, index.search(QUESTIONS, 7), strict=True):
        expected = [maxsim_by_loops(token_vectors(model, f"query: {text}"), tokens) for tokens in stored]
        assert score.tolist() == pytest.approx(expected, abs=1e-5)
        actual = [expected[int(hit.passage_id[1:])] for hit in ranking]
        assert [hit.score for hit in ranking] == pytest.approx(actual, abs=5e-3)
        assert actual == pytest.approx(sorted(expected, reverse=True)[:7], abs=5e-3)
    assert len(index.search(QUESTIONS[:1], 99)[0]) == 9  # the part's depth


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(0, 4), max_size=6), seed=st.integers(0, 99))
def test_maxsim_equals_loops_for_passages_of_any_lengths(lengths, seed):
    rng = np.random.default_rng(seed)
    query = rng.normal(size=(3, 5)).astype(np.float32)
    passages = [rng.normal(size=(length, 5)).astype(np.float32) for length in lengths]
    tokens = np.concatenate([np.empty((0, 5), np.float32), *passages])
    expected = [maxsim_by_loops(query.tolist(), passage.tolist()) if len(passage) else 0 for passage in passages]
    assert maxsim(query, tokens, np.array(lengths, np.int64)).tolist() == pytest.approx(expected, abs=1e-4)


def test_bfloat16_vectors_have_length_1_and_are_close_to_float32(model):
    models = (open_token_model("late", model, precision, "cpu") for precision in ("bfloat16", "float32"))
    half, exact = (query_vectors(opened, ["red moon"])[0] for opened in models)
    assert np.linalg.norm(half, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.allclose(half, exact, atol=0.1)
    assert not np.allclose(half, exact, atol=1e-5)


def test_passages_of_equal_score_keep_the_parts_order(model, tmp_path):
    index = build(model, write_passages(tmp_path / "passages", ["moon"] * 60), tmp_path / "index")
    assert [hit.passage_id for hit in index.search(QUESTIONS[:1], 4)[0]] == ["p0", "p1", "p2", "p3"]
    assert ColBERT(tmp_path / "index", parts=[part(())], device="cpu").search(QUESTIONS, 3) == [SearchResult([])] * 4


def test_vectors_are_stored_in_half_precision_with_or_without_titles(model, passages, tmp_path):
    for titles in (False, True):
        build(model, passages, tmp_path / str(titles), titles=titles)
        tokens, lengths = TokenVectors(Shards(tmp_path / str(titles))).look_up(["p7", "p2"])
        expected = token_vectors(model, f"passage: {'gold ' * titles}{TEXTS[2]}", ":")
        assert lengths.tolist()[1] == len(expected)
        assert np.allclose(tokens[lengths[0] :], expected, atol=1e-3)
        assert np.load(tmp_path / str(titles) / "tokens-00000.npy").dtype == np.float16


def test_the_layout_of_the_authors_checkpoints_opens(tmp_path):
    tiny_mlm(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights = {name: tensor for name, tensor in weights.items() if name.startswith("bert.")}
    weights["linear.weight"] = torch.randn(6, 32, generator=torch.manual_seed(0))
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.add_special_tokens({"mask_token": "wolf"})
    tokenizer.save_pretrained(tmp_path)
    metadata = {"query_token_id": "red", "doc_token_id": "blue", "mask_punctuation": True}
    (tmp_path / "artifact.metadata").write_text(json.dumps(metadata | {"query_maxlen": 9, "doc_maxlen": 20}))
    [vectors] = query_vectors(open_token_model("late", str(tmp_path), "float32", "cpu"), ["moon"])
    assert vectors.shape == (9, 6)  # [CLS] red moon [SEP], and masks up to the query's length
    network = BertModel.from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        ids = torch.tensor([tokenizer.convert_tokens_to_ids(["[CLS]", "red", "moon", "[SEP]", *["wolf"] * 5])])
        mask = torch.tensor([[1] * 4 + [0] * 5])
        outputs = network(ids, attention_mask=mask).last_hidden_state[0] @ weights["linear.weight"].T
    assert np.allclose(vectors, torch.nn.functional.normalize(outputs, dim=1), atol=1e-5)


def test_other_models_wrong_parts_and_a_damaged_index_are_refused(model, passages, tmp_path):
    with refused("is not a late-interaction model: its files name SentenceTransformer"):
        open_token_model("late", tiny(tmp_path / "plain"), "float32", "cpu")
    index = tmp_path / "index"
    build(model, passages, index)
    with refused("has no passage elsewhere"):
        ColBERT(index, parts=[part(("p3", "elsewhere"))], device="cpu").search(QUESTIONS, 3)
    with refused("its part generates passages"):
        ColBERT(index, parts=[part(generated=[Passage("p1", "", "made")])], device="cpu").search(QUESTIONS, 3)
    tokens = index / "tokens-00001.npy"
    np.save(tokens, np.load(tokens)[:-1])
    with refused("do not match its lengths and ids"):
        ColBERT(index, parts=[part()])
