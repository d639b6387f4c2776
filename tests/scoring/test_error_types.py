"""Outcomes of questions: the first that applies."""

from typing import Any

import pytest
from refusals import refused

from ifqa.scoring.error_types import classify_outcome

WRONG = {"id": "t/0", "EM": 0.0, "failed": 0.0, "answer": "Wick", "subsets": []}
READ = {"gold_read": True, "answer_read": True}
MISSED = {"gold_read": False, "answer_read": False}


@pytest.mark.parametrize(
    ("changes", "factual", "outcome"),
    [
        # By luck, or both worlds agree
        ({"EM": 1.0} | READ, "", "right"),
        ({"EM": 1.0} | MISSED, "Wick", "right"),
        ({"failed": 1.0, "answer": "Wick"} | READ, "Wick", "no answer"),
        ({"abstained": 1.0, "answer": ""} | READ, "", "no answer"),
        ({"factual": "the Wick."} | MISSED, "", "answered the real world"),
        (READ, "wick", "answered the real world"),
        ({"factual": "Lybster"} | READ, "Wick", "answered the real world"),  # either tells
        ({"answer": "the", "factual": "a"} | READ, "", "reading miss"),  # nothing is left of either
        (MISSED, "", "retrieval miss"),
        (MISSED | {"subsets": ["numeric"]}, "", "retrieval miss"),
        ({"subsets": ["numeric"], "gold_read": True, "answer_read": False}, "", "arithmetic miss"),
        # A closed book
        ({"subsets": ["numeric"]} | READ, "", "reading miss"),
        ({"subsets": ["numeric"]}, "", "reading miss"),
        # No gold passage is annotated
        ({"subsets": ["numeric"], "answer_read": False}, "", "reading miss"),
    ],
)
def test_the_first_outcome_that_applies_counts(changes, factual, outcome):
    assert classify_outcome(WRONG | changes, "EM", "numeric", factual) == outcome


def test_a_row_without_a_reader_is_refused():
    for missing in ("EM", "failed", "answer"):
        row: Any = {key: WRONG[key] for key in WRONG if key != missing}
        with refused(f"question t/0 has no '{missing}'; wanted the scores of an experiment with"):
            classify_outcome(row, "EM", "numeric")
