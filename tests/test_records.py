"""Records: the identity of questions, and answers, rankings and calculations in print."""

from dataclasses import asdict, replace

import pytest

from ifqa.records import (
    UNLIKELY,
    Answer,
    Calculation,
    Evidence,
    Explanation,
    Hit,
    Prediction,
    Question,
    Ranking,
    Term,
    fingerprint_questions,
    split_at_answer,
)
from ifqa.storage.artifacts import compute_fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"id": "r"},
        {"text": "Or?"},
        {"answers": ("b", "a")},
        {"gold_passages": ()},
        {"choices": ("a", "b")},
        {"context": "a paragraph"},
        {"group": "newsqa"},
        {"labels": (("hops", "2"),)},
    ],
)
def test_every_field_of_a_question_is_in_its_fingerprint(change):
    question = Question("q", "If?", ("a", "b"), ("Gold.",))
    before = fingerprint_questions([question])
    records = [asdict(question)]
    for later in ("context", "group", "labels"):
        del records[0][later]
    assert (
        fingerprint_questions([replace(question)])
        == before
        == compute_fingerprint({"questions": records})
    )
    assert fingerprint_questions([replace(question, **change)]) != before


def test_a_printed_answer_or_ranking_steers_no_terminal():
    question = Question("q", "If \x1b[31mred?")
    passage = Evidence("p\x07", "T", "one\x1b[2J")
    answer = Answer(question, "ye\x1b[31ms", (passage,))
    failed = Answer(question, "", error="it said \x9b2J")
    ranking = Ranking(question, (Hit(passage.id, 1.0),), (passage,))
    assert [str(answer), str(failed)] == ["ye\ufffd[31ms", "(no answer: it said \ufffd2J)"]
    assert str(ranking) == "If \ufffd[31mred?\n    1.0000  p\ufffd  one\ufffd[2J"
    assert (answer.text, ranking.question.text) == ("ye\x1b[31ms", "If \x1b[31mred?")


def test_a_computed_answer_shows_its_numbers_and_marks_them_in_the_passage():
    passage = Evidence("p", "T", "Built <in> 1951.")
    other = Evidence("o", "T", "In 1954 and 1951.")
    terms = Term("1951", "1951", "passage", 11, 15), Term("<3> later", "3", "question", 0, 9)
    how = Explanation("p", (0, 16), (11, 15), Calculation("1954", "plus", terms))
    answer = Answer(Question("q", "If so?"), "1954", (passage, other), how=how)
    assert str(answer) == '1954 = 1951 (passage) + 3 (question: "<3> later")'
    shown = answer._repr_html_()
    assert "<b>1954 = 1951 (passage) + 3 (question: &quot;&lt;3&gt; later&quot;)</b>" in shown
    assert "Built &lt;in&gt; <mark>1951</mark>." in shown
    assert "In <mark>1954</mark> and 1951." in shown


def test_an_answer_below_the_threshold_is_an_abstention_and_no_failure():
    sure = Prediction("q", "a", confidence=0.5)
    unsure = Prediction("q", "a", confidence=0.49)
    assert sure.abstain_below(0.5) == sure
    assert unsure.abstain_below(0.5) == Prediction("q", "", confidence=0.49, candidate="a")
    assert unsure.abstain_below(0.5).abstain_below(0.9) == unsure.abstain_below(0.5)
    vague = Prediction("q", "a", confidence=0.9, answerable=0.3)
    assert (vague.abstain_below(0.5), vague.abstain_below(0.5, 0.3)) == (vague, vague)
    unlikely = replace(vague, answer="", candidate="a", abstention=UNLIKELY)
    assert vague.abstain_below(0.5, 0.4) == unlikely
    certain = Prediction("q", "a")
    assert certain.abstain_below(1.0) == certain  # a reader without confidences never abstains
    failed = Prediction("q", "", error="no passages", confidence=0.0)
    assert failed.abstain_below(1.0) == failed
    predictions = (sure, unsure.abstain_below(0.5), failed, Prediction("q", " "))
    states = [(prediction.failed, prediction.abstained) for prediction in predictions]
    assert states == [(False, False), (False, True), (True, False), (True, False)]


def test_an_abstention_shows_its_best_candidate_and_confidence():
    question = Question("q", "If <red>?")
    passage = Evidence("p", "T", "Jim Lovell flew.")
    abstained = Answer(question, "", (passage,), confidence=0.1249, candidate="<Jim> Lovell")
    assert str(abstained).endswith(
        "not sure enough of an answer; the best candidate is <Jim> Lovell (confidence 12%))"
    )
    assert "&lt;Jim&gt; Lovell (confidence 12%)" in abstained._repr_html_()
    assert "<mark>Lovell</mark>" in replace(abstained, candidate="Lovell")._repr_html_()
    answered = Answer(question, "Lovell", confidence=0.7)
    assert (str(answered), answered.no_answer_reason) == ("Lovell", "")
    assert "<b>Lovell</b> <small>confidence 70%</small>" in answered._repr_html_()


def test_an_answer_is_matched_as_whole_words_in_any_case_unless_it_is_very_long():
    assert split_at_answer("Rome, or rome, not Romeo", "ROME") == [
        "",
        "Rome",
        ", or ",
        "rome",
        ", not Romeo",
    ]
    assert split_at_answer("anything", " ") == ["anything"]
    text = "a " * 100_000
    assert split_at_answer(text, "a " * 10_000 + "b") == [text]  # it would take 20 seconds


TEXT = "It was built in 1951. It closed in 1990."
BUILT = Term("1951", "1951", "passage", 16, 20)
CLOSED = Term("1990", "1990", "passage", 35, 39)
LATER = Term("three years later", "3", "question", 17, 34)


@pytest.mark.parametrize(
    ("rule", "terms"),
    [("plus", ()), ("", ()), ("plus", (BUILT,)), ("", (BUILT, LATER)), ("and", (BUILT, LATER))],
)
def test_a_rule_that_does_not_fit_the_terms_is_refused(rule, terms):
    with pytest.raises(ValueError, match="does not fit"):
        Calculation("1", rule, terms)


def test_the_answer_or_the_terms_in_the_passage_are_marked():
    copied = Explanation("p", (0, 21), (16, 20))
    assert copied.pieces(TEXT) == ["It was built in ", "1951", ". It closed in 1990."]
    assert copied.pieces(TEXT, sentence=True) == ["It was built in ", "1951", "."]
    computed = Explanation(
        "p", (0, 21), (16, 20), Calculation("42", "minus, plus", (CLOSED, BUILT, LATER))
    )
    assert computed.pieces(TEXT) == ["It was built in ", "1951", ". It closed in ", "1990", "."]
    assert computed.pieces(TEXT, sentence=True) == ["It was built in ", "1951", "."]
    overlapping = Calculation(
        "1", "plus", tuple(Term("x", "1", "passage", at, at + 4) for at in (0, 2))
    )
    assert Explanation("p", (0, 8), (0, 4), overlapping).pieces("abcdefgh") == ["", "abcd", "efgh"]
