"""The query of a retriever: the question, a part of it, or the question with its names and numbers repeated.

A counterfactual question states what is not true, and the passage to be found states what is. `ifqa.retrieval.clauses`
splits the question into its clauses. A causal question states an effect or a cause, and `ifqa.retrieval.causal_forms` takes
its asking words away.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ifqa.errors import IfqaError, unknown
from ifqa.protocols import Retriever
from ifqa.records import Hit, Passage, Question, SearchResult
from ifqa.retrieval.causal_forms import asked, with_connectives
from ifqa.retrieval.clauses import content_terms, split_question
from ifqa.spending import Usage

VERSION = 1  # raised when a question's clauses, names or causal form come out differently


def _presupposition(text: str) -> str:
    return split_question(text).supposed or text


def _main_clause(text: str) -> str:
    return split_question(text).question


def _names(text: str) -> str:
    return " ".join([text, *content_terms(text)])


def _causal(text: str) -> str:
    return asked(text).stated


def _causal_names(text: str) -> str:
    return " ".join([asked(text).stated, *content_terms(text)])


QUERIES: dict[str, Callable[[str], str]] = {
    "question": str,
    "presupposition": _presupposition,  # "Ann had not left"; the whole question where it has no if-clause
    "main": _main_clause,  # "who would lead?"
    "names": _names,  # the question, then its names, titles, dates and numbers again, which doubles their weight in BM25
    "causal": _causal,  # "Rome fall" of "Why did Rome fall?"; a question of no causal form as it is
    "causal-connectives": with_connectives,  # "Rome fall because due to caused by led to"
    "causal-names": _causal_names,  # "Rome fall Rome"
}


def rewrite(questions: Sequence[Question], query: str) -> list[Question]:
    """The questions with the query as their text; ids and annotation stay.

    Raises:
        IfqaError: `query` is none of `QUERIES`.
    """
    if not isinstance(query, str) or query not in QUERIES:
        raise unknown("query", query, QUERIES)
    return [replace(question, text=QUERIES[query](question.text)) for question in questions]


@dataclass(frozen=True)
class Part:
    """A retriever within another retriever, with its depth, its weight and its query."""

    retriever: Retriever
    k: int
    weight: float = 1.0
    query: str = "question"

    def search(self, questions: Sequence[Question]) -> list[SearchResult]:
        """The retriever's rankings of the questions."""
        return self.retriever.search(rewrite(questions, self.query), self.k)


def only_part(name: str, parts: "Sequence[Part]") -> "Part":
    """The one part of a retriever that reorders another.

    Raises:
        IfqaError: there is not exactly one.
    """
    if len(parts) != 1:
        raise IfqaError(
            f'{name} wants one [[retriever.parts]], found {len(parts)}; combine several with "fusion" first'
        )
    return parts[0]


def in_order(passages: Sequence[Passage], k: int) -> SearchResult:
    """The first `k` of these passages, scored 1, 1/2, 1/3, …; all of them are brought along."""
    return SearchResult([Hit(passage.id, 1 / rank) for rank, passage in enumerate(passages[:k], start=1)], passages)


def passages_of(ranking: SearchResult, fetch: Callable[[Sequence[str]], list[Passage]]) -> list[Passage]:
    """The passage of each hit: one that the retriever generated, or else the corpus's, which `fetch` returns."""
    generated = {passage.id: passage for passage in ranking.generated or ()}
    stored = iter(fetch([hit.passage_id for hit in ranking if hit.passage_id not in generated]))
    return [generated.get(hit.passage_id) or next(stored) for hit in ranking]


def usage_of(parts: Sequence[Part]) -> Usage:
    """The usage of the language model that the parts share, `merged`."""
    return merged(part.retriever.usage() for part in parts)


def merged(usages: Iterable[Usage]) -> Usage:
    """The usage of a language model that several share: the maximum of each count, the cost as the last of them has it."""
    reported: dict[str, object] = {}
    for usage in usages:
        for name, value in usage.items():
            known = reported.get(name, 0)
            reported[name] = max(known, value) if isinstance(value, int) and isinstance(known, int) else value
    return cast(Usage, reported)
