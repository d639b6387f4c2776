import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.corpus.wikipedia.source import split
from ifqa.errors import IfqaError


def words(count: int) -> list[str]:
    return [f"w{number}" for number in range(count)]


def test_the_last_passage_is_filled_up_from_the_start_of_the_article() -> None:
    first, last = split(" ".join(words(130)))
    assert first.split() == words(100)
    assert last.split() == words(130)[100:] + words(70)


def test_a_short_article_is_repeated_only_once() -> None:
    (passage,) = split(" ".join(words(19)))
    assert passage.split() == words(19) + words(19)


def test_an_article_of_whole_passages_is_not_wrapped() -> None:
    assert [len(passage.split()) for passage in split(" ".join(words(200)))] == [100, 100]


def test_without_wrap_the_last_passage_is_short() -> None:
    assert [len(passage.split()) for passage in split(" ".join(words(130)), wrap=False)] == [100, 30]


def test_any_white_space_separates_words_and_single_blanks_join_them() -> None:
    assert split("a\nb\t c\u00a0d  ", words=3, wrap=False) == ["a b c", "d"]


@pytest.mark.parametrize("wrap", [True, False])
def test_an_empty_article_has_no_passages(wrap: bool) -> None:
    assert split(" \n ", wrap=wrap) == []


def test_passages_of_no_words_are_refused() -> None:
    with pytest.raises(IfqaError, match="wanted words >= 1"):
        split("a", words=0)


TEXTS = st.lists(st.text(alphabet="abé.\u3000\n ", min_size=1)).map(" ".join)


@given(TEXTS, st.integers(1, 7))
def test_without_wrap_the_passages_are_the_words_of_the_text(text: str, size: int) -> None:
    passages = split(text, words=size, wrap=False)
    assert " ".join(passages).split() == text.split()
    assert all(len(passage.split()) == size for passage in passages[:-1])


@given(TEXTS, st.integers(1, 7))
def test_with_wrap_only_a_very_short_article_has_a_short_passage(text: str, size: int) -> None:
    article = text.split()
    passages = [passage.split() for passage in split(text, words=size)]
    assert [word for passage in passages for word in passage][: len(article)] == article
    assert all(len(passage) == min(size, 2 * len(article)) for passage in passages)
