"""Reader 'rag': its predictions, the weights of its passages, and the settings it takes from a checkpoint."""

import json
import math

import pytest
from refusals import refused
from tiny_t5 import save

from ifqa.plugins import load_plugin
from ifqa.reading.t5.checkpoint import load_t5_manifest
from ifqa.reading.t5.readers import Fid, Rag, input_scores
from ifqa.records import Passage, Question

PASSAGES = [
    Passage("w/1", "Old Bridge", "The bridge was opened in 1895 by the mayor Anna Berg, five years late."),
    Passage("w/2", "Harbour", "The harbour of Wick was dug from 1803 to 1811 by the engineer Thomas Telford."),
    Passage("w/3", "", ""),
]
QUESTIONS = [
    Question("q/0", "If the bridge had been built in 1890, who would have opened it?", ("Anna Berg",)),
    Question("q/1", "If the harbour had not been dug, who would have been free in 1811?"),
    Question("q/2", "If the river were dry, what would the bridge carry?"),
]
RANKED = [PASSAGES, PASSAGES[1:], []]
SCORES = [[21.5, 20.0, 3.25], [1.0, 0.5], []]
WAYS = [{"mode": "sequence"}, {"mode": "sequence", "decoding": "fast"}, {"mode": "token"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save(tmp_path_factory.mktemp("rag") / "tiny")


def opened(folder, **settings):
    return Rag(str(folder), **{"device": "cpu", "precision": "float32", "max_answer_tokens": 8} | settings)


def near(expected):
    return pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("beams", [1, 2])
def test_predictions_say_how_much_each_passage_gave(folder, way, beams):
    done = []
    found = opened(folder, **way, beams=beams).answer(QUESTIONS, RANKED, done.append, scores=SCORES)
    assert (sum(done), [one.question_id for one in found]) == (3, ["q/0", "q/1", "q/2"])
    for one, passages in zip(found, RANKED, strict=True):
        assert one.answer == one.completion.strip() != ""
        assert one.score < 0
        assert not one.error
        assert sorted(one.passage_ids) == sorted(passage.id for passage in passages)
        assert list(one.passage_scores) == sorted(one.passage_scores, reverse=True)
        assert sum(one.passage_scores) == near(1.0 if passages else 0.0)
        json.dumps([one.score, one.passage_scores])


def test_the_best_scored_passage_answers_if_the_others_are_far_below(folder):
    alone = Fid(str(folder), device="cpu", precision="float32", max_answer_tokens=8)
    for way in WAYS:
        for place, passage in enumerate(PASSAGES):
            scores = [[900.0 * (n == place) for n in range(3)]]
            [found] = opened(folder, **way).answer(QUESTIONS[:1], [PASSAGES], scores=scores)
            [expected] = alone.answer(QUESTIONS[:1], [[passage]])
            assert (found.answer, found.passage_ids[0]) == (expected.answer, passage.id)
            assert found.score == near(expected.score)


def test_scores_are_divided_by_the_temperature_and_equal_where_there_are_none(folder):
    halved = [[score / 2 for score in several] for several in SCORES]
    found = opened(folder, temperature=2.0).answer(QUESTIONS, RANKED, scores=SCORES)
    expected = opened(folder).answer(QUESTIONS, RANKED, scores=halved)
    assert [one.score for one in found] == near([one.score for one in expected])
    equal, plain = [[7.0] * len(several) for several in RANKED], opened(folder, mode="token")
    assert plain.answer(QUESTIONS, RANKED) == plain.answer(QUESTIONS, RANKED, scores=equal)
    assert plain.answer(QUESTIONS, RANKED)[0].score != plain.answer(QUESTIONS, RANKED, scores=SCORES)[0].score
    assert plain.answer([], [], scores=[]) == []
    with refused("question q/1: 2 passages and 1 scores; give one for each"):
        plain.answer(QUESTIONS, RANKED, scores=[SCORES[0], [1.0], []])
    for passages, expected in ((2, [3.0, 2.0]), (4, [3.0, 2.0, 1.0, 1.0])):  # another than the retrieved gets the last
        assert input_scores([3.0, 2.0, 1.0], passages) == expected
    assert input_scores([], 1) == [0.0]


def test_mode_and_temperature_of_a_checkpoint_hold_until_others_are_given(folder, tmp_path):
    plain = opened(folder).mixture
    assert (plain.mode, plain.decoding, plain.temperature) == ("sequence", "thorough", 1.0)
    trained = save(tmp_path / "trained")
    manifest = {"family": "ifqa/few", "sources": {"train": "ab"}, "rag": {"mode": "token", "temperature": 3.5}}
    (trained / "manifest.json").write_text(json.dumps(manifest))
    own = opened(trained)
    assert (own.mixture.mode, own.mixture.temperature) == ("token", 3.5)
    assert (own.family, set(own.trained_on), own.label) == ("ifqa/few", {"ab"}, "")
    assert Rag.training_family(str(trained)) == "ifqa/few"
    other = opened(trained, mode="sequence", decoding="fast", temperature=2.0).mixture
    assert (other.mode, other.decoding, other.temperature) == ("sequence", "fast", 2.0)
    with refused("decoding = 'fast' needs mode 'sequence', and the mode is 'token'"):
        opened(trained, decoding="fast")
    for own in ({"mode": "words", "temperature": 1.0}, {"mode": "token", "temperature": 0.0}, {"temperature": "1"}, [1], "token",
                {"mode": ["token"]}, {"mode": "token", "temperature": True}, {"mode": "token", "temperature": math.inf}):  # fmt: skip
        (trained / "manifest.json").write_text(json.dumps({"rag": own}))
        with refused(r"manifest.json: not as ifqa writes it \(rag.*ifqa train rag"):
            load_t5_manifest(trained, "rag")


def test_settings_out_of_range_and_a_missing_checkpoint_are_refused(folder, tmp_path):
    wrong = {
        "mode": "both", "decoding": "slow", "temperature": -1.0, "beams": 0, "max_tokens": 15, "device": "abacus", "titles": "maybe",
        "encoder_eos": "", "precision": "float16", "max_answer_tokens": 1, "batch_tokens": -1,
    }  # fmt: skip
    for setting, value in wrong.items():
        with refused(setting):
            Rag(str(folder), **{setting: value})
    with refused("train one with: ifqa train rag"):
        Rag(str(tmp_path / "none"))
    assert (load_plugin("reader", "rag"), Rag.takes_scores, Fid.takes_scores) == (Rag, True, False)
