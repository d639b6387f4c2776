"""Fusion of several retrievers' rankings, by rank (RRF) or by score."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from ifqa.errors import ConfigError
from ifqa.protocols import Retriever
from ifqa.records import Question, SearchResult, StageUsage
from ifqa.retrieval.composition import Part, fuse_by_rank, fuse_by_score, join_generated, merge_usage, top_hits
from ifqa.settings import Natural, check_arguments

_ID_CONFLICT = "two parts of fusion generate different passages with the id {}; remove one part"


class Fusion(Retriever):
    """Fuses the rankings of its parts, which may be any retrievers."""

    version = 1
    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}, {"name": "dense"}]

    @check_arguments("setting of retriever 'fusion'")
    def __init__(
        self, *, parts: Sequence[Part], method: Literal["rrf", "weighted"] = "weighted", rrf_k: Natural = 60
    ) -> None:
        """Raises ConfigError if there are fewer than two parts, a weight is below 0, or all weights are 0.

        Args:
            parts: at least two.
            method: "rrf": a passage's score is the sum over the parts of weight / (rrf_k + rank). "weighted": the sum of
                weight x score / best score of the part's ranking; see `ifqa.retrieval.composition.fuse_by_score`.
            rrf_k: damps the lead of the first ranks.
        """
        if len(parts) < 2:
            raise ConfigError(f"fusion needs at least two [[retriever.parts]], found {len(parts)}")
        if any(part.weight < 0 for part in parts) or not any(part.weight for part in parts):
            raise ConfigError("fusion needs weights of at least 0, and one above 0")
        self._parts, self._method, self._rrf_k = parts, method, rrf_k
        self.trained_on = tuple(sha256 for part in parts for sha256 in part.retriever.trained_on)

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question. Ties keep the order of the parts, then of their rankings.

        The steps of iterative parts are concatenated. Raises as `fuse_by_score` does, and if two parts generate different
        passages with the same id.
        """
        rankings = [part.search(questions) for part in self._parts]
        return [self._fuse(question_rankings, k) for question_rankings in zip(*rankings, strict=True)]

    def usage(self) -> StageUsage:
        """The parts' usage of the language model."""
        return merge_usage(part.retriever.usage() for part in self._parts)

    def _fuse(self, rankings: Sequence[SearchResult], k: int) -> SearchResult:
        weights = [part.weight for part in self._parts]
        if self._method == "rrf":
            fused = fuse_by_rank(rankings, weights, self._rrf_k)
        else:
            fused = fuse_by_score(rankings, weights, [part.k for part in self._parts])
        traces = [ranking.steps for ranking in rankings if ranking.steps is not None]
        steps = [step for trace in traces for step in trace] if traces else None
        return SearchResult(top_hits(fused, k), join_generated(rankings, _ID_CONFLICT), steps)
