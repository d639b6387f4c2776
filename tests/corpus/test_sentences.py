"""Sentences of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.sentences import (
    count_words,
    keep_whole,
    piece_spans,
    sentence_span,
    split_sentences,
)

TEXT = "History. The mill at St. Brae was built by J. Lee. It had 3.5 floors! Was it the first?"


def test_a_text_is_split_at_the_ends_of_sentences() -> None:
    first = "History. The mill at St. Brae was built by J. Lee. "
    assert split_sentences(TEXT) == [first, "It had 3.5 floors! ", "Was it the first?"]


def test_the_span_of_a_sentence_has_no_white_space_around_it() -> None:
    for word, sentence in (("mill", TEXT[:50]), ("3.5", TEXT[51:69]), ("first", TEXT[70:])):
        start = TEXT.index(word)
        left, right = sentence_span(TEXT, start, start + len(word))
        assert TEXT[left:right] == sentence
    start = TEXT.index("Lee")
    end = TEXT.index("floors")
    assert sentence_span(TEXT, start, end) == (0, 69)


@given(st.text(alphabet='aB. !?\n"', max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_a_span_lies_within_its_sentence(text: str, start: int, length: int) -> None:
    assert "".join(split_sentences(text)) == text
    start, end = min(start, len(text)), min(start + length, len(text))
    left, right = sentence_span(text, start, end)
    assert 0 <= left <= right <= len(text)
    assert left <= start
    assert not text[right:end].strip()


@pytest.mark.parametrize(
    "sentences",
    [
        [
            "安妮住在奥斯陆的小屋里。",
            "她今年三十一岁！",
            "他也住在那里吗？",
            "“我不知道。”",
            "他们这样说。",
        ],
        [
            "水車小屋はオルドブルックにあります。",
            "2024年に建てられました。",
            "「もう行くよ。」と彼は言った。",
        ],
        ["“他们现在都住在哪里？”", "2024年，ABC公司知道。"],
        ["โรงสีตั้งอยู่ที่ออลด์บรูคในหมู่บ้าน ", "ทอมปิดประตูน้ำเมื่อเบรกเสียหายทุกครั้ง"],
        ["ទីក្រុងភ្នំពេញជារដ្ឋធានីនៃប្រទេស។", "ប្រជាជនរស់នៅទីនោះច្រើនណាស់។"],
    ],
)
def test_a_text_without_spaces_is_split_at_the_ends_of_sentences(sentences: list[str]) -> None:
    parts = split_sentences("".join(sentences))
    assert "".join(parts) == "".join(sentences)
    ends = {len("".join(sentences[:count])) for count in range(1, len(sentences) + 1)}
    found = {len("".join(parts[:count])) for count in range(1, len(parts) + 1)}
    assert found <= ends
    assert len(parts) >= 2


def test_a_short_sentence_without_spaces_joins_the_next() -> None:
    assert split_sentences("好。他们都住在奥斯陆。") == ["好。他们都住在奥斯陆。"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("The mill at Marlow", 4),
        ("安妮住在奥斯陆", 4),
        ("2024年に東京で", 4),
        ("โรงสีตั้งอยู่", 3),
        ("The town of 東京都 (Tokyo) grows", 6),
        ("", 0),
    ],
)
def test_words_without_spaces_are_counted_by_their_characters(text: str, count: int) -> None:
    assert count_words(text) == count


def test_an_english_sentence_with_a_japanese_name_is_not_split() -> None:
    text = "The group Morning Musume (モーニング娘。) of Tokyo (東京。2001) was founded in 1997."
    assert split_sentences(text) == [text]


MIXED = st.text(alphabet='aB. !?\n"安妮。」とไทย', max_size=60)


@given(MIXED)
def test_the_sentences_of_a_mixed_text_are_the_text(text: str) -> None:
    assert "".join(split_sentences(text)) == text


@given(MIXED, st.integers(1, 5))
def test_pieces_leave_out_nothing_but_white_space(text: str, longest: int) -> None:
    pieces = [text[first:last] for first, last in piece_spans(text, longest)]
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(MIXED)
def test_a_text_that_is_kept_whole_is_one_sentence(text: str) -> None:
    line = " ".join(text.split())
    assert len(split_sentences(keep_whole(line))) <= 1


@given(st.text(alphabet='aÉ. !?\n"東', max_size=60))
def test_words_with_spaces_are_counted_by_these(text: str) -> None:
    spaced = text.replace("東", "ae 東 io")
    assert count_words(spaced) == len(spaced.split())
