"""Several retrievers' rankings as one: by rank (RRF) or by score."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from ifqa.errors import IfqaError
from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, Question, Usage
from ifqa.retrieval.queries import Part, usage_of
from ifqa.settings import Natural, checked


class Fusion(Retriever):
    """One ranking out of those of its parts, which may be any retrievers."""

    version = 1
    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}, {"name": "dense"}]

    @checked("setting of retriever 'fusion'")
    def __init__(
        self, *, parts: Sequence[Part], method: Literal["rrf", "weighted"] = "weighted", rrf_k: Natural = 60
    ) -> None:
        """Take the parts.

        Args:
            parts: the retrievers, each with its depth, its weight, and what it is asked.
            method: "rrf": a passage's score is the sum over the parts of weight / (rrf_k + rank) (Cormack et al., SIGIR
                2009). "weighted": of weight x score / the best score of that part's ranking; see `by_score`.
            rrf_k: how little the first ranks stand out.

        Raises:
            IfqaError: fewer than two parts, or a setting out of range.
        """
        if len(parts) < 2:
            raise IfqaError(f"fusion wants two [[retriever.parts]] or more, found {len(parts)}")
        if any(part.weight < 0 for part in parts) or not any(part.weight for part in parts):
            raise IfqaError("fusion wants weights from 0, and one weight above it")
        self._parts, self._method, self._rrf_k = parts, method, rrf_k
        self.trained_on = tuple(one for part in parts for one in part.retriever.trained_on)

    def search(self, questions: Sequence[Question], k: int) -> list[list[Hit]]:
        """The `k` best passages of each question; of equal ones first the one that an earlier part has ranked higher.

        Raises:
            IfqaError: `k` is below 1, or weighted scores are not all of one sign.
        """
        if k < 1:
            raise IfqaError(f"k, the number of passages to retrieve, must be at least 1; found {k}")
        rankings = [part.search(questions) for part in self._parts]
        weights = [part.weight for part in self._parts]
        fuse = self._by_rank if self._method == "rrf" else self._by_score
        return [best(fuse(of_one, weights), k) for of_one in zip(*rankings, strict=True)]

    def usage(self) -> Usage:
        """What its parts tell of the language model that they ask; nothing where none does."""
        return usage_of(self._parts)

    def _by_rank(self, rankings: Sequence[Sequence[Hit]], weights: Sequence[float]) -> dict[str, float]:
        return by_rank(rankings, weights, self._rrf_k)

    def _by_score(self, rankings: Sequence[Sequence[Hit]], weights: Sequence[float]) -> dict[str, float]:
        return by_score(rankings, weights, [part.k for part in self._parts])

    def made_passages(self, questions: Sequence[Question]) -> list[Passage] | None:
        """All that its parts make, each once; None where none makes any."""
        made = [some for part in self._parts if (some := part.retriever.made_passages(questions)) is not None]
        if not made:
            return None
        known: dict[str, Passage] = {}
        for passage in (passage for several in made for passage in several):
            if known.setdefault(passage.id, passage) != passage:
                raise IfqaError(f"two parts of fusion made different passages of the id {passage.id!r}; leave one out")
        return list(known.values())


def by_rank(rankings: Sequence[Sequence[Hit]], weights: Sequence[float], rrf_k: int = 60) -> dict[str, float]:
    """Passage id -> reciprocal rank fusion of several rankings."""
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, hit in enumerate(ranking, start=1):
            fused[hit.passage_id] = fused.get(hit.passage_id, 0.0) + weight / (rrf_k + rank)
    return fused


def by_score(
    rankings: Sequence[Sequence[Hit]], weights: Sequence[float], depths: Sequence[int] = ()
) -> dict[str, float]:
    """Passage id -> weighted sum of scores, each ranking's as a share of its best score.

    The best score, and not the spread, is the measure: it keeps how clear-cut a ranking is (a question whose first passage
    stands far above the rest), which ranks and min-max lose. A passage that a ranking lacks is taken to score as its last;
    or 0 where the ranking is shorter than the depth it was asked for (`depths`), and so holds all that scored at all.

    Raises:
        IfqaError: a ranking's best score is not above 0, so that nothing is a share of it.
    """
    fused: dict[str, float] = dict.fromkeys((hit.passage_id for ranking in rankings for hit in ranking), 0.0)
    for ranking, weight, depth in zip(rankings, weights, depths or [0] * len(rankings), strict=True):
        if not ranking or not weight:
            continue
        top = ranking[0].score
        if top <= 0:
            raise IfqaError(
                f'weighted fusion wants rankings whose best score is above 0, found {top:g}; take method = "rrf"'
            )
        shares = {hit.passage_id: hit.score / top for hit in ranking}
        last = ranking[-1].score / top if len(ranking) >= depth else min(0.0, ranking[-1].score / top)
        for passage_id in fused:
            fused[passage_id] += weight * shares.get(passage_id, last)
    return fused


def best(fused: dict[str, float], k: int) -> list[Hit]:
    """The k passages with the highest scores; among equal ones in the order in which they were met."""
    ranked = sorted(fused.items(), key=lambda pair: -pair[1])
    return [Hit(passage_id, score) for passage_id, score in ranked[:k]]
