"""A question's own texts: its gold passages, and its context."""

import hashlib

from ifqa.records import Question
from ifqa.retrieval.question_texts import Context, Gold

LONG = " ".join(f"w{n}" for n in range(250))


def texts(context, k=10, **settings):
    [ranking] = Context(Context.Settings(**settings)).search(
        [Question("q", "why?", context=context)], k
    )
    assert ranking.generated is not None
    generated = {passage.id: passage.text for passage in ranking.generated}
    return [generated[hit.passage_id] for hit in ranking]


def test_a_context_is_a_passage_or_split_into_passages_in_order():
    passages = texts(LONG, words=100)
    assert [len(text.split()) for text in passages] == [100, 100, 50]
    assert " ".join(passages) == LONG
    assert texts(LONG, k=2, words=100) == passages[:2]
    assert texts("Two\n  lines. ") == ["Two\n  lines. "]
    assert texts("a b a b c", words=2) == ["a b", "c"]
    assert texts("") == texts(" \n") == texts(" ", words=5) == []
    [hits] = Context(Context.Settings(words=100)).search([Question("q", "?", context=LONG)], 3)
    assert [hit.score for hit in hits] == [1, 1 / 2, 1 / 3]


FIRST, SECOND = "The Thai baht was pegged to the dollar.", "Soros shorted it in 1997. – «Ünïcode»"


def test_each_question_gets_its_gold_passages_once_in_the_annotators_order():
    gold = [("a", (SECOND, FIRST, FIRST)), ("b", ()), ("c", ("  ",)), ("d", (FIRST,))]
    rankings = Gold().search(
        [Question(question_id, "?", gold_passages=texts) for question_id, texts in gold], 5
    )
    first, second = (
        "gold/" + hashlib.sha1(text.encode()).hexdigest()[:12] for text in (FIRST, SECOND)
    )
    assert [[hit.passage_id for hit in ranking] for ranking in rankings] == [
        [second, first],
        [],
        [],
        [first],
    ]
    assert rankings[0].hits[0].score > rankings[0].hits[1].score
    assert rankings[0].generated is not None
    assert [(passage.title, passage.text) for passage in rankings[0].generated] == [
        ("", SECOND),
        ("", FIRST),
    ]
