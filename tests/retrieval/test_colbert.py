"""Late interaction: token vectors and MaxSim as ColBERT defines them, and an index that is built, killed and opened."""

import json
import math
import shutil
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
ASKED = [Question(f"q/{n}", text) for n, text in enumerate(["red moon", "cat fish dog", TEXTS[17], "wolf \udc80"])]


class Fixed(Retriever):
    """The same passages for every question, all of the same score."""

    def __init__(self, ids, generated=None):
        self.ids, self.generated = ids, generated

    def search(self, questions, k):
        return [SearchResult([Hit(passage_id, 1.0) for passage_id in self.ids[:k]], self.generated) for _ in questions]


def part(ids=tuple(f"p{n}" for n in range(60)), generated=None, k=40):
    return Part(Fixed(ids, generated), k)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return tiny_colbert(tmp_path_factory.mktemp("colbert"))


@pytest.fixture
def passages(tmp_path):
    return write_passages(tmp_path / "passages", TEXTS)


def built(model, passages, folder, **settings):
    ColBERT.build(passages, folder, model=model, precision="float32", device="cpu", **settings)
    return ColBERT(folder, parts=[part()], device="cpu")


@cache
def opened(folder):
    projection = load_file(f"{folder}/1_Dense/model.safetensors")["linear.weight"]
    return BertModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder), projection


def by_definition(folder, text, skipped=()):
    """Unit vectors of a text's tokens: BERT's outputs, projected (Khattab and Zaharia 2020, section 3.2)."""
    network, tokens, projection = opened(folder)
    ids = tokens(text)["input_ids"]
    with torch.inference_mode():
        outputs = network(torch.tensor([ids])).last_hidden_state[0] @ projection.T
    kept = [at for at, token in enumerate(ids) if token not in tokens.convert_tokens_to_ids(list(skipped))]
    return [[number / math.hypot(*row) for number in row] for row in outputs[kept].tolist()]


def looped(query, tokens):
    return sum(
        max(sum(x * y for x, y in zip(query_token, token, strict=True)) for token in tokens) for query_token in query
    )


def test_search_is_maxsim_by_its_definition_and_as_sentence_transformers_has_it(model, passages, tmp_path):
    built(model, passages, tmp_path / "index")
    index = ColBERT(tmp_path / "index", parts=[part(k=9)], device="cpu")
    theirs = MultiVectorEncoder(model, device="cpu")
    texts = [question.text.encode("utf-8", "replace").decode() for question in ASKED]
    scores = theirs.similarity(theirs.encode_query(texts), theirs.encode_document(TEXTS[:9])).numpy()
    stored = [by_definition(model, f"passage: {text}", ":") for text in TEXTS[:9]]
    for text, score, ranking in zip(texts, scores, index.search(ASKED, 7), strict=True):
        wanted = [looped(by_definition(model, f"query: {text}"), tokens) for tokens in stored]
        assert score.tolist() == pytest.approx(wanted, abs=1e-5)
        actual = [wanted[int(hit.passage_id[1:])] for hit in ranking]
        assert [hit.score for hit in ranking] == pytest.approx(actual, abs=5e-3)
        assert actual == pytest.approx(sorted(wanted, reverse=True)[:7], abs=5e-3)
    assert len(index.search(ASKED[:1], 99)[0]) == 9  # as many as the part gives


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(0, 4), max_size=6), seed=st.integers(0, 99))
def test_maxsim_is_that_of_loops_for_passages_of_any_lengths(lengths, seed):
    rng = np.random.default_rng(seed)
    query = rng.normal(size=(3, 5)).astype(np.float32)
    passages = [rng.normal(size=(length, 5)).astype(np.float32) for length in lengths]
    tokens = np.concatenate([np.empty((0, 5), np.float32), *passages])
    wanted = [looped(query.tolist(), passage.tolist()) if len(passage) else 0 for passage in passages]
    assert maxsim(query, tokens, np.array(lengths, np.int64)).tolist() == pytest.approx(wanted, abs=1e-4)


def test_vectors_in_bfloat16_have_length_1_and_are_close_to_those_in_float32(model):
    half, whole = (query_vectors(open_token_model("late", model, precision, "cpu"), ["red moon"])[0]
                   for precision in ("bfloat16", "float32"))  # fmt: skip
    assert np.linalg.norm(half, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.allclose(half, whole, atol=0.1)
    assert not np.allclose(half, whole, atol=1e-5)


def test_passages_of_equal_score_keep_the_parts_order(model, tmp_path):
    index = built(model, write_passages(tmp_path / "passages", ["moon"] * 60), tmp_path / "index")
    assert [hit.passage_id for hit in index.search(ASKED[:1], 4)[0]] == ["p0", "p1", "p2", "p3"]
    assert ColBERT(tmp_path / "index", parts=[part(())], device="cpu").search(ASKED, 3) == [SearchResult([])] * 4


def test_vectors_are_stored_in_half_precision_with_titles_where_asked_for(model, passages, tmp_path):
    for titles in (False, True):
        built(model, passages, tmp_path / str(titles), titles=titles)
        tokens, lengths = TokenVectors(Shards(tmp_path / str(titles))).look_up(["p7", "p2"])
        text = f"passage: gold {TEXTS[2]}" if titles else f"passage: {TEXTS[2]}"
        wanted = by_definition(model, text, ":")
        assert lengths.tolist()[1] == len(wanted)
        assert np.allclose(tokens[lengths[0] :], wanted, atol=1e-3)
        assert np.load(tmp_path / str(titles) / "tokens-00000.npy").dtype == np.float16


def test_the_layout_of_the_authors_checkpoints_opens(tmp_path):
    tiny_mlm(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    weights = {name: tensor for name, tensor in weights.items() if name.startswith("bert.")}
    weights["linear.weight"] = torch.randn(6, 32, generator=torch.manual_seed(0))
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"architectures": ["HF_ColBERT"]}))
    tokens = AutoTokenizer.from_pretrained(tmp_path)
    tokens.add_special_tokens({"mask_token": "wolf"})
    tokens.save_pretrained(tmp_path)
    metadata = {
        "query_token_id": "red",
        "doc_token_id": "blue",
        "query_maxlen": 9,
        "doc_maxlen": 20,
        "mask_punctuation": True,
    }
    (tmp_path / "artifact.metadata").write_text(json.dumps(metadata))
    opened = open_token_model("late", str(tmp_path), "float32", "cpu")
    [vectors] = query_vectors(opened, ["moon"])
    assert vectors.shape == (9, 6)  # [CLS] red moon [SEP], and masks up to the query's length
    network = BertModel.from_pretrained(tmp_path).eval()
    with torch.inference_mode():
        ids = torch.tensor([tokens.convert_tokens_to_ids(["[CLS]", "red", "moon", "[SEP]", *["wolf"] * 5])])
        seen = torch.tensor([[1] * 4 + [0] * 5])
        outputs = network(ids, attention_mask=seen).last_hidden_state[0] @ weights["linear.weight"].T
    assert np.allclose(vectors, torch.nn.functional.normalize(outputs, dim=1), atol=1e-5)


def test_models_and_parts_that_do_not_fit_and_a_damaged_index_are_refused(model, passages, tmp_path):
    with refused("is not a late-interaction model: its files name SentenceTransformer"):
        open_token_model("late", tiny(tmp_path / "plain"), "float32", "cpu")
    copied, index = tmp_path / "model", tmp_path / "index"
    shutil.copytree(model, copied)
    built(str(copied), passages, index)
    with refused("has no passage elsewhere"):
        ColBERT(index, parts=[part(("p3", "elsewhere"))], device="cpu").search(ASKED, 3)
    with refused("its part generates passages"):
        ColBERT(index, parts=[part(generated=[Passage("p1", "", "made")])], device="cpu").search(ASKED, 3)
    tokens = index / "tokens-00001.npy"
    np.save(tokens, np.load(tokens)[:-1])
    with refused("do not match its lengths and ids"):
        ColBERT(index, parts=[part()])
    (copied / "config.json").write_text((copied / "config.json").read_text() + " ")
    with refused("was built with another"):
        ColBERT(index, parts=[part()])
    (index / "colbert.json").write_text("{}")
    with refused("build it again"):
        ColBERT(index, parts=[part()])
