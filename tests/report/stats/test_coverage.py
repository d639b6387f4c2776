"""Coverage of gold passages by a corpus, against the measure of single passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.records import Question
from ifqa.report.stats.passages import compute_coverage
from ifqa.scoring.measures.gold_recall import COVERED_SHARE, GoldGrams, covers

# Few words, so that texts share runs of them; marks, entities and blanks that are no words.
words = st.sampled_from("a b c d A, (b) c. &amp; A&amp;M – ...".split())
texts = st.one_of(st.lists(words, max_size=4), st.lists(words, min_size=5, max_size=30)).map(" ".join)


@given(golds=st.lists(texts, max_size=6), passage=texts)
def test_a_gold_is_covered_where_covers_says_so(golds, passage):
    shares = GoldGrams(golds).shares(passage)
    assert [shares.get(n, 0.0) >= COVERED_SHARE for n in range(len(golds))] == [covers(passage, g) for g in golds]


def test_a_gold_of_few_words_is_covered_where_it_stands_whole():
    golds = GoldGrams(["Paris", "Los Angeles", "New York City", "", "..."])
    assert golds.shares("He went to Paris, and to Los Angeles; New York is no City.") == {0: 1.0, 1: 1.0}
    assert golds.shares("new york city") == {2: 1.0}
    assert golds.shares("") == {}


def test_questions_are_counted_by_any_and_by_all_golds_covered():
    golds = [("A", "B"), ("B", "C"), ("C",), ()]
    questions = [Question(f"t/dev/{number}", "If?", ("yes",), gold) for number, gold in enumerate(golds)]
    found = compute_coverage(questions, {"A": 1.0, "B": 0.4, "C": 0.39})
    assert (found.golds, found.questions) == (3, 3)
    shares = {"covered": 200 / 3, "mean_best": 179 / 3, "questions_any": 200 / 3, "questions_all": 100 / 3}
    assert found.percents == pytest.approx(shares, abs=0.001)
    assert set(compute_coverage([], {}).percents.values()) == {None}
