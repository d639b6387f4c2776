"""What a retriever or a reader of one's own gives is held to its protocol, with one line that says what is wrong."""

import pytest

from ifqa.errors import IfqaError
from ifqa.pipeline.validation import check_predictions, check_rankings
from ifqa.records import Calculation, Hit, How, Passage, Prediction, Question, Term

QUESTIONS = [Question("q/1", "If so?"), Question("q/2", "If not?")]
BUILT = Term("text", "0", "passage", 0, 4)
PASSAGES = [[Passage("p", "", "text")], []]


@pytest.mark.parametrize(
    ("predictions", "complaint"),
    [
        (["yes", "no"], "wanted a list of ifqa.Prediction"),
        ([Prediction("q/1", "yes"), None], "wanted a list of ifqa.Prediction"),
        (None, "gave None; wanted a list"),
        ("yes", "gave 'yes'; wanted a list"),
        ([Prediction("q/1", "yes", passage_ids=None), Prediction("q/2", "no")], "q/1: passage_ids: .* found None"),
        ([Prediction("q/1", "yes", passage_ids="p"), Prediction("q/2", "no")], "q/1: passage_ids: .* found 'p'"),
    ],
)
def test_a_reader_that_gives_no_predictions_is_refused(predictions, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_predictions("mine", QUESTIONS, PASSAGES, predictions)


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ("a guess", "reader 'mine', q/1: wanted ifqa.How as `how`, found 'a guess'"),
        (How("x", (0, 4), (0, 1)), "cites passage 'x', which is not among the passages it was given"),
        (How("p", (0, 5), (0, 1)), r"within the passage's 4 characters in `how`, found \(0, 5\)"),
        (How("p", (0, 4), (2, 1)), r"within the passage's 4 characters in `how`, found \(2, 1\)"),
        (How("p", (0, 4), None), r"how\.span"),
        (How("p", (0, 4), (0, 1), Calculation("1", "", (Term("t", "1", "passage", 3, 9),))), r"found \(3, 9\)"),
        (How("p", (0, 4), (0, 1), Calculation("\ud800", "", (Term("t", "1", "passage", 0, 1),))), "surrogate"),
    ],
)
def test_a_reader_that_tells_its_answer_wrongly_is_refused(how, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_predictions("mine", QUESTIONS, PASSAGES, [Prediction("q/1", "yes", how=how), Prediction("q/2", "no")])
    right = How("p", (0, 4), (0, 4), Calculation("1", "plus", (BUILT, Term("", "1", "question", 0, 0))))
    check_predictions("mine", QUESTIONS, PASSAGES, [Prediction("q/1", "yes", how=right), Prediction("q/2", "no")])


@pytest.mark.parametrize(
    ("rankings", "complaint"),
    [
        ([[("p", 1.0)], []], r"gave q/1 \[\('p', 1.0\)\]; wanted a list of ifqa.Hit"),
        ([[Hit("p", 1.0)], None], "gave q/2 None; wanted a list of ifqa.Hit"),
        ([[Hit("p", "1.0")], []], "gave q/1 the score '1.0' for p; wanted a number"),
        ([[Hit("p", None)], []], "gave q/1 the score None for p; wanted a number"),
    ],
)
def test_a_retriever_that_gives_no_hits_is_refused(rankings, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_rankings("mine", QUESTIONS, 3, rankings)
