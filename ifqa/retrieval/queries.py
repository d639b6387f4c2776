"""The query of a retriever: the question, a part of it, or the question with its names and numbers repeated.

A counterfactual question states what is not true, and the passage to be found states what is. `ifqa.retrieval.clauses`
splits the question into its clauses. A causal question states an effect or a cause, and `ifqa.retrieval.causal_queries` takes
its asking words away.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ifqa.errors import unknown
from ifqa.records import Question
from ifqa.retrieval.causal_queries import asked, with_connectives
from ifqa.retrieval.clauses import content_terms, split_question

VERSION = 1  # raised when a question's clauses, names or causal form come out differently

QUERIES: dict[str, Callable[[str], str]] = {
    "question": str,
    # "Ann had not left"; the whole question where it has no if-clause
    "presupposition": lambda text: split_question(text).supposed or text,
    "main": lambda text: split_question(text).question,  # "who would lead?"
    # the question, then its names, titles, dates and numbers again, which doubles their weight in BM25
    "names": lambda text: " ".join([text, *content_terms(text)]),
    "causal": lambda text: (
        asked(text).stated
    ),  # "Rome fall" of "Why did Rome fall?"; a question of no causal form as it is
    "causal-connectives": with_connectives,  # "Rome fall because due to caused by led to"
    "causal-names": lambda text: " ".join([asked(text).stated, *content_terms(text)]),  # "Rome fall Rome"
}


def rewrite(questions: Sequence[Question], query: str) -> list[Question]:
    """The questions with the query as their text; ids and annotation stay.

    Raises:
        IfqaError: `query` is none of `QUERIES`.
    """
    if not isinstance(query, str) or query not in QUERIES:
        raise unknown("query", query, QUERIES)
    return [replace(question, text=QUERIES[query](question.text)) for question in questions]
