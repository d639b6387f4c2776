"""Training data: questions, and passages retrieved for each."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ifqa.errors import IfqaError
from ifqa.records import Passage, Question


@dataclass(frozen=True)
class Material:
    """The questions of a training split, and passages retrieved for each.

    Attributes:
        questions: with answers, gold passages, or both; each training skips the questions that lack what it needs.
        rankings: retrieved passages of each question, best first.
        family: "ifqa/full" or "ifqa/few": stored with the weights, since the two families share questions.
        sources: path -> SHA-256 of each file of questions, for the manifest.
    """

    questions: Sequence[Question]
    rankings: Sequence[Sequence[Passage]]
    family: str
    sources: dict[str, str] = field(default_factory=dict)

    def require_gold(self) -> None:
        """Raise IfqaError if no question has a gold passage."""
        if not any(question.gold_passages for question in self.questions):
            raise IfqaError(
                f"none of {len(self.questions)} training questions has a gold passage; wanted annotated questions"
            )
