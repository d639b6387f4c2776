"""Coverage of gold passages by a corpus, against the measure of single passages."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.records import Question, gold_id
from ifqa.report.stats.passages import ShardTask, coverage, measure_shard, merge
from ifqa.scoring.measures.gold_recall import COVERED_SHARE, GoldGrams, covers
from ifqa.storage.files import write_jsonl

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
    questions = [Question(f"t/dev/{number}", "If?", ("yes",), several) for number, several in enumerate(golds)]
    found = coverage(questions, {"A": 1.0, "B": 0.4, "C": 0.39})
    assert (found.golds, found.questions) == (3, 3)
    shares = {"covered": 200 / 3, "mean_best": 179 / 3, "questions_any": 200 / 3, "questions_all": 100 / 3}
    assert found.percents == pytest.approx(shares, abs=0.001)
    assert set(coverage([], {}).percents.values()) == {None}


def passage(passage_id, title="T", contents="one two"):
    return {"id": passage_id, "title": title, "contents": contents}


def page_sizes(tmp_path, *shards):
    paths = [tmp_path / f"passages-{number:05d}.jsonl" for number in range(len(shards))]
    for path, records in zip(paths, shards, strict=True):
        write_jsonl(path, records)
    return merge((measure_shard(ShardTask(path, ())) for path in reversed(paths)), paths, (), {}).page_sizes


def test_a_page_is_what_stands_before_the_number_of_an_id_or_the_title_and_gold_is_of_none(tmp_path):
    ids = ["12-0", "12-1", "7-0", "a-b-0", "a-b-1", "a-b-2", gold_id("x"), gold_id("y")]
    assert page_sizes(tmp_path, [passage(one, "same title") for one in ids]) == {1: 1, 2: 1, 3: 1}
    numbered = [passage("1", "Aaron"), passage("2", "Aaron"), passage("3", "Abel"), passage("4", "")]
    assert page_sizes(tmp_path, numbered) == {1: 1, 2: 1}


pages = st.lists(st.one_of(st.none(), st.integers(1, 5)), max_size=8)  # the passages of each; None: one gold passage


@given(sizes=pages, cuts=st.lists(st.integers(0, 40), max_size=4))
def test_a_page_that_goes_on_in_the_next_shards_is_one_page(tmp_path_factory, sizes, cuts):
    records = [
        passage(f"{page}-{n}" if size else gold_id(f"{page}"))
        for page, size in enumerate(sizes)
        for n in range(size or 1)
    ]
    ends = [0, *sorted(min(cut, len(records)) for cut in cuts), len(records)]
    shards = [records[start:end] for start, end in pairwise(ends)]
    assert page_sizes(tmp_path_factory.mktemp("shards"), *shards) == dict(sorted(Counter(filter(None, sizes)).items()))
