"""Retrievers that search several times for a question: what they share. How the next query is found is their own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ifqa.errors import IfqaError
from ifqa.protocols import Retriever
from ifqa.records import Passage, Question, SearchResult, Step
from ifqa.retrieval.fusing import best, by_rank, generated_by
from ifqa.retrieval.queries import Part, only_part, passages_of, usage_of
from ifqa.spending import Usage


@dataclass(frozen=True, slots=True)
class Trail:
    """The searches for a question so far: a ranking and a step of each."""

    question: Question
    rankings: list[SearchResult]
    steps: list[Step]

    def add(self, query: str, ranking: SearchResult) -> None:
        """Add a search; the passages of its step are those that no earlier ranking has."""
        before = {hit.passage_id for own in self.rankings for hit in own}
        self.rankings.append(ranking)
        self.steps.append(Step(query, tuple(hit.passage_id for hit in ranking if hit.passage_id not in before)))


class Stepping(Retriever):
    """Searches with its one part, then again with the queries of `_queries`, and fuses the rankings.

    The searches for a question end where there is no next query, where a search finds no passage that was not found before, or
    after `steps` of them.
    """

    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}]

    def __init__(
        self,
        name: str,
        parts: Sequence[Part],
        passages: Callable[[Sequence[str]], list[Passage]],
        steps: int,
        step_weight: float,
    ) -> None:
        """Keep the part.

        Args:
            name: of the retriever, for messages.
            parts: a single retriever.
            passages: returns the passages of a list of ids.
            steps: searches for a question, at most.
            step_weight: of each later ranking, in a reciprocal rank fusion in which the first has weight 1.

        Raises:
            IfqaError: there is not exactly one part.
        """
        self._name, self._part, self._fetch = name, only_part(name, parts), passages
        self._steps, self._weight = steps, step_weight
        self.trained_on = tuple(self._part.retriever.trained_on)

    def _queries(self, trails: Sequence[Trail]) -> list[str]:
        """The next query of each question; empty for one whose searches end."""
        raise NotImplementedError

    def search(self, questions: Sequence[Question], k: int) -> list[SearchResult]:
        """The `k` best passages of each question, best first, and the steps.

        Raises:
            IfqaError: `k` is below 1, a passage of the part's ranking is missing, or the part makes other passages of the same
                ids for another query.
        """
        if k < 1:
            raise IfqaError(f"k, the number of passages to retrieve, must be at least 1; found {k}")
        trails = [Trail(question, [], []) for question in questions]
        going, queries = trails, [question.text for question in questions]
        for step in range(self._steps):
            if step:
                queries = self._queries(going)
            asked = [(trail, query) for trail, query in zip(going, queries, strict=True) if query]
            if not asked:
                break
            found = self._part.search([replace(trail.question, text=query) for trail, query in asked])
            for (trail, query), ranking in zip(asked, found, strict=True):
                trail.add(query, ranking)
            going = [trail for trail, _ in asked if trail.steps[-1].passage_ids]
        return [self._fused(trail, k) for trail in trails]

    def usage(self) -> Usage:
        """What its part reports about the language model; empty where the part asks none."""
        return usage_of([self._part])

    def found(self, trail: Trail, count: int) -> list[Passage]:
        """The best passages found so far, `count` at most."""
        return passages_of(self._fused(trail, count), self._fetch)

    def _generated(self, trail: Trail) -> list[Passage] | None:
        found = f"{self._name}: its part made another passage {{}} for the query of a later step"
        return generated_by(trail.rankings, f"{found}; wanted a part that finds its passages, as bm25 does")

    def _fused(self, trail: Trail, k: int) -> SearchResult:
        """What was found so far; the passages that the part generated are those of every step."""
        fused = by_rank(trail.rankings, [1.0] + [self._weight] * (len(trail.rankings) - 1))
        return SearchResult(best(fused, k), self._generated(trail), trail.steps)
