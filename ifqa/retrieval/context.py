"""The text that comes with a question as a retriever: every reader can then read a dataset's own contexts."""

import hashlib
from collections.abc import Sequence

from ifqa.corpus.wikipedia.source import split
from ifqa.protocols import Retriever
from ifqa.records import Passage, Question, SearchResult
from ifqa.retrieval.parts import in_order
from ifqa.settings import Natural, checked


class Context(Retriever):
    """Ranks the context of a question, whole or cut into passages in their order. It needs no corpus.

    A question without a context gets no passages. Readers cut what they cannot hold: the span reader reads about 170 words of a
    passage, so give it long contexts in passages of 100 words, and `rank_weight = 0`, because their order says nothing.

    Args:
        words: words of a passage, the last may be shorter; 0 for the whole context as one passage, as it stands.

    Raises:
        IfqaError: `words` is negative.
    """

    version = 1

    @checked("setting of retriever 'context'")
    def __init__(self, words: Natural = 0) -> None:
        self._words = words

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The first `k` passages of each question's context, scored 1, 1/2, 1/3 and so on."""
        return [in_order(self._passages(question), k) for question in questions]

    def _passages(self, question: Question) -> list[Passage]:
        whole = [question.context] if question.context.strip() else []
        texts = split(question.context, self._words, wrap=False) if self._words else whole
        return [Passage(f"context/{_hash(text)}", "", text) for text in dict.fromkeys(texts)]


def _hash(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]
