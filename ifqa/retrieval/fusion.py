"""Fusion of several retrievers' rankings, by rank (RRF) or by score."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from ifqa.errors import IfqaError
from ifqa.protocols import Retriever
from ifqa.records import Question, SearchResult, StageUsage
from ifqa.retrieval.composition import Part, fuse_by_rank, fuse_by_score, join_generated, merge_usage, top_hits
from ifqa.settings import Natural, check_arguments

_ID_CONFLICT = "two parts of fusion made different passages with the id {}; leave out one part"


class Fusion(Retriever):
    """Fuses the rankings of its parts, which may be any retrievers."""

    version = 1
    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}, {"name": "dense"}]

    @check_arguments("setting of retriever 'fusion'")
    def __init__(
        self, *, parts: Sequence[Part], method: Literal["rrf", "weighted"] = "weighted", rrf_k: Natural = 60
    ) -> None:
        """Keep the parts.

        Args:
            method: "rrf": a passage's score is the sum over the parts of weight / (rrf_k + rank). "weighted": the sum of
                weight x score / best score of that part's ranking; see `ifqa.retrieval.composition.fuse_by_score`.
            rrf_k: the higher, the less the first ranks stand out.

        Raises:
            IfqaError: fewer than two parts, or a setting out of range.
        """
        if len(parts) < 2:
            raise IfqaError(f"fusion wants two [[retriever.parts]] or more, found {len(parts)}")
        if any(part.weight < 0 for part in parts) or not any(part.weight for part in parts):
            raise IfqaError("fusion wants weights from 0, and at least one weight above 0")
        self._parts, self._method, self._rrf_k = parts, method, rrf_k
        self.trained_on = tuple(sha256 for part in parts for sha256 in part.retriever.trained_on)

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question. Equal scores keep the order of the parts, then of their rankings.

        The steps are those of the parts that take several, one part after another.

        Raises:
            IfqaError: `method` is "weighted" and a ranking's best score is not above 0, or two parts generate different
                passages of one id.
        """
        rankings = [part.search(questions) for part in self._parts]
        return [self._fused(of_question, k) for of_question in zip(*rankings, strict=True)]

    def usage(self) -> StageUsage:
        """What its parts report about the language model; empty where no part asks a language model."""
        return merge_usage(part.retriever.usage() for part in self._parts)

    def _fused(self, rankings: Sequence[SearchResult], k: int) -> SearchResult:
        weights = [part.weight for part in self._parts]
        if self._method == "rrf":
            fused = fuse_by_rank(rankings, weights, self._rrf_k)
        else:
            fused = fuse_by_score(rankings, weights, [part.k for part in self._parts])
        taken = [ranking.steps for ranking in rankings if ranking.steps is not None]
        steps = [step for steps in taken for step in steps] if taken else None
        return SearchResult(top_hits(fused, k), join_generated(rankings, _ID_CONFLICT), steps)
