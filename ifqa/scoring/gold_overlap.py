"""Overlap of passages with gold passages, by the word 5-grams they share.

A passage covers a gold passage if it has at least 40% of its word 5-grams. Texts are not compared
exactly, because Wikipedia dumps and passage boundaries differ.
"""

import html
import math
import string
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache

#: The share of a gold passage's 5-grams that a passage must have to cover it. However 100 words are
#: cut in two, the larger part has at least 46 of the 96 5-grams.
COVERED_SHARE = 0.4
GRAM_WORDS = 5

_EDGE_MARKS = string.punctuation + "–—−‘’“”„«»…·•′″"


def covers(passage_text: str, gold_text: str) -> bool:
    """Whether the passage holds at least 40% of the gold passage's distinct word 5-grams.

    A gold passage of fewer than five words must be in the passage as a whole; a gold passage
    without words is never covered.
    """
    return _covers_grams(_split_words(passage_text), _gold_grams(gold_text))


def word_grams(text: str, size: int = GRAM_WORDS) -> frozenset[tuple[str, ...]]:
    """The distinct n-grams of `size` words in a text; a shorter text is a single gram."""
    words = _split_words(text)
    size = min(size, len(words))
    return frozenset(zip(*(words[start:] for start in range(size)), strict=False))


# A gold passage is compared with all passages of a ranking
_gold_grams = lru_cache(maxsize=1_024)(word_grams)


def _split_words(text: str) -> list[str]:
    """Lower-cased words without punctuation at their ends.

    HTML entities are resolved (the IfQA release writes "A&amp;M").
    """
    return [
        bare for word in html.unescape(text).lower().split() if (bare := word.strip(_EDGE_MARKS))
    ]


def _covers_grams(words: list[str], gold: frozenset[tuple[str, ...]]) -> bool:
    if not gold:
        return False
    size = len(next(iter(gold)))
    shared = gold.intersection(zip(*(words[start:] for start in range(size)), strict=False))
    return len(shared) / len(gold) >= COVERED_SHARE


class GoldIndex:
    """Gold passages by their 5-grams: finds which of them a passage covers.

    It answers as `covers` does for each pair, in time that does not depend on their number.
    """

    def __init__(self, golds: Iterable[str]) -> None:
        self._gram_counts: dict[str, int] = {}
        # Number of words in a gram -> gram -> the gold passages that have it
        self._golds: dict[int, dict[tuple[str, ...], list[str]]] = defaultdict(dict)
        for gold in dict.fromkeys(golds):
            grams = word_grams(gold)
            self._gram_counts[gold] = len(grams)
            for gram in grams:
                self._golds[len(gram)].setdefault(gram, []).append(gold)

    def covered_by(self, passage_text: str) -> list[str]:
        """The gold passages that the passage covers."""
        words = _split_words(passage_text)
        shared: Counter[str] = Counter()
        for size, golds in self._golds.items():
            grams = zip(*(words[start:] for start in range(size)), strict=False)
            for gram in golds.keys() & grams:
                shared.update(golds[gram])
        return [
            gold
            for gold, count in shared.items()
            if count / self._gram_counts[gold] >= COVERED_SHARE
        ]


def overlaps(passage_text: str, gold_text: str) -> bool:
    """Whether the passage covers the gold passage or shares 12 consecutive words with it, and so
    may hold the answer.
    """
    return covers(passage_text, gold_text) or not _long_grams(passage_text).isdisjoint(
        _long_grams(gold_text)
    )


@lru_cache(maxsize=4_096)
def _long_grams(text: str) -> frozenset[tuple[str, ...]]:
    words = _split_words(text)
    return frozenset(zip(*(words[start:] for start in range(12)), strict=False))


@lru_cache(maxsize=4)  # gold_any and gold_all score the same ranking, one after the other
def first_ranks(golds: tuple[str, ...], texts: tuple[str, ...]) -> list[float]:
    """The rank, from 1, of the first text that covers each gold passage; infinity if none does."""
    passages = [_split_words(text) for text in texts] if golds else []
    return [
        next(
            (rank for rank, words in enumerate(passages, start=1) if _covers_grams(words, grams)),
            math.inf,
        )
        for grams in map(_gold_grams, golds)
    ]
