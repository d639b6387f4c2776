"""Queries: the texts that a retriever is asked in place of the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from ifqa.records import Question
from ifqa.retrieval.queries import QUERIES, rewrite

LINCOLN = "If Abraham Lincoln had not been shot in 1865, who would have led the Union Army?"
LAST = "What would be the capital of Turkey if Istanbul had been chosen?"
PLAIN = "Who wrote the old song?"
CAUSAL = "Why did Sam Houston leave?"
NAMED = f"{LINCOLN} Abraham Lincoln 1865 Union Army"
ASKED = {
    "question": (LINCOLN, LAST, PLAIN, CAUSAL),
    "presupposition": ("Abraham Lincoln had not been shot in 1865", "Istanbul had been chosen", PLAIN, CAUSAL),
    "main": ("who would have led the Union Army?", "What would be the capital of Turkey", PLAIN, CAUSAL),
    "names": (NAMED, f"{LAST} Turkey Istanbul", PLAIN, f"{CAUSAL} Sam Houston"),
    "causal": (LINCOLN, LAST, PLAIN, "Sam Houston leave"),
    "causal-connectives": (LINCOLN, LAST, PLAIN, "Sam Houston leave because due to caused by led to"),
    "causal-names": (NAMED, f"{LAST} Turkey Istanbul", PLAIN, "Sam Houston leave Sam Houston"),
}


def words(text):
    return text.lower().rstrip("?., ").split()


@pytest.mark.parametrize("query", sorted(QUERIES | ASKED))
def test_every_query_rewrites_as_expected(query):
    asked = rewrite([Question("q", text) for text in (LINCOLN, LAST, PLAIN, CAUSAL)], query)
    assert [words(one.text) for one in asked] == [words(text) for text in ASKED[query]]
    for unknown in (query[:-1], 5, [query]):
        with refused("query"):
            rewrite([Question("q", PLAIN)], unknown)


@given(st.text(), st.sampled_from(sorted(QUERIES)))
def test_rewriting_keeps_ids_and_annotation_and_empties_no_question(text, query):
    question = Question("b/s/1", text, ("a", "b"), ("gold",), ("x", "y"))
    (asked,) = rewrite([question], query)
    assert (asked.id, asked.answers, asked.gold_passages, asked.choices) == ("b/s/1", ("a", "b"), ("gold",), ("x", "y"))
    assert bool(asked.text.strip()) or not text.strip()
    if query == "question":
        assert asked == question
