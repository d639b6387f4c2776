"""The text that comes with a question, as passages."""

from refusals import refused

from ifqa.records import Question
from ifqa.retrieval.context import Context

LONG = " ".join(f"w{n}" for n in range(250))


def texts(context, k=10, **settings):
    [ranking] = Context(**settings).search([Question("q", "why?", context=context)], k)
    generated = {passage.id: passage.text for passage in ranking.generated}
    return [generated[hit.passage_id] for hit in ranking]


def test_a_long_context_is_cut_into_passages_in_their_order():
    found = texts(LONG, words=100)
    assert [len(text.split()) for text in found] == [100, 100, 50]
    assert " ".join(found) == LONG
    assert texts(LONG, k=2, words=100) == found[:2]


def test_a_context_is_one_passage_and_an_equal_passage_is_ranked_once():
    assert texts("Two\n  lines. ") == ["Two\n  lines. "]
    assert texts("a b a b c", words=2) == ["a b", "c"]
    assert texts("") == texts(" \n") == texts(" ", words=5) == []
    [hits] = Context(words=100).search([Question("q", "?", context=LONG)], 3)
    assert [hit.score for hit in hits] == [1, 1 / 2, 1 / 3]
    with refused("words"):
        Context(words=-1)
