"""Answer scores, case by case and against torchmetrics' SQuAD."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.scoring.measures.exact_match import contains, exact_match, f1, normalize
from ifqa.scoring.measures.numeric import is_numeric

#: Words and marks that normalisation treats in different ways.
PIECES = st.sampled_from(
    [
        *" \t-–—.,'’$%5½",
        "the",
        "An",
        "a",
        "mid-1930s",
        "10,000",
        "U.S.",
        "Beyoncé",
        "e\u0301",
        "İstanbul",
        "ΟΔΥΣΣΕΥΣ",
        "Straße",
        "東京",
    ]
)
TEXTS = st.lists(PIECES, max_size=6).map("".join) | st.lists(PIECES, max_size=4).map(" ".join)


@settings(max_examples=500)
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.booleans())
def test_agrees_with_torchmetrics(answer, golds, near):
    from torchmetrics.functional.text import squad

    answer = f"The {golds[0].swapcase()} {answer[:1]}" if near else answer
    target: Any = {"id": "0", "answers": {"text": golds, "answer_start": [0] * len(golds)}}
    theirs = squad({"prediction_text": answer, "id": "0"}, target)
    ours = exact_match(answer, golds), f1(answer, golds)
    assert ours == pytest.approx(
        (theirs["exact_match"].item() / 100, theirs["f1"].item() / 100), abs=1e-6
    )


NORMAL = {  # "a-n" is joined before articles are dropped; an en dash is no ASCII punctuation
    "The  Beatles ": "beatles",
    "U.S.": "us",
    "2018-19": "201819",
    "3.5": "35",
    "an A, the": "",
    "A&M": "am",
    "a-n": "",
    "Anna, theatre": "anna theatre",
    "1914–1918": "1914–1918",
    "São Paulo\u00a0\n": "são paulo",
    "...": "",
}


def test_normalizes_as_squad():
    assert {text: normalize(text) for text in NORMAL} == NORMAL


EQUAL = [
    ("10000", "10,000"),
    ("Eiffel tower.", "the Eiffel Tower"),
    ("35", "3.5"),
    ("", "A"),
]  # 35: the known false match
DIFFERENT = [
    ("co op", "co-op"),
    ("1914-1918", "1914–1918"),
    (unicodedata.normalize("NFD", "Beyoncé"), "Beyoncé"),
    ("five", "5"),
    ("b", "A"),
    ("", "Paris"),
]


@pytest.mark.parametrize("score", [exact_match, f1, contains])
def test_equal_once_normalized_or_different_though_close(score):
    assert {score(answer, [gold]) for answer, gold in EQUAL} == {1.0}
    assert {score(answer, [gold]) for answer, gold in DIFFERENT} == {0.0}


def test_the_best_gold_counts():
    assert exact_match("5", ["five", "5"]) == 1.0
    assert f1("New York", ["the city of New York", "York", "Boston"]) == pytest.approx(2 / 3)
    assert contains("about five men", ["5", "five"]) == 1.0


def test_repeated_tokens_count_once_each():
    assert f1("two two one", ["two one one"]) == pytest.approx(2 / 3)


def test_containment_is_of_whole_tokens_in_order():
    assert contains("It opened in New York in 1931.", ["New York"]) == 1.0
    for answer, gold in (
        ("York, New", "New York"),
        ("19310", "1931"),
        ("New", "New York"),
        ("Paris", "A"),
    ):
        # "A" normalises to nothing, which every text would contain
        assert contains(answer, [gold]) == 0.0, gold


def test_golds_must_be_several_strings():
    with pytest.raises(IfqaError, match="without gold answers"):
        exact_match("Paris", [])
    with pytest.raises(TypeError, match="not one string"):
        f1("Paris", "Paris")


@given(st.text(), st.lists(st.text(), min_size=1))
def test_exact_match_is_the_lowest_score(answer, golds):
    assert 0 <= exact_match(answer, golds) <= min(f1(answer, golds), contains(answer, golds)) <= 1


@given(st.text(), st.text())
def test_f1_is_symmetric(answer, gold):
    assert f1(answer, [gold]) == f1(gold, [answer])


@given(st.text())
def test_normalizing_twice_changes_nothing(answer):
    assert normalize(normalize(answer)) == normalize(answer)


NUMERIC = [
    *(
        "5",
        "five",
        "Twenty-one",
        "10,000",
        "3.5 years",
        "three years",
        "$6.4 million",
        "Rs. 550 billion",
        "2nd",
    ),
    *(
        "More than 10%",
        "fourth",
        "50th",
        "1999",
        "May",
        "May 4, 1979",
        "4 May 1979",
        "mid-1930s",
        "Early 1990s",
    ),
    *(
        "In 1991.",
        "1930s and 1940s",
        "300 MHz",
        "500 BC",
        "45.50° N",
        "6-0",
        "#54",
        "7.4-kilometre, 4.6 mi",
        "−40",
    ),
]
OTHER = [
    *(
        "Paris",
        "K2",
        "World War I",
        "2018 FIFA World Cup",
        "Bob May",
        "Three Rivers Stadium",
        "F-117",
        "Unicode 2.0",
    ),
    *(
        "the",
        "Two-seat roadsters",
        "helium-3",
        "yes",
        "",
        "No",
        "top-35 qualifying rule",
        "Five Nights at Freddy's",
    ),
]


def test_only_what_is_a_number_or_a_date_is_numeric():
    assert [gold for gold in [*NUMERIC, *OTHER] if is_numeric([gold])] == NUMERIC


def test_half_of_the_golds_make_a_question_numeric():
    assert is_numeric(["fourty", "40"])


def test_fewer_than_half_of_the_golds_make_no_question_numeric():
    assert not is_numeric(["Intersex people", "second-type female", "second kind of woman"])


def test_a_question_without_golds_is_not_numeric():
    assert not is_numeric([])
