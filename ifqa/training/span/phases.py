"""One phase of the span reader's training: batches of examples, one schedule, checkpoints by which it resumes, and weights."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from ifqa.models.devices import half_precision
from ifqa.models.encoders import Found, open_encoder
from ifqa.progress import bar, say
from ifqa.reading.span.network import SpanModel
from ifqa.reading.span.weights import ADAPTER, HEADS, load_weights, save_weights
from ifqa.training import checkpoints
from ifqa.training.span.examples import Example

_STATE = "state.safetensors"
_Row = TypeVar("_Row")


@dataclass(frozen=True)
class Schedule:
    """How a network is trained.

    Attributes:
        seed: of dropout and negatives; each step's draws depend on the seed and the step alone.
        steps: number of batches.
        learning_rate: AdamW's highest rate, reached after a tenth of the steps, then linear to 0.
        heads: the rate of the heads, times that of the encoder.
        weight_decay: AdamW's.
        negatives: passages beside the gold passages in each step.
        checkpoint_every: steps between checkpoints.
    """

    seed: int
    steps: int
    learning_rate: float
    heads: float
    weight_decay: float
    negatives: int
    checkpoint_every: int


def fit(
    model: SpanModel, groups: Iterator[Sequence[_Row]], encode: Callable[[_Row], Example], plan: Schedule, folder: Path
) -> None:  # fmt: skip
    """Train on the batches in `groups`, resuming from the newest whole checkpoint in `folder`.

    `encode` makes an example of a row of a batch, when its step has come; an example without a target is left out.
    """
    split: tuple[list[torch.nn.Parameter], list[torch.nn.Parameter]] = ([], [])
    for name, parameter in model.named_parameters():
        split[0 if name.startswith("encoder.") else 1].append(parameter)
    parts: list[dict[str, Any]] = [{"params": split[0], "times": 1.0}, {"params": split[1], "times": plan.heads}]
    optimiser = torch.optim.AdamW(parts, lr=plan.learning_rate, betas=(0.9, 0.98), weight_decay=plan.weight_decay)
    done = _resume(folder, model, optimiser)
    if done:
        say(f"{folder}: going on after step {done} of {plan.steps}")
    losses: list[float] = []
    with bar(f"training {folder.name}", plan.steps - done) as advance:
        for step, group in enumerate(groups, start=1):
            if step <= done:
                continue
            rate = plan.learning_rate * _rate(step, plan.steps)
            examples = [one for one in map(encode, group) if one.has_target]
            if examples:
                losses.append(_step(model, optimiser, examples, plan.negatives, rate, f"{plan.seed} {step}"))
            advance(1)
            if step % plan.checkpoint_every == 0 and step < plan.steps:
                _save(checkpoints.checkpoint_of(folder, step), model, optimiser)
                checkpoints.keep_newest(folder)
                say(f"step {step}/{plan.steps}, loss {sum(losses) / max(1, len(losses)):.3f}")
                losses.clear()


def _rate(step: int, steps: int) -> float:
    warm = max(1, steps // 10)
    return min(step / warm, (steps - step) / max(1, steps - warm))


def _step(
    model: SpanModel, optimiser: torch.optim.Optimizer, group: Sequence[Example], negatives: int, rate: float, key: str
) -> float:
    draw = random.Random(key)
    generator = torch.Generator().manual_seed(draw.getrandbits(63))
    passages = [one.drawn(draw, negatives) for one in group]
    spans, computed = model([pair for several in passages for pair in several], generator)
    losses, start = [], 0
    for example, several in zip(group, passages, strict=True):
        end = start + len(several)
        losses.append(example.loss(list(spans[start:end]), computed[start:end]))
        start = end
    loss = torch.stack(losses).mean()
    for part in optimiser.param_groups:
        part["lr"] = rate * part["times"]
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
    checkpoints.seal(checkpoint)


def _resume(folder: Path, model: SpanModel, optimiser: torch.optim.Optimizer) -> int:
    """Load the newest whole checkpoint if there is one; returns the number of steps done."""
    from safetensors import safe_open

    checkpoint = checkpoints.newest(folder)
    if not checkpoint:
        return 0
    with safe_open(checkpoint / _STATE, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, parameter in model.named_parameters():
        parameter.data.copy_(tensors[f"model.{name}"])
    saved = optimiser.state_dict()
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            _, index, field = name.split(".")
            saved["state"].setdefault(int(index), {})[field] = tensor
    optimiser.load_state_dict(saved)
    return checkpoints.step_of(checkpoint)


def network(own: Found, start: str, seed: int, dropout: float) -> SpanModel:
    """The encoder with fresh heads, or the network of a training."""
    model = SpanModel(open_encoder(own.folder, dropout))
    model.initialise(torch.Generator().manual_seed(seed))
    if start:
        load_weights(model, Path(start))
    return model


def trained(
    model: SpanModel, groups: Iterator[Sequence[_Row]], encode: Callable[[_Row], Example], plan: Schedule, folder: Path,
    inputs: dict[str, Any], device: str, examples: int,
) -> dict[str, Any]:  # fmt: skip
    """Train and write the weights of so many examples; gives the manifest."""
    precision = half_precision(device)
    model.encoder.cast(precision)
    fit(model.to(device), groups, encode, plan, folder)
    return written(model, folder, inputs, {"examples": examples, "steps": plan.steps, "precision": str(precision)})


def written(model: SpanModel, folder: Path, inputs: dict[str, Any], record: dict[str, Any]) -> dict[str, Any]:
    """Write the weights and last the manifest, and remove what only a resumed training needs."""
    save_weights(model, folder, inputs["settings"]["rank"])
    return checkpoints.finish(folder, inputs, record, [ADAPTER, HEADS], flat=True)
