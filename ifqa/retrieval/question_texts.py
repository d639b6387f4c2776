"""Retrievers over a question's own texts: its gold passages, or its context."""

import hashlib
from collections.abc import Sequence

from ifqa.corpus.wikipedia.source import split_article
from ifqa.protocols import Retriever
from ifqa.records import Passage, Question, SearchResult, gold_id
from ifqa.retrieval.composition import rank_in_order
from ifqa.settings import Natural, PluginSettings


class Gold(Retriever):
    """Ranks a question's gold passages in the annotators' order: the upper bound of a retriever.

    It needs no corpus.
    """

    version = 1
    takes_any_text = False

    def __init__(self, settings: PluginSettings | None = None) -> None:
        """There are no settings, so none need be given."""

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """Up to `k` gold passages of each question, scored 1, 1/2, 1/3, ….

        None without annotation.
        """
        rankings = []
        for question in questions:
            texts = dict.fromkeys(text for text in question.gold_passages if text.strip())
            rankings.append(rank_in_order([Passage(gold_id(text), "", text) for text in texts], k))
        return rankings


class Context(Retriever):
    """Ranks the context of a question, whole or split into passages in text order.

    It needs no corpus.

    A question without a context gets no passages. Readers truncate long passages (the span reader
    reads about 170 words), so split long contexts into passages of 100 words. Then set the span
    reader's `rank_weight = 0`, because the passages' order says nothing about relevance.
    """

    version = 1
    takes_any_text = False

    class Settings(PluginSettings):
        words: Natural = 0
        """The length of a passage in words; 0 for the unchanged context as a single passage."""

    def __init__(self, settings: Settings) -> None:
        self._words = settings.words

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The first `k` passages of each question's context, scored 1, 1/2, 1/3, …."""
        return [rank_in_order(self._passages(question), k) for question in questions]

    def _passages(self, question: Question) -> list[Passage]:
        if self._words:
            texts = split_article(question.context, self._words, wrap=False)
        else:
            texts = [question.context] if question.context.strip() else []
        hashes = {
            text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:16]
            for text in texts
        }
        return [Passage(f"context/{digest}", "", text) for text, digest in hashes.items()]
