"""The gold retriever ranks each question's own annotated passages."""

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from ifqa.formats.runs import read_run, write_run
from ifqa.records import Question
from ifqa.retrieval.context import Gold

FIRST, SECOND = "The Thai baht was pegged to the dollar.", "Soros shorted it in 1997. – «Ünïcode»"


def test_each_question_gets_its_own_passages_once_in_the_annotators_order():
    asked = [("a", (SECOND, FIRST, FIRST)), ("b", ()), ("c", ("  ",)), ("d", (FIRST,))]
    found = Gold().search([Question(one, "?", gold_passages=texts) for one, texts in asked], 5)
    first, second = ("gold/" + hashlib.sha1(text.encode()).hexdigest()[:12] for text in (FIRST, SECOND))
    assert [[hit.passage_id for hit in one] for one in found] == [[second, first], [], [], [first]]
    assert found[0].hits[0].score > found[0].hits[1].score
    assert [(passage.title, passage.text) for passage in found[0].generated] == [("", SECOND), ("", FIRST)]


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
