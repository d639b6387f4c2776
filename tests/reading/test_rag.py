"""Reader 'rag': its predictions, the weights of its passages, and the settings it takes from a checkpoint."""

import json
import math

import pytest
from tiny_t5 import save

from ifqa.errors import IfqaError
from ifqa.plugins import load
from ifqa.reading.t5.checkpoint import manifest_of
from ifqa.reading.t5.readers import Fid, Rag, scores_of
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


def test_without_scores_passages_have_equal_weights(folder):
    equal = [[7.0] * len(several) for several in RANKED]
    reader = opened(folder, mode="token")
    assert reader.answer(QUESTIONS, RANKED) == reader.answer(QUESTIONS, RANKED, scores=equal)
    assert reader.answer(QUESTIONS, RANKED)[0].score != reader.answer(QUESTIONS, RANKED, scores=SCORES)[0].score


def test_the_best_scored_passage_answers_if_the_others_are_far_below(folder):
    alone = Fid(str(folder), device="cpu", precision="float32", max_answer_tokens=8)
    for way in WAYS:
        for place, passage in enumerate(PASSAGES):
            scores = [[900.0 * (n == place) for n in range(3)]]
            [found] = opened(folder, **way).answer(QUESTIONS[:1], [PASSAGES], scores=scores)
            [expected] = alone.answer(QUESTIONS[:1], [[passage]])
            assert (found.answer, found.passage_ids[0]) == (expected.answer, passage.id)
            assert found.score == near(expected.score)


def test_a_temperature_divides_the_scores(folder):
    halved = [[score / 2 for score in several] for several in SCORES]
    [*found] = opened(folder, temperature=2.0).answer(QUESTIONS, RANKED, scores=SCORES)
    [*expected] = opened(folder).answer(QUESTIONS, RANKED, scores=halved)
    assert [one.score for one in found] == near([one.score for one in expected])


def test_a_passage_without_a_score_is_refused(folder):
    with pytest.raises(IfqaError, match="question q/1 has 2 passages and 1 scores; give one for each"):
        opened(folder).answer(QUESTIONS, RANKED, scores=[SCORES[0], [1.0], []])


@pytest.mark.parametrize("way", WAYS)
def test_bfloat16_answers_on_a_cpu_too(folder, way):
    found = opened(folder, **way, precision="bfloat16", beams=2).answer(QUESTIONS, RANKED, scores=SCORES)
    assert [sum(one.passage_scores) for one in found] == [pytest.approx(one, abs=1e-3) for one in (1, 1, 0)]


def test_no_questions_have_no_answers(folder):
    assert opened(folder).answer([], [], scores=[]) == []


def test_mode_and_temperature_of_a_checkpoint_hold_until_others_are_given(folder, tmp_path):
    plain = opened(folder).mixture
    assert (plain.mode, plain.decoding, plain.temperature) == ("sequence", "thorough", 1.0)
    trained = save(tmp_path / "trained")
    manifest = {"family": "ifqa/few", "sources": {"train": "ab"}, "rag": {"mode": "token", "temperature": 3.5}}
    (trained / "manifest.json").write_text(json.dumps(manifest))
    own = opened(trained)
    assert (own.mixture.mode, own.mixture.temperature) == ("token", 3.5)
    assert (own.family, set(own.trained_on), own.label) == ("ifqa/few", {"ab"}, "")
    assert Rag.trained(str(trained)) == "ifqa/few"
    other = opened(trained, mode="sequence", decoding="fast", temperature=2.0).mixture
    assert (other.mode, other.decoding, other.temperature) == ("sequence", "fast", 2.0)
    with pytest.raises(IfqaError, match="decoding = 'fast' is of mode 'sequence', and the mode is 'token'"):
        opened(trained, decoding="fast")


@pytest.mark.parametrize(
    "own",
    [
        {"mode": "words", "temperature": 1.0}, {"mode": "token", "temperature": 0.0}, {"temperature": "1"}, [1], "token",
        {"mode": ["token"]}, {"mode": "token", "temperature": True}, {"mode": "token", "temperature": math.inf},
    ],
)  # fmt: skip
def test_a_manifest_with_another_mode_or_temperature_is_refused(tmp_path, own):
    (tmp_path / "manifest.json").write_text(json.dumps({"rag": own}))
    with pytest.raises(IfqaError, match=r"^[^\n]*manifest.json: not as ifqa writes it \(rag[^\n]*ifqa train rag$"):
        manifest_of(tmp_path, "rag")


@pytest.mark.parametrize(
    ("setting", "value"),
    [("mode", "both"), ("decoding", "slow"), ("temperature", -1.0), ("beams", 0), ("max_tokens", 15), ("device", "abacus")],
)  # fmt: skip
def test_a_setting_out_of_range_is_refused_by_its_name(folder, setting, value):
    with pytest.raises(IfqaError, match=rf"^[^\n]*{setting}[^\n]*$"):
        Rag(str(folder), **{setting: value})


def test_a_checkpoint_that_is_missing_is_refused_with_the_command_that_trains_one(tmp_path):
    with pytest.raises(IfqaError, match="train one with: ifqa train rag"):
        Rag(str(tmp_path / "none"))


def test_another_passage_than_the_retrieved_gets_the_last_score():
    assert scores_of([3.0, 2.0, 1.0], 2) == [3.0, 2.0]
    assert scores_of([3.0, 2.0], 3) == [3.0, 2.0, 2.0]
    assert scores_of([], 1) == [0.0]


def test_it_is_found_by_its_name_and_asks_for_scores():
    assert load("reader", "rag") is Rag
    assert (Rag.takes_scores, Fid.takes_scores) == (True, False)
