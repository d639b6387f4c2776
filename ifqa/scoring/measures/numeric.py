"""Subsets by kind of answer: numbers and dates, most of which must be computed, and all other
answers.
"""

import re
import string
from collections.abc import Sequence

from ifqa.protocols import Subset

_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "hundreds thousand thousands "
    "million millions billion billions trillion trillions dozen half quarter once twice "
    "thrice first second third "
    "fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth "
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec"
)
_BEFORE_NUMBERS = (  # "early 1990s", "more than 10%", "Rs. 550 billion"
    "a an the early late mid about around approximately roughly circa c ca between in on by "
    "from at over under until "
    "since after before more less than up to least almost nearly only no rs spring summer "
    "autumn fall winter"
)
_NUMBER_WORDS = frozenset(_NUMBERS.split())
_OPENERS = frozenset(_BEFORE_NUMBERS.split())
_MARKS = string.punctuation + "–—−°€£¥"


def is_numeric(golds: Sequence[str]) -> bool:
    """Whether at least half of the gold answers are numbers or dates.

    A gold answer is numeric if its first word, after openers such as "early" or "more than", is a
    number (digits, a number word or a month; "$", "mid-" and the like may precede it), and no later
    word is a capitalised name; numbers, months and words of up to three letters (MHz, BC) are
    allowed. "fourth", "three years", "May", "mid-1930s" and "$6.4 million" are numeric; "K2",
    "World War I", "2018 FIFA World Cup" and "Bob May" are not.

    In IfQA, 31.6% of full-dev and 35.9% of full-train are numeric; the paper annotates 30.4% of its
    answers as numbers or dates. Counting a digit, number word or month anywhere in an answer gives
    35.1% and 39.2%.
    """
    return 2 * sum(map(_reads_as_number, golds)) >= len(golds) > 0


def _reads_as_number(gold: str) -> bool:
    words = [bare for word in gold.split() if (bare := word.strip(_MARKS))]
    while words and words[0].lower() in _OPENERS:
        del words[0]
    if not words or not _is_number(words[0]):
        return False
    return all(_is_number(word) or len(word) <= 3 or word[0].islower() for word in words)


def _is_number(word: str) -> bool:
    lowered = re.sub(r"^(early|mid|late)[-–]", "", word.lower())
    # "7.4-kilometre" is a number, "two-seat" is not: anything may follow digits, but number words
    # must stand alone.
    return lowered[:1].isdigit() or all(
        part in _NUMBER_WORDS for part in re.split(r"[-–/]", lowered)
    )


_ABOUT = "the questions with a numeric answer"
NUMERIC = Subset(
    "numeric", lambda question: is_numeric(question.answers), in_tables=True, about=_ABOUT
)
OTHER = Subset("other", lambda question: not is_numeric(question.answers))
