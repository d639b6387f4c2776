"""Several steps of retrieval: the names in the best passages that the question lacks become the next query."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from ifqa.errors import IfqaError
from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, Question, Step
from ifqa.retrieval.clauses import content_terms
from ifqa.retrieval.fusing import best, by_rank
from ifqa.retrieval.queries import Part, usage_of
from ifqa.settings import NotNegative, Positive, checked
from ifqa.spending import Usage


class Steps(Retriever):
    """Searches with its one part, then again with what the passages of the steps before name, and fuses the rankings.

    The next query is the question and the names in its best passages that neither it nor an earlier query has. The steps of a
    question end where there is no such name, where a step finds no passage that was not found before, or after `steps`.
    """

    version = 1
    default_parts: ClassVar[list[dict[str, str]]] = [{"name": "bm25"}]

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
        if len(parts) != 1:
            raise IfqaError(
                f'steps wants one [[retriever.parts]], found {len(parts)}; combine several with "fusion" first'
            )
        self._part, self._fetch = parts[0], passages
        self._steps, self._look, self._names, self._weight = steps, look, names, step_weight
        self._taken: dict[str, list[Step]] = {}
        self.trained_on = tuple(parts[0].retriever.trained_on)

    def search(self, questions: Sequence[Question], k: int) -> list[list[Hit]]:
        """The `k` best passages of each question, best first; `steps_of` tells the steps.

        Raises:
            IfqaError: `k` is below 1, or a passage of the part's ranking is missing.
        """
        if k < 1:
            raise IfqaError(f"k, the number of passages to retrieve, must be at least 1; found {k}")
        rankings = [[ranking] for ranking in self._part.search(questions)]
        taken = [[_step(question.text, own)] for question, own in zip(questions, rankings, strict=True)]
        going = list(range(len(questions)))
        for _ in range(self._steps - 1):
            queries = {place: self._next(questions[place], rankings[place], taken[place]) for place in going}
            going = [place for place, query in queries.items() if query]
            if not going:
                break
            found = self._part.search([replace(questions[place], text=queries[place]) for place in going])
            for place, ranking in zip(going, found, strict=True):
                rankings[place].append(ranking)
                taken[place].append(_step(queries[place], rankings[place]))
            going = [place for place in going if taken[place][-1].passage_ids]
        self._taken |= {question.id: own for question, own in zip(questions, taken, strict=True)}
        return [best(self._fused(own), k) for own in rankings]

    def steps_of(self, questions: Sequence[Question]) -> list[list[Step]]:
        """The steps of each question that was searched."""
        return [self._taken.get(question.id, []) for question in questions]

    def made_passages(self, questions: Sequence[Question]) -> Iterable[Passage] | None:
        """The passages that its part makes; None where the part makes none."""
        return self._part.retriever.made_passages(questions)

    def usage(self) -> Usage:
        """What its part reports about the language model; empty where the part asks none."""
        return usage_of([self._part])

    def _fused(self, rankings: Sequence[Sequence[Hit]]) -> dict[str, float]:
        return by_rank(rankings, [1.0] + [self._weight] * (len(rankings) - 1))

    def _next(self, question: Question, rankings: Sequence[Sequence[Hit]], taken: Sequence[Step]) -> str:
        """The next query of a question; empty if its best passages name nothing new."""
        top = [hit.passage_id for hit in best(self._fused(rankings), self._look)]
        known = " ".join(step.query for step in taken).casefold()
        counted = Counter(name for text in self._texts(question, top) for name in content_terms(text))
        new = [name for name, _ in counted.most_common() if name.casefold() not in known and not name.isdecimal()]
        return " ".join([question.text, *new[: self._names]]) if new else ""

    def _texts(self, question: Question, ids: Sequence[str]) -> Iterator[str]:
        made = {one.id: one for one in self.made_passages([question]) or ()}
        stored = iter(self._fetch([name for name in ids if name not in made]))
        yield from (made[name].text if name in made else next(stored).text for name in ids)


def _step(query: str, rankings: Sequence[Sequence[Hit]]) -> Step:
    """The last step of several rankings: its passages are those of the last ranking that no earlier one has."""
    before = {hit.passage_id for ranking in rankings[:-1] for hit in ranking}
    return Step(query, tuple(hit.passage_id for hit in rankings[-1] if hit.passage_id not in before))
