"""Questions that ask for several things."""

import pytest

from ifqa.reading.span.list_questions import read_list_question


@pytest.mark.parametrize(
    "question",
    [
        "Who were the officers in 2022?",
        "Which boats does Ida Moe own?",
        "Which tools came out in 2020?",
        "Which players scored?",
        "If Ann had left in May, which members of the board would have been present?",
        "Who was present?",
        "On which operating systems does it run?",
        "What are the two main parts?",
        "What were the dividend amounts paid in June?",
        "If Ann had not done so, who would have written the program?",
        "If Ann had left, who would have been the officers?",
        "Name all boats of the club.",
        "Name the boats of the club.",
    ],
)
def test_a_question_for_several_things(question):
    assert read_list_question(question)


@pytest.mark.parametrize(
    "question",
    [
        "Who was the chair in 2022?",
        "Which boat does Ida Moe own?",
        "Which of these boats would have been the fastest?",
        "How many boats does Ida Moe own?",
        "If the boats had been sold, who would have bought the ropes?",
        "What does the club own?",
        "Which boss was at Ida Moe's house?",
        "What is the fee for members who are under 18?",
        "How old was the man who founded the club?",
        "Which OS does it need?",
        "Which savings bank would have failed?",
        "Which settings file makes it quiet?",
        "Which hall would members have rented?",
        "What capacity in megawatts would it have?",
        "Which comes first?",
        "Who found the sales manager?",
        "Name the chair.",
    ],
)
def test_a_question_for_one_thing(question):
    assert read_list_question(question) is None


@pytest.mark.parametrize(
    "question",
    [
        "Which officers were not present?",
        "Which officers cannot vote?",
        "If Ann had not helped, who would be named as its only author?",
        "If only Ann had come, who would have been present?",
    ],
)
def test_a_question_for_what_it_does_not_name(question):
    assert read_list_question(question) is None


@pytest.mark.parametrize(
    ("question", "size"),
    [("Which two boats are there?", 2), ("Who were the three officers?", 3), ("Who were they?", 0)],
)
def test_the_number_of_things(question, size):
    asked = read_list_question(question)
    assert asked is not None
    assert asked.size == size


def test_only_the_number_of_what_is_asked_for_counts():
    asked = read_list_question("Which members would have had the three keys?")
    assert asked is not None
    assert asked.size == 0


@pytest.mark.parametrize(
    ("question", "compares"),
    [
        ("Which boats are longer than 5 m?", True),
        ("Which officers were elected after 2021?", True),
        ("Which officers were elected in 2021?", False),
    ],
)
def test_a_comparison(question, compares):
    asked = read_list_question(question)
    assert asked is not None
    assert asked.compares == compares
