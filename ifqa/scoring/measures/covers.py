"""Whether a passage covers a gold passage, by shared word 5-grams, because dumps and passage boundaries differ."""

import html
import string
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

COVERED_SHARE = 0.4  # of a gold passage's 5-grams: if 100 words are cut in two anywhere, one half has at least 46 of 96
GRAM_WORDS = 5

_EDGE_MARKS = string.punctuation + "–—−‘’“”„«»…·•′″"


def covers(passage_text: str, gold_text: str) -> bool:
    """Whether the passage holds at least 40% of the gold passage's distinct word 5-grams.

    Words are split at white space, with HTML entities resolved (the IfQA release writes "A&amp;M"), lower-cased, and
    punctuation stripped from both ends. A gold passage of under five words must be in the passage as a whole. A gold
    passage without words is never covered.
    """
    return holds(words_of(passage_text), gold_grams(gold_text))


def word_grams(text: str, size: int = GRAM_WORDS) -> frozenset[tuple[str, ...]]:
    """The distinct runs of `size` words in a text, words as in `covers`; the whole text as one run if it is shorter."""
    words = words_of(text)
    size = min(size, len(words))
    return frozenset(zip(*(words[start:] for start in range(size)), strict=False))


gold_grams = lru_cache(maxsize=1_024)(word_grams)  # a gold passage is compared with all passages of a ranking


def words_of(text: str) -> list[str]:
    """The words of a text, as in `covers`."""
    return [bare for word in html.unescape(text).lower().split() if (bare := word.strip(_EDGE_MARKS))]


def holds(words: list[str], gold: frozenset[tuple[str, ...]]) -> bool:
    """`covers`, given the words of the passage and the 5-grams of the gold passage."""
    if not gold:
        return False
    size = len(next(iter(gold)))
    shared = gold.intersection(zip(*(words[start:] for start in range(size)), strict=False))
    return len(shared) / len(gold) >= COVERED_SHARE


def overlaps(passage_text: str, gold_text: str) -> bool:
    """Whether the passage covers the gold passage, or shares a run of 12 words with it: then it may hold what was asked."""
    return covers(passage_text, gold_text) or not _runs(passage_text).isdisjoint(_runs(gold_text))


@lru_cache(maxsize=4_096)
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = words_of(text)
    return frozenset(zip(*(words[start:] for start in range(12)), strict=False))


class GoldGrams:
    """Gold passages by their word 5-grams; about 40 KB of memory for each gold passage of 100 words.

    Comparing millions of passages with thousands of gold passages pair by pair would take years. Here each 5-gram of a passage
    is looked up among those of all gold passages; nearly all lookups find nothing.
    """

    def __init__(self, golds: Sequence[str]) -> None:
        grams = [word_grams(gold) for gold in golds]
        self._sizes = [len(gold) for gold in grams]
        self._golds: dict[tuple[str, ...], list[int]] = {}
        for number, gold in enumerate(grams):
            for gram in gold:
                self._golds.setdefault(gram, []).append(number)
        self._known = frozenset(self._golds)
        # A gold passage of under five words is a single gram of that length.
        self._short = {len(gram) for gram in self._golds} - {GRAM_WORDS}

    def shares(self, passage: str) -> dict[int, float]:
        """Index of a gold passage in `golds` -> the share of its distinct 5-grams that the passage holds (above 0, up to 1).

        `covers(passage, golds[place])` is whether that share is at least `COVERED_SHARE`.
        """
        shared = self._known & word_grams(passage)
        for size in self._short:
            shared |= self._known & word_grams(passage, size)
        counts = Counter(number for gram in shared for number in self._golds[gram])
        return {number: count / self._sizes[number] for number, count in counts.items()}
