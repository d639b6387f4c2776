"""Fusion of several retrievers' rankings, by rank (RRF) or by score."""

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

from ifqa.errors import ConfigError
from ifqa.llms.budget import COUNTS
from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, Question, SearchResult, StageUsage
from ifqa.retrieval.composition import Part
from ifqa.settings import Natural, PluginSettings


class Fusion(Retriever):
    """Fuses the rankings of its parts, which may be any retrievers."""

    version = 1
    takes = ("parts",)
    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}, {"name": "dense"}]

    class Settings(PluginSettings):
        method: Literal["rrf", "weighted"] = "weighted"
        """How a passage is scored. "rrf": the sum over the parts of weight / (rrf_k + rank).
        "weighted": the sum of weight x score / best score of the part's ranking.
        """
        rrf_k: Natural = 60
        """Damps the lead of the first ranks in "rrf"."""

    def __init__(self, settings: Settings, *, parts: Sequence[Part]) -> None:
        """Raises ConfigError if there are fewer than two parts, a weight is below 0, or all weights
        are 0.

        See `fuse_by_rank` and `fuse_by_score`.
        """
        if len(parts) < 2:
            raise ConfigError(f"fusion needs at least two [[retriever.parts]], found {len(parts)}")
        if any(part.weight < 0 for part in parts) or not any(part.weight for part in parts):
            raise ConfigError("fusion needs weights of at least 0, and one above 0")
        self._parts = parts
        self._method = settings.method
        self._rrf_k = settings.rrf_k
        self.trained_on = tuple(sha256 for part in parts for sha256 in part.retriever.trained_on)

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question.

        Ties keep the order of the parts, then of their rankings.

        Raises as `fuse_by_score` does, and if two parts generate different passages with the same
        id.
        """
        rankings = [part.search(questions) for part in self._parts]
        return [
            self._fuse(question_rankings, k) for question_rankings in zip(*rankings, strict=True)
        ]

    def usage(self) -> StageUsage:
        """The parts' usage of the language model."""
        return _merge_usage(part.retriever.usage() for part in self._parts)

    def _fuse(self, rankings: Sequence[SearchResult], k: int) -> SearchResult:
        weights = [part.weight for part in self._parts]
        if self._method == "rrf":
            fused = fuse_by_rank(rankings, weights, self._rrf_k)
        else:
            fused = fuse_by_score(rankings, weights, [part.k for part in self._parts])
        return SearchResult(top_hits(fused, k), _join_generated(rankings))


def fuse_by_rank(
    rankings: Sequence[Sequence[Hit]], weights: Sequence[float], rrf_k: int = 60
) -> dict[str, float]:
    """Passage id -> reciprocal rank fusion of several rankings (Cormack et al., SIGIR 2009)."""
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, hit in enumerate(ranking, start=1):
            fused[hit.passage_id] = fused.get(hit.passage_id, 0.0) + weight / (rrf_k + rank)
    return fused


def fuse_by_score(
    rankings: Sequence[Sequence[Hit]], weights: Sequence[float], depths: Sequence[int] = ()
) -> dict[str, float]:
    """Passage id -> weighted sum of scores, each divided by the best score of its ranking.

    Unlike ranks and min-max normalisation, this keeps the lead of the first passage. A passage that
    a ranking lacks gets the score of the ranking's last passage, or 0 if the ranking is shorter
    than its depth, because then it holds every passage with a score. A best score of 0, as a
    reranker gives equal passages, counts for nothing; ConfigError if one is below 0.
    """
    fused: dict[str, float] = dict.fromkeys(
        (hit.passage_id for ranking in rankings for hit in ranking), 0.0
    )
    for ranking, weight, depth in zip(
        rankings, weights, depths or [0] * len(rankings), strict=True
    ):
        if not ranking or not weight:
            continue
        top = ranking[0].score
        if abs(top) < 1e-9:  # 0, but for rounding
            continue
        if top < 0:
            fault = f"weighted fusion needs rankings whose best score is at least 0, found {top:g}"
            raise ConfigError(f'{fault}; set method = "rrf"')
        shares = {hit.passage_id: hit.score / top for hit in ranking}
        last = (
            ranking[-1].score / top if len(ranking) >= depth else min(0.0, ranking[-1].score / top)
        )
        for passage_id in fused:
            fused[passage_id] += weight * shares.get(passage_id, last)
    return fused


def top_hits(fused: dict[str, float], k: int) -> list[Hit]:
    """The k passages with the highest scores; ties keep the order of `fused`."""
    return [Hit(*pair) for pair in sorted(fused.items(), key=lambda pair: -pair[1])[:k]]


def _join_generated(rankings: Sequence[SearchResult]) -> list[Passage] | None:
    """The distinct passages that a question's rankings generated.

    None if no ranking has generated passages.

    Raises ConfigError if two different passages have the same id.
    """
    if all(ranking.generated is None for ranking in rankings):
        return None
    passages: dict[str, Passage] = {}
    for passage in (passage for ranking in rankings for passage in ranking.generated or ()):
        if passages.setdefault(passage.id, passage) != passage:
            fault = f"two parts of fusion generate different passages with the id {passage.id!r}"
            raise ConfigError(f"{fault}; remove one part")
    return list(passages.values())


def _merge_usage(usages: Iterable[StageUsage]) -> StageUsage:
    """The usage of a shared language model: the maximum of each count, and the last usage's
    cost.
    """
    merged: StageUsage = {}
    for usage in usages:
        previous = merged
        merged = {**merged, **usage}
        for count in COUNTS:
            if count in usage:
                merged[count] = max(previous.get(count, 0), usage[count])
    return merged
