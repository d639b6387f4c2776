"""Retrievers that search several times for a question: what they share. How the next query is found is their own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ifqa.errors import IfqaError
from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, Question, Step
from ifqa.retrieval.fusing import best, by_rank
from ifqa.retrieval.queries import Part, only_part, usage_of
from ifqa.spending import Usage


@dataclass(frozen=True, slots=True)
class Trail:
    """The searches for a question so far: a ranking and a step of each."""

    question: Question
    rankings: list[list[Hit]]
    steps: list[Step]

    def add(self, query: str, ranking: list[Hit]) -> None:
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
        self._taken: dict[str, list[Step]] = {}
        self.trained_on = tuple(self._part.retriever.trained_on)

    def _queries(self, trails: Sequence[Trail]) -> list[str]:
        """The next query of each question; empty for one whose searches end."""
        raise NotImplementedError

    def search(self, questions: Sequence[Question], k: int) -> list[list[Hit]]:
        """The `k` best passages of each question, best first; `steps_of` tells the steps.

        Raises:
            IfqaError: `k` is below 1, a passage of the part's ranking is missing, or the part makes other passages of the same
                ids for another query.
        """
        if k < 1:
            raise IfqaError(f"k, the number of passages to retrieve, must be at least 1; found {k}")
        trails = [Trail(question, [], []) for question in questions]
        going, queries = trails, [question.text for question in questions]
        made: dict[str, Passage] = {}
        for step in range(self._steps):
            if step:
                queries = self._queries(going)
            asked = [(trail, query) for trail, query in zip(going, queries, strict=True) if query]
            if not asked:
                break
            found = self._part.search([replace(trail.question, text=query) for trail, query in asked])
            for (trail, query), ranking in zip(asked, found, strict=True):
                trail.add(query, ranking)
            for passage in self.made_passages([trail.question for trail, _ in asked]) or ():
                if made.setdefault(passage.id, passage) != passage:
                    raise IfqaError(
                        f"{self._name}: its part made another passage {passage.id!r} for the query of a later step; "
                        "wanted a part that finds its passages, as bm25 does"
                    )
            going = [trail for trail, _ in asked if trail.steps[-1].passage_ids]
        self._taken = {trail.question.id: trail.steps for trail in trails}
        return [best(self._fused(trail), k) for trail in trails]

    def steps_of(self, questions: Sequence[Question]) -> list[list[Step]]:
        """The steps of each question of the last search; an experiment or a server asks them at once, so no more are kept."""
        return [self._taken.get(question.id, []) for question in questions]

    def made_passages(self, questions: Sequence[Question]) -> Iterable[Passage] | None:
        """The passages that its part makes; None where the part makes none."""
        return self._part.retriever.made_passages(questions)

    def usage(self) -> Usage:
        """What its part reports about the language model; empty where the part asks none."""
        return usage_of([self._part])

    def found(self, trail: Trail, count: int) -> list[Passage]:
        """The best passages found so far, `count` at most."""
        ids = [hit.passage_id for hit in best(self._fused(trail), count)]
        made = {one.id: one for one in self.made_passages([trail.question]) or ()}
        stored = iter(self._fetch([name for name in ids if name not in made]))
        return [made[name] if name in made else next(stored) for name in ids]

    def _fused(self, trail: Trail) -> dict[str, float]:
        return by_rank(trail.rankings, [1.0] + [self._weight] * (len(trail.rankings) - 1))
