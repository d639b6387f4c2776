"""Makes preference pairs by rule: an answer that follows from a passage is preferred to the real world's.

A rule changes a number in the answer and its gold passages, or replaces a name by the answer to another question with the same
question word (Longpre et al. 2021, "Entity-Based Knowledge Conflicts"). The original answer is rejected: the model learns
to prefer the passage over its memory.
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
_FAR = 9  # a changed number differs by at most this


class PreferencePair(NamedTuple):
    """A question, changed texts to answer it from, their answer, and the original answer."""

    question: Question
    passages: tuple[str, ...]
    chosen: str
    rejected: str


def make_preference_pairs(questions: Sequence[Question], seed: int) -> list[PreferencePair]:
    """The pairs, in the order of their questions.

    A question gets none if its answer is not a name and has no number, if the answer is absent from the gold passages or present
    in the question, or if no other name fits.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for question in questions:
        if question.answers and _NAME.fullmatch(name := question.answers[0]):
            within = re.compile(rf"[a-z,] {re.escape(name)}(?!\w)")  # where only proper names are capitalised
            if any(within.search(text) for text in question.gold_passages):
                names[_question_word(question)].add(name)
    alike = [(question, sorted(names[_question_word(question)])) for question in questions]
    pairs = [_make_pair(question, others, random.Random(f"{seed} {question.id}")) for question, others in alike]
    return [pair for pair in pairs if pair]


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
        old, words = answer, len(answer.split())
        alike = [name for name in names if len(name.split()) == words and normalize(name) not in right]
        alike = [name for name in alike if not any(name in text for text in (question.text, *texts))]
        if not alike:
            return None
        new = chosen = draw.choice(alike)
    else:
        return None
    pattern = re.compile(rf"(?<![\w.,]){re.escape(old)}(?!\w|[.,]\d)")
    if pattern.search(question.text) or not any(pattern.search(text) for text in texts):
        return None
    return PreferencePair(question, tuple(pattern.sub(lambda _: new, text) for text in texts), chosen, answer)


def _question_word(question: Question) -> str:
    """The question word; "who" for whom and whose, "what" for which."""
    word = _QUESTION_WORD.search(split_question(question.text).question)
    kind = word[0].lower() if word else ""
    return {"whom": "who", "whose": "who", "which": "what"}.get(kind, kind)
