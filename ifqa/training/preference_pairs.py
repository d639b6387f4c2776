"""Pairs of answers to prefer between: what passage and supposition say, and what is so in the real world, made by rule.

    factual   the question's label "factual" is the answer in the real world; its gold passages stay as they are
    number    a number of the answer is changed, in the answer and in the gold passages; the number as it was is rejected
    entity    the answer's name is replaced by the answer to another question that asks alike (who, where, which ...), likewise
              (Longpre et al. 2021, "Entity-Based Knowledge Conflicts"); the name as it was is rejected

A model that has read the original in its training must so prefer what it is told.
"""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ifqa.records import Question
from ifqa.retrieval.queries import split_question
from ifqa.scoring.measures.exact_match import normalize

_NUMBER = re.compile(r"(?<![\d.,])\d{1,4}(?![\d.,]*\d)")
_NAME = re.compile(r"[A-Z][\w.'’-]*(?: (?:of|the|de|von|van|and)? ?[A-Z][\w.'’-]*){0,4}")
_ASKING = re.compile(r"\b(?:who|whom|whose|where|which|what)\b", re.IGNORECASE)
_FAR = 9  # a changed number differs by at most this much


@dataclass(frozen=True)
class Pair:
    """A question with passages, the answer that they and the supposition give, and one that they do not give.

    Attributes:
        kind: "factual", "number" or "entity".
        passages: the texts to answer from.
    """

    question: Question
    kind: str
    passages: tuple[str, ...]
    chosen: str
    rejected: str


def pairs(questions: Sequence[Question], seed: int) -> list[Pair]:
    """The pair of each question that has one, in their order.

    A question has none if it has no gold passage, if its answer is neither a name nor has a number, or if the answer stands in
    none of its passages or in the question itself.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for one in questions:
        if one.answers and _NAME.fullmatch(one.answers[0]) and _is_proper(one.answers[0], one.gold_passages):
            names[_asked(one)].add(one.answers[0])
    found = (_pair(one, sorted(names[_asked(one)]), random.Random(f"{seed} {one.id}")) for one in questions)
    return [one for one in found if one]


def _pair(question: Question, names: Sequence[str], draw: random.Random) -> Pair | None:
    texts = question.gold_passages
    if not texts or not question.answers:
        return None
    answer, factual = question.answers[0], question.label("factual")
    if factual:
        differs = normalize(factual) not in {normalize(one) for one in question.answers}
        return Pair(question, "factual", texts, answer, factual) if differs else None
    if number := _NUMBER.search(answer):
        old, kind = number[0], "number"
        new = str(_other(int(old), draw))
        chosen = answer[: number.start()] + new + answer[number.end() :]
    elif _NAME.fullmatch(answer):
        old, kind = answer, "entity"
        like = [one for one in names if _may_replace(one, answer, question)]
        if not like:
            return None
        new = chosen = draw.choice(like)
    else:
        return None
    place = re.compile(rf"(?<![\w.,]){re.escape(old)}(?!\w|[.,]\d)")
    if place.search(question.text) or not any(place.search(text) for text in texts):
        return None
    changed = tuple(place.sub(lambda _: new, text) for text in texts)
    return Pair(question, kind, changed, chosen, answer)


def _asked(question: Question) -> str:
    """What a question asks for: "who", "where" or "what"; whom and whose are as who, and which as what."""
    found = [word.lower() for word in _ASKING.findall(split_question(question.text).question)]
    return "" if not found else {"whom": "who", "whose": "who", "which": "what"}.get(found[0], found[0])


def _is_proper(name: str, texts: Sequence[str]) -> bool:
    """Whether a name stands within a sentence of a text, where only proper names have a capital letter."""
    return any(re.search(rf"[a-z,] {re.escape(name)}(?!\w)", text) for text in texts)


def _other(number: int, draw: random.Random) -> int:
    """Another number nearby, not below 0."""
    return draw.choice([one for one in range(max(0, number - _FAR), number + _FAR + 1) if one != number])


def _may_replace(name: str, answer: str, question: Question) -> bool:
    """Whether a name of as many words can stand for an answer: it is none of the question's, and in none of its texts."""
    texts = (question.text, *question.gold_passages)
    other = normalize(name) not in {normalize(one) for one in question.answers}
    return len(name.split()) == len(answer.split()) and other and not any(name in text for text in texts)
