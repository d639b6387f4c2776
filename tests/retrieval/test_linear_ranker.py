"""The ranker: its features, its weights, and what it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from three_passages import PASSAGES, Scripted, fetch

from ifqa.config.experiment import parse_experiment
from ifqa.models.places import minilm_folder
from ifqa.pipeline.opening import refuse_other_families
from ifqa.pipeline.run import Run
from ifqa.records import Question
from ifqa.retrieval.composition import Part
from ifqa.retrieval.linear_ranker import (
    FEATURES,
    Ranker,
    compute_features,
    load_word_weights,
    read_ranker,
    split_words,
)

TEXT = "If Ada Lind had not won the cup at Brill in 1931, which band would have played?"


def row(text, passage, others=()):
    weigh = lambda word: 0.1 if len(word) < 4 else 1.0  # noqa: E731
    rows = compute_features(text, weigh, [1.0] * (1 + len(others)), [passage, *others])
    return dict(zip(FEATURES, rows[0].tolist(), strict=True))


def write_model(path, **weights):
    weights = dict.fromkeys(FEATURES, 0.0) | {"words": 1.0} | weights
    path.write_text(
        json.dumps({"family": "ifqa/full", "sources": {"train.json": "f9"}, "weights": weights})
    )
    return str(path)


def rank_by(model):
    return Ranker(Ranker.Settings(model=model), parts=[Part(Scripted(), 3)], passages=fetch)


def test_what_a_passage_shares_with_the_question_counts():
    features = row(TEXT, PASSAGES["a"])
    assert features["names"] == features["numbers"] == 1.0
    # "ada lind", "at brill", "brill in", "in 1931", of those with a long word
    assert features["pairs"] == 4 / 10
    assert features["triples"] == 3 / 11  # "cup at brill", "at brill in", "brill in 1931"
    assert features["words"] > features["asked words"]
    features = row(TEXT, PASSAGES["b"])
    assert features["names"] == 0.5  # of Ada Lind and Brill
    assert features["numbers"] == features["triples"] == 0.0


def test_plurals_match():
    assert (
        split_words("Bands, the class of '31's glass is HIS")
        == "band the class of 31 s glass is his".split()
    )


def test_words_count_by_nearness():
    together, apart = (
        row("If Lind sang?", text) for text in ("Lind sang", f"Lind {'and so on ' * 10}sang")
    )
    assert together["words"] == apart["words"] == pytest.approx(2 / 2.1)
    assert apart["near words"] < together["near words"] == together["words"]


def test_words_count_by_their_rarity_among_the_passages():
    assert row("If Lind sang?", "Lind", ["sang", "sang", "sang"])["rare words"] > 0.5
    assert row("If Lind sang?", "sang", ["Lind", "sang", "sang"])["rare words"] < 0.5


def test_a_rare_word_weighs_more():
    weigh = load_word_weights(minilm_folder())
    assert 0 <= weigh("the") < weigh("would") < weigh("glacier") < weigh("zyxwvu") == 1.0


texts = st.text(st.sampled_from("Ada Lind 1931 of the band, ."), max_size=80)


@given(texts, st.lists(texts, max_size=4), st.text(st.sampled_from("xyz qu."), max_size=80))
def test_words_that_the_question_lacks_change_nothing(question, passages, other):
    scores = [1.0 / (1 + n) for n in range(len(passages))]
    longer = [f"{passage} {other}" for passage in passages]
    features = compute_features(question, lambda word: 0.5, scores, passages)
    assert features.shape == (len(passages), len(FEATURES))
    assert np.isfinite(features).all()
    assert np.allclose(features, compute_features(question, lambda word: 0.5, scores, longer))


def test_passages_are_ranked_by_the_models_weights(tmp_path):
    questions = [Question("q/0", TEXT), Question("q/1", "If so?")]
    ranker = rank_by(write_model(tmp_path / "words.json"))
    first, second = ranker.search(questions, 2)
    assert [hit.passage_id for hit in first] == ["a", "b"]
    assert first[0].score > first[1].score
    assert [hit.passage_id for hit in second] == ["c", "b"]  # nothing matches: the order stays
    low = write_model(tmp_path / "low.json", words=0.0, score=-1.0)
    ranker = rank_by(low)
    assert [hit.passage_id for hit in ranker.search(questions, 3)[0]] == ["a", "b", "c"]
    assert (ranker.family, set(ranker.trained_on)) == ("ifqa/full", {"f9", "abc"})


def test_a_missing_model_is_refused(tmp_path):
    path = tmp_path / "model.json"
    with refused("does not exist"):
        read_ranker(str(path))


def test_a_model_of_other_features_is_refused(tmp_path):
    path = tmp_path / "model.json"
    with refused(r"not those of this version of ifqa \(they differ in length\)"):
        read_ranker(write_model(path, length=1.0))


def test_a_damaged_model_is_refused(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("{}")
    with refused("train it again"):
        read_ranker(str(path))


def test_a_model_of_another_family_is_refused():
    family = Ranker.training_family(Ranker.Settings(), Path())
    assert family == read_ranker("ifqa").family == "ifqa/full"
    tables = {
        "benchmark": "ifqa",
        "split": "few-dev",
        "corpus": "sample",
        "retriever": {"name": "ranker"},
    }
    with refused("was trained on ifqa/full"):
        refuse_other_families(Run(parse_experiment("mine", tables, "mine.toml")))


def test_the_weights_of_words_need_no_torch():
    code = (
        "import sys; from ifqa.models.places import minilm_folder; "
        "from ifqa.retrieval.linear_ranker import load_word_weights; "
        "load_word_weights(minilm_folder()); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
