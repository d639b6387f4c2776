"""Readers 'fid' and 'rag': their predictions, the scores of passages, and the settings they take
from a checkpoint.
"""

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from tiny_t5 import model, save, tokenizer

from ifqa.plugins import load_plugin
from ifqa.reading.t5.checkpoint import Conventions, encode_texts
from ifqa.reading.t5.readers import Fid, Rag, passage_inputs
from ifqa.records import Passage, Question
from ifqa.settings import parse_settings, setting_fields

PASSAGES = [
    Passage(
        "w/1",
        "Old Bridge",
        "The bridge was opened in 1895 by the mayor Anna Berg, five years late.",
    ),
    Passage(
        "w/2",
        "Harbour",
        "The harbour of Wick was dug from 1803 to 1811 by the engineer Thomas Telford.",
    ),
    Passage("w/3", "", ""),
]
QUESTIONS = [
    Question(
        "q/0", "If the bridge had been built in 1890, who would have opened it?", ("Anna Berg",)
    ),
    Question("q/1", "If the harbour had not been dug, who would have been free in 1811?"),
    Question("q/2", "If the river were dry, what would the bridge carry?"),
]
RANKED = [PASSAGES, PASSAGES[1:], []]
EXACT: dict[str, Any] = {"device": "cpu", "precision": "float32"}
SCORES = [[21.5, 20.0, 3.25], [1.0, 0.5], []]
words = functools.cache(tokenizer)
near = functools.partial(pytest.approx, rel=1e-4, abs=1e-4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("t5") / "tiny")


def fid(folder, **changes):
    return Fid(
        Fid.Settings(**EXACT | {"checkpoint": str(folder), "max_answer_tokens": 12} | changes)
    )


def rag(folder, **changes):
    return Rag(
        Rag.Settings(**EXACT | {"checkpoint": str(folder), "max_answer_tokens": 8} | changes)
    )


def fingerprint(checkpoint, **settings):
    return Fid.fingerprint(Fid.Settings(checkpoint=str(checkpoint), **settings), Path())


@pytest.fixture(scope="module")
def reader(folder):
    return fid(folder)


def assert_same(predictions, expected):
    """Equal but for the rounding of scores."""
    for prediction, other in zip(predictions, expected, strict=True):
        assert (prediction.question_id, prediction.completion) == (
            other.question_id,
            other.completion,
        )
        assert prediction.score == near(other.score)
        scores = dict(zip(other.passage_ids, other.passage_scores, strict=True))
        assert dict(zip(prediction.passage_ids, prediction.passage_scores, strict=True)) == near(
            scores
        )


def assert_valid(predictions):
    assert [prediction.question_id for prediction in predictions] == ["q/0", "q/1", "q/2"]
    for prediction, passages in zip(predictions, RANKED, strict=True):
        assert prediction.answer == prediction.completion.strip() != ""
        assert (prediction.score < 0, prediction.error) == (True, "")
        assert sorted(prediction.passage_ids) == sorted(passage.id for passage in passages)
        assert list(prediction.passage_scores) == sorted(prediction.passage_scores, reverse=True)
        json.dumps([prediction.score, prediction.passage_scores])


def test_fid_orders_passages_by_score(reader):
    predictions = reader.answer(QUESTIONS, RANKED)
    assert_valid(predictions)
    assert reader.answer([], []) == []
    [reversed_order] = reader.answer(QUESTIONS[:1], [PASSAGES[::-1]])
    assert_same([reversed_order], predictions[:1])
    assert len(set(reversed_order.passage_scores)) == 3
    assert reader.answer(QUESTIONS[:1], [[PASSAGES[0], PASSAGES[0]]])[0].passage_ids == (
        "w/1",
        "w/1",
    )


@pytest.mark.parametrize(
    "text",
    ["", " ", "\x00", "\u202e\U0001f600" * 30, "</s><pad></s>", "a" * 9999, "If so, who? " * 1000],
)
def test_odd_questions_are_answered(reader, text):
    odd, *others = reader.answer([Question("q/0", text), QUESTIONS[1]], [PASSAGES, PASSAGES])
    assert len(odd.passage_ids) == 3
    assert_same(others, reader.answer(QUESTIONS[1:2], [PASSAGES]))


def test_inputs_are_those_of_fid():
    passage = [Passage("1", "Harbour", "It was dug.")]
    assert passage_inputs("Who?", passage, titles=True) == [
        "question: Who? title: Harbour context: It was dug."
    ]
    assert passage_inputs("Who?", passage, titles=False) == [
        "question: Who? title:  context: It was dug."
    ]
    assert passage_inputs("Who?", [], titles=True) == ["question: Who?"]


@settings(max_examples=20)
@given(
    st.lists(st.text("abWick harbour.", min_size=1, max_size=80), min_size=1),
    st.integers(16, 40),
    st.booleans(),
)
def test_token_ids_end_as_the_conventions_say(texts, most, eos):
    features = encode_texts(words(), texts, Conventions(most, True, eos))
    for text, ids, mask in zip(
        texts, features["input_ids"], features["attention_mask"], strict=True
    ):
        tokens = words()(text, add_special_tokens=False)["input_ids"]
        assert ids[mask].tolist() == ([*tokens[: most - 1], 1] if eos else tokens[:most])
        assert not ids[~mask].any()


def test_settings_override_a_checkpoints_conventions(folder, tmp_path):
    plain = fid(folder)
    assert plain.conventions == Conventions(250, True, True)
    assert (plain.label, plain.family, plain.trained_on) == (
        f"{folder} is not trained on IfQA",
        "",
        frozenset(),
    )
    trained = save(tmp_path / "trained")
    manifest = {"family": "ifqa/few", "sources": {"train": "ab"}}
    manifest["conventions"] = {"max_tokens": 40, "titles": False, "encoder_eos": False}
    (trained / "manifest.json").write_text(json.dumps(manifest))
    stored = fid(trained)
    assert stored.conventions == Conventions(40, False, False)
    assert (stored.family, set(stored.trained_on), stored.label) == ("ifqa/few", {"ab"}, "")
    assert fid(trained, max_tokens=16, titles="yes", encoder_eos="yes").conventions == Conventions(
        16, True, True
    )


def test_each_setting_changes_scores(folder, reader):
    changes: list[dict[str, Any]] = [
        {},
        {"titles": "no"},
        {"encoder_eos": "no"},
        {"precision": "bfloat16"},
        {"beams": 4},
    ]
    assert (
        len(
            {fid(folder, **change).answer(QUESTIONS[:1], [PASSAGES])[0].score for change in changes}
        )
        == 5
    )


def test_a_copy_has_the_same_fingerprint(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert fingerprint(folder) == fingerprint(copy)


def test_the_fingerprint_does_not_cover_beams(folder):
    assert fingerprint(folder) == fingerprint(folder, beams=2)


def test_the_fingerprint_covers_what_scores_follow_from(tmp_path):
    ours = save(tmp_path / "ours")
    prints = [fingerprint(ours)]
    prints.append(fingerprint(ours, tokenizer=str(save(tmp_path / "words", seed=3))))
    (ours / "manifest.json").write_text("{}")
    prints.append(fingerprint(ours))
    vocabulary = json.loads((ours / "tokenizer.json").read_text())
    vocabulary["model"]["vocab"][5][1] = -1.0
    (ours / "tokenizer.json").write_text(json.dumps(vocabulary))
    prints.append(fingerprint(ours))
    model(seed=9, vocabulary=len(tokenizer())).save_pretrained(ours)
    prints.append(fingerprint(ours))
    assert len(set(prints)) == 5


@pytest.mark.parametrize("beams", [1, 2])
def test_rags_passage_scores_are_shares(folder, beams):
    done: list[float] = []
    predictions = rag(folder, beams=beams).answer(QUESTIONS, RANKED, done.append, scores=SCORES)
    assert_valid(predictions)
    assert [sum(prediction.passage_scores) for prediction in predictions] == near([1.0, 1.0, 0.0])
    assert sum(done) == 3


def test_rag_reads_the_best_passage_alone_if_the_others_score_far_below(folder):
    for place, passage in enumerate(PASSAGES):
        scores = [[900.0 * (n == place) for n in range(3)]]
        [prediction] = rag(folder).answer(QUESTIONS[:1], [PASSAGES], scores=scores)
        [expected] = fid(folder, max_answer_tokens=8).answer(QUESTIONS[:1], [[passage]])
        assert (prediction.answer, prediction.passage_ids[0]) == (expected.answer, passage.id)
        assert prediction.score == near(expected.score)


def test_rag_divides_scores_by_the_temperature(folder):
    halved = [[score / 2 for score in row] for row in SCORES]
    tempered = rag(folder, temperature=2.0).answer(QUESTIONS, RANKED, scores=SCORES)
    expected = rag(folder).answer(QUESTIONS, RANKED, scores=halved)
    assert [prediction.score for prediction in tempered] == near(
        [prediction.score for prediction in expected]
    )


def test_rag_needs_no_scores(folder):
    equal = [[7.0] * len(passages) for passages in RANKED]
    plain = rag(folder)
    assert plain.answer(QUESTIONS, RANKED) == plain.answer(QUESTIONS, RANKED, scores=equal)


def test_rag_uses_the_scores_it_is_given(folder):
    plain = rag(folder)
    assert (
        plain.answer(QUESTIONS, RANKED)[0].score
        != plain.answer(QUESTIONS, RANKED, scores=SCORES)[0].score
    )


def test_rag_answers_no_questions(folder):
    assert rag(folder).answer([], [], scores=[]) == []


def test_a_passage_without_a_score_is_refused(folder):
    with refused("question q/1: 2 passages, 1 scores; give one per passage"):
        rag(folder).answer(QUESTIONS, RANKED, scores=[SCORES[0], [1.0], []])


def test_settings_out_of_range_are_refused(folder):
    wrong = {
        "temperature": -1.0, "beams": 0, "max_tokens": 15, "device": "abacus", "titles": "maybe",
        "encoder_eos": "", "precision": "float16", "max_answer_tokens": 1, "batch_tokens": -1,
    }  # fmt: skip
    for name, setting in wrong.items():
        with refused(name):
            Rag(parse_settings(Rag.Settings, {"checkpoint": str(folder), name: setting}, "setting"))


def test_a_missing_checkpoint_is_refused(tmp_path):
    with refused("train one with: ifqa train fid"):
        rag(tmp_path / "none")


def test_the_temperature_is_shown_among_the_settings_of_fid():
    settings = [*setting_fields(Rag.Settings)]
    assert settings.pop(2) == "temperature"
    assert settings == [*setting_fields(Fid.Settings)]


def test_only_rag_takes_scores():
    assert load_plugin("reader", "rag") is Rag
    assert Rag.takes_scores
    assert not Fid.takes_scores


@pytest.mark.parametrize("reader", [Fid, Rag])
def test_the_default_says_what_to_fetch(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with refused("found no model 'flan-t5-small' .*; fetch it with: ifqa data flan-t5-small"):
        reader(reader.Settings())
    [requirement] = reader.requirements(reader.Settings(), tmp_path)
    assert (
        requirement.remedy == "its base model flan-t5-small: fetch it with: ifqa data flan-t5-small"
    )


@pytest.mark.parametrize("reader", [Fid, Rag])
def test_the_shipped_adapter_refuses_another_base_model(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(save(tmp_path / "t5"), tmp_path / "models/flan-t5-small")
    assert reader.requirements(reader.Settings(), tmp_path)[0].present
    with refused("weights/fid was trained on a different flan-t5-small"):
        reader(reader.Settings())
