"""The texts that come with a question as retrievers: its annotated gold passages, and its context."""

import hashlib
from collections.abc import Sequence

from ifqa.corpus.wikipedia.source import split_article
from ifqa.protocols import Retriever
from ifqa.records import Passage, Question, SearchResult, gold_id
from ifqa.retrieval.composition import rank_in_order
from ifqa.settings import Natural, check_arguments


class Gold(Retriever):
    """Ranks a question's own gold passages, in the annotators' order: what a perfect retriever finds. It needs no corpus."""

    version = 1

    def __init__(self) -> None:
        """There are no settings and no index."""

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` gold passages of each question, scored 1, 1/2, 1/3, …; none for a question without annotation."""
        texts = [dict.fromkeys(text for text in question.gold_passages if text.strip()) for question in questions]
        return [rank_in_order([Passage(gold_id(text), "", text) for text in of_question], k) for of_question in texts]


class Context(Retriever):
    """Ranks the context of a question, whole or cut into passages in their order. It needs no corpus.

    A question without a context gets no passages. Readers cut what they cannot hold: the span reader reads about 170 words of a
    passage, so give it long contexts in passages of 100 words, and `rank_weight = 0`, because their order says nothing.

    Args:
        words: words of a passage, the last may be shorter; 0 for the whole context as one passage, as it stands.
    """

    version = 1

    @check_arguments("setting of retriever 'context'")
    def __init__(self, words: Natural = 0) -> None:
        self._words = words

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The first `k` passages of each question's context, scored 1, 1/2, 1/3 and so on."""
        return [rank_in_order(self._passages(question), k) for question in questions]

    def _passages(self, question: Question) -> list[Passage]:
        whole = [question.context] if question.context.strip() else []
        texts = split_article(question.context, self._words, wrap=False) if self._words else whole
        hashes = {text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16] for text in texts}
        return [Passage(f"context/{identity}", "", text) for text, identity in hashes.items()]
