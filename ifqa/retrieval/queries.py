"""What a retriever is asked: the question, one of its clauses, or the question with its names and numbers repeated.

A counterfactual question says what is not so; the passage to be found says what is. `ifqa.retrieval.clauses` parts the two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ifqa.errors import unknown
from ifqa.protocols import Retriever
from ifqa.records import Hit, Question, Usage
from ifqa.retrieval.clauses import content_terms, split_question

VERSION = 1  # of what the clauses and names of a question are; raised when that changes


def _presupposition(text: str) -> str:
    return split_question(text).supposed or text


def _main_clause(text: str) -> str:
    return split_question(text).question


def _names(text: str) -> str:
    return " ".join([text, *content_terms(text)])


QUERIES: dict[str, Callable[[str], str]] = {
    "question": str,
    "presupposition": _presupposition,  # "Ann had not left"; the whole question where it has none
    "main": _main_clause,  # "who would lead?"
    "names": _names,  # the question, and once more its names, titles, dates and numbers: a weight of 2 for BM25
}


def rewrite(questions: Sequence[Question], query: str) -> list[Question]:
    """The questions with the text that a retriever is asked in place of their own; ids and annotation stay.

    Raises:
        IfqaError: there is no such way to ask.
    """
    if not isinstance(query, str) or query not in QUERIES:
        raise unknown("query", query, QUERIES)
    return [replace(question, text=QUERIES[query](question.text)) for question in questions]


@dataclass(frozen=True)
class Part:
    """A retriever within another: how deep it is asked, with which words, and how much it counts."""

    retriever: Retriever
    k: int
    weight: float = 1.0
    query: str = "question"

    def search(self, questions: Sequence[Question]) -> list[list[Hit]]:
        """Its rankings of the questions."""
        return self.retriever.search(rewrite(questions, self.query), self.k)


def usage_of(parts: Sequence[Part]) -> Usage:
    """What those parts tell that ask a language model, all of them the same: of each count the highest, and what it spent."""
    told: dict[str, object] = {}
    for part in parts:
        for name, value in part.retriever.usage().items():
            known = told.get(name, 0)
            told[name] = max(known, value) if isinstance(value, int) and isinstance(known, int) else value
    return cast(Usage, told)
