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


def test_a_short_document_is_one_passage():
    [passage] = passages(TextRun("Only this line.", 1))
    assert passage.id == "a%20b.txt#0:line=1"
    assert passage.title == "a b.txt"
    assert passage.text == "Only this line."


def test_passages_are_equally_long():
    equal = passages(TextRun(SENTENCE * 25, 1))
    assert [len(passage.text.split()) for passage in equal] == [72, 81, 72]


def test_passages_end_at_sentences():
    equal = passages(TextRun(SENTENCE * 25, 1))
    assert all(passage.text.endswith("nine.") for passage in equal)


def test_a_text_little_longer_than_a_passage_is_not_split():
    assert len(passages(TextRun(SENTENCE * 13, 1))) == 1


def test_a_text_without_sentences_is_split_at_the_wanted_length():
    lengths = [len(passage.text.split()) for passage in passages(TextRun("word " * 250, 1))]
    assert lengths == [100, 100, 50]


CHINESE = "安妮今年住在奥斯陆的一间小屋里面工作。"  # 19 characters


def test_passages_of_a_text_without_spaces_are_as_long():
    equal = passages(TextRun(CHINESE * 50, 1))
    assert [passage.text.count("。") for passage in equal] == [10] * 5
    assert "".join(passage.text for passage in equal) == CHINESE * 50


def test_a_sentence_without_spaces_is_split_at_the_wanted_length():
    lengths = [len(passage.text) for passage in passages(TextRun("安" * 500, 1))]
    assert lengths == [200, 200, 100]


def test_a_long_row_without_spaces_is_split_below_its_name():
    row = (("姓名", "安妮"), ("注", CHINESE * 40))
    pieces = passages(TextRun("姓名", 1, row=row))
    assert len(pieces) == 4
    assert all(piece.text.startswith("姓名: 安妮; 注: ") for piece in pieces)


def test_overlapping_passages_share_whole_sentences():
    lamps = [f"Lamp {n} is lit by the keeper at nine" for n in range(20)]
    first, second = passages(TextRun(". ".join(lamps), 1), overlap=20)
    assert [sentence for sentence in second.text.split(". ") if sentence in first.text] == lamps[
        8:10
    ]


def test_a_run_outside_a_section_ends_it():
    sheet = TextRun("Books", 1, level=1)
    named = TextRun("Elm", 2, level=2), TextRun("year: 1901.", 2)
    found = passages(sheet, *named, TextRun("year: 1950.", 3, outside=2), unit="row")
    assert [(passage.title, passage.text) for passage in found] == [
        ("a b.txt › Books › Elm", "Books. Elm. year: 1901."),
        ("a b.txt › Books", "year: 1950."),
    ]


def test_a_heading_alone_is_not_joined_with_a_run_outside_its_section():
    found = passages(TextRun("Elm", 1, level=1), TextRun("year: 1950.", 2, outside=1))
    assert [passage.text for passage in found] == ["Elm.", "year: 1950."]


def test_a_passage_has_the_headings_above_it():
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


LOCATORS = (
    st.text(min_size=1),
    st.sampled_from(["page", "line", "row", "message"]),
    st.text(),
    st.lists(st.integers(1, 999), min_size=1, max_size=4, unique=True).map(sorted),
)


def id_of_a_passage(file, unit, sheet, places):
    return passage_id(file, 7, unit, [(place, 10 * n) for n, place in enumerate(places)], sheet)


def without_surrogates(name):
    return name.encode("utf-8", "replace").decode()


@given(*LOCATORS)
def test_an_id_has_no_white_space(file, unit, sheet, places):
    sheet = without_surrogates(sheet) if unit == "row" else ""
    locator = id_of_a_passage(without_surrogates(file), unit, sheet, places)
    assert locator.split() == [locator]


@given(*LOCATORS)
def test_an_id_holds_the_locator(file, unit, sheet, places):
    file = without_surrogates(file)
    sheet = without_surrogates(sheet) if unit == "row" else ""
    locator = id_of_a_passage(file, unit, sheet, places)
    assert parse_locator(locator) == Locator(file, unit, places[0], places[-1], sheet)


def test_a_name_that_is_not_utf8_has_a_unique_id():
    names = [os.fsdecode(b"caf\xe9.txt"), os.fsdecode(b"caf\xe8.txt")]
    ids = [passage_id(name, 0, "line", [(1, 0)]) for name in names]
    assert ids == ["caf%E9.txt#0:line=1", "caf%E8.txt#0:line=1"]


def test_a_name_that_is_not_utf8_can_be_shown():
    locator = passage_id(os.fsdecode(b"caf\xe9.txt"), 0, "line", [(1, 0)])
    assert str(parse_locator(locator)) == "caf\ufffd.txt, line 1"


def test_control_characters_of_a_name_are_not_shown():
    locator = passage_id("a\n\x1b.txt", 0, "row", [(1, 0)], "b\nc")
    assert str(parse_locator(locator)) == "a \ufffd.txt, sheet b c, row 1"


RUNS = st.builds(
    TextRun, st.text("ab .\n\x1b", max_size=60), st.integers(1, 9), st.booleans(), st.integers(0, 2)
)


def chunks_of(runs, words):
    in_order = sorted(runs, key=lambda run: run.place)
    return list(chunk_document("f", in_order, "line", words))


@given(st.lists(RUNS, max_size=12), st.integers(1, 12))
def test_no_word_is_lost(runs, words):
    in_order = sorted(runs, key=lambda run: run.place)
    before = " ".join(clean_text(run.text) for run in in_order).split()
    after = " ".join(chunk.text for chunk in chunks_of(runs, words)).split()
    assert [word.rstrip(".") for word in after] == [word.rstrip(".") for word in before]


@given(st.lists(RUNS, max_size=12), st.integers(1, 12))
def test_no_passage_is_too_long(runs, words):
    assert all(len(chunk.text.split()) <= 2 * words for chunk in chunks_of(runs, words))


@given(st.lists(RUNS, max_size=12), st.integers(1, 12))
def test_no_two_passages_share_an_id(runs, words):
    chunks = chunks_of(runs, words)
    assert len({chunk.id for chunk in chunks}) == len(chunks)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12), st.integers(1, 12))
def test_the_lines_of_a_passage_are_those_of_its_runs(steps, words):
    lines = {}
    runs = []
    place = 1
    for number, (step, more) in enumerate(steps):
        lines[f"w{number}."] = range(place, place + more + 1)
        runs.append(TextRun(f"w{number}.", place, last=place + more))
        place += more + step
    for chunk in chunk_document("f", runs, "line", words):
        locator = parse_locator(chunk.id)
        assert locator
        covered = [lines[word] for word in chunk.text.split()]
        assert locator.first == min(each.start for each in covered)
        assert locator.last == max(each.stop for each in covered) - 1
