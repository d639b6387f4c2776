"""Gold recall: whether any, or all, of a question's gold passages were retrieved."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from ifqa.protocols import RankingMeasure
from ifqa.records import Question
from ifqa.scoring.measures.covers import gold_grams, holds, words_of


def gold_any(question: Question, texts: Sequence[str], depths: Sequence[int]) -> Mapping[int, float]:
    """1.0 for each depth K if one of the first K texts covers a gold passage, else 0.0; empty without gold passages.

    If a ranking is shorter than K, all of it counts.
    """
    firsts = _first_ranks(question.gold_passages, tuple(texts[: max(depths, default=0)]))
    return {k: float(min(firsts) <= k) for k in depths if firsts}


def gold_all(question: Question, texts: Sequence[str], depths: Sequence[int]) -> Mapping[int, float]:
    """1.0 for each depth K if the first K texts cover every gold passage, else 0.0; empty without gold passages."""
    firsts = _first_ranks(question.gold_passages, tuple(texts[: max(depths, default=0)]))
    return {k: float(max(firsts) <= k) for k in depths if firsts}


def first_rank(question: Question, texts: Sequence[str]) -> int | None:
    """The rank, from 1, of the first text that covers a gold passage; 0 if none does; None without gold passages."""
    firsts = _first_ranks(question.gold_passages, tuple(texts))
    return None if not firsts else 0 if min(firsts) == math.inf else int(min(firsts))


@lru_cache(maxsize=4)  # both measures ask for the same ranking, one after the other
def _first_ranks(golds: tuple[str, ...], texts: tuple[str, ...]) -> list[float]:
    """The rank, from 1, of the first text that covers each gold passage; infinity if none does."""
    passages = [words_of(text) for text in texts] if golds else []
    return [
        next((rank for rank, words in enumerate(passages, start=1) if holds(words, grams)), math.inf)
        for grams in map(gold_grams, golds)
    ]


GOLD_ANY = RankingMeasure(
    "gold_any",
    gold_any,
    tables=(1, 5, 20, 100),
    title="gold recall",
    about="a gold passage is among the first K",
)
GOLD_ALL = RankingMeasure("gold_all", gold_all)
