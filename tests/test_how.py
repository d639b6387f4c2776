"""How a reader got to an answer: its words, and its marks in a passage."""

import pytest

from ifqa.records import Calculation, How, Term

TEXT = "It was built in 1951. It closed in 1990."
BUILT = Term("1951", "1951", "passage", 16, 20)
CLOSED = Term("1990", "1990", "passage", 35, 39)
LATER = Term("three years later", "3", "question", 17, 34)


@pytest.mark.parametrize(
    ("calculation", "words"),
    [
        (
            Calculation("42", "minus, plus", (CLOSED, BUILT, LATER)),
            '42 = 1990 (passage) - 1951 (passage) + 3 (question: "three years later")',
        ),
        (
            Calculation("8", "times", (Term("four", "4", "passage", 0, 4), Term("twice", "2", "question", 3, 8))),
            '8 = 4 (passage: "four") x 2 (question: "twice")',
        ),
        (Calculation("2", "", (Term("Ann and Bo", "2", "passage", 0, 10),)), '2 = 2 (passage: "Ann and Bo")'),
        (Calculation("8", "minus", (Term("9", "9", "passage", 0, 1), Term("", "1", "question", 0, 0))),
         "8 = 9 (passage) - 1 (question, not said)"),
    ],
)  # fmt: skip
def test_a_calculation_says_its_terms_and_where_they_stand(calculation: Calculation, words: str) -> None:
    assert str(calculation) == words


@pytest.mark.parametrize(
    ("rule", "terms"), [("plus", ()), ("", ()), ("plus", (BUILT,)), ("", (BUILT, LATER)), ("and", (BUILT, LATER))]
)
def test_a_rule_that_does_not_fit_the_terms_is_refused(rule: str, terms: tuple[Term, ...]) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        Calculation("1", rule, terms)


def test_the_answer_or_the_terms_in_the_passage_are_marked() -> None:
    found = How("p", (0, 21), (16, 20))
    assert found.pieces(TEXT) == ["It was built in ", "1951", ". It closed in 1990."]
    assert found.pieces(TEXT, sentence=True) == ["It was built in ", "1951", "."]
    computed = How("p", (0, 21), (16, 20), Calculation("42", "minus, plus", (CLOSED, BUILT, LATER)))
    assert computed.pieces(TEXT) == ["It was built in ", "1951", ". It closed in ", "1990", "."]
    assert computed.pieces(TEXT, sentence=True) == ["It was built in ", "1951", "."]
