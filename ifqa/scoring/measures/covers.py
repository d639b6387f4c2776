"""Whether a passage covers a gold passage, by shared word 5-grams, because dumps and passage boundaries differ."""

import html
import string
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
