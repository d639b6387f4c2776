"""Several steps of retrieval: the names in the best passages that the question lacks become the next query."""

from collections import Counter
from collections.abc import Callable, Sequence

from ifqa.records import Passage
from ifqa.retrieval.clauses import content_terms
from ifqa.retrieval.queries import Part
from ifqa.retrieval.stepping import Stepping, Trail
from ifqa.settings import NotNegative, Positive, checked


class Steps(Stepping):
    """Searches with its one part, then again with what the passages of the steps before name, and fuses the rankings.

    The next query is the question and the names in its best passages that neither it nor an earlier query has. The steps of a
    question end where there is no such name, where a step finds no passage that was not found before, or after `steps`.
    """

    version = 1

    @checked("setting of retriever 'steps'")
    def __init__(
        self,
        *,
        parts: Sequence[Part],
        passages: Callable[[Sequence[str]], list[Passage]],
        steps: Positive = 2,
        look: Positive = 3,
        names: Positive = 8,
        step_weight: NotNegative = 0.5,
    ) -> None:
        """Keep the part.

        Args:
            parts: a single retriever.
            passages: returns the passages of a list of ids.
            steps: searches for a question, at most.
            look: the best passages whose names are taken.
            names: of a query, at most; those in most of the passages come first.
            step_weight: of each later ranking, in a reciprocal rank fusion in which the first has weight 1.

        Raises:
            IfqaError: there is not exactly one part, or a setting is out of range.
        """
        super().__init__("steps", parts, passages, steps, step_weight)
        self._look, self._names = look, names

    def _queries(self, trails: Sequence[Trail]) -> list[str]:
        return [self._next(trail) for trail in trails]

    def _next(self, trail: Trail) -> str:
        known = " ".join(step.query for step in trail.steps).casefold()
        counted = Counter(name for one in self.found(trail, self._look) for name in content_terms(one.text))
        new = [name for name, _ in counted.most_common() if name.casefold() not in known and not name.isdecimal()]
        return " ".join([trail.question.text, *new[: self._names]]) if new else ""
