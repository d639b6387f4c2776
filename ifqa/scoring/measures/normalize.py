"""What two answers are compared by: SQuAD's normalisation, and the best over the gold answers.

The normalisation is shared by the official IfQA, FiD and DPR evaluations, whose exact match agrees with this one.
It has no Unicode step: an en dash stays, and an accented letter spelt with a combining mark differs from the composed
one. It joins what punctuation held apart, so "3.5" equals "35", a known false match kept for comparable numbers.
"""

import re
import string
from collections.abc import Callable, Sequence
from functools import lru_cache

from ifqa.errors import IfqaError

_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII only
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=1_024)  # each measure asks for that of the same few answers
def normalize(text: str) -> str:
    """Lower-case, drop ASCII punctuation, put a blank for the words a, an and the, squeeze white space; in this order.

    "The U.S." -> "us", "2018-19" -> "201819", "10,000" -> "10000", "A" -> "". Follows SQuAD's evaluate-v2.0.py:45-60.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def best(score: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    """The best score of an answer against one of the gold ones; `score` is given both normalised.

    Raises:
        IfqaError: there is no gold answer.
    """
    if isinstance(golds, str):  # a string is a sequence of strings to the type checker, and would be scored by letter
        raise TypeError("golds must be a sequence of answers, not one string")
    if not golds:
        raise IfqaError("found a question without gold answers, wanted at least one to score against; add its answers")
    normal = normalize(answer)
    return max(score(normal, normalize(gold)) for gold in golds)
