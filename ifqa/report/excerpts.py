"""The sentences of a passage that belong to an answer: a passage is 100 words, which begin and end within a sentence."""

import re
from collections.abc import Sequence
from itertools import accumulate

from ifqa.corpus.sentences import sentences

CUT = "…"


def excerpt(pieces: Sequence[str], question: str) -> list[str]:
    """A sentence of a passage with the ones before and after it, in pieces; `CUT` stands for what is left out.

    It is the sentence that shares most words with the question, among those that hold a mark, if any does.

    Args:
        pieces: the passage's text; every second piece is marked.
        question: the question's text.
    """
    every = sentences("".join(pieces))
    if len(every) <= 1:
        return list(pieces)
    edges = [0, *accumulate(map(len, every))]  # of the sentences
    places = [0, *accumulate(map(len, pieces))]  # of the pieces
    marks = places[1:-1:2]
    asked = _words(question)

    def worth(number: int) -> tuple[bool, int, int]:
        marked = any(edges[number] <= mark < edges[number + 1] for mark in marks)
        return marked, len(asked & _words(every[number])), -number

    best = max(range(len(every)), key=worth)
    first, last = max(best - 1, 0), min(best + 2, len(every))
    left, right = edges[first], edges[last] - len(every[last - 1]) + len(every[last - 1].rstrip())
    found = [one[max(left - at, 0) : max(right - at, 0)] for one, at in zip(pieces, places, strict=False)]
    found[0] = (f"{CUT} " if first else "") + found[0]
    found[-1] += f" {CUT}" if last < len(every) else ""
    return found


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}
