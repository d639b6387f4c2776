"""The span reader's training examples, and a phase of its training: loss, optimiser, and weights.

For a third of IfQA's training questions the gold passages do not contain the answer. Targets are
all computed answers and all spans that equal a gold answer. If no span does, they are numbers of
equal value ("seven" for "7"), or else the spans with the highest F1 of at least one half.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ifqa.models.devices import half_precision
from ifqa.models.span_encoder import EncoderFiles, open_encoder
from ifqa.reading.span.network import MAX_SPAN, EncodedPair, SpanModel, encode_pair, token_span
from ifqa.reading.span.numbers import DIGITS, find_numbers, format_answer
from ifqa.reading.span.weights import ADAPTER, HEADS, load_weights, save_weights
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import normalize
from ifqa.training import checkpoints

_KEPT_NEGATIVES = 4  # the first of a question's ranking; each epoch draws from these
_PIECE = re.compile(r"[^\s\-–—/]+")
_MIN_F1 = 0.5
_Row = TypeVar("_Row")
#: The loss of a question's pairs from their scores of spans and of computed answers.
PairsLoss = Callable[[Sequence[EncodedPair], Sequence[Tensor], Sequence[Tensor]], Tensor]


class Targets(NamedTuple):
    """Targets of a pair: spans as (first token, length - 1), computed as (passage number, question
    number, operation).
    """

    spans: list[tuple[int, int]]
    computed: list[tuple[int, int, int]]


class Example:
    """A question's gold passages with their targets, and its negatives, as the encoder in `folder`
    reads them.
    """

    def __init__(self, folder: Path, question: Question, ranking: Sequence[Passage] = ()) -> None:
        texts = list(dict.fromkeys(question.gold_passages))
        self.gold = [encode_pair(folder, question.text, text) for text in texts]
        self.targets: list[Targets] = find_targets(self.gold, question.answers)
        self.answerable = bool(question.answers)
        gold = {normalize(text) for text in texts}
        answers = [f" {form} " for form in map(normalize, question.answers) if form]
        others = [passage.text for passage in ranking if normalize(passage.text) not in gold]
        negatives = [
            text
            for text in others
            if not any(answer in f" {normalize(text)} " for answer in answers)
        ]
        self.negatives = [
            encode_pair(folder, question.text, text) for text in negatives[:_KEPT_NEGATIVES]
        ]

    @property
    def has_target(self) -> bool:
        """Whether a candidate is right.

        Without answers, as SQuAD 2.0's impossible questions, the null candidate is.
        """
        answered = any(target.spans or target.computed for target in self.targets)
        return answered or bool(self.gold and not self.answerable)

    @property
    def length(self) -> int:
        return max(len(pair.ids) for pair in self.gold)

    def draw_pairs(
        self, draw: random.Random, negatives: int, without_gold: float
    ) -> tuple[list[EncodedPair], list[Targets]]:
        """The gold passages and their targets, then up to `negatives` negatives.

        Or, as often as `without_gold`, only these.
        """
        if self.negatives and draw.random() < without_gold:
            return draw.sample(self.negatives, min(negatives + 1, len(self.negatives))), []
        return self.gold + draw.sample(
            self.negatives, min(negatives, len(self.negatives))
        ), self.targets


def target_loss(
    targets: Sequence[Targets], spans: Sequence[Tensor], computed: Sequence[Tensor]
) -> Tensor:
    """-log of the targets' total probability among the candidates of all passages, the first of
    which have targets.

    A null candidate with the score 0 competes, and is right if there is no target; so scores tell
    how likely a passage answers.
    """
    null = spans[0].new_zeros(1)
    candidates = torch.cat([null, *(scores.flatten() for scores in (*spans, *computed))])
    right = [spans[row][index] for row, target in enumerate(targets) for index in target.spans]
    right += [
        computed[row][index] for row, target in enumerate(targets) for index in target.computed
    ]
    return torch.logsumexp(candidates, 0) - torch.logsumexp(torch.stack(right or [null[0]]), 0)


def find_targets(pairs: Sequence[EncodedPair], answers: Sequence[str]) -> list[Targets]:
    """Targets in each gold passage of a question; empty for a passage without any."""
    forms = {_normalize_numbers(answer) for answer in answers}
    computed = [_computed_targets(pair, forms) for pair in pairs]
    equal_numbers = [
        [
            (n.start, n.end)
            for n in find_numbers(pair.text)
            if _normalize_numbers(pair.text[n.start : n.end]) in forms
        ]
        for pair in pairs
    ]
    nearest = [_nearest_spans(pair.text, answers, pair.question) for pair in pairs]
    best = max((score for score, _ in nearest), default=0.0)
    targets = []
    for pair, operations, numbers, (score, spans) in zip(
        pairs, computed, equal_numbers, nearest, strict=True
    ):
        if best < 1 and any(equal_numbers):
            spans = numbers
        elif score < best or best < _MIN_F1 or (best < 1 and any(computed)):
            spans = []
        tokens = (token_span(pair.offsets, *span) for span in sorted(spans))
        spans = [
            (pair.start + first, last - first)
            for first, last in filter(None, tokens)
            if last - first < MAX_SPAN
        ]
        targets.append(Targets(spans, operations))
    return targets


def _computed_targets(pair: EncodedPair, forms: set[str]) -> list[tuple[int, int, int]]:
    return [
        (i, j, operation)
        for i, row in enumerate(pair.computed)
        for j, texts in enumerate(row)
        for operation, text in enumerate(texts)
        if text is not None and normalize(text) in forms
    ]


def _normalize_numbers(text: str) -> str:
    """The normalised text with digits: "Seven goals" -> "7 goals"."""
    return " ".join(DIGITS.get(word, word) for word in normalize(text).split())


def _nearest_spans(
    text: str, answers: Sequence[str], question: str
) -> tuple[float, list[tuple[int, int]]]:
    """The highest F1 of any span with any answer, and the spans with it, in characters.

    They begin and end with answer words.
    """
    pieces = [
        _trim_punctuation(text, match.start(), match.end()) for match in _PIECE.finditer(text)
    ]
    best = 0.0
    nearest: set[tuple[int, int]] = set()
    for answer in answers:
        gold = normalize(answer)
        words = set(gold.split()) | {
            word for piece in _PIECE.findall(answer) for word in normalize(piece).split()
        }
        ends = [(start, end) for start, end in pieces if normalize(text[start:end]) in words]
        for index, (start, _) in enumerate(ends):
            for _, end in ends[index : index + MAX_SPAN]:
                score = (
                    _f1(normalize(format_answer(text, start, end, question)), gold) if gold else 0.0
                )
                if score > best:
                    best = score
                    nearest = set()
                if score == best > 0:
                    nearest.add((start, end))
    return best, sorted(nearest)


def _trim_punctuation(text: str, start: int, end: int) -> tuple[int, int]:
    """A piece's span without punctuation; currency, percent and degree signs stay."""
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


def train_phase(
    model: SpanModel,
    batches: Sequence[Sequence[_Row]],
    encode: Callable[[_Row], Example],
    folder: Path,
    inputs: dict[str, Any],
    settings: checkpoints.StepSettings,
    *,
    count: int,
    heads: float = 1.0,
    negatives: int = 0,
    without_gold: float = 0.0,
    teacher_loss: PairsLoss | None = None,
    teacher_share: float = 0.0,
) -> dict[str, Any]:
    """Train a step on each batch of `count` rows in all, resuming from the newest checkpoint, and
    write the weights.

    Returns the manifest.

    `encode` turns a row into an example at its step; one without a target is skipped. `heads` is
    the heads' rate as a multiple of the encoder's. `negatives` and `without_gold` are as in
    `Example.draw_pairs`. `teacher_share` is the part of the loss that `teacher_loss` has. Random
    choices depend only on seed and step.
    """
    precision = half_precision(settings.device)
    model.encoder.cast(precision)

    def collate(steps: Sequence[int]) -> dict[str, Any]:
        return {
            "step": steps[0],
            "examples": [row for row in map(encode, batches[steps[0]]) if row.has_target],
        }

    def loss(model: SpanModel, inputs: Mapping[str, Any]) -> Tensor:
        draw = random.Random(f"{settings.seed} {inputs['step']}")
        generator = torch.Generator().manual_seed(draw.getrandbits(63))
        drawn = [
            example.draw_pairs(draw, negatives, without_gold) for example in inputs["examples"]
        ]
        if not drawn:
            return 0.0 * model.length.sum()
        rows = zip(*model([pair for pairs, _ in drawn for pair in pairs], generator), strict=True)
        scores = [zip(*islice(rows, len(pairs)), strict=True) for pairs, _ in drawn]
        losses = []
        for (pairs, targets), columns in zip(drawn, scores, strict=True):
            spans, computed = columns
            each = target_loss(targets, spans, computed)
            if teacher_loss:
                taught = teacher_loss(pairs, spans, computed)
                each = (1 - teacher_share) * each + teacher_share * taught
            losses.append(each)
        return torch.stack(losses).mean()

    learning_rate = settings.learning_rate
    groups: list[dict[str, Any]] = [
        {"params": [*model.encoder.parameters()], "lr": learning_rate},
        {"params": [*model.heads.parameters(), model.length], "lr": learning_rate * heads},
    ]
    if batches:
        checkpoints.train_with_loss(
            loss,
            model,
            range(len(batches)),
            collate,
            folder,
            # a row is a step's batch; the encoder computes in its own precision
            replace(settings, batch=1, bf16=False),
            torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=settings.weight_decay),
        )
    return save_training(
        model,
        folder,
        inputs,
        {"examples": count, "steps": len(batches), "precision": str(precision)},
    )


def open_network(encoder: EncoderFiles, start: str, seed: int, dropout: float) -> SpanModel:
    """The encoder with fresh heads, or with the weights of a training in the folder `start`."""
    model = SpanModel(open_encoder(encoder.folder, dropout))
    model.initialise(torch.Generator().manual_seed(seed))
    if start:
        load_weights(model, Path(start))
    return model


def save_training(
    model: SpanModel, folder: Path, inputs: dict[str, Any], record: dict[str, Any]
) -> dict[str, Any]:
    save_weights(model, folder, inputs["settings"]["rank"])
    return checkpoints.finish_training(folder, inputs, record, [ADAPTER, HEADS], flat=True)
