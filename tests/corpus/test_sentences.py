"""Sentences of a text."""

from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.sentences import sentence_span, split_sentences

TEXT = "History. The mill at St. Brae was built by J. Lee. It had 3.5 floors! Was it the first?"


def test_a_text_is_split_at_the_ends_of_sentences_alone() -> None:
    assert split_sentences(TEXT) == [
        "History. The mill at St. Brae was built by J. Lee. ",
        "It had 3.5 floors! ",
        "Was it the first?",
    ]


def test_the_sentence_of_a_place_has_no_space_around_it() -> None:
    for word, sentence in (("mill", TEXT[:50]), ("3.5", TEXT[51:69]), ("first", TEXT[70:])):
        start = TEXT.index(word)
        left, right = sentence_span(TEXT, start, start + len(word))
        assert TEXT[left:right] == sentence
    start, end = TEXT.index("Lee"), TEXT.index("floors")
    assert sentence_span(TEXT, start, end) == (0, 69)


@given(st.text(alphabet='aB. !?\n"', max_size=40), st.data())
def test_a_place_lies_within_its_sentence(text: str, data: st.DataObject) -> None:
    assert "".join(split_sentences(text)) == text
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    left, right = sentence_span(text, start, end)
    assert 0 <= left <= right <= len(text)
    assert left <= start
    assert not text[right:end].strip()
