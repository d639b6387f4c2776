"""Answer scores of one question: exact match, token F1, containment; all 0 to 1, the best over the gold answers.

Normalisation is SQuAD's, shared by the official IfQA, FiD and DPR evaluations, whose exact match agrees with this one.
It has no Unicode step: an en dash stays, and an accented letter spelt with a combining mark differs from the composed
one. It joins what punctuation held apart, so "3.5" equals "35", a known false match kept for comparable numbers.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from ifqa.errors import IfqaError

_PUNCTUATION = str.maketrans("", "", string.punctuation)  # ASCII only
_ARTICLES = re.compile(r"\b(a|an|the)\b")

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands "
    "million millions billion billions trillion trillions dozen half quarter once twice thrice first second third "
    "fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth "
    "seventeenth eighteenth nineteenth twentieth "
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec"
)
_BEFORE_NUMBERS = (  # "early 1990s", "more than 10%", "Rs. 550 billion"
    "a an the early late mid about around approximately roughly circa c ca between in on by from at over under until "
    "since after before more less than up to least almost nearly only no rs spring summer autumn fall winter"
)
_NUMBER_WORDS = frozenset(_NUMBERS.split())
_OPENERS = frozenset(_BEFORE_NUMBERS.split())
_MARKS = string.punctuation + "–—−°€£¥"


def normalize(text: str) -> str:
    """Lower-case, drop ASCII punctuation, put a blank for the words a, an and the, squeeze white space; in this order.

    "The U.S." -> "us", "2018-19" -> "201819", "10,000" -> "10000", "A" -> "". Follows SQuAD's evaluate-v2.0.py:45-60.
    """
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, golds: Sequence[str]) -> float:
    """1.0 when the answer equals a gold answer once both are normalised (two empty strings are equal), else 0.0.

    Raises:
        IfqaError: there is no gold answer.
    """
    return _best(lambda answer, gold: float(answer == gold), answer, golds)


def f1(answer: str, golds: Sequence[str]) -> float:
    """Harmonic mean of precision and recall over the normalised tokens, counted with repetition; 0..1.

    When answer or gold normalises to nothing, F1 is 1.0 if both do and 0.0 otherwise, as in SQuAD v2
    (evaluate-v2.0.py:71-73) and torchmetrics; Atlas and CausalQA give 0.0 there. Unlike SQuAD v2, a gold that
    normalises to nothing (IfQA has the answer "A") is kept.

    Raises:
        IfqaError: there is no gold answer.
    """
    return _best(_token_f1, answer, golds)


def contains(answer: str, golds: Sequence[str]) -> float:
    """1.0 when a normalised gold stands in the normalised answer as a run of whole tokens, else 0.0. This is not EM.

    Never below `exact_match`; a gold that normalises to nothing stands only in an answer that does too.

    Raises:
        IfqaError: there is no gold answer.
    """
    return _best(lambda answer, gold: float(f" {gold} " in f" {answer} " if gold else not answer), answer, golds)


def is_numeric(golds: Sequence[str]) -> bool:
    """Whether the question asks for a number or a date: at least half of its gold answers read as one.

    A gold does when its first word, past openers such as "early" or "more than", is a number (digits, a number word, a
    month; "$", "mid-" and the like before it), and no later word has the capital of a name; numbers, months and
    capitals of up to three letters (MHz, BC) pass. So "fourth", "twenty-one", "three years", "May", "mid-1930s" and
    "$6.4 million" are numeric; "K2", "World War I", "2018 FIFA World Cup" and "Bob May" are not.

    Measured share of IfQA: 31.6% of full-dev, 35.9% of full-train; the paper annotates 30.4% of its answers as numbers
    or dates. Counting a digit, number word or month anywhere in an answer gives 35.1% and 39.2%.
    """
    return 2 * sum(map(_reads_as_number, golds)) >= len(golds) > 0


def _best(score: Callable[[str, str], float], answer: str, golds: Sequence[str]) -> float:
    if isinstance(golds, str):  # a string is a sequence of strings to the type checker, and would be scored by letter
        raise TypeError("golds must be a sequence of answers, not one string")
    if not golds:
        raise IfqaError("found a question without gold answers, wanted at least one to score against; add its answers")
    normal = normalize(answer)
    return max(score(normal, normalize(gold)) for gold in golds)


def _token_f1(answer: str, gold: str) -> float:
    answer_tokens, gold_tokens = answer.split(), gold.split()
    if not answer_tokens or not gold_tokens:
        return float(answer_tokens == gold_tokens)
    shared = (Counter(answer_tokens) & Counter(gold_tokens)).total()
    return 2 * shared / (len(answer_tokens) + len(gold_tokens))


def _reads_as_number(gold: str) -> bool:
    words = [bare for word in gold.split() if (bare := word.strip(_MARKS))]
    while words and words[0].lower() in _OPENERS:
        del words[0]
    return bool(words) and _is_number(words[0]) and all(_is_number(w) or len(w) <= 3 or w[0].islower() for w in words)


def _is_number(word: str) -> bool:
    lowered = re.sub(r"^(early|mid|late)[-–]", "", word.lower())
    # "7.4-kilometre" is a number, "two-seat" is not: after digits anything may follow, number words stand alone.
    return lowered[:1].isdigit() or all(part in _NUMBER_WORDS for part in re.split(r"[-–/]", lowered))
