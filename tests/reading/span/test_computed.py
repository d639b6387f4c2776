"""Numbers and dates found in text, and what one step of arithmetic makes of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.reading.span.computed import ONE, american_date, compute, find_numbers


def only(text: str, asked: bool = False):
    (number,) = find_numbers(text, asked)
    return number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9", 9),
        ("1,250", 1250),
        ("3.5 km", 3.5),
        ("seven", 7),
        ("Twenty-one", 21),
        ("third", 3),
        ("two-time", 2),
        ("176th", 176),
    ],
)
def test_a_number_is_found_in_digits_words_and_ordinals(text: str, value: float) -> None:
    assert only(text).value == value


def test_numbers_stand_where_the_text_has_them() -> None:
    text = "won 9 titles, three of them in 1,000 days"
    assert [text[number.start : number.end] for number in find_numbers(text)] == ["9", "three", "1,000"]


def test_words_that_multiply_are_numbers_in_a_question_alone() -> None:
    assert find_numbers("twice as many") == []
    assert only("twice as many", asked=True).factor


@pytest.mark.parametrize(
    ("passage", "question", "answers"),
    [
        ("9 titles", "If they had won two fewer titles, how many?", [None, "7"]),
        ("9,500 people", "If 600 more had come, how many?", ["10,100", None]),
        ("3.5 million", "If 1 million fewer had come, how many?", [None, "2.5 million"]),
        ("9 titles", "If they had not won in 2007 and in 2008, how many?", ["2016", "1998"]),
        ("12 clubs", "If there had been 20, how many more would it be?", ["32", "8"]),
        ("24 goals", "If he had scored twice as many, how many?", ["48", None]),
        ("in 1971", "If it had begun two decades earlier, in which decade?", [None, "1950s"]),
        ("in 1999", "If it had begun five years later, in which century?", ["21st", None]),
        ("in 1974", "If it had begun a year later, when?", ["1975", None]),
    ],
)
def test_sum_difference_and_product_are_written_as_the_answers_are(
    passage: str, question: str, answers: list[str]
) -> None:
    assert compute(only(passage), find_numbers(question, asked=True)[0], question) == answers


@pytest.mark.parametrize(
    ("passage", "question", "answers"),
    [
        ("1 March 2004", "two days", ["March 3, 2004", "February 28, 2004"]),
        ("February 14", "a week", ["February 21", "February 7"]),
        ("May 31, 2000", "a month", [None, None]),
        ("May 5, 2000", "ten years", ["May 5, 2010", "May 5, 1990"]),
        ("May 5, 2000", "ten goals", [None, None]),
    ],
)
def test_a_date_moves_by_periods_of_time(passage: str, question: str, answers: list[str]) -> None:
    date = find_numbers(passage)[0]
    assert compute(date, find_numbers(question, asked=True)[0], question) == answers


def test_the_unspoken_step_is_one() -> None:
    assert compute(only("9 titles"), ONE, "If they had not won in 2007, how many?") == ["10", "8"]


def test_a_date_alone_takes_the_answers_form_and_other_text_stays() -> None:
    assert american_date("15 April 2003") == "April 15, 2003"
    assert american_date("the 15 April") == "the 15 April"
    assert american_date("April 15, 2003") == "April 15, 2003"


def test_a_long_string_of_digits_is_no_number() -> None:
    assert find_numbers("9" * 400) == []


def test_an_impossible_date_is_no_date() -> None:
    assert [number.unit for number in find_numbers("30 February 2001")] == ["", ""]


@given(st.text(alphabet="0123456789,.- abdfghinortuwyMarch", max_size=40))
def test_any_text_has_numbers_within_it_that_compute(text: str) -> None:
    for number in find_numbers(text):
        assert 0 <= number.start < number.end <= len(text)
        for other in find_numbers(text, asked=True):
            assert len(compute(number, other, text)) == 2
