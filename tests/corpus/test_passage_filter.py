"""Selection and sampling of passages for annotators."""

import pytest

from ifqa.corpus.passage_filter import find_causal_sentence, merge_samples, sample_shard
from ifqa.corpus.passage_store import generated_passage_line
from ifqa.records import Passage


@pytest.mark.parametrize(
    ("text", "keyword"),
    [
        ("The tower was built in 1889. It was originally meant to stand for twenty years.", "originally"),
        ("The match moved to Belgrade because the hall had burned down.", "because"),
        ("A drought led to the collapse of the kingdom.", "lead to"),
        ("The fire, caused by a candle, destroyed the mill in a single night.", "cause"),
    ],
)
def test_a_passage_with_a_cause_in_the_past_tense_is_selected_with_its_keyword(text, keyword):
    causal = find_causal_sentence(text)
    assert (causal.keyword, causal.sentence in text) == (keyword, True)


@pytest.mark.parametrize(
    "text",
    [
        "The tower was built in 1889 and stands in Paris.",  # no keyword
        "Smoking causes cancer and is harmful to everybody around.",  # the present
        "Rust is caused by water. The bridge was opened in 1932.",  # the past tense is in another sentence
        "The ringleader to be was known as a becauser.",  # parts of other words
    ],
)
def test_a_passage_without_a_cause_in_the_past_is_left_out(text):
    assert find_causal_sentence(text) is None


def test_a_sample_depends_on_the_seed_and_comes_from_all_shards(tmp_path):
    texts = ("It closed one day, on a Monday.", *["It was closed because of rain."] * 2)
    lines = [generated_passage_line(Passage(str(n), "T", texts[n % 3])) for n in range(90)]
    shards = [tmp_path / "a", tmp_path / "b"]
    shards[0].write_bytes(b"".join(lines[:50]))
    shards[1].write_bytes(b"".join(lines[50:]))

    def draw(paths, seed=0):
        return merge_samples((sample_shard(path, 7, 4, seed) for path in paths), 7, 4)

    sample = draw(shards)
    assert (sample.passages, sample.keywords) == (90, {"because": 60})
    assert (len(sample.kept), len(sample.left)) == (7, 4)
    assert all(int(passage.id) % 3 for _, passage, _ in sample.kept)
    assert {int(passage.id) < 50 for _, passage, _ in sample.kept} == {True, False}
    assert draw(shards[::-1]).kept == sample.kept
    assert draw(shards, seed=1).kept != sample.kept
