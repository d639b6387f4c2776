"""Gold recall: whether any, or all, of a question's gold passages were retrieved, by their overlap
with the ranked passages.
"""

from collections.abc import Mapping, Sequence

from ifqa.protocols import RankingMeasure
from ifqa.records import Question
from ifqa.scoring.gold_overlap import first_ranks


def gold_any(
    question: Question, texts: Sequence[str], depths: Sequence[int]
) -> Mapping[int, float]:
    """1.0 for each depth K if one of the first K texts covers a gold passage, else 0.0.

    Empty without gold passages.
    """
    firsts = first_ranks(question.gold_passages, tuple(texts[: max(depths, default=0)]))
    return {k: float(min(firsts) <= k) for k in depths if firsts}


def gold_all(
    question: Question, texts: Sequence[str], depths: Sequence[int]
) -> Mapping[int, float]:
    """1.0 for each depth K if the first K texts cover every gold passage, else 0.0.

    Empty without gold passages.
    """
    firsts = first_ranks(question.gold_passages, tuple(texts[: max(depths, default=0)]))
    return {k: float(max(firsts) <= k) for k in depths if firsts}


_ABOUT = "a gold passage is among the first K"
GOLD_ANY = RankingMeasure(
    "gold_any", gold_any, tables=(1, 5, 20, 100), title="gold recall", about=_ABOUT
)
GOLD_ALL = RankingMeasure("gold_all", gold_all)
