"""Numbers in text, and the answers that one step of arithmetic makes of a passage's number and a question's.

"If Messi had scored two fewer goals, how many ...?" is answered by no passage: the passage says 9, the question says two.
"""

import re
from dataclasses import dataclass

_UNITS = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
          "eighteen nineteen twenty").split()  # fmt: skip
_ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
_TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}
_VALUES: dict[str, float] = {word: value for value, word in enumerate(_UNITS)} | _TENS
_VALUES |= {word: value for value, word in enumerate(_ORDINALS, start=1)}
_VALUES |= {"single": 1, "another": 1, "once": 1, "decade": 10, "dozen": 12, "hundred": 100, "century": 100}
_FACTORS: dict[str, float] = {"twice": 2, "double": 2, "doubled": 2, "doubling": 2, "thrice": 3, "triple": 3, "tripled": 3,
                              "quadruple": 4, "quadrupled": 4, "half": 0.5, "halved": 0.5, "halving": 0.5}  # fmt: skip
#: Small number words and their digits, which IfQA's answers use alike.
DIGITS = {word: str(value) for value, word in enumerate(_UNITS)}
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|[A-Za-z]+(?:-[a-z]+)?")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text: where it stands (characters from `start` to before `end`), its value, whether it multiplies."""

    start: int
    end: int
    value: float
    factor: bool = False


#: The step that a question does not spell out: "had not won the 2007 title" is one title fewer.
ONE = Number(0, 0, 1.0)


def find_numbers(text: str, factors: bool = False) -> list[Number]:
    """The numbers of a text in digits, words and ordinals, in order; with `factors` also words such as "twice"."""
    found = []
    for match in _NUMBER.finditer(text):
        word = match.group().lower()
        first, _, second = word.partition("-")
        if word[0].isdigit():
            found.append(Number(match.start(), match.end(), float(word.replace(",", ""))))
        elif word in _VALUES:
            found.append(Number(match.start(), match.end(), float(_VALUES[word])))
        elif first in _VALUES and second in _VALUES and 20 <= _VALUES[first] < 100:
            found.append(Number(match.start(), match.end(), float(_VALUES[first] + _VALUES[second])))
        elif second and first in _VALUES:
            found.append(Number(match.start(), match.start() + len(first), float(_VALUES[first])))
        elif factors and word in _FACTORS:
            found.append(Number(match.start(), match.end(), _FACTORS[word], factor=True))
    return found


def compute(passage: Number, question: Number, question_text: str) -> list[str]:
    """The answers made of two numbers: sum and difference, or the product alone where the question's number is a factor."""
    if question.factor:
        return [_format(passage.value * question.value, question_text)]
    return [_format(value, question_text) for value in (passage.value + question.value, passage.value - question.value)]


def _format(value: float, question: str) -> str:
    """A number as IfQA's answers write it: a decade or century where the question asks for one."""
    value = round(abs(value), 6)
    asked = re.search(r"\b(?:which|what) (decade|century)", question.lower())
    if asked and 1000 <= value < 2100:
        if asked[1] == "decade":
            return f"{int(value) // 10 * 10}s"
        century = (int(value) - 1) // 100 + 1
        return f"{century}" + ("st" if century == 21 else "th")
    if value == int(value):
        return f"{int(value):,}" if value >= 10000 else str(int(value))
    return f"{value:g}" if value < 1e5 else str(value)
