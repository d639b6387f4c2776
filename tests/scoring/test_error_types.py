"""Outcomes of questions: every question has exactly one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.scoring.error_types import OUTCOMES, classify_outcome

WRONG = {"id": "t/0", "EM": 0.0, "failed": 0.0, "answer": "Wick", "subsets": []}
READ = {"gold_read": True, "answer_read": True}
MISSED = {"gold_read": False, "answer_read": False}


@pytest.mark.parametrize(
    ("changes", "factual", "wanted"),
    [
        ({"EM": 1.0} | READ, "", "right"), ({"EM": 1.0} | MISSED, "Wick", "right"),  # by luck, or both worlds agree
        ({"failed": 1.0, "answer": "Wick"} | READ, "Wick", "no answer"),
        ({"factual": "the Wick."} | MISSED, "", "answered the real world"), (READ, "wick", "answered the real world"),
        ({"factual": "Lybster"} | READ, "Wick", "answered the real world"),  # either tells
        ({"answer": "the", "factual": "a"} | READ, "", "reading miss"),  # nothing is left of either
        (MISSED, "", "retrieval miss"), (MISSED | {"subsets": ["numeric"]}, "", "retrieval miss"),
        ({"subsets": ["numeric"], "gold_read": True, "answer_read": False}, "", "arithmetic miss"),
        ({"subsets": ["numeric"]} | READ, "", "reading miss"), ({"subsets": ["numeric"]}, "", "reading miss"),  # a closed book
        ({"subsets": ["numeric"], "answer_read": False}, "", "reading miss"),  # no gold passage is annotated
    ],
)  # fmt: skip
def test_the_first_reason_that_holds_counts(changes, factual, wanted):
    assert classify_outcome(WRONG | changes, "EM", "numeric", factual) == wanted


def test_without_a_reader_there_is_nothing_to_tell():
    for missing in ("EM", "failed", "answer"):
        row = {name: value for name, value in WRONG.items() if name != missing}
        with refused(f"question t/0 has no '{missing}'; wanted the scores of an experiment with"):
            classify_outcome(row, "EM", "numeric")


answers = st.sampled_from(["", "Wick", "wick", "1811", "the"])
scored = st.fixed_dictionaries(
    {"EM": st.sampled_from([0.0, 1.0]), "failed": st.sampled_from([0.0, 1.0]), "answer": answers, "subsets": st.sampled_from([[], ["numeric"]])},
    optional={"gold_read": st.booleans(), "answer_read": st.booleans(), "factual": answers},
)  # fmt: skip


@given(scored)
def test_every_question_has_an_outcome_and_the_score_alone_makes_it_right(row):
    told = classify_outcome(row, "EM", "numeric")
    assert told in OUTCOMES
    assert (told == "right") == (row["EM"] == 1)
    closed = {name: value for name, value in row.items() if name not in READ}
    assert classify_outcome(closed, "EM", "numeric") not in ("retrieval miss", "arithmetic miss")
