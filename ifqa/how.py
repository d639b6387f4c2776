"""How a reader got to an answer: the sentence it stands in, or what it was computed from."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Place = tuple[int, int]  # start and end, exclusive, in characters
_SIGNS = {"plus": "+", "minus": "-", "times": "x"}


@dataclass(frozen=True, slots=True)
class Term:
    """A number, date or list that an answer was computed from.

    Attributes:
        text: as it stands there; empty for the step of one that a question leaves unsaid.
        value: in digits or as a date.
        source: whether it stands in the passage or in the question.
        start, end: where, in characters, `end` exclusive.
    """

    text: str
    value: str
    source: Literal["passage", "question"]
    start: int
    end: int

    def __str__(self) -> str:
        if not self.text:
            return f"{self.value} ({self.source}, not said)"
        return (
            f"{self.value} ({self.source})"
            if self.text == self.value
            else f'{self.value} ({self.source}: "{self.text}")'
        )


@dataclass(frozen=True, slots=True)
class Calculation:
    """How an answer was computed.

    Attributes:
        result: the answer.
        rule: what stands between the terms, in words and in their order: "plus", "minus, plus"; empty if a list's items
            were counted, which are then the only term.
        terms: what it was computed from.
    """

    result: str
    rule: str
    terms: tuple[Term, ...]

    def __post_init__(self) -> None:
        if not self.terms or len(self._signs) != len(self.terms) - 1:
            raise ValueError(
                f"rule {self.rule!r} does not fit {len(self.terms)} terms; wanted {', '.join(_SIGNS)} between them"
            )

    @property
    def _signs(self) -> list[str]:
        return [_SIGNS[word] for word in self.rule.split(", ") if word in _SIGNS]

    def __str__(self) -> str:
        more = (f" {sign} {term}" for sign, term in zip(self._signs, self.terms[1:], strict=True))
        return f"{self.result} = {self.terms[0]}{''.join(more)}"


@dataclass(frozen=True, slots=True)
class How:
    """Where an answer comes from.

    Attributes:
        passage_id: the passage.
        sentence: start and end, in characters, of the sentence in the passage's text.
        span: start and end of the answer, or of the first number that it was computed from.
        calculation: how it was computed; None if it stands in the passage.
    """

    passage_id: str
    sentence: Place
    span: Place
    calculation: Calculation | None = None

    def pieces(self, text: str, sentence: bool = False) -> list[str]:
        """The passage's text, or the sentence alone, in pieces; every second piece is marked.

        Marked is the answer, or each term that it was computed from.
        """
        terms = self.calculation.terms if self.calculation else ()
        places = {(one.start, one.end) for one in terms if one.source == "passage"} or {self.span}
        left, right = self.sentence if sentence else (0, len(text))
        edges = [
            left,
            *(edge for place in sorted(places) if left <= place[0] and place[1] <= right for edge in place),
            right,
        ]
        return [text[start:end] for start, end in pairwise(edges)]


_LONGEST = 500  # characters of an answer that is marked in a passage


def parted(text: str, answer: str) -> list[str]:
    """The text split at the answer where it stands as whole words, in any case; every second piece is the answer.

    An answer of more than 500 characters is not searched for: the time grows with both lengths.
    """
    if not answer.strip() or len(answer) > _LONGEST:
        return [text]
    return re.split(rf"(?i)(?<!\w)({re.escape(answer)})(?!\w)", text)
