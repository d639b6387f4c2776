"""The annotated gold passages as a retriever: what a perfect retriever finds, and the upper bound of a reader."""

from collections.abc import Sequence

from ifqa.protocols import Retriever
from ifqa.records import Passage, Question, SearchResult, gold_id
from ifqa.retrieval.parts import in_order


class Gold(Retriever):
    """Ranks a question's own gold passages, in the annotators' order. It needs no corpus, and brings all of them itself."""

    version = 1

    def __init__(self) -> None:
        """There are no settings and no index."""

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` gold passages of each question, scored 1, 1/2, 1/3, …; none for a question without annotation."""
        return [in_order(_passages(question), k) for question in questions]


def _passages(question: Question) -> list[Passage]:
    texts = dict.fromkeys(text for text in question.gold_passages if text.strip())
    return [Passage(gold_id(text), "", text) for text in texts]
