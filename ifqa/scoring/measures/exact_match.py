"""Exact match."""

from collections.abc import Sequence

from ifqa.protocols import Measure
from ifqa.scoring.measures.normalize import best


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1.0 if the answer equals a gold answer after both are normalised (two empty strings are equal), else 0.0.

    Raises:
        IfqaError: there is no gold answer.
    """
    return best(lambda answer, gold: float(answer == gold), answer, golds)


EM = Measure("EM", lambda question, prediction: exact_match(prediction.answer, question.answers), headline=True)
