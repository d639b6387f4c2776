"""Records: the identity of questions, and answers and rankings in print."""

from dataclasses import asdict, replace

import pytest

from ifqa.records import (
    Answer,
    Calculation,
    Hit,
    How,
    Passage,
    Prediction,
    Question,
    Ranking,
    Term,
    parted,
    questions_identity,
)
from ifqa.storage.artifacts import identity


@pytest.mark.parametrize(
    "change",
    [{"id": "r"}, {"text": "Or?"}, {"answers": ("b", "a")}, {"gold_passages": ()}, {"choices": ("a", "b")},
     {"context": "a paragraph"}, {"group": "newsqa"}, {"labels": (("hops", "2"),)}],
)  # fmt: skip
def test_all_that_a_question_holds_is_in_its_identity(change):
    question = Question("q", "If?", ("a", "b"), ("Gold.",))
    before = questions_identity([question])
    records = [asdict(question)]
    for later in ("context", "group", "labels"):
        del records[0][later]
    assert questions_identity([replace(question)]) == before == identity({"questions": records})
    assert questions_identity([replace(question, **change)]) != before


def test_a_printed_answer_or_ranking_steers_no_terminal():
    question, passage = Question("q", "If \x1b[31mred?"), Passage("p\x07", "T", "one\x1b[2J")
    answer, failed = Answer(question, "ye\x1b[31ms", (passage,)), Answer(question, "", error="it said \x9b2J")
    ranking = Ranking(question, (Hit(passage.id, 1.0),), (passage,))
    assert [str(answer), str(failed)] == ["ye\ufffd[31ms", "(no answer: it said \ufffd2J)"]
    assert str(ranking) == "If \ufffd[31mred?\n    1.0000  p\ufffd  one\ufffd[2J"
    assert (answer.text, ranking.question.text) == ("ye\x1b[31ms", "If \x1b[31mred?")


def test_a_computed_answer_shows_its_numbers_and_marks_them_in_the_passage():
    passage, other = Passage("p", "T", "Built <in> 1951."), Passage("o", "T", "In 1954 and 1951.")
    terms = Term("1951", "1951", "passage", 11, 15), Term("<3> later", "3", "question", 0, 9)
    how = How("p", (0, 16), (11, 15), Calculation("1954", "plus", terms))
    answer = Answer(Question("q", "If so?"), "1954", (passage, other), how=how)
    assert str(answer) == '1954 = 1951 (passage) + 3 (question: "<3> later")'
    shown = answer._repr_html_()
    assert "<b>1954 = 1951 (passage) + 3 (question: &quot;&lt;3&gt; later&quot;)</b>" in shown
    assert "Built &lt;in&gt; <mark>1951</mark>." in shown
    assert "In <mark>1954</mark> and 1951." in shown


def test_an_answer_below_the_threshold_is_an_abstention_and_no_failure():
    sure, unsure = Prediction("q", "a", confidence=0.5), Prediction("q", "a", confidence=0.49)
    assert sure.below(0.5) == sure
    assert unsure.below(0.5) == Prediction("q", "", confidence=0.49, candidate="a")
    assert unsure.below(0.5).below(0.9) == unsure.below(0.5)
    assert Prediction("q", "a").below(1.0) == Prediction("q", "a")  # a reader without confidences never abstains
    failed = Prediction("q", "", error="no passages", confidence=0.0)
    assert failed.below(1.0) == failed
    states = {one: (one.failed, one.abstained) for one in (sure, unsure.below(0.5), failed, Prediction("q", " "))}
    assert list(states.values()) == [(False, False), (False, True), (True, False), (True, False)]


def test_an_abstention_shows_its_best_candidate_and_confidence():
    question, passage = Question("q", "If <red>?"), Passage("p", "T", "Jim Lovell flew.")
    abstained = Answer(question, "", (passage,), confidence=0.1249, candidate="<Jim> Lovell")
    assert str(abstained).endswith("found in these passages; the best candidate is <Jim> Lovell (confidence 12%))")
    assert "&lt;Jim&gt; Lovell (confidence 12%)" in abstained._repr_html_()
    assert "<mark>Lovell</mark>" in replace(abstained, candidate="Lovell")._repr_html_()
    answered = Answer(question, "Lovell", confidence=0.7)
    assert (str(answered), answered.why_not) == ("Lovell", "")
    assert "<b>Lovell</b> <small>confidence 70%</small>" in answered._repr_html_()


def test_an_answer_is_found_as_whole_words_in_any_case_but_a_very_long_one_is_not_looked_for():
    assert parted("Rome, or rome, not Romeo", "ROME") == ["", "Rome", ", or ", "rome", ", not Romeo"]
    assert parted("anything", " ") == ["anything"]
    text = "a " * 100_000
    assert parted(text, "a " * 10_000 + "b") == [text]  # it would take 20 seconds
