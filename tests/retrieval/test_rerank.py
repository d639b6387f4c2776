"""The reranker: mixed scores, the texts that the model reads, and the bundled adapter."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from three_passages import PASSAGES, Scripted, fetch
from tiny_library_encoder import tiny_library_encoder

from ifqa.models.places import minilm_folder
from ifqa.records import Hit, Question
from ifqa.retrieval import rerank as module
from ifqa.retrieval.composition import Part
from ifqa.retrieval.question_texts import Gold
from ifqa.retrieval.rerank import Rerank, reorder_hits
from ifqa.settings import parse_settings

QUESTIONS = [
    Question("q/0", "If Ada Lind had not won the cup, who would have?"),
    Question("q/1", "If so, where?"),
]
# (score, the model's score) of each passage
score_pairs = st.lists(st.tuples(st.integers(-50, 50), st.integers(-9, 9)), min_size=1, max_size=9)


def ranking_and_scores(pairs):
    scores, model_scores = (list(map(float, column)) for column in zip(*pairs, strict=True))
    return [
        Hit(f"p{place}", score) for place, score in enumerate(sorted(scores, reverse=True))
    ], model_scores


@given(score_pairs)
def test_with_weight_1_the_model_decides(pairs):
    ranking, scores = ranking_and_scores(pairs)
    order = [hit.passage_id for hit in reorder_hits(ranking, scores, 1.0)]
    assert order == [
        f"p{place}" for place in sorted(range(len(scores)), key=lambda place: -scores[place])
    ]


@given(score_pairs, st.floats(0.1, 10), st.floats(-5, 5))
def test_a_linear_change_of_scores_does_not_matter(pairs, factor, offset):
    ranking, scores = ranking_and_scores(pairs)
    moved = [Hit(hit.passage_id, hit.score * factor + offset) for hit in ranking]
    expected = {hit.passage_id: hit.score for hit in reorder_hits(ranking, scores)}
    hits = reorder_hits(moved, [score * factor - offset for score in scores])
    assert {hit.passage_id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-6)


@given(score_pairs, st.integers(1, 9))
def test_passages_below_the_depth_keep_their_order(pairs, depth):
    ranking, scores = ranking_and_scores(pairs)
    hits = reorder_hits(ranking, scores[:depth])
    assert hits[:depth] == reorder_hits(ranking[:depth], scores[:depth])
    assert [hit.passage_id for hit in hits[depth:]] == [hit.passage_id for hit in ranking[depth:]]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert {hit.passage_id for hit in hits} == {hit.passage_id for hit in ranking}
    assert reorder_hits([], []) == []


def rerank(part=None, k=3, **settings):
    reranker = Rerank.Settings(**{"device": "cpu", "model_weight": 1.0, **settings})
    return Rerank(reranker, parts=[Part(part or Scripted(), k)], passages=fetch)


@pytest.fixture
def spied(monkeypatch):
    """What the model of a reranker reads."""
    batches: list[list[tuple[str, str]]] = []
    relevance = module.CrossEncoder.relevance

    def spy(self, pairs):
        batches.append(pairs)
        return relevance(self, pairs)

    monkeypatch.setattr(module.CrossEncoder, "relevance", spy)
    return batches


def test_a_ranking_has_the_k_best_of_the_model():
    [ranking] = rerank().search(QUESTIONS[:1], 2)
    assert ranking[0].passage_id == "a"
    assert len(ranking) == 2


def test_training_includes_that_of_the_parts():
    assert rerank().trained_on[-1] == "abc"


def test_the_model_reads_the_configured_clause(spied):
    rerank(depth=2, reads="presupposition").search(QUESTIONS[:1], 3)
    assert spied[0] == [("Ada Lind had not won the cup", PASSAGES[name]) for name in "cb"]


def test_passages_beyond_the_depth_come_last():
    [ranking] = rerank(depth=2, reads="presupposition").search(QUESTIONS[:1], 3)
    assert ranking[2].passage_id == "a"


def test_the_parts_are_asked_the_whole_question():
    part = Scripted()
    rerank(part).search(QUESTIONS[:1], 2)
    rerank(part, depth=2, reads="presupposition").search(QUESTIONS[:1], 3)
    assert part.asked == [QUESTIONS[0].text] * 2


def test_the_ranking_keeps_its_generated_passages():
    question = Question("q/0", "If?", gold_passages=(PASSAGES["a"], PASSAGES["b"]))
    [ranking] = rerank(Gold(), k=5, model_weight=0.5).search([question], 5)
    assert {hit.passage_id for hit in ranking} == {passage.id for passage in ranking.generated}


def test_the_span_reader_raises_the_passage_with_an_answer():
    by_answers = rerank(model="extractive")
    question = Question(
        "q/0", "If Ada Lind had won the cup a year later, in what year would she have won it?"
    )
    assert by_answers.search([question], 3)[0][0].passage_id == "a"
    settings = Rerank.Settings(model="extractive")
    assert by_answers.family == Rerank.training_family(settings, Path()) == "ifqa/full"
    assert by_answers.trained_on[-1] == "abc"
    fingerprint = Rerank.fingerprint(settings, Path())
    assert fingerprint != Rerank.fingerprint(Rerank.Settings(model="ifqa"), Path())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reads": "claws"}, "unknown query 'claws'; .*known: .*main"),
        ({"model": "no/such model"}, "found no model 'no/such model' in an installed package"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
    ],
)
def test_wrong_settings_are_refused_in_one_line(settings, message):
    with refused(message):
        rerank(**settings)


def test_a_weight_of_0_is_refused():
    with refused("'model_weight': wanted a number above 0, at most 1"):
        parse_settings(Rerank.Settings, {"model_weight": 0.0}, "setting")


def test_no_parts_are_refused():
    with refused(r"needs exactly one \[\[retriever.parts\]\], found 0"):
        Rerank(Rerank.Settings(), parts=[], passages=fetch)


def test_the_bundled_adapter_is_small():
    folder = module.adapter_folder(module.BUNDLED_MODEL)
    assert folder is not None
    assert sum(path.stat().st_size for path in folder.iterdir()) < 4_000_000


@pytest.fixture(scope="module")
def encoder():
    encoder = module.CrossEncoder(device="cpu")
    encoder._network.float()
    return encoder


def test_a_batch_does_not_change_scores(encoder):
    pairs = [(question.text, text) for question in QUESTIONS for text in PASSAGES.values()]
    alone = np.concatenate([encoder.relevance([pair]) for pair in pairs])
    np.testing.assert_allclose(encoder.relevance(pairs), alone, atol=1e-4)


def test_no_pairs_have_no_scores(encoder):
    assert encoder.relevance([]).shape == (0,)


def test_a_model_of_two_labels_is_refused(tmp_path):
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    BertForSequenceClassification(config).save_pretrained(tmp_path / "two")
    (tmp_path / "two" / "vocab.txt").write_text(
        "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])
    )
    with refused("has 2 labels"):
        module.CrossEncoder(str(tmp_path / "two"), "cpu")


def test_a_damaged_adapter_is_refused(tmp_path):
    bundled = module.adapter_folder(module.BUNDLED_MODEL)
    assert bundled is not None
    for path in bundled.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for name, content, message in (
        (
            "adapter_model.safetensors",
            (bundled / "adapter_model.safetensors").read_bytes()[:-1],
            "does not load as an adapter",
        ),
        ("adapter_config.json", b"[]", "does not load as an adapter"),
        ("adapter_config.json", b'{"r": "x", "lora_alpha": 1}', "does not load as an adapter"),
        (
            "manifest.json",
            b"{}",
            "manifest.json: not as ifqa writes it .*train it again: ifqa train rerank",
        ),
    ):
        (tmp_path / name).write_bytes(content)
        with refused(message):
            module.CrossEncoder(str(tmp_path), "cpu")


def test_a_modernbert_scores_as_in_transformers(tmp_path):
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        ModernBertConfig,
        ModernBertForSequenceClassification,
        PreTrainedTokenizerFast,
    )

    folder = tiny_library_encoder(tmp_path / "model", "modernbert", "who won ?", "Ada won")
    marks = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, **marks)
    tokenizer.save_pretrained(folder)
    config = ModernBertConfig.from_pretrained(folder, num_labels=1)
    ModernBertForSequenceClassification(config).save_pretrained(folder)
    reference = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    pairs = [("who won ?", "Ada won"), ("who won ?", "nobody"), ("won ?", "Ada Ada Ada")]
    with torch.inference_mode():
        expected = [
            float(reference(**tokenizer(*pair, return_tensors="pt")).logits) for pair in pairs
        ]
    scores = module.CrossEncoder(str(folder), "cpu").relevance(pairs)
    assert scores.tolist() == pytest.approx(expected, abs=0.02)


def test_a_model_without_a_classifier_is_refused(tmp_path):
    # transformers would initialise the classifier at random, with other scores in each process
    shutil.copytree(minilm_folder(), tmp_path / "encoder")
    config = json.loads((tmp_path / "encoder/config.json").read_text())
    (tmp_path / "encoder/config.json").write_text(json.dumps(config | {"id2label": {"0": "L"}}))
    with refused(r"2 weights are missing or have a wrong shape, such as classifier\.bias"):
        module.CrossEncoder(str(tmp_path / "encoder"), "cpu")
