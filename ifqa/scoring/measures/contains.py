"""Containment of a gold answer in the answer; not to be confused with exact match."""

from collections.abc import Sequence

from ifqa.protocols import Measure
from ifqa.scoring.measures.exact_match import best


def contains(answer: str, golds: Sequence[str]) -> float:
    """1.0 if the normalised answer contains a normalised gold answer as whole tokens, else 0.0.

    Never below `exact_match`. A gold answer that normalises to nothing is contained only in an answer that does so too.

    Raises:
        IfqaError: there is no gold answer.
    """
    return best(lambda answer, gold: float(f" {gold} " in f" {answer} " if gold else not answer), answer, golds)


CONTAINS = Measure("contains", lambda question, prediction: contains(prediction.answer, question.answers))
