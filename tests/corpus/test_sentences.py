"""Sentences of a text."""

from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.sentences import sentence_span, split_sentences

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
