"""What a model quotes is looked up in the passages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.prompting.quotes import find_quote
from ifqa.records import Passage

CAT = Passage(
    "cat", "", "The cat — a “tabby” — sat on the mat.  It slept there all day, in the\nsun."
)
DOG = Passage("dog", "", "Dogs bark at night. They run in the park every day, even in the rain.")
SHOWN = [CAT, DOG]

WORDS = st.lists(st.text("abcäß 'é", min_size=1, max_size=8), min_size=1, max_size=30)


def quoted(quote):
    """The texts of the places of a quote."""
    texts = {passage.id: passage.text for passage in SHOWN}
    return [texts[place.passage_id][place.start : place.end] for place in quote.places]


@pytest.mark.parametrize(
    "text",
    [
        "It slept there all day, in the\nsun.",
        "it slept there all day",
        'The cat - a "tabby" - sat on the mat',
        "'The cat – a ‘tabby’ – sat on the mat.'",
        "slept   there\tall day, in the sun",
        "sl\u00adept there",
    ],
)
def test_white_space_quotation_marks_dashes_or_case_make_no_difference(text):
    assert find_quote(text, SHOWN, 1).outcome == "exact"


def test_a_quote_has_its_place_in_the_passage():
    quote = find_quote("a 'tabby' - sat on the mat", SHOWN, 1)
    assert quoted(quote) == ["a “tabby” — sat on the mat"]


def test_a_quote_from_another_passage_than_the_named_one_is_told():
    quote = find_quote("They run in the park", SHOWN, 1)
    assert quote.outcome == "other passage"
    assert quote.places[0].passage_id == "dog"


def test_a_number_that_no_passage_has_is_another_passage():
    assert find_quote("They run in the park", SHOWN, 7).outcome == "other passage"


def test_without_a_number_any_passage_will_do():
    assert find_quote("They run in the park", SHOWN, 0).outcome == "exact"


def test_the_named_passage_comes_first_if_several_have_the_quote():
    twins = [Passage("a", "", "It rained."), Passage("b", "", "It rained.")]
    assert find_quote("It rained.", twins, 2).places[0].passage_id == "b"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("The cat ... in the sun.", ["The cat", "in the\nsun"]),
        ("Dogs bark […] even in the rain", ["Dogs bark", "even in the rain"]),
        ("Dogs bark at night even in the rain", ["Dogs bark at night", "even in the rain"]),
        ("sat on the mat. They run in the park", ["sat on the mat", "They run in the park"]),
    ],
)
def test_a_quote_from_two_places_is_stitched(text, parts):
    quote = find_quote(text, SHOWN, 1)
    assert quote.outcome == "stitched"
    assert quoted(quote) == parts


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat",
        "he cat",  # not whole words
        "The dog sat on the mat",
        "The cat ... on the roof",
        "",
        "…",
        "The cat sat in the sun " * 200,
        "It slept there all day " * 2_000,
    ],
)
def test_what_no_passage_says_is_missing(text):
    quote = find_quote(text, SHOWN, 1)
    assert quote.outcome == "missing"
    assert quote.places == ()


@given(WORDS, st.data())
def test_any_words_of_a_passage_are_found_where_they_stand(words, data):
    text = "Once " + " ".join(words) + " over"
    passage = Passage("p", "", text)
    pieces = text.split(" ")
    first = data.draw(st.integers(0, len(pieces) - 1))
    last = data.draw(st.integers(first + 1, len(pieces)))
    part = " ".join(pieces[first:last])
    quote = find_quote(part, [passage], 1)
    if quote.outcome == "missing":
        assert not part.strip(" '")
    else:
        (place,) = quote.places
        found = text[place.start : place.end]
        assert found.split() == part.strip(" '").split()


@given(st.text(max_size=200), st.text(max_size=300), st.integers(-1, 5))
def test_any_text_has_an_outcome(text, passage, number):
    quote = find_quote(text, [Passage("p", "", passage)], number)
    assert bool(quote.places) == (quote.outcome != "missing")
    for place in quote.places:
        assert 0 <= place.start < place.end <= len(passage)
