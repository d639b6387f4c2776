"""Passages of documents: about 100 words, whole sentences, one heading each, and ids that are
locators.
"""

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
    assert (passage.id, passage.title, passage.text) == (
        "a%20b.txt#0:line=1",
        "a b.txt",
        "Only this line.",
    )
    equal = passages(TextRun(SENTENCE * 25, 1))
    assert [len(passage.text.split()) for passage in equal] == [72, 81, 72]
    assert all(passage.text.endswith("nine.") for passage in equal)
    assert len(passages(TextRun(SENTENCE * 13, 1))) == 1  # little more than a passage
    assert [len(passage.text.split()) for passage in passages(TextRun("word " * 250, 1))] == [
        100,
        100,
        50,
    ]


def test_overlapping_passages_share_whole_sentences():
    lamps = [f"Lamp {n} is lit by the keeper at nine" for n in range(20)]
    first, second = passages(TextRun(". ".join(lamps), 1), overlap=20)
    assert [sentence for sentence in second.text.split(". ") if sentence in first.text] == lamps[
        8:10
    ]


def test_headings_are_titles_and_begin_their_text():
    lines = [
        ("Part", 1),
        ("Fire", 2),
        ("Run.", 0),
        ("Water", 2),
        ("Swim.", 0),
        ("End", 1),
        ("Rest.", 0),
    ]
    runs = [TextRun(text, place, level=level) for place, (text, level) in enumerate(lines)]
    assert [(passage.title, passage.text) for passage in passages(*runs)] == [
        ("a b.txt › Part › Fire", "Part. Fire. Run."),
        ("a b.txt › Part › Water", "Water. Swim."),
        ("a b.txt › End", "End. Rest."),
    ]


def test_a_sentence_over_two_pages_has_the_page_of_each_part():
    runs = TextRun("The wheel was built by the", 3), TextRun("carpenter Ruth Hallam.", 4, False)
    [passage] = passages(*runs, unit="page")
    assert passage.id == "a%20b.txt#0:page=3,4@27"
    assert str(parse_locator(passage.id)) == "a b.txt, pp. 3-4"
    assert [str(parse_locator(passage.id, at))[-1] for at in (0, 26, 27, 40)] == [
        "3",
        "3",
        "4",
        "4",
    ]


@pytest.mark.parametrize(
    "name", ["366-0", "p#1", "a#0:line=x", "a#0:word=1", "#0:line=1", "a#0:line=1 "]
)
def test_the_id_of_another_passage_has_no_locator(name):
    assert parse_locator(name) is None


@given(
    st.text(min_size=1),
    st.sampled_from(["page", "line", "row", "message"]),
    st.text(),
    st.lists(st.integers(1, 999), min_size=1, max_size=4, unique=True).map(sorted),
)
def test_an_id_has_no_white_space_and_holds_the_locator(file, unit, sheet, places):
    file, sheet = (
        name.encode("utf-8", "replace").decode() for name in (file, sheet if unit == "row" else "")
    )
    locator = passage_id(file, 7, unit, [(place, 10 * n) for n, place in enumerate(places)], sheet)
    assert locator.split() == [locator]
    assert parse_locator(locator) == Locator(file, unit, places[0], places[-1], sheet)


def test_a_name_that_is_not_utf8_has_a_unique_id_and_can_be_shown():
    names = [os.fsdecode(b"caf\xe9.txt"), os.fsdecode(b"caf\xe8.txt")]
    ids = [passage_id(name, 0, "line", [(1, 0)]) for name in names]
    assert ids == ["caf%E9.txt#0:line=1", "caf%E8.txt#0:line=1"]
    assert (
        str(parse_locator(passage_id("a\n\x1b.txt", 0, "row", [(1, 0)], "b\nc")))
        == "a \ufffd.txt, sheet b c, row 1"
    )
    assert str(parse_locator(ids[0])) == "caf\ufffd.txt, line 1"


RUNS = st.builds(
    TextRun, st.text("ab .\n\x1b", max_size=60), st.integers(1, 9), st.booleans(), st.integers(0, 2)
)


@given(st.lists(RUNS, max_size=12), st.integers(1, 12))
def test_no_word_is_lost_and_no_passage_is_too_long(runs, words):
    runs = sorted(runs, key=lambda run: run.place)
    chunks = list(chunk_document("f", runs, "line", words))
    before = " ".join(clean_text(run.text) for run in runs).split()
    after = " ".join(chunk.text for chunk in chunks).split()
    assert [word.rstrip(".") for word in after] == [word.rstrip(".") for word in before]
    assert all(len(chunk.text.split()) <= 2 * words for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == len(chunks)
