"""Static embeddings: the table of tokens, the vectors of texts, and an index that is built, killed and opened."""

import json

import numpy as np
import pytest
import torch
from tiny_encoder import WORDS, tiny_bert
from transformers import BertModel

from ifqa.errors import IfqaError
from ifqa.records import Question
from ifqa.retrieval.static import Static
from ifqa.retrieval.vectors import token_table
from ifqa.retrieval.vectors.store import Filling, Vectors
from ifqa.retrieval.vectors.token_table import Words, encoded_alone, reduced

TEXTS = [f"{WORDS[n % 16]} {WORDS[n * 7 % 16]}, {WORDS[n * n % 16]}! {'Moon ' * (n % 5)}" for n in range(60)]


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def passages(tmp_path):
    folder = tmp_path / "passages"
    folder.mkdir()
    for shard in range(2):
        lines = [{"id": f"p{n}", "title": "", "contents": TEXTS[n]} for n in range(shard * 30, shard * 30 + 30)]
        (folder / f"passages-0000{shard}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return folder


def test_a_token_is_the_mean_of_the_networks_outputs(model):
    network = BertModel.from_pretrained(model).eval()
    with torch.inference_mode():
        wanted = network(input_ids=torch.tensor([[2, 9, 3]])).last_hidden_state[0].mean(dim=0)
    assert torch.allclose(encoded_alone(model)[9], wanted, atol=1e-5)


def test_words_are_the_tokenizers_tokens_without_marks(model):
    words = Words(model)
    assert words.ids("Red, blue? MOON!") == [words.id_of("red"), words.id_of("blue"), words.id_of("moon")]
    ids, starts = words.bags(["red red", "", "cat"])
    assert ids.tolist() == [4, 4, 7]
    assert starts.tolist() == [0, 2, 2]


def test_vectors_equal_those_worked_out_text_by_text(model):
    table = token_table.make_table(model, TEXTS, 5)
    words, outputs = Words(model), encoded_alone(model).double().numpy()
    counts = np.bincount([one for text in TEXTS for one in words.ids(text)], minlength=words.size)
    weights = 1e-4 / (1e-4 + counts / counts.sum())
    sums = np.array([sum(outputs[one] * weights[one] for one in words.ids(text)) for text in TEXTS])
    unit = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    kept = unit @ np.linalg.svd(unit)[2][1:6].T * np.linalg.norm(sums, axis=1, keepdims=True)
    wanted = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    found = table.vectors(TEXTS)
    assert np.allclose(found @ found.T, wanted @ wanted.T, atol=5e-3)  # the table is kept in half precision


def test_a_frequent_token_weighs_less_than_a_rare_one():
    outputs, counts = torch.eye(4), torch.tensor([900.0, 90.0, 9.0, 1.0])
    ids, starts = torch.tensor([0, 1, 0, 2, 0, 3, 1, 2]), torch.arange(0, 8, 2)
    lengths = reduced(outputs, counts, ids, starts, 3).norm(dim=1)
    assert lengths[0] < lengths[1] < lengths[2] < lengths[3]


def test_search_ranks_by_cosine_and_a_question_without_words_gets_none(model, passages, tmp_path):
    Static.build(passages, tmp_path / "index", model=str(model), dimension=8)
    index = Static(tmp_path / "index")
    asked = [Question("q/0", TEXTS[17]), Question("q/1", "?!")]
    first, none = index.search(asked, 9)
    vectors = index._table.vectors(TEXTS)
    cosines = vectors.astype(np.float16).astype(np.float32) @ vectors[17]
    assert [hit.score for hit in first] == pytest.approx(sorted(cosines, reverse=True)[:9], abs=1e-6)
    assert {hit.passage_id for hit in first[:1]} <= {f"p{n}" for n in np.flatnonzero(cosines > 0.999)}
    assert not none
    with pytest.raises(IfqaError, match="at least 1; found 0"):
        index.search(asked, 0)


def test_a_killed_build_goes_on_and_gives_the_same_vectors(model, passages, tmp_path, monkeypatch):
    Static.build(passages, tmp_path / "whole", model=str(model), dimension=8)
    add = Filling.add

    def dies(self, number, *rest):
        if number == 1:
            raise KeyboardInterrupt
        add(self, number, *rest)

    monkeypatch.setattr(Filling, "add", dies)
    with pytest.raises(KeyboardInterrupt):
        Static.build(passages, tmp_path / "killed", model=str(model), dimension=8)
    made = []
    monkeypatch.setattr(Filling, "add", lambda self, number, *rest: (made.append(number), add(self, number, *rest)))
    monkeypatch.setattr(token_table, "encoded_alone", lambda folder: pytest.fail("the table is there already"))
    Static.build(passages, tmp_path / "killed", model=str(model), dimension=8)
    assert made == [1]
    same = [np.concatenate([shard for _, shard in Vectors(tmp_path / name).shards()]) for name in ("whole", "killed")]
    assert np.array_equal(*same)


def test_another_table_or_too_many_dimensions_are_refused(model, passages, tmp_path):
    with pytest.raises(IfqaError, match=r"dimension = 32; wanted less than the model's 32"):
        Static.build(passages, tmp_path / "index", model=str(model), dimension=32)
    for dimension in (8, 9):
        Static.build(passages, tmp_path / f"index{dimension}", model=str(model), dimension=dimension)
    other = tmp_path / "index9" / "table.safetensors"
    (tmp_path / "index8" / "table.safetensors").write_bytes(other.read_bytes())
    with pytest.raises(IfqaError, match="not the table that the index was built with"):
        Static(tmp_path / "index8")
    other.write_bytes(b"no table")
    facts = json.loads((tmp_path / "index9" / "static.json").read_text())
    (tmp_path / "index9" / "static.json").write_text(json.dumps(facts | {"table": token_table_hash(other)}))
    with pytest.raises(IfqaError, match="is damaged"):
        Static(tmp_path / "index9")
    (tmp_path / "index9" / "static.json").write_text("{}")
    with pytest.raises(IfqaError, match="build it again"):
        Static(tmp_path / "index9")


def token_table_hash(path):
    from ifqa.storage.files import sha256

    return sha256(path)


def test_an_empty_corpus_is_refused(tmp_path, model):
    (tmp_path / "passages").mkdir()
    with pytest.raises(IfqaError, match="no passages in"):
        Static.build(tmp_path / "passages", tmp_path / "index", model=str(model))
