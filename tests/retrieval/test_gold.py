"""The gold retriever ranks each question's own annotated passages."""

import hashlib

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
