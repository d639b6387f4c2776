"""Learned sparse retrieval against a dot product over all passages, with a real Lucene index."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tiny_encoder import WORDS, tiny_mlm, tiny_splade

import ifqa.retrieval.vectors.vector_store as vector_store_module
from ifqa.records import Passage, Question
from ifqa.retrieval import sparse
from ifqa.retrieval.sparse import SCALE, Sparse, impacts
from ifqa.retrieval.vectors.sparse_encoder import (
    open_sparse_encoder,
    passage_weights,
    query_weights,
)

pytestmark = pytest.mark.slow

TEXTS = {
    f"{n // 3}-{n % 3}": " ".join(WORDS[(n * step + 3) % 16] for step in range(1, 2 + n % 9))
    for n in range(60)
}
TEXTS |= {f"equal-{n:02d}": "wolf ship" for n in reversed(range(30))}
MAKERS: dict[str, Callable[[Path], str]] = {
    "bare": tiny_mlm,
    "looked up": lambda folder: tiny_splade(folder, looked_up=True),
}


def write_passages(folder, texts):
    folder.mkdir(parents=True)
    rows = [{"id": key, "title": "", "contents": text} for key, text in texts.items()]
    for shard in range(2):
        lines = [json.dumps(row) + "\n" for row in rows[shard::2]]
        (folder / f"passages-{shard:05d}.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def passages(tmp_path_factory):
    return write_passages(tmp_path_factory.mktemp("sparse") / "passages", TEXTS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return {name: make(tmp_path_factory.mktemp("model")) for name, make in MAKERS.items()}


def build(passages, index, model, **settings):
    # "auto" would depend on the processor
    settings = {"device": "cpu", "precision": "float32"} | settings
    Sparse.build(passages, index, Sparse.BuildSettings(model=model, **settings))
    return index


@pytest.fixture(scope="module")
def indexes(passages, models):
    return {
        name: build(passages, passages.with_name(name), model) for name, model in models.items()
    }


@pytest.fixture(scope="module")
def searchers(indexes):
    settings = Sparse.Settings(device="cpu")
    return {name: Sparse(settings, index=index) for name, index in indexes.items()}


def ask(searcher, text, k=1000):
    return list(searcher.search([Question("q", text)], k)[0])


@pytest.fixture(scope="module")
def weights(models):
    """For each model, the whole weights of the passages, by id."""
    found = {}
    for name, model in models.items():
        encoder = open_sparse_encoder(model, "float32", "cpu")
        rows = passage_weights(encoder, False, [Passage("", "", text) for text in TEXTS.values()])
        found[name] = (encoder, dict(zip(TEXTS, map(impacts, rows), strict=True)))
    return found


@pytest.mark.parametrize("name", MAKERS)
@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_rankings_are_those_of_a_dot_product_over_all_passages(searchers, weights, name, words):
    encoder, rows = weights[name]
    query = impacts(query_weights(encoder, [" ".join(words)])[0])
    products = {
        passage_id: sum(impact * query.get(word, 0) for word, impact in row.items())
        for passage_id, row in rows.items()
    }
    expected = [
        (passage_id, product / SCALE**2)
        for passage_id, product in sorted(products.items(), key=lambda pair: (-pair[1], pair[0]))
        if product
    ]
    hits = ask(searchers[name], " ".join(words))
    assert [hit.passage_id for hit in hits] == [passage_id for passage_id, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-3)


def test_rankings_follow_the_questions_for_any_number_of_threads(indexes, searchers):
    questions = [
        Question(f"q{n}", f"{word} {WORDS[n % 5]}") for n, word in enumerate(WORDS[:16] * 5)
    ]
    rankings = searchers["bare"].search(questions, 7)
    assert list(map(list, rankings)) == [
        ask(searchers["bare"], question.text, 7) for question in questions
    ]
    settings = Sparse.Settings(threads=3, device="cpu")
    assert rankings == Sparse(settings, index=indexes["bare"]).search(questions, 7)


def test_scores_never_rise_along_a_ranking(searchers):
    scores = [hit.score for hit in ask(searchers["bare"], "wolf ship gold")]
    assert scores == sorted(scores, reverse=True)


def test_a_passage_without_weights_is_not_found(models, tmp_path, monkeypatch):
    def blank_has_none(encoder, titles, batch):
        rows = passage_weights(encoder, titles, batch)
        return [
            row if passage.text.strip() else {} for passage, row in zip(batch, rows, strict=True)
        ]

    monkeypatch.setattr(sparse, "passage_weights", blank_has_none)
    texts = write_passages(tmp_path / "passages", {"a": "wolf", "blank": " ", "b": "ship"})
    index = build(texts, tmp_path / "index", models["bare"])
    searcher = Sparse(Sparse.Settings(device="cpu"), index=index)
    assert {hit.passage_id for hit in ask(searcher, "wolf ship")} == {"a", "b"}


def test_a_weight_beyond_what_is_stored_is_refused(models, tmp_path, monkeypatch):
    monkeypatch.setattr(sparse, "passage_weights", lambda *_: [{5: 700.0}])
    texts = write_passages(tmp_path / "passages", {"a": "wolf"})
    with refused("a weight of passage a is 700, wanted at most 655.35: the model is damaged"):
        build(texts, tmp_path / "index", models["bare"])


def test_after_a_kill_only_the_rest_is_encoded(passages, models, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(vector_store_module, "SHARD_PASSAGES", 10)
    whole = build(passages, tmp_path / "whole", models["bare"])
    tasks: list[int] = []

    def encode_two(task, real=vector_store_module.encode_task):
        if len(tasks) == 2:
            raise KeyboardInterrupt
        tasks.append(task.number)
        return real(task)

    with monkeypatch.context() as patch:
        patch.setattr(vector_store_module, "encode_task", encode_two)
        with pytest.raises(KeyboardInterrupt):
            build(passages, tmp_path / "index", models["bare"])
    capsys.readouterr()
    index = build(passages, tmp_path / "index", models["bare"])
    assert "20 passages reused from an earlier build" in capsys.readouterr().err
    settings = Sparse.Settings(device="cpu")
    hits = [ask(Sparse(settings, index=folder), "wolf gold") for folder in (whole, index)]
    assert hits[0] == hits[1]


def test_a_kill_while_lucene_reads_leaves_nothing_that_counts_twice(
    indexes, passages, models, tmp_path
):
    index = shutil.copytree(indexes["bare"], tmp_path / "index")
    (index / "sparse.json").unlink()
    (index / "lucene-input").mkdir()
    (index / "lucene-input" / "weights-00009.jsonl").write_text('{"id": "half a li')
    build(passages, index, models["bare"])
    assert json.loads((index / "sparse.json").read_text())["indexed"] == len(TEXTS)


def test_an_index_of_other_weights_is_refused(passages, models, tmp_path):
    model = str(shutil.copytree(models["bare"], tmp_path / "model"))
    index = build(passages, tmp_path / "index", model)
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other")
    with refused("model"):
        Sparse(Sparse.Settings(), index=index)


def test_an_index_that_lacks_passages_is_refused(indexes, tmp_path):
    index = shutil.copytree(indexes["bare"], tmp_path / "index")
    facts = json.loads((index / "sparse.json").read_text())
    (index / "sparse.json").write_text(json.dumps(facts | {"indexed": 7}))
    with refused("is damaged: it holds 90 of 7 passages; build it again"):
        Sparse(Sparse.Settings(), index=index)


def test_a_folder_without_an_index_is_refused(tmp_path):
    with refused("sparse index"):
        Sparse(Sparse.Settings(), index=tmp_path)


def test_the_cost_of_a_build_is_measured(models):
    settings = Sparse.BuildSettings(model=models["bare"], device="cpu")
    few, many = (Sparse.forecast(count, settings) for count in (1000, 100_000))
    assert many.disk == pytest.approx(100 * few.disk)
    assert many.seconds > few.seconds
