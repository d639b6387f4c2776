"""Numbers and dates in text, and the answers computed from them."""

import pytest

from ifqa.reading.span.arithmetic import compute_answers, compute_list, compute_two
from ifqa.reading.span.numbers import IMPLICIT_ONE, find_lists, find_numbers, format_answer


def only(text, in_question=False):
    (number,) = find_numbers(text, in_question)
    return number


def test_numbers_are_read_in_each_notation():
    numbers = {
        "9": 9,
        "1,250": 1250,
        "3.5 km": 3.5,
        "seven": 7,
        "Twenty-one": 21,
        "third": 3,
        "two-time": 2,
        "176th": 176,
    }
    assert {text: only(text).value for text in numbers} == numbers


def test_numbers_have_their_positions():
    text = "won 9 titles, three of them in 1,000 days"
    assert [text[number.start : number.end] for number in find_numbers(text)] == [
        "9",
        "three",
        "1,000",
    ]


def test_a_factor_is_a_number_only_in_a_question():
    assert find_numbers("twice as many") == []
    assert only("twice as many", in_question=True).factor


def test_a_number_too_large_for_a_float_is_left_out():
    assert find_numbers("9" * 400) == []


def test_an_invalid_date_is_two_numbers():
    assert [number.unit for number in find_numbers("30 February 2001")] == ["", "calendar year"]


def test_a_question_without_a_number_has_an_implicit_step():
    question = "If they had not won in 2007, how many?"
    assert compute_answers(only("9 titles"), IMPLICIT_ONE, question) == ["10", "8"]


STEPS = [  # the first number of the passage, and of the question: sum or product, and difference
    ("9 titles", "If they had won two fewer titles, how many?", [None, "7"]),
    ("9,500 people", "If 600 more had come, how many?", ["10,100", None]),
    ("3.5 million", "If 1 million fewer had come, how many?", [None, "2.5 million"]),
    ("9 titles", "If they had not won in 2007 and in 2008, how many?", [None, None]),
    ("12 clubs", "If there had been 20, how many more would it be?", [None, "8"]),
    ("24 goals", "If he had scored twice as many, how many?", ["48", None]),
    ("in 1971", "If it had begun two decades earlier, in which decade?", [None, "1950s"]),
    ("in 1999", "If it had begun five years later, in which century?", ["21st", None]),
    ("in 1974", "If it had begun a year later, when?", ["1975", None]),
    # amounts of different scales
    ("$15 million", "If it had cost $500,000 more, how much?", ["$15.5 million", None]),
    ("$15 million", "If it had cost 3 million more, how much?", ["$18 million", None]),
    ("1.2 million", "If 500,000 fewer had come, how many?", [None, "700,000"]),
    ("900 million", "If it had cost half a billion more, how much?", ["1.4 billion", None]),
    ("$2.38 billion", "If it had cost a billion dollars less, how much?", [None, "$1.38 billion"]),
    ("1,200,000", "If 1 million fewer had come, how many?", [None, "200,000"]),
    ("20 thousand", "If 500 more had come, how many?", ["520,000", None]),
    ("900 rounds", "If it had been increased by 10%, how many?", ["990", None]),
    ("12%", "If it had been 2% less, what?", [None, "10"]),
    # a share of a whole never exceeds it; a rate may
    ("95%", "If it had been 10% more, what?", [None, None]),
    ("95%", "If it had been 5% more, what?", ["100", None]),
    ("120%", "If it had been 10% more, what?", ["130", None]),
    ("two hundred", "If 3 more had come, how many?", ["203", None]),
    # an ordinal stays one unless an amount is asked for
    ("third", "If one more had come before, in which place?", ["fourth", None]),
    ("22nd", "If it had been one earlier, which one?", [None, "21st"]),
    ("11th", "If one later, which one?", ["12th", None]),
    ("20th", "If it had been one later, which one?", ["21st", None]),
    ("first", "If one earlier, which one?", [None, None]),
    ("third title", "If he had won two more, how many?", ["5", None]),
    ("17th century", "If it had been 100 years later, in which century?", ["18th", None]),
    ("17th century", "If it had been 100 years later, what?", [None, None]),
    # a date moves by periods of time
    ("1 March 2004", "two days", ["March 3, 2004", "February 28, 2004"]),
    ("February 14", "a week", ["February 21", "February 7"]),
    ("May 31, 2000", "a month", ["June 30, 2000", "April 30, 2000"]),
    ("May 5, 2000", "ten years", ["May 5, 2010", "May 5, 1990"]),
    ("May 5, 2000", "ten goals", [None, None]),
    ("the first of May 2000", "five months", ["October 2000", "December 1999"]),
    ("in May", "a decade", [None, None]),
    ("in May", "a week", [None, None]),
    ("5 May 2000", "a month, in which month", ["June", "April"]),
    ("in May 2000", "a month, in which month", ["June", "April"]),
    ("in May 2000", "twice as late", [None, None]),
    ("in May 2000", "a month, in which month and year", ["June 2000", "April 2000"]),
    # the time between two
    ("1822", "in 1890, how many years", [None, "68"]),
    ("1822", "in 1890, how long", [None, "68 years"]),
    ("1822", "in 1890, how old", [None, "68"]),
    ("1822", "in 1890, how many months", [None, None]),
    ("1822", "in 1890, in which place", [None, None]),
    ("1822", "in 1890, who", [None, None]),
    ("1 May 1990", "4 July 1991, how many months", [None, "14"]),
    ("May 1990", "March 1991, how many months", [None, "10"]),
    ("1 May 1990", "15 May 1990, how many weeks", [None, "2"]),
    ("1 May 1990", "30 April 2000, how old", [None, "9"]),
    # only numbers of one kind, and no count below 0
    ("took 2 years", "three months longer, how long", ["27 months", None]),
    ("lasted 8 weeks", "four days longer, how long", ["60 days", None]),
    ("took 10 days", "a week longer, how long", ["17 days", None]),
    ("in 1645", "3 days later", [None, None]),
    ("10 km long", "500 m longer", ["10.5 km", None]),
    ("10 miles long", "500 m longer", [None, None]),
    ("€150", "€30 more", ["€180", None]),
    ("€150", "$30 more", [None, None]),
    ("in 1987", "half as long", [None, None]),
    ("$12,250.75", "$100.50 less", [None, "$12,150.25"]),
    ("14 inhabitants", "300 fewer", [None, None]),
    ("300 km", "14 rivers shorter", [None, None]),
    ("room 14", "a million more", [None, None]),
    ("a census in 1911", "four passengers more", [None, None]),
    ("three dozen sailors", "twelve fewer sailors", [None, "24"]),
    ("finished third", "two more points", [None, None]),
    ("finished third", "two places lower", ["fifth", "first"]),
    ("won in 2 hours 40 minutes", "ten minutes faster, how long", [None, "150 minutes"]),
    ("took 2 hours and 40 minutes", "half an hour slower, how long", ["190 minutes", None]),
    ("at the age of 24", "three years younger, how old", [None, "21"]),
    ("200 g of sugar", "100 g more of butter", [None, None]),
    ("200 g of sugar", "100 g more of sugar", ["300 g", None]),
    ("3 goals", "3 fewer goals", [None, "0"]),
    # only answers of the kind that the question asks for
    (
        "founded in 1878",
        "If it had been 20 years later, how many years later is that?",
        [None, None],
    ),
    ("third", "If Ann Lee had received six more votes, who would have won?", [None, None]),
    ("third", "If it had been two places later, what would its size be?", [None, None]),
    ("three judges", "If one judge had left, would the court lean left or right?", [None, None]),
    ("on 3 May 1999", "If it had been a day earlier, on which day of the week?", [None, None]),
    ("the 7800", "If it had been $14.95 less, what would its price be?", [None, None]),
    ("population of 5,000", "If 5 miles had been added, how far would it be?", [None, None]),
    ("14 lions", "If a year later, what would have been its new date?", [None, None]),
    ("in 1981", 'If "Never Say Die" had come out a year earlier, in which year?', [None, "1980"]),
    # with the currency and the unit of the passage
    ("NOK 18.4 million", "If 1.2 million more, how much?", ["NOK 19.6 million", None]),
    (
        "NOK 18.4 million",
        "If it had been 2 million kroner more, how much?",
        ["NOK 20.4 million", None],
    ),
    ("5\u00a0mm thick", "If 2 mm more, what would its thickness be?", ["7 mm", None]),
    ("16 GB of memory", "If 512 MB more, how much?", ["16.512 GB", None]),
]


@pytest.mark.parametrize(("passage", "question", "answers"), STEPS)
def test_answers_are_computed_from_two_numbers(passage, question, answers):
    assert (
        compute_answers(
            find_numbers(passage)[0], find_numbers(question, in_question=True)[0], question
        )
        == answers
    )


@pytest.mark.parametrize("passage", ["1.5", "40%", "3 weeks", "2 million", "718", "€5"])
def test_only_a_small_count_changes_by_a_step_that_is_not_said(passage):
    assert compute_answers(only(passage), IMPLICIT_ONE, "If Ann had not left, what?") == [
        None,
        None,
    ]


def test_one_of_several_counts_nothing():
    assert find_numbers("One of the ships sank") == []


def test_only_a_date_alone_is_formatted():
    dates = {
        "15 April 2003": "April 15, 2003",
        "the 15 April": "the 15 April",
        "15 April": "April 15",
    }
    assert {text: format_answer(text, 0, len(text)) for text in dates} == dates


@pytest.mark.parametrize(
    ("before", "after", "question", "year"),
    [
        (
            "It closed in 1998, opened in 2001, and on ",
            " 2 shops moved; in 2005 all.",
            "When?",
            "2001",
        ),
        (
            "Founded in 1850 by two brothers of the town, it won the cup on ",
            " in 1901.",
            "When?",
            "1901",
        ),
        ("On ", " it closed, in 2005 it moved.", "When?", "2005"),
        (
            "It closed in 1998 and on ",
            " it moved.",
            "If the 2011 race had not been put off, when?",
            "2011",
        ),
        (
            "It closed in 1998 and on ",
            " it moved.",
            "If the race had been in 2011, not 2012, when?",
            "1998",
        ),
    ],
)
def test_a_date_without_a_year_takes_the_questions_or_the_nearest(before, after, question, year):
    text = f"{before}3 May{after}"
    assert format_answer(text, len(before), len(before) + 5, question) == f"May 3, {year}"
    (date,) = (number for number in find_numbers(text, question=question) if number.unit == "date")
    assert compute_answers(date, find_numbers("a day", in_question=True)[0], "a day later") == [
        f"May 4, {year}",
        None,
    ]


def test_direction_words_decide_unless_the_question_is_negated():
    nine = only("9")
    two = find_numbers("two", in_question=True)[0]
    assert compute_answers(nine, two, "If it had been delayed by two days") == ["11", None]
    assert compute_answers(nine, two, "If it had not been delayed by two days") == ["11", "7"]
    assert compute_answers(nine, two, "If it had come two days later or earlier") == ["11", "7"]


@pytest.mark.parametrize(
    ("passage", "question", "answers"),
    [
        ("1951 1990", "how old was he", [[None, "39"]]),
        ("1951 1990", "how many goals", [[None, None]]),
        ("1951 1990", "a decade earlier, how many years until then", [[None, "39"], ["49", "29"]]),
        ("1951 1990", "three goals, how long", [[None, "39 years"], [None, None]]),
        ("12% 30%", "how much more", [[None, "18"]]),
        ("12 30", "how many altogether", [["42", None]]),
        ("12 30%", "how many altogether", [[None, None]]),
        ("1951 30", "how many altogether", [[None, None]]),
    ],
)
def test_answers_from_two_numbers_of_a_passage(passage, question, answers):
    first, second = find_numbers(passage)
    assert (
        compute_two(
            first, second, [IMPLICIT_ONE, *find_numbers(question, in_question=True)], question
        )
        == answers
    )


def test_lists_of_names_are_counted_if_the_question_asks_for_a_number():
    (three,) = find_lists("They asked Lufthansa, Air France, and the Dutch KLM (of Delft) first.")
    assert (three.value, three.start, three.end) == (3, 11, 62)
    question = "If two more had come, how many would it be?"
    assert compute_list(three, [IMPLICIT_ONE, only(question, in_question=True)], question) == [
        ["3", "2"],
        ["5", None],
    ]
    assert compute_list(three, [IMPLICIT_ONE], "If Ada had come, who would?") == [[None, None]]
    assert [
        number.value
        for number in find_lists("Ada and Bo met Cy, Di and Ed. Fay, gone, and Gus; Hal")
    ] == [2, 3]
    assert find_lists("A a " * 5000) == []
