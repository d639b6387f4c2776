"""Exact match, containment and token F1: SQuAD's normalisation of answers, and the best score over
the gold answers.

The official evaluations of IfQA, FiD and DPR use this normalisation; their exact match agrees with
ours. It has no Unicode step: an en dash stays, and a letter with a combining accent differs from
the composed letter. Dropped punctuation leaves no space, so "3.5" equals "35": a known false match,
kept so that scores stay comparable.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from ifqa.errors import FormatError
from ifqa.protocols import Measure

_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII only
_ARTICLES = re.compile(r"\b(a|an|the)\b")


@lru_cache(maxsize=1_024)  # all measures normalise the same few answers
def normalize(text: str) -> str:
    """Lower-case, drop ASCII punctuation, replace the words a, an and the by a space, squeeze white
    space; in this order.

    "The U.S." -> "us", "2018-19" -> "201819", "10,000" -> "10000", "A" -> "". As in SQuAD's
    evaluate-v2.0.py:45-60.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def require_golds(golds: Sequence[str]) -> None:
    """Raise FormatError if there are no gold answers, TypeError for a string, whose letters would
    count as answers.
    """
    if isinstance(golds, str):  # a sequence of strings to the type checker
        raise TypeError("golds must be a sequence of answers, not one string")
    if not golds:
        raise FormatError(
            "found a question without gold answers, wanted at least one to score against; "
            "add answers"
        )


def _best(score: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    """The best score of an answer against any gold answer; `score` gets both normalised."""
    require_golds(golds)
    normal = normalize(answer)
    return max(score(normal, normalize(gold)) for gold in golds)


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1.0 if the normalised answer equals a normalised gold answer, else 0.0.

    Two empty strings are equal.
    """
    return _best(lambda answer, gold: float(answer == gold), answer, golds)


def contains(answer: str, golds: Sequence[str]) -> float:
    """1.0 if the normalised answer contains a normalised gold answer as whole tokens, else 0.0.

    Never below `exact_match`.

    A gold answer that normalises to nothing is contained only in an answer that also normalises to
    nothing.
    """
    return _best(
        lambda answer, gold: float(f" {gold} " in f" {answer} " if gold else not answer),
        answer,
        golds,
    )


def f1(answer: str, golds: Sequence[str]) -> float:
    """Harmonic mean of precision and recall over the normalised tokens, counted with repetition.

    If both answer and gold normalise to nothing, F1 is 1.0; if only one does, 0.0: as in SQuAD v2
    (evaluate-v2.0.py:71-73) and torchmetrics; Atlas and CausalQA give 0.0 for both. Unlike SQuAD
    v2, a gold that normalises to nothing is kept (IfQA has "A").
    """
    return _best(_token_f1, answer, golds)


def _token_f1(answer: str, gold: str) -> float:
    answer_tokens = answer.split()
    gold_tokens = gold.split()
    if not answer_tokens or not gold_tokens:
        return float(answer_tokens == gold_tokens)
    shared = (Counter(answer_tokens) & Counter(gold_tokens)).total()
    return 2 * shared / (len(answer_tokens) + len(gold_tokens))


EM = Measure(
    "EM",
    lambda question, prediction: exact_match(prediction.answer, question.answers),
    headline=True,
)
# Exact match under its name for multiple choice
ACCURACY = Measure("accuracy", EM.score, headline=True)
CONTAINS = Measure(
    "contains", lambda question, prediction: contains(prediction.answer, question.answers)
)
F1 = Measure(
    "F1", lambda question, prediction: f1(prediction.answer, question.answers), in_tables=True
)
