"""What the span reader is trained on: a question with its gold passages, their targets, and negatives."""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from ifqa.reading.span.network import Pair, make_pair
from ifqa.records import Passage, Question
from ifqa.scoring.measures.normalize import normalize
from ifqa.training.span.targets import Targets, find_targets

_KEPT_NEGATIVES = 4  # the best of a question's ranking; each epoch draws from these
_LIKE = 16  # batches whose examples are sorted by length together
_Item = TypeVar("_Item")


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


def batches(items: Sequence[_Item], size: int, key: str, length: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """The batches of an epoch, shuffled by `key`; items of a batch have similar lengths, so that there is little padding."""
    order = list(items)
    draw = random.Random(key)
    draw.shuffle(order)
    groups = []
    for start in range(0, len(order), size * _LIKE):
        like = sorted(order[start : start + size * _LIKE], key=length)
        groups += [like[at : at + size] for at in range(0, len(like), size)]
    draw.shuffle(groups)
    yield from groups
