"""Accuracy for multiple-choice questions, whose gold answers are labels."""

from collections.abc import Sequence

from ifqa.protocols import Measure
from ifqa.scoring.measures.normalize import best


def accuracy(answer: str, golds: Sequence[str]) -> float:
    """1.0 if the answer equals the gold label after both are normalised, else 0.0; an answer that is no choice is wrong.

    The same as exact match, under the name that is usual for such questions.

    Raises:
        IfqaError: there is no gold label.
    """
    return best(lambda answer, gold: float(answer == gold), answer, golds)


ACCURACY = Measure(
    "accuracy", lambda question, prediction: accuracy(prediction.answer, question.answers), headline=True
)
