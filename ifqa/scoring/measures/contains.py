"""Containment, which is never called exact match."""

from collections.abc import Sequence

from ifqa.protocols import Measure
from ifqa.scoring.measures.normalize import best


def contains(answer: str, golds: Sequence[str]) -> float:
    """1.0 when a normalised gold stands in the normalised answer as a run of whole tokens, else 0.0. This is not EM.

    Never below `exact_match`; a gold that normalises to nothing stands only in an answer that does too.

    Raises:
        IfqaError: there is no gold answer.
    """
    return best(lambda answer, gold: float(f" {gold} " in f" {answer} " if gold else not answer), answer, golds)


CONTAINS = Measure("contains", lambda question, prediction: contains(prediction.answer, question.answers))
