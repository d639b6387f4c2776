"""Training data: questions, and passages retrieved for each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from ifqa.errors import IfqaError
from ifqa.identities import gold_id
from ifqa.records import Passage, Question
from ifqa.scoring.measures.covers import covers

Gold = Literal["retrieved", "included"]


@dataclass(frozen=True)
class Material:
    """The questions of a training split, and passages retrieved for each.

    Attributes:
        questions: with answers, gold passages, or both; each training skips the questions that lack what it needs.
        rankings: retrieved passages of each question, best first.
        family: "ifqa/full" or "ifqa/few": stored with the weights, since the two families share questions.
        sources: path -> SHA-256 of each file of questions, for the manifest.
        scores: the retriever's score of each passage of `rankings`; only RAG's training needs them.
    """

    questions: Sequence[Question]
    rankings: Sequence[Sequence[Passage]]
    family: str
    sources: dict[str, str] = field(default_factory=dict)
    scores: Sequence[Sequence[float]] = ()

    def require_gold(self) -> None:
        """Raise IfqaError if no question has a gold passage."""
        if not any(question.gold_passages for question in self.questions):
            raise IfqaError(
                f"none of {len(self.questions)} training questions has a gold passage; wanted annotated questions"
            )


def training_passages(question: Question, ranking: Sequence[Passage], most: int, gold: Gold) -> list[Passage]:
    """The passages that a question is trained with: the first `most` of its ranking, with a gold passage if "included"."""
    chosen = list(ranking[:most])
    if gold == "included" and question.gold_passages:
        texts = question.gold_passages
        if not any(covers(passage.text, text) for passage in chosen for text in texts):
            chosen = [*chosen[: most - 1], Passage(gold_id(texts[0]), "", texts[0])]
    return chosen
