"""Folds of training questions, for cross-validation: no two folds share a question or a gold passage."""

import random
from collections import defaultdict
from collections.abc import Sequence

from ifqa.records import Question
from ifqa.scoring.measures.normalize import normalize


def folds(questions: Sequence[Question], count: int, seed: int) -> list[int]:
    """The fold of each question; equal questions, and questions linked by shared gold passages, get the same fold."""
    group = list(range(len(questions)))  # for each question, an earlier question of its group, or itself

    def first(number: int) -> int:
        while group[number] != number:
            number = group[number]
        return number

    seen: dict[str, int] = {}
    for number, question in enumerate(questions):
        for text in map(normalize, (question.text, *question.gold_passages)):
            group[first(number)] = first(seen.setdefault(text, number))
    members: dict[int, list[int]] = defaultdict(list)
    for number in range(len(questions)):
        members[first(number)].append(number)
    groups = list(members.values())
    random.Random(seed).shuffle(groups)
    fold, sizes = [0] * len(questions), [0] * count
    for several in sorted(groups, key=len, reverse=True):  # the largest first, each into the emptiest fold
        emptiest = sizes.index(min(sizes))
        sizes[emptiest] += len(several)
        for number in several:
            fold[number] = emptiest
    return fold
