"""Reader 'fid': its predictions for all kinds of questions and passages, and the libraries it needs."""

import functools
import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_t5 import model, save, tokenizer

from ifqa.reading.t5.checkpoint import Conventions, encode_texts
from ifqa.reading.t5.readers import Fid, passage_inputs
from ifqa.records import Passage, Question

PASSAGES = [
    Passage("w/1", "Old Bridge", "The bridge was opened in 1895 by the mayor Anna Berg, five years late."),
    Passage("w/2", "Harbour", "The harbour of Wick was dug from 1803 to 1811 by the engineer Thomas Telford."),
    Passage("w/3", "Lune", "The river Lune carries two lanes of water past the bridge."),
    Passage("w/4", "", ""),
]
QUESTIONS = [
    Question("q/0", "If the bridge had been built in 1890, who would have opened it?", ("Anna Berg",)),
    Question("q/1", "If the harbour had not been dug, who would have been free in 1811?"),
    Question("q/2", "If the river were dry, what would the bridge carry?"),
]
RANKED = [PASSAGES, PASSAGES[1:3], []]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("fid") / "tiny")


@pytest.fixture(scope="module")
def reader(folder):
    return Fid(str(folder), device="cpu", precision="float32", max_answer_tokens=12)


def same(found, expected):
    """Whether predictions are the same but for the rounding of scores."""
    near = functools.partial(pytest.approx, rel=1e-4, abs=1e-4)
    for one, other in zip(found, expected, strict=True):
        assert (one.question_id, one.answer, one.completion) == (other.question_id, other.answer, other.completion)
        assert one.score == near(other.score)
        assert dict(zip(one.passage_ids, one.passage_scores, strict=True)) == near(
            dict(zip(other.passage_ids, other.passage_scores, strict=True))
        )
    return True


def test_predictions_have_scores_and_passages_in_order_of_score(reader):
    predictions = reader.answer(QUESTIONS, RANKED)
    assert [prediction.question_id for prediction in predictions] == ["q/0", "q/1", "q/2"]
    for prediction, passages in zip(predictions, RANKED, strict=True):
        assert prediction.answer == prediction.completion.strip() != ""
        assert (prediction.score < 0, prediction.error) == (True, "")
        assert sorted(prediction.passage_ids) == sorted(passage.id for passage in passages)
        assert list(prediction.passage_scores) == sorted(prediction.passage_scores, reverse=True)
        json.dumps([prediction.score, prediction.passage_scores])
    assert reader.answer([], []) == []
    [back] = reader.answer(QUESTIONS[:1], [PASSAGES[::-1]])
    assert same([back], predictions[:1])
    assert len(set(back.passage_scores)) == 4
    twice = reader.answer(QUESTIONS[:1], [[PASSAGES[0], PASSAGES[0]]])[0]
    assert twice.passage_ids == ("w/1", "w/1")


@pytest.mark.parametrize(
    "text", ["", " ", "\x00", "\u202e\U0001f600" * 30, "</s><pad></s>", "a" * 9999, "If so, who? " * 1000]
)
def test_odd_and_over_long_questions_are_answered(reader, text):
    found = reader.answer([Question("q/0", text), QUESTIONS[1]], [PASSAGES, PASSAGES])
    assert len(found[0].passage_ids) == 4
    assert same(found[1:], reader.answer(QUESTIONS[1:2], [PASSAGES]))


def test_inputs_are_the_originals_with_titles_or_without():
    asked = "question: Who? title: Harbour context: It was dug."
    passage = [Passage("1", "Harbour", "It was dug.")]
    assert passage_inputs("Who?", passage, titles=True) == [asked]
    assert passage_inputs("Who?", passage, titles=False) == ["question: Who? title:  context: It was dug."]
    assert passage_inputs("Who?", [], titles=True) == ["question: Who?"]


@settings(max_examples=20)
@given(
    st.lists(st.text(alphabet="abWick harbour.", min_size=1, max_size=80), min_size=1, max_size=6),
    st.integers(16, 40),
    st.booleans(),
)
def test_token_ids_end_where_the_conventions_say(texts, most, ends):
    words = _words()
    made = encode_texts(words, texts, Conventions(most, True, ends))
    for text, ids, mask in zip(texts, made["input_ids"], made["attention_mask"], strict=True):
        alone = words(text, add_special_tokens=False)["input_ids"]
        expected = [*alone[: most - 1], 1] if ends else alone[:most]
        assert ids[mask].tolist() == expected
        assert not ids[~mask].any()


_words = functools.cache(tokenizer)


def test_settings_of_a_checkpoint_hold_until_others_are_given(folder, tmp_path):
    assert Fid(str(folder), device="cpu").conventions == Conventions(250, True, True)
    trained = save(tmp_path / "trained")
    manifest = {"family": "ifqa/few", "sources": {"train": "ab"}}
    manifest["conventions"] = {"max_tokens": 40, "titles": False, "encoder_eos": False}
    (trained / "manifest.json").write_text(json.dumps(manifest))
    kept = Fid(str(trained), device="cpu")
    assert kept.conventions == Conventions(40, False, False)
    assert (kept.family, set(kept.trained_on), kept.label) == ("ifqa/few", {"ab"}, "")
    given = Fid(str(trained), device="cpu", max_tokens=16, titles="yes", encoder_eos="yes")
    assert given.conventions == Conventions(16, True, True)
    plain = Fid(str(folder), device="cpu")
    assert (plain.label, plain.family, plain.trained_on) == (f"{folder} is not trained on IfQA", "", frozenset())


def test_titles_eos_precision_and_beams_change_scores(folder, reader):
    scores = {reader.answer(QUESTIONS[:1], [PASSAGES])[0].score}
    for how in ({"titles": "no"}, {"encoder_eos": "no"}, {"precision": "bfloat16"}, {"beams": 4}):
        other = Fid(str(folder), **{"device": "cpu", "precision": "float32", "max_answer_tokens": 12} | how)
        scores.add(other.answer(QUESTIONS[:1], [PASSAGES])[0].score)
    assert len(scores) == 5


def test_its_fingerprint_is_that_of_weights_conventions_and_tokenizer(tmp_path):
    ours = save(tmp_path / "ours")
    same = Fid.fingerprint(str(shutil.copytree(ours, tmp_path / "same")))
    prints = [same, Fid.fingerprint(str(ours), tokenizer=str(save(tmp_path / "words", seed=3)))]
    assert Fid.fingerprint(str(ours)) == Fid.fingerprint(str(ours), beams=2) == same
    (ours / "manifest.json").write_text("{}")
    prints.append(Fid.fingerprint(str(ours)))
    words = json.loads((ours / "tokenizer.json").read_text())
    words["model"]["vocab"][5][1] = -1.0
    (ours / "tokenizer.json").write_text(json.dumps(words))
    prints.append(Fid.fingerprint(str(ours)))
    model(seed=9, vocabulary=len(tokenizer())).save_pretrained(ours)
    prints.append(Fid.fingerprint(str(ours)))
    assert len(set(prints)) == 5
