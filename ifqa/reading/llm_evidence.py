"""The sentence that a language model's answer rests on: what the model quoted, or what the span
reader finds for the answer afterwards.
"""

from collections.abc import Sequence
from dataclasses import replace

from ifqa.corpus.sentences import sentence_span
from ifqa.reading.span.reader import ReadAnswer
from ifqa.records import Explanation, Passage, Quote, QuotedPlace, split_at_answer
from ifqa.scoring.measures.exact_match import normalize

#: They are words of many sentences that say nothing of the question.
_NOT_IN_WORDS = ("yes", "no")


def explain_quote(quote: Quote, answer: str, passages: Sequence[Passage]) -> Explanation | None:
    """The sentence that a model quoted; None if the quote is not in the passages.

    Of a stitched quote it is the sentence with its longest part. The span is that of the answer if
    it stands in the sentence, else that of the quote.
    """
    if not quote.places:
        return None
    place = max(quote.places, key=lambda each: each.end - each.start)
    text = next(passage.text for passage in passages if passage.id == place.passage_id)
    sentence = _sentence_of(text, place)
    first, last = sentence
    found = _find_answer(text[first:last], answer)
    span = (first + found[0], first + found[1]) if found else (place.start, place.end)
    return Explanation(place.passage_id, sentence, span, origin="quoted")


def _sentence_of(text: str, place: QuotedPlace) -> tuple[int, int]:
    """The sentences of a text that a quote is taken from."""
    first, _ = sentence_span(text, place.start, place.start + 1)
    _, last = sentence_span(text, place.end - 1, place.end)
    return first, last


def explain_afterwards(
    answer: str, passages: Sequence[Passage], read: ReadAnswer
) -> Explanation | None:
    """The sentence that the span reader finds for a model's answer.

    If the answer is none of its candidates, it is the first sentence with the answer's words, in
    the passage that the span reader ranks best; None if there is none.
    """
    how = read.explain(answer)
    if how is not None:
        return replace(how, origin="found afterwards")
    if normalize(answer) in _NOT_IN_WORDS:
        return None
    by_id = {passage.id: passage for passage in passages}
    for passage_id in read.prediction.passage_ids:
        if passage_id not in by_id:  # the model was not shown it
            continue
        text = by_id[passage_id].text
        span = _find_answer(text, answer)
        if span is not None:
            sentence = sentence_span(text, *span)
            return Explanation(passage_id, sentence, span, origin="found afterwards")
    return None


def _find_answer(text: str, answer: str) -> tuple[int, int] | None:
    """Where an answer's words first stand in a text; None if they do not."""
    before, *found = split_at_answer(text, answer)
    return (len(before), len(before) + len(found[0])) if found else None
