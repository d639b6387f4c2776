"""The extractive reader's explanation of a candidate."""

import pytest

from ifqa.models.places import minilm_folder
from ifqa.reading.span.network import encode_pair
from ifqa.reading.span.reader import explain

MILL = (
    "The mill was built in 1951. It had three floors and 1.5 million bricks. "
    "Ann Lee, Bo and Cy Hay ran it to 1990."
)


def calculations(text, question, answer):
    """Each way to compute the answer, in words."""
    pair = encode_pair(minilm_folder(), question, text)
    return [
        str(explain(pair, "p", answer, (row, number, step)).calculation)
        for row, rows in enumerate(pair.computed)
        for number, steps in enumerate(rows)
        for step, text in enumerate(steps)
        if text == answer
    ]


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (
            "If it had been built three years later, when?",
            '1954 = 1951 (passage) + 3 (question: "three years later")',
        ),
        (
            "If it had been built a year later, in which year?",
            '1952 = 1951 (passage) + 1 (question: "a year later")',
        ),
        ("If they had not sold it, when?", "1950 = 1951 (passage) - 1 (question, not said)"),
        (
            "If it had had twice the floors, how many?",
            '6 = 3 (passage: "three") x 2 (question: "twice")',
        ),
        (
            "If 500,000 more bricks, how many?",
            '2 million = 1.5 million (passage) + 500000 (question: "500,000 more")',
        ),
        (
            "If it had burnt down in 2000, how many years would it have stood?",
            "49 = 2000 (question) - 1951 (passage)",
        ),
        ("How many years did it stand?", "39 = 1990 (passage) - 1951 (passage)"),
        (
            "If a decade earlier, how many years?",
            '49 = 1990 (passage) - 1951 (passage) + 10 (question: "decade earlier")',
        ),
        ("How many people ran it?", '3 = 3 (passage: "Ann Lee, Bo and Cy Hay")'),
        (
            "If two more had come, how many?",
            '5 = 3 (passage: "Ann Lee, Bo and Cy Hay") + 2 (question: "two more")',
        ),
    ],
)
def test_a_computed_answer_names_its_numbers(question, words):
    assert words in calculations(MILL, question, words.partition(" = ")[0])


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        (
            "It opened on 3 May 1999.",
            "If a week later?",
            (
                'May 10, 1999 = May 3, 1999 (passage: "3 May 1999") + 1 week (question: '
                '"a week later")'
            ),
        ),
        (
            "It opened in May 1999.",
            "If two months earlier, in which month?",
            'March = May 1999 (passage) - 2 months (question: "two months earlier")',
        ),
        (
            "It came third.",
            "If two places later, where?",
            'fifth = 3 (passage: "third") + 2 (question: "two")',
        ),
        (
            "It lasted 2 hours.",
            "If 30 minutes shorter, how long?",
            '90 minutes = 2 hours (passage: "2") - 30 minutes (question: "30 minutes shorter")',
        ),
        (
            "Its 900 rounds.",
            "If 10% more, what?",
            '990 = 900 (passage) + 10% (question: "10% more")',
        ),
    ],
)
def test_numbers_are_explained_in_their_form(text, question, words):
    assert calculations(text, question, words.partition(" = ")[0]) == [words]


def explained_span():
    pair = encode_pair(minilm_folder(), "If so, how many?", MILL)
    first = next(
        n
        for n, (start, _) in enumerate(pair.offsets, pair.start)
        if MILL[start:].startswith("three")
    )
    return explain(pair, "p", "three floors", (first, first + 1))


def test_a_span_has_its_place():
    how = explained_span()
    assert how.passage_id == "p"
    assert MILL[slice(*how.span)] == "three floors"
    assert how.calculation is None


def test_a_span_has_its_sentence():
    how = explained_span()
    assert MILL[slice(*how.sentence)] == "It had three floors and 1.5 million bricks."
