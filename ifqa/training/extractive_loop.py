"""The span reader's training examples, and a phase of its training: batches, schedule, checkpoints, and weights.

For a third of IfQA's training questions the gold passages do not contain the answer. Targets are all computed answers and all
spans that equal a gold answer. If no span does, they are numbers of equal value ("seven" for "7"), or else the spans with the
highest F1 of at least one half.
"""

import logging
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from ifqa.models.devices import half_precision
from ifqa.models.span_encoder import EncoderFiles, open_encoder
from ifqa.progress import bar
from ifqa.reading.span.network import MAX_SPAN, EncodedPair, SpanModel, encode_pair, token_span
from ifqa.reading.span.numbers import DIGITS, find_numbers, format_answer
from ifqa.reading.span.weights import ADAPTER, HEADS, load_weights, save_weights
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import normalize
from ifqa.training import checkpoints

logger = logging.getLogger(__name__)

_KEPT_NEGATIVES = 4  # the first of a question's ranking; each epoch draws from these
_PIECE = re.compile(r"[^\s\-–—/]+")
_MIN_F1 = 0.5
_STATE = "state.safetensors"
_Row = TypeVar("_Row")


class Targets(NamedTuple):
    """Targets of a pair: spans as (first token, length - 1), computed as (passage number, question number, operation)."""

    spans: list[tuple[int, int]]
    computed: list[tuple[int, int, int]]


class Example:
    """A question's gold passages with their targets, and its negatives, as the encoder in `folder` reads them."""

    def __init__(self, folder: Path, question: Question, ranking: Sequence[Passage] = ()) -> None:
        texts = list(dict.fromkeys(question.gold_passages))
        self.gold = [encode_pair(folder, question.text, text) for text in texts]
        self.targets: list[Targets] = find_targets(self.gold, question.answers)
        self.answerable = bool(question.answers)
        gold = {normalize(text) for text in texts}
        answers = [f" {form} " for form in map(normalize, question.answers) if form]
        others = [passage.text for passage in ranking if normalize(passage.text) not in gold]
        negatives = [text for text in others if not any(answer in f" {normalize(text)} " for answer in answers)]
        self.negatives = [encode_pair(folder, question.text, text) for text in negatives[:_KEPT_NEGATIVES]]

    @property
    def has_target(self) -> bool:
        """Whether a candidate is right; without answers, as SQuAD 2.0's impossible questions, the null candidate is."""
        answered = any(target.spans or target.computed for target in self.targets)
        return answered or bool(self.gold and not self.answerable)

    @property
    def length(self) -> int:
        return max(len(pair.ids) for pair in self.gold)

    def draw_pairs(
        self, draw: random.Random, negatives: int, without_gold: float
    ) -> tuple[list[EncodedPair], list[Targets]]:
        """The gold passages and their targets, then up to `negatives` negatives; or, as often as `without_gold`, only these."""
        if self.negatives and draw.random() < without_gold:
            return draw.sample(self.negatives, min(negatives + 1, len(self.negatives))), []
        return self.gold + draw.sample(self.negatives, min(negatives, len(self.negatives))), self.targets


def target_loss(targets: Sequence[Targets], spans: Sequence[Tensor], computed: Sequence[Tensor]) -> Tensor:
    """-log of the targets' total probability among the candidates of all passages, the first of which have targets.

    A null candidate with the score 0 competes, and is right if there is no target; so scores tell how likely a passage answers.
    """
    null = spans[0].new_zeros(1)
    candidates = torch.cat([null, *(scores.flatten() for scores in (*spans, *computed))])
    right = [spans[row][index] for row, target in enumerate(targets) for index in target.spans]
    right += [computed[row][index] for row, target in enumerate(targets) for index in target.computed]
    return torch.logsumexp(candidates, 0) - torch.logsumexp(torch.stack(right or [null[0]]), 0)


def find_targets(pairs: Sequence[EncodedPair], answers: Sequence[str]) -> list[Targets]:
    """Targets in each gold passage of a question; empty for a passage without any."""
    forms = {_normalize_numbers(answer) for answer in answers}
    computed = [_computed_targets(pair, forms) for pair in pairs]
    equal_numbers = [
        [(n.start, n.end) for n in find_numbers(pair.text) if _normalize_numbers(pair.text[n.start : n.end]) in forms]
        for pair in pairs
    ]
    nearest = [_nearest_spans(pair.text, answers, pair.question) for pair in pairs]
    best = max((score for score, _ in nearest), default=0.0)
    targets = []
    for pair, operations, numbers, (score, spans) in zip(pairs, computed, equal_numbers, nearest, strict=True):
        if best < 1 and any(equal_numbers):
            spans = numbers
        elif score < best or best < _MIN_F1 or (best < 1 and any(computed)):
            spans = []
        tokens = (token_span(pair.offsets, *span) for span in sorted(spans))
        spans = [(pair.start + first, last - first) for first, last in filter(None, tokens) if last - first < MAX_SPAN]
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


def _nearest_spans(text: str, answers: Sequence[str], question: str) -> tuple[float, list[tuple[int, int]]]:
    """The highest F1 of any span with any answer, and the spans with it, in characters; they begin and end with answer words."""
    pieces = [_trim_punctuation(text, match.start(), match.end()) for match in _PIECE.finditer(text)]
    best = 0.0
    nearest: set[tuple[int, int]] = set()
    for answer in answers:
        gold = normalize(answer)
        words = set(gold.split()) | {word for piece in _PIECE.findall(answer) for word in normalize(piece).split()}
        ends = [(start, end) for start, end in pieces if normalize(text[start:end]) in words]
        for index, (start, _) in enumerate(ends):
            for _, end in ends[index : index + MAX_SPAN]:
                score = _f1(normalize(format_answer(text, start, end, question)), gold) if gold else 0.0
                if score > best:
                    best, nearest = score, set()
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


@dataclass(frozen=True)
class Schedule:
    """AdamW's schedule: the rate is highest after a tenth of the steps, then falls to 0."""

    seed: int  # for dropout and negatives; a step's choices depend only on the seed and the step
    steps: int
    learning_rate: float
    heads: float  # the heads' rate as a multiple of the encoder's
    weight_decay: float
    negatives: int  # negatives per question and step
    without_gold: float  # share of the steps that read a question's negatives alone
    checkpoint_every: int


def train_phase(
    model: SpanModel, batches: Iterator[Sequence[_Row]], encode: Callable[[_Row], Example], schedule: Schedule, folder: Path,
    inputs: dict[str, Any], device: str, count: int,
) -> dict[str, Any]:  # fmt: skip
    """Train on batches of `count` questions and write the weights; returns the manifest.

    Resumes from the newest checkpoint. `encode` turns a row into an example at its step; one without a target is skipped.
    """
    precision = half_precision(device)
    model.encoder.cast(precision)
    model.to(device)
    groups: list[dict[str, Any]] = [{"params": [], "times": 1.0}, {"params": [], "times": schedule.heads}]
    for name, parameter in model.named_parameters():
        groups[0 if name.startswith("encoder.") else 1]["params"].append(parameter)
    peak, steps = schedule.learning_rate, schedule.steps
    optimiser = torch.optim.AdamW(groups, lr=peak, betas=(0.9, 0.98), weight_decay=schedule.weight_decay)
    done, warm = _resume(folder, model, optimiser), max(1, steps // 10)
    if done:
        logger.info(f"{folder}: resuming after step {done} of {steps}")
    log, losses, logged = checkpoints.TrainingLog(folder, done, steps), list[float](), 0
    with bar(f"training {folder.name}", steps - done) as advance:
        for step, batch in enumerate(islice(batches, done, None), start=done + 1):
            rate = peak * min(step / warm, (steps - step) / max(1, steps - warm))
            examples = [example for example in map(encode, batch) if example.has_target]
            if examples:
                losses.append(_step(model, optimiser, examples, schedule, rate, f"{schedule.seed} {step}"))
            advance(1)
            if step % checkpoints.log_interval(schedule.checkpoint_every) == 0 or step == steps:
                if new := losses[logged:]:
                    log.add(step, loss=sum(new) / len(new), learning_rate=rate)
                logged = len(losses)
            if step % schedule.checkpoint_every == 0 and step < steps:
                _save(checkpoints.checkpoint_folder(folder, step), model, optimiser)
                checkpoints.prune_checkpoints(folder)
                logger.info(f"step {step}/{steps}, loss {sum(losses) / max(1, len(losses)):.3f}")
                losses.clear()
                logged = 0
    return save_training(model, folder, inputs, {"examples": count, "steps": steps, "precision": str(precision)})


def _step(
    model: SpanModel,
    optimiser: torch.optim.Optimizer,
    batch: Sequence[Example],
    schedule: Schedule,
    rate: float,
    key: str,
) -> float:
    draw = random.Random(key)
    generator = torch.Generator().manual_seed(draw.getrandbits(63))
    drawn = [example.draw_pairs(draw, schedule.negatives, schedule.without_gold) for example in batch]
    rows = zip(*model([pair for pairs, _ in drawn for pair in pairs], generator), strict=True)
    scores = [zip(*islice(rows, len(pairs)), strict=True) for pairs, _ in drawn]
    losses = [target_loss(targets, *columns) for (_, targets), columns in zip(drawn, scores, strict=True)]
    loss = torch.stack(losses).mean()
    for group in optimiser.param_groups:
        group["lr"] = rate * group["times"]
    optimiser.zero_grad()
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return loss.item()


def _save(checkpoint: Path, model: SpanModel, optimiser: torch.optim.Optimizer) -> None:
    tensors = {f"model.{name}": tensor.detach() for name, tensor in model.named_parameters()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": tensor for name, tensor in state.items()}
    checkpoints.save_tensors(checkpoint / _STATE, tensors)
    checkpoints.mark_complete(checkpoint)


def _resume(folder: Path, model: SpanModel, optimiser: torch.optim.Optimizer) -> int:
    """Load the newest complete checkpoint; returns its step, or 0."""
    from safetensors.torch import load_file

    checkpoint = checkpoints.newest_checkpoint(folder)
    if not checkpoint:
        return 0
    tensors, saved = load_file(checkpoint / _STATE), optimiser.state_dict()
    for name, parameter in model.named_parameters():
        parameter.data.copy_(tensors.pop(f"model.{name}"))
    for name, tensor in tensors.items():
        _, index, field = name.split(".")
        saved["state"].setdefault(int(index), {})[field] = tensor
    optimiser.load_state_dict(saved)
    return checkpoints.checkpoint_step(checkpoint)


def open_network(encoder: EncoderFiles, start: str, seed: int, dropout: float) -> SpanModel:
    """The encoder with fresh heads, or with the weights of a training in the folder `start`."""
    model = SpanModel(open_encoder(encoder.folder, dropout))
    model.initialise(torch.Generator().manual_seed(seed))
    if start:
        load_weights(model, Path(start))
    return model


def save_training(model: SpanModel, folder: Path, inputs: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    save_weights(model, folder, inputs["settings"]["rank"])
    return checkpoints.finish_training(folder, inputs, record, [ADAPTER, HEADS], flat=True)
