"""Passages of documents: about 100 words, whole sentences, one heading each, and ids that say where they stand."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.documents.chunking import Locator, chunk_document, parse_locator, passage_id
from ifqa.corpus.documents.decoding import TextRun, clean_text

SENTENCE = "The lamp is lit by the keeper at nine. "  # 9 words


def passages(*runs, unit="line", **settings):
    return list(chunk_document("a b.txt", runs, unit, **settings))


def test_passages_end_at_sentences_and_are_equally_long():
    [passage] = passages(TextRun("Only this line.", 1))
    assert (passage.id, passage.title, passage.text) == ("a%20b.txt#0:line=1", "a b.txt", "Only this line.")
    several = passages(TextRun(SENTENCE * 25, 1))
    assert [len(passage.text.split()) for passage in several] == [72, 81, 72]
    assert all(passage.text.endswith("nine.") for passage in several)
    assert len(passages(TextRun(SENTENCE * 13, 1))) == 1  # little more than a passage
    assert [len(passage.text.split()) for passage in passages(TextRun("word " * 250, 1))] == [100, 100, 50]


def test_overlapping_passages_share_whole_sentences():
    first, second = passages(
        TextRun("".join(f"Lamp {n} is lit by the keeper at nine. " for n in range(20)), 1), overlap=20
    )
    shared = [line for line in second.text.split(". ") if line in first.text]
    assert shared == [f"Lamp {n} is lit by the keeper at nine" for n in (8, 9)]


def test_headings_are_titles_and_begin_their_text():
    lines = [("Part", 1), ("Fire", 2), ("Run.", 0), ("Water", 2), ("Swim.", 0), ("End", 1), ("Rest.", 0)]
    runs = [TextRun(text, place, level=level) for place, (text, level) in enumerate(lines)]
    assert [(passage.title, passage.text) for passage in passages(*runs)] == [
        ("a b.txt › Part › Fire", "Part. Fire. Run."), ("a b.txt › Part › Water", "Water. Swim."), ("a b.txt › End", "End. Rest."),
    ]  # fmt: skip


def test_a_sentence_over_two_pages_knows_the_page_of_each_part():
    [passage] = passages(
        TextRun("The wheel was built by the", 3), TextRun("carpenter Ruth Hallam.", 4, False), unit="page"
    )
    assert passage.id == "a%20b.txt#0:page=3,4@27"
    assert str(parse_locator(passage.id)) == "a b.txt, pp. 3-4"
    assert [str(parse_locator(passage.id, at))[-1] for at in (0, 26, 27, 40)] == ["3", "3", "4", "4"]


@pytest.mark.parametrize("name", ["366-0", "p#1", "a#0:line=x", "a#0:word=1", "#0:line=1", "a#0:line=1 "])
def test_the_id_of_another_passage_is_no_place(name):
    assert parse_locator(name) is None


@given(
    st.text(min_size=1),
    st.sampled_from(["page", "line", "paragraph", "part", "row"]),
    st.lists(st.integers(1, 999), min_size=1, max_size=4, unique=True).map(sorted),
)
def test_an_id_has_no_white_space_and_says_where_it_stands(file, unit, places):
    file = file.encode("utf-8", "replace").decode()
    found = passage_id(file, 7, unit, [(place, 10 * n) for n, place in enumerate(places)])
    assert found.split() == [found]
    assert parse_locator(found) == Locator(file, unit, places[0], places[-1])


def test_a_name_that_is_not_utf8_has_an_id_of_its_own_and_can_be_shown():
    names = [os.fsdecode(b"caf\xe9.txt"), os.fsdecode(b"caf\xe8.txt")]
    ids = [passage_id(name, 0, "line", [(1, 0)]) for name in names]
    assert ids == ["caf%E9.txt#0:line=1", "caf%E8.txt#0:line=1"]
    assert str(parse_locator(ids[0])) == "caf\ufffd.txt, line 1"


RUNS = st.builds(TextRun, st.text("ab .\n\x1b", max_size=60), st.integers(1, 9), st.booleans(), st.integers(0, 2))


@given(st.lists(RUNS, max_size=12), st.integers(1, 12))
def test_no_word_is_lost_and_no_passage_is_too_long(runs, words):
    runs = sorted(runs, key=lambda run: run.place)
    several = list(chunk_document("f", runs, "line", words))
    said = [word for run in runs for word in clean_text(run.text).split()]
    kept = [word for one in several for word in one.text.split()]
    assert [word.rstrip(".") for word in kept] == [word.rstrip(".") for word in said]
    assert all(len(one.text.split()) <= 2 * words for one in several)
    assert len({one.id for one in several}) == len(several)
