"""The output of a user's retriever or reader is checked against its protocol, with a one-line
error.
"""

import pytest

from ifqa.errors import IfqaError
from ifqa.pipeline.system import check_predictions, check_rankings
from ifqa.records import Calculation, Explanation, Hit, Passage, Prediction, Question, Term

QUESTIONS = [Question("q/1", "If so?"), Question("q/2", "If not?")]
BUILT = Term("text", "0", "passage", 0, 4)
PASSAGES = [[Passage("p", "", "text")], []]


@pytest.mark.parametrize(
    ("predictions", "complaint"),
    [
        ([Prediction("q/1", "yes"), None], "wanted a list of ifqa.Prediction"),
        (None, "gave None; wanted a list"),
        ([Prediction("q/1", "a")], "one prediction for each question"),
        ([Prediction("q/2", "a"), Prediction("q/1", "a")], "in the same order"),
        (
            [
                Prediction("q/1", "yes", passage_ids="p"),  # type: ignore[arg-type]
                Prediction("q/2", "no"),
            ],
            "q/1: passage_ids: .* found 'p'",
        ),
        (
            [Prediction("q/1", "yes", passage_ids=("p9",)), Prediction("q/2", "no")],
            "q/1: cites passage 'p9'",
        ),
        (
            [Prediction("q/1", "a", confidence=float("nan")), Prediction("q/2", "a")],
            "q/1: confidence: wanted 0 to 1",
        ),
        (
            [Prediction("q/1", "a", candidate="b"), Prediction("q/2", "a")],
            "has both a candidate and an answer or an error",
        ),
        (
            [Prediction("q/1", "", error="e", candidate="b"), Prediction("q/2", "a")],
            "has both a candidate and an answer or an error",
        ),
    ],
)
def test_a_reader_with_wrong_predictions_is_refused(predictions, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_predictions("mine", QUESTIONS, PASSAGES, predictions)


@pytest.mark.parametrize("key", ["answer", "factual", "completion", "error", "candidate"])
def test_a_readers_text_that_cannot_be_encoded_is_refused(key):
    wrong = Prediction("q/1", **({"answer": ""} | {key: "half \ud800"}))
    with pytest.raises(IfqaError, match=r"reader 'mine', q/1.*surrogate"):
        check_predictions("mine", QUESTIONS, PASSAGES, [wrong, Prediction("q/2", "a")])


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ("a guess", "reader 'mine', q/1: wanted ifqa.Explanation as `how`, found 'a guess'"),
        (
            Explanation("x", (0, 4), (0, 1)),
            "cites passage 'x', which is not among the passages it was given",
        ),
        (
            Explanation("p", (0, 5), (0, 1)),
            r"within the passage's 4 characters in `how`, found \(0, 5\)",
        ),
        (
            Explanation("p", (0, 4), (2, 1)),
            r"within the passage's 4 characters in `how`, found \(2, 1\)",
        ),
        (
            Explanation("p", (0, 4), (0, 4), items=((0, 1), (2, 9))),
            r"within the passage's 4 characters in `how`, found \(2, 9\)",
        ),
        (Explanation("p", (0, 4), None), r"how\.span"),  # type: ignore[arg-type]
        (
            Explanation(
                "p", (0, 4), (0, 1), Calculation("1", "", (Term("t", "1", "passage", 3, 9),))
            ),
            r"found \(3, 9\)",
        ),
        (
            Explanation(
                "p", (0, 4), (0, 1), Calculation("\ud800", "", (Term("t", "1", "passage", 0, 1),))
            ),
            "surrogate",
        ),
    ],
)
def test_a_reader_with_a_wrong_explanation_is_refused(how, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_predictions(
            "mine",
            QUESTIONS,
            PASSAGES,
            [Prediction("q/1", "yes", how=how), Prediction("q/2", "no")],
        )
    right = Explanation(
        "p", (0, 4), (0, 4), Calculation("1", "plus", (BUILT, Term("", "1", "question", 0, 0)))
    )
    check_predictions(
        "mine", QUESTIONS, PASSAGES, [Prediction("q/1", "yes", how=right), Prediction("q/2", "no")]
    )


@pytest.mark.parametrize(
    ("rankings", "complaint"),
    [
        ([[("p", 1.0)], []], r"gave q/1 \[\('p', 1.0\)\]; wanted a list of ifqa.Hit"),
        ([[Hit("p", 1.0)], None], "gave q/2 None; wanted a list of ifqa.Hit"),
        (
            [[Hit("p", "1.0")], []],  # type: ignore[arg-type]
            r"gave q/1 Hit\(passage_id='p', score='1.0'\); wanted",
        ),
        ([[Hit("p", float("nan"))], []], "score=nan.*a number as its score"),
        ([[]], "must return a list with one ranking for each question: wanted 2, found 1"),
        (None, "wanted 2, found NoneType"),
        ([[Hit(f"p{n}", 1.0) for n in range(4)], []], "gave q/1 4 passages; wanted at most k = 3"),
        ([[Hit("p", 1.0)] * 2, []], "gave q/1 2 passages; wanted .* none twice"),
        ([[Hit("p 0", 1.0)], []], "'p 0'.*; wanted an id without white space"),
        ([[Hit("p0", 1.0), Hit("p1", 2.0)], []], "the score rises from 1.0 to 2.0 at rank 2"),
    ],
)
def test_a_retriever_with_wrong_rankings_is_refused(rankings, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_rankings("mine", QUESTIONS, 3, rankings)
