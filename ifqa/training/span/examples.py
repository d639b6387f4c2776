"""What the span reader is trained on: a question with its gold passages, their targets, and negatives.

For a third of IfQA's training questions the gold passages do not contain the answer. Targets are all computed answers
and all spans that equal a gold answer. If no span does, targets are numbers of the same value in another form ("seven"
for "7"), or else the spans with the highest F1, if that is at least one half.
"""

import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ifqa.reading.span.network import MAX_SPAN, Pair, make_pair, token_span
from ifqa.reading.span.numbers import DIGITS, as_answer, find_numbers
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import normalize

_KEPT_NEGATIVES = 4  # the best of a question's ranking; each epoch draws from these
_PIECE = re.compile(r"[^\s\-–—/]+")
_MIN_F1 = 0.5


class Example:
    """A question: its gold passages with their targets, and its negatives, as the encoder in `folder` reads them."""

    def __init__(self, folder: Path, question: Question, ranking: Sequence[Passage] = ()) -> None:
        texts = list(dict.fromkeys(question.gold_passages))
        self.gold = [make_pair(folder, question.text, text) for text in texts]
        self.targets: list[Targets] = find_targets(self.gold, question.answers)
        own = {normalize(text) for text in texts}
        answers = [f" {normalize(answer)} " for answer in question.answers]
        others = [one.text for one in ranking if normalize(one.text) not in own]
        wrong = [
            text for text in others if not any(answer in f" {normalize(text)} " for answer in answers if answer.strip())
        ]
        self.negatives = [make_pair(folder, question.text, text) for text in wrong[:_KEPT_NEGATIVES]]

    @property
    def has_target(self) -> bool:
        """Whether a gold passage contains the answer, or the answer can be computed from it."""
        return any(target.spans or target.computed for target in self.targets)

    @property
    def length(self) -> int:
        """Tokens of the longest gold passage with the question."""
        return max(len(pair.ids) for pair in self.gold)

    def drawn(self, draw: random.Random, negatives: int) -> list[Pair]:
        """The gold passages, then `negatives` of its negatives, or as many as there are."""
        return self.gold + draw.sample(self.negatives, min(negatives, len(self.negatives)))

    def loss(self, spans: Sequence[Tensor], computed: Sequence[Tensor]) -> Tensor:
        """-log of the summed probability of all targets among all candidates of all passages; gold passages come first."""
        every = [scores.flatten() for scores in (*spans, *computed)]
        right = [spans[row][place] for row, target in enumerate(self.targets) for place in target.spans]
        right += [computed[row][place] for row, target in enumerate(self.targets) for place in target.computed]
        return torch.logsumexp(torch.cat(every), 0) - torch.logsumexp(torch.stack(right), 0)


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets of one pair: spans as (first token, length - 1), computed as (passage number, question number, operation)."""

    spans: list[tuple[int, int]]
    computed: list[tuple[int, int, int]]


def find_targets(pairs: Sequence[Pair], answers: Sequence[str]) -> list[Targets]:
    """Targets in each gold passage of one question; empty lists if a passage has none."""
    forms = {_digits(answer) for answer in answers}
    computed = [_computed(pair, forms) for pair in pairs]
    same = [_same_value(pair, forms) for pair in pairs]
    nearest = [_nearest_spans(pair.text, answers, pair.question) for pair in pairs]
    best = max((score for score, _ in nearest), default=0.0)
    found = []
    for pair, steps, numbers, (score, spans) in zip(pairs, computed, same, nearest, strict=True):
        if best < 1 and any(same):
            spans = numbers
        elif score < best or best < _MIN_F1 or (best < 1 and any(computed)):
            spans = []
        tokens = (token_span(pair.offsets, *span) for span in sorted(spans))
        found.append(Targets([(pair.start + a, b - a) for a, b in filter(None, tokens) if b - a < MAX_SPAN], steps))
    return found


def _computed(pair: Pair, forms: set[str]) -> list[tuple[int, int, int]]:
    return [
        (i, j, operation)
        for i, row in enumerate(pair.computed)
        for j, texts in enumerate(row)
        for operation, text in enumerate(texts)
        if text is not None and normalize(text) in forms
    ]


def _same_value(pair: Pair, forms: set[str]) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in find_numbers(pair.text) if _digits(pair.text[one.start : one.end]) in forms]


def _digits(text: str) -> str:
    """The normalised text, its small number words as digits: "Seven goals" -> "7 goals"."""
    return " ".join(DIGITS.get(word, word) for word in normalize(text).split())


def _nearest_spans(text: str, answers: Sequence[str], question: str) -> tuple[float, list[tuple[int, int]]]:
    """The highest F1 of any span of the text with any answer, and all spans (character positions) with that F1.

    The best span begins and ends with a word of the answer, so only such spans are scored.
    """
    pieces = [_trimmed(text, match.start(), match.end()) for match in _PIECE.finditer(text)]
    best = 0.0
    found: set[tuple[int, int]] = set()
    for answer in answers:
        gold = normalize(answer)
        words = set(gold.split()) | {word for piece in _PIECE.findall(answer) for word in normalize(piece).split()}
        ends = [(start, end) for start, end in pieces if normalize(text[start:end]) in words]
        for index, (start, _) in enumerate(ends):
            for _, end in ends[index : index + MAX_SPAN]:
                score = _f1(normalize(as_answer(text, start, end, question)), gold) if gold else 0.0
                if score > best:
                    best, found = score, set()
                if score == best > 0:
                    found.add((start, end))
    return best, sorted(found)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The piece without surrounding punctuation; currency, percent and degree signs stay."""
    while start < end and not (text[start].isalnum() or text[start] in "$£€"):
        start += 1
    while end > start and not (text[end - 1].isalnum() or text[end - 1] in "%°"):
        end -= 1
    return start, end


def _f1(text: str, gold: str) -> float:
    if text == gold:
        return 1.0
    common = sum((Counter(text.split()) & Counter(gold.split())).values())
    return min(2 * common / (len(text.split()) + len(gold.split())), 0.999)
