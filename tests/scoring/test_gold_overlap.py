"""Overlap with gold passages: where it covers one, and what it overlooks."""

import random

from hypothesis import given
from hypothesis import strategies as st

from ifqa.scoring.gold_overlap import GoldIndex, covers, word_grams


def words(seed, count=100):
    rng = random.Random(seed)
    return ["".join(rng.choices("abcdefghij", k=rng.randint(2, 7))) for _ in range(count)]


@given(st.integers(0, 10**6), st.integers(0, 99))
def test_a_gold_passage_is_found_however_the_article_is_cut(seed, offset):
    article = words(seed, 300)
    gold = " ".join(article[100:200])
    ours = [" ".join(article[start : start + 100]) for start in range(offset, 300, 100)]
    assert any(covers(text, gold) for text in ours)
    assert sum(covers(text, gold) for text in ours) <= 2


@given(st.integers(0, 104))
def test_forty_percent_of_the_grams_are_enough(kept):
    gold = words(3, 104)  # 100 grams
    assert len(word_grams(" ".join(gold))) == 100
    assert covers(" ".join(gold[:kept]), " ".join(gold)) == (kept - 4 >= 40)


def test_the_spelling_of_words_is_overlooked():
    assert covers(
        "texas a&m (founded in 1871) — is old", "Texas A&amp;M founded, in 1871 is “old”."
    )
    assert covers("one two&nbsp;three four five", "one two three four five")


def test_the_order_of_words_is_not_overlooked():
    assert not covers("five four three two one", "one two three four five")


def test_a_third_repetition_of_a_text_adds_no_word_grams():
    wrapped = " ".join(words(1, 20))
    assert word_grams(f"{wrapped} {wrapped} {wrapped}") == word_grams(f"{wrapped} {wrapped}")


def test_a_short_gold_must_stand_whole():
    covered = ("he was born in Paris, France.", "Paris, France")
    others = [
        ("France, not Paris", covered[1]),
        ("Paris", covered[1]),
        ("any words", ""),
        ("", " — "),
    ]
    assert [pair for pair in [covered, *others] if covers(*pair)] == [covered]


_TEXTS = st.lists(st.sampled_from("one two three (four) five Six".split()), max_size=14).map(
    " ".join
)


@given(_TEXTS, st.lists(_TEXTS, max_size=6))
def test_the_index_finds_what_each_comparison_finds(passage, golds):
    expected = {gold for gold in golds if covers(passage, gold)}
    assert set(GoldIndex(golds).covered_by(passage)) == expected
