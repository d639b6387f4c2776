"""What a retriever or a reader of one's own gives is held to its protocol, with one line that says what is wrong."""

import pytest

from ifqa.errors import IfqaError
from ifqa.pipeline.returned import check_predictions, check_rankings
from ifqa.records import Hit, Passage, Prediction, Question

QUESTIONS = [Question("q/1", "If so?"), Question("q/2", "If not?")]
PASSAGES = [[Passage("p", "", "text")], []]


@pytest.mark.parametrize(
    ("predictions", "complaint"),
    [
        (["yes", "no"], "reader 'mine' gave 'yes'; wanted ifqa.Prediction"),
        ([Prediction("q/1", "yes"), None], "reader 'mine' gave None; wanted ifqa.Prediction"),
        (None, "must give a list of ifqa.Prediction, found NoneType"),
        ("yes", "must give a list of ifqa.Prediction, found str"),
        ([Prediction("q/1", "yes", passage_ids=None), Prediction("q/2", "no")], "gave q/1 the passage_ids None"),
        ([Prediction("q/1", "yes", passage_ids="p"), Prediction("q/2", "no")], "gave q/1 the passage_ids 'p'"),
    ],
)
def test_a_reader_that_gives_no_predictions_is_refused(predictions, complaint):
    with pytest.raises(IfqaError, match=complaint):
        check_predictions("mine", QUESTIONS, PASSAGES, predictions)


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
