"""What a model is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ifqa.records import Passage, Question


@dataclass(frozen=True)
class Material:
    """A training split's questions, and passages retrieved for each.

    Attributes:
        questions: with answers, gold passages, or both, as the training wants them; it leaves out those without.
        rankings: passages of each question, best first.
        family: "ifqa/full" or "ifqa/few": stamped into the weights, since the families share questions.
        sources: name -> SHA-256 of the files the questions came from, for the manifest.
    """

    questions: Sequence[Question]
    rankings: Sequence[Sequence[Passage]]
    family: str
    sources: dict[str, str] = field(default_factory=dict)
