"""The gold retriever ranks each question's own annotated passages."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from ifqa.formats.runs import read_run, write_run
from ifqa.records import Question
from ifqa.retrieval.context import Gold

FIRST, SECOND = "The Thai baht was pegged to the dollar.", "Soros shorted it in 1997. – «Ünïcode»"


def test_gold_passages_keep_the_annotators_order():
    hits = Gold().search([Question("q", "?", gold_passages=(SECOND, FIRST))], 10)[0]
    assert [hit.passage_id for hit in hits] == [
        "gold/" + hashlib.sha1(text.encode()).hexdigest()[:12] for text in (SECOND, FIRST)
    ]
    assert hits[0].score > hits[1].score


def test_a_question_gets_only_its_own_gold_passages():
    questions = [
        Question("a", "?", gold_passages=(FIRST,)),
        Question("b", "?"),
        Question("c", "?", gold_passages=("  ",)),
    ]
    assert [len(ranking) for ranking in Gold().search(questions, 5)] == [1, 0, 0]


def test_a_passage_annotated_twice_is_ranked_and_made_once():
    questions = [Question("a", "?", gold_passages=(FIRST, FIRST)), Question("b", "?", gold_passages=(SECOND, FIRST))]
    first, second = Gold().search(questions, 5)
    assert (len(first), len(second)) == (1, 2)
    assert [(passage.title, passage.text) for passage in first.generated] == [("", FIRST)]
    assert [passage.text for passage in second.generated] == [SECOND, FIRST]


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4), max_size=4), st.integers(1, 5))
def test_every_hit_is_a_made_passage_and_survives_a_trec_run(tmp_path_factory, golds, k):
    questions = [Question(f"q{n}", "?", gold_passages=tuple(texts)) for n, texts in enumerate(golds)]
    rankings = Gold().search(questions, k)
    texts = {passage.id: passage.text for ranking in rankings for passage in ranking.generated}
    for question, ranking in zip(questions, rankings, strict=True):
        expected = list(dict.fromkeys(text for text in question.gold_passages if text.strip()))[:k]
        assert [texts[hit.passage_id] for hit in ranking] == expected
    path = tmp_path_factory.getbasetemp() / "run.trec"
    run = {question.id: ranking.hits for question, ranking in zip(questions, rankings, strict=True) if ranking}
    write_run(path, run, "gold")
    assert read_run(path) == run
