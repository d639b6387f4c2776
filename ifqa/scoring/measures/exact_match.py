"""Exact match, with SQuAD's normalisation of answers, and the best score over the gold answers.

The official evaluations of IfQA, FiD and DPR use this normalisation; their exact match agrees with ours. It has no Unicode
step: an en dash stays, and a letter with a combining accent differs from the composed letter. It drops punctuation without a
blank, so "3.5" equals "35": a known false match, kept so that numbers stay comparable.
"""

import re
import string
from collections.abc import Callable, Sequence
from functools import lru_cache

from ifqa.errors import IfqaError
from ifqa.protocols import Measure

_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII only
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=1_024)  # all measures normalise the same few answers
def normalize(text: str) -> str:
    """Lower-case, drop ASCII punctuation, put a blank for the words a, an and the, squeeze white space; in this order.

    "The U.S." -> "us", "2018-19" -> "201819", "10,000" -> "10000", "A" -> "". Follows SQuAD's evaluate-v2.0.py:45-60.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def best(score: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    """The best score of an answer against any gold answer; `score` gets both normalised.

    Raises:
        IfqaError: there is no gold answer.
    """
    require_golds(golds)
    normal = normalize(answer)
    return max(score(normal, normalize(gold)) for gold in golds)


def require_golds(golds: Sequence[str]) -> None:
    """Refuse a question without gold answers, and a string, each letter of which would be one.

    Raises:
        IfqaError: there is no gold answer.
        TypeError: `golds` is a string, which for the type checker is a sequence of strings.
    """
    if isinstance(golds, str):
        raise TypeError("golds must be a sequence of answers, not one string")
    if not golds:
        raise IfqaError("found a question without gold answers, wanted at least one to score against; add its answers")


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1.0 if the answer equals a gold answer after both are normalised (two empty strings are equal), else 0.0.

    Raises:
        IfqaError: there is no gold answer.
    """
    return best(lambda answer, gold: float(answer == gold), answer, golds)


EM = Measure("EM", lambda question, prediction: exact_match(prediction.answer, question.answers), headline=True)
#: Exact match under the name that is usual for multiple choice, whose gold answers are labels.
ACCURACY = Measure(
    "accuracy", lambda question, prediction: exact_match(prediction.answer, question.answers), headline=True
)
