"""Superscripts, subscripts, note marks and ruby in plain text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.documents.decoding import clean_text
from ifqa.corpus.documents.marks import lowered, note_mark, raised, ruby, write_marks
from ifqa.corpus.wikipedia.wikitext import to_text


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        (f"6 × 10{raised('24')} kg", "6 × 10^24 kg"),
        (f"10{raised('−3')} m", "10^−3 m"),
        (f"10{raised('2')}{raised('4')}", "10^24"),
        (f"2{raised('n')}", "2^n"),
        (f"12 km{raised('2')}", "12 km2"),
        (f"x{raised('2')} = 25", "x2 = 25"),
        (f"on 5{raised('th')} May", "on 5th May"),
        (f"1{raised('1')}/{lowered('2')} cups", "1 1/2 cups"),
        (f"{raised('1')}⁄{lowered('2')} cup", "1/2 cup"),
        (f"H{lowered('2')}O", "H2O"),
        (f"101{lowered('2')}", "101_2"),
    ],
)
def test_a_mark_is_written_in_plain_characters(marked, plain):
    assert write_marks(marked) == plain


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        (f"See note{raised('3')}.", "See note 3."),
        (f"ended.{raised('12')} Then", "ended. 12 Then"),
        (f"in 1894{raised('[3]')} and", "in 1894 [3] and"),
        (f"in 1894{raised('3')} and", "in 1894 3 and"),
        (f"cost 40{raised('a')} pounds", "cost 40 a pounds"),
        (f"the mill{note_mark('1')}grinds", "the mill 1 grinds"),
        (f"the mill{raised('*')}", "the mill *"),
    ],
)
def test_a_note_mark_is_apart_from_its_word(marked, plain):
    assert write_marks(marked) == plain


def test_ruby_is_in_brackets():
    assert write_marks(f"東京{ruby('とうきょう')}に") == "東京(とうきょう)に"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("6 × 10²⁴ kg", "6 × 10^24 kg"),
        ("12 m²", "12 m²"),
        ("the mill³ grinds", "the mill 3 grinds"),
        ("1½ cups", "1 1/2 cups"),
        ("½ cup", "½ cup"),
    ],
)
def test_characters_of_unicode_are_written_alike(text, plain):
    assert clean_text(text) == plain


@pytest.mark.parametrize(
    "html", ["10<sup>24</sup> kg", "12 km<sup>2</sup>", "H<sub>2</sub>O", "5<sup>th</sup>"]
)
def test_marks_are_as_in_wikipedia(html):
    marks = {"<sup>": "\ufdd0", "</sup>": "\ufdd1", "<sub>": "\ufdd2", "</sub>": "\ufdd3"}
    marked = html
    for tag, mark in marks.items():
        marked = marked.replace(tag, mark)
    assert write_marks(marked) == to_text(html)


@given(st.text("1a .\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5²½/"))
def test_no_mark_is_left(text):
    assert not set(write_marks(text)) & set("\ufdd0\ufdd1\ufdd2\ufdd3\ufdd4\ufdd5")
