"""Random samples of a split's questions, the same on every machine."""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import partial
from hashlib import sha256

from ifqa.records import Question, draw_key


def draw_sample(questions: Sequence[Question], count: int, seed: int) -> list[Question]:
    """A simple random sample of `count` questions, in the questions' order; all if there are fewer.

    With the same seed, a smaller sample is part of a larger one.
    """
    drawn = sorted(questions, key=partial(draw_key, seed))[:count]
    return _in_order(questions, drawn)


def draw_stratified_sample(
    questions: Sequence[Question], count: int, seed: int, strata: Sequence[Hashable]
) -> list[Question]:
    """A sample of `count` questions, in the questions' order, in which each stratum has its share.

    A systematic sample: the questions are sorted by stratum, at random within each, and every
    n-th is taken from a random start. So each question has the same chance to be drawn, and the
    number from a stratum differs from its share by less than one. Samples of two sizes are not
    part of each other.

    Args:
        questions: those to draw from.
        count: how many to draw; all if there are fewer.
        seed: decides the order within strata, and the start.
        strata: the stratum of each question.
    """
    keys = {
        question.id: (repr(stratum), draw_key(seed, question))
        for question, stratum in zip(questions, strata, strict=True)
    }
    ordered = sorted(questions, key=lambda question: keys[question.id])
    step = max(Fraction(len(questions), count), Fraction(1))
    start = Fraction(int.from_bytes(sha256(f"start {seed}".encode()).digest()[:8]), 1 << 64)
    places = [int((start + number) * step) for number in range(min(count, len(questions)))]
    return _in_order(questions, [ordered[place] for place in places])


def _in_order(questions: Sequence[Question], drawn: Sequence[Question]) -> list[Question]:
    ids = {question.id for question in drawn}
    return [question for question in questions if question.id in ids]
