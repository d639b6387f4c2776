"""The answers that a question offers, and the prediction that chooses one of them."""

import math
from collections.abc import Mapping, Sequence

from ifqa.errors import IfqaError
from ifqa.records import Passage, Prediction, Question


def require_choices(questions: Sequence[Question], reader: str) -> None:
    """Refuse questions that offer no answers to choose from.

    Raises:
        IfqaError: a question has no choices.
    """
    if open_one := next((one for one in questions if not one.choices), None):
        raise IfqaError(
            f"question {open_one.id or open_one.text[:60]!r} offers no choices, and reader {reader!r} only chooses; "
            "take a reader of open questions, such as 'extractive'"
        )


def plain(text: str) -> str:
    """A choice as it is compared: in lower case, with single blanks."""
    return " ".join(text.casefold().split())


def chosen(question: Question, scores: Sequence[float], passages: Sequence[Passage] = ()) -> Prediction:
    """The choice with the highest score, the first of equals.

    Args:
        question: with choices.
        scores: a logit for each choice; -inf for a choice that cannot be.
        passages: what was read, for the evidence.

    Returns:
        A prediction whose `score` is the logarithm of the softmax over the choices.
    """
    best = max(range(len(scores)), key=lambda n: scores[n])
    total = sum(math.exp(score - scores[best]) for score in scores)
    ids = tuple(passage.id for passage in passages)
    return Prediction(question.id, question.choices[best], passage_ids=ids, score=-math.log(total))


def by_class(question: Question, scores: Mapping[str, float]) -> Prediction:
    """The offered choice whose class has the highest score; `scores` are by class, as `plain` writes it.

    A question of whose choices none is a class is a failed prediction.
    """
    own = [scores.get(plain(choice), -math.inf) for choice in question.choices]
    if max(own) == -math.inf:
        return Prediction(question.id, "", error=f"the reader learnt {', '.join(scores)}, and none of these is offered")
    return chosen(question, own)
