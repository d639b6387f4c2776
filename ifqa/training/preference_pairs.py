"""Pairs of answers to prefer between: what passage and supposition say, and what is so in the real world, made by rule.

A number of the answer is changed, in the answer and in the gold passages; or the answer's name is replaced by the answer to
another question that asks alike (who, where, which ...), likewise (Longpre et al. 2021, "Entity-Based Knowledge Conflicts"). The
answer as it was is rejected: a model that has read the original in its training must prefer what it is told.
"""

import random
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ifqa.records import Question
from ifqa.retrieval.queries import split_question
from ifqa.scoring.measures.exact_match import normalize

_NUMBER = re.compile(r"(?<![\d.,])\d{1,4}(?![\d.,]*\d)")
_NAME = re.compile(r"[A-Z][\w.'’-]*(?: (?:of|the|de|von|van|and)? ?[A-Z][\w.'’-]*){0,4}")
_QUESTION_WORD = re.compile(r"\b(?:who|whom|whose|where|which|what)\b", re.IGNORECASE)
_FAR = 9  # a changed number differs by at most this much


class PreferencePair(NamedTuple):
    """A question with the texts to answer from, the answer that they and the supposition give, and one that they do not give."""

    question: Question
    passages: tuple[str, ...]
    chosen: str
    rejected: str


def make_preference_pairs(questions: Sequence[Question], seed: int) -> list[PreferencePair]:
    """The pair of each question that has one, in their order.

    A question has none if it has no gold passage, if its answer is neither a name nor has a number, or if the answer stands in
    none of its passages or in the question itself.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        if question.answers and _NAME.fullmatch(name := question.answers[0]):
            within = re.compile(rf"[a-z,] {re.escape(name)}(?!\w)")  # only proper names have a capital there
            if any(within.search(text) for text in question.gold_passages):
                names[_question_word(question)].add(name)
    every = [
        _make_pair(each, sorted(names[_question_word(each)]), random.Random(f"{seed} {each.id}")) for each in questions
    ]
    return [pair for pair in every if pair]


def _make_pair(question: Question, names: Sequence[str], draw: random.Random) -> PreferencePair | None:
    texts = question.gold_passages
    if not texts or not question.answers:
        return None
    answer, right = question.answers[0], set(map(normalize, question.answers))
    if number := _NUMBER.search(answer):
        old = number[0]
        new = str(draw.choice([n for n in range(max(0, int(old) - _FAR), int(old) + _FAR + 1) if n != int(old)]))
        chosen = answer[: number.start()] + new + answer[number.end() :]
    elif _NAME.fullmatch(answer):
        old, words, told = answer, len(answer.split()), (question.text, *texts)
        alike = [name for name in names if len(name.split()) == words and normalize(name) not in right]
        alike = [name for name in alike if not any(name in text for text in told)]
        if not alike:
            return None
        new = chosen = draw.choice(alike)
    else:
        return None
    place = re.compile(rf"(?<![\w.,]){re.escape(old)}(?!\w|[.,]\d)")
    if place.search(question.text) or not any(place.search(text) for text in texts):
        return None
    return PreferencePair(question, tuple(place.sub(lambda _: new, text) for text in texts), chosen, answer)


def _question_word(question: Question) -> str:
    """What a question asks for: "who", "where" or "what"; whom and whose are as who, and which as what."""
    word = _QUESTION_WORD.search(split_question(question.text).question)
    kind = word[0].lower() if word else ""
    return {"whom": "who", "whose": "who", "which": "what"}.get(kind, kind)
