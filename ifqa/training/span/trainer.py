"""Training the extractive reader (`ifqa.reading.span.reader`): adapters and heads, from gold and retrieved passages."""

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision
from ifqa.models.hub import NAME, WEIGHTS_SHA256, encoder_folder
from ifqa.models.minilm import LINEAR, MiniLM
from ifqa.progress import bar, say
from ifqa.reading.span.network import Pair, SpanModel, make_pair
from ifqa.records import Passage, Question
from ifqa.scoring.measures.normalize import normalize
from ifqa.settings import Natural, NotNegative, Positive, checked
from ifqa.storage.files import create, read_json, write, write_json
from ifqa.training import resume
from ifqa.training.material import Material
from ifqa.training.span.practice import practice_questions
from ifqa.training.span.targets import Targets, find_targets

CHECKPOINT = "checkpoint.safetensors"
_KEPT_NEGATIVES = 4  # the best of a question's ranking; each epoch draws from these


class Example:
    """A question: its gold passages with their targets, and its negatives."""

    def __init__(self, question: Question, ranking: Sequence[Passage]) -> None:
        folder = encoder_folder()
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

    def loss(self, spans: Sequence[Tensor], computed: Sequence[Tensor]) -> Tensor:
        """-log of the summed probability of all targets among all candidates of all passages; gold passages come first."""
        every = [scores.flatten() for scores in (*spans, *computed)]
        right = [spans[row][place] for row, target in enumerate(self.targets) for place in target.spans]
        right += [computed[row][place] for row, target in enumerate(self.targets) for place in target.computed]
        return torch.logsumexp(torch.cat(every), 0) - torch.logsumexp(torch.stack(right), 0)


@checked("training setting", given=["material", "folder", "progress"])
def train(
    material: Material,
    folder: Path,
    *,
    seed: Natural = 0,
    epochs: Positive = 4,
    rank: Positive = 32,
    learning_rate: NotNegative = 1e-3,
    negatives: Natural = 1,
    batch: Positive = 8,
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1,
    practice: Natural = 2,
    weight_decay: NotNegative = 0.01,
    device: str = "cpu",
    checkpoint_every: Positive = 100,
    progress: Callable[[str], None] = say,
) -> dict[str, Any]:
    """Train, and write `adapter_model.safetensors` and `adapter_config.json` (peft's), `heads.safetensors`, `manifest.json`.

    An interrupted training resumes from the checkpoint in `folder` and ends in the same weights: all draws depend only on
    the seed and the number of the step. The checkpoint is removed after the manifest is written.

    Args:
        material: questions are left out if no gold passage contains the answer or a span near it, and the answer cannot be
            computed. Negatives are drawn from the rankings. The rankings should hold passages of the same kind as the
            gold passages, as BM25 over the gold passages of all training questions gives, or the network learns to tell
            the two kinds apart. A question's own gold passages and passages that contain an answer are no negatives.
        practice: practice questions per training passage (`ifqa.training.span.practice`), trained on once before the real ones.
        epochs, rank, learning_rate, negatives, batch, dropout, weight_decay: passes over the data, rank of the adapters,
            highest rate of AdamW (reached after a tenth of the steps, then linear to 0), negatives per question in each
            pass, questions per step, share of features dropped, AdamW's decay.
        device: "cpu" or "cuda". The bundled weights were trained on a CPU that multiplies in bfloat16; on other hardware
            the last digits differ, and so do a few answers.
        checkpoint_every: steps between checkpoints.
        progress: called with a line at each checkpoint; a progress bar is shown on stderr as well.

    Returns:
        The manifest.

    Raises:
        IfqaError: nothing to train on, a setting out of range, or `folder` holds another training, finished or not.
    """
    questions, rankings = material.questions, material.rankings
    chosen = {"seed": seed, "epochs": epochs, "rank": rank, "learning_rate": learning_rate, "negatives": negatives,
              "batch": batch, "dropout": dropout, "practice": practice, "weight_decay": weight_decay}  # fmt: skip
    examples = [Example(question, ranking) for question, ranking in zip(questions, rankings, strict=True)]
    examples = [example for example in examples if example.has_target]
    if not examples:
        raise IfqaError(
            f"none of {len(questions)} training questions has its answer in a gold passage; wanted annotated questions"
        )
    texts = list(dict.fromkeys(text for question in questions for text in question.gold_passages))
    warm_up = [Example(question, ()) for question in (practice_questions(texts, seed, practice) if practice else ())]
    warm_up = [example for example in warm_up if example.has_target]
    rounds = [warm_up, *[examples] * epochs]
    steps = sum(-(-len(some) // batch) for some in rounds)
    inputs = {
        "family": material.family,
        "sources": material.sources,
        "settings": chosen,
        "questions": _identity(questions, rankings),
    }

    resume.refuse_strangers(folder, CHECKPOINT)
    if (folder / "manifest.json").exists():
        there = read_json(folder / "manifest.json")
        if any(there.get(key) != value for key, value in inputs.items()):
            raise IfqaError(f"{folder} holds another training (other data or settings); train into another folder")
        file = resume.damaged(folder, there.get("files", {}))
        if not file:
            progress(f"{folder}: nothing to do, trained by exactly this before")
            return dict(there)
        progress(f"{folder}: {file} is missing or altered; training again")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / resume.INPUTS, inputs)  # if it is killed while it saves, the weights are known as its own
    torch.manual_seed(seed)
    model = SpanModel(MiniLM(encoder_folder(), rank, dropout))
    precision = half_precision(device)
    model.encoder.cast(precision)
    model.initialise(torch.Generator().manual_seed(seed))
    model.to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=weight_decay)
    done = _resume(folder / CHECKPOINT, inputs, model, optimiser)
    progress(
        f"{len(examples)} of {len(questions)} questions have a target; {steps} steps"
        + (f", resuming after step {done}" if done else "")
    )
    groups = (group for number, some in enumerate(rounds) for group in _batches(some, batch, seed, number))
    losses: list[float] = []
    with bar("training", steps - done) as advance:
        for step, group in enumerate(groups, start=1):
            if step <= done:
                continue
            rate = learning_rate * _rate(step, steps)
            losses.append(_step(model, optimiser, group, negatives, rate, f"{seed} {step}"))
            advance(1)
            if step % checkpoint_every == 0 and step < steps:
                _save_checkpoint(folder / CHECKPOINT, inputs, model, optimiser, step)
                progress(f"step {step}/{steps}, loss {sum(losses) / len(losses):.3f}")
                losses.clear()
    manifest = _save(folder, inputs, model, {"examples": len(examples), "steps": steps, "precision": str(precision)})
    for name in (CHECKPOINT, resume.INPUTS):
        (folder / name).unlink(missing_ok=True)
    return manifest


def _batches(examples: Sequence[Example], size: int, seed: int, epoch: int) -> list[list[Example]]:
    """The batches of an epoch, shuffled; examples of a batch have similar lengths, so that there is little padding."""
    order = list(examples)
    draw = random.Random(f"{seed} {epoch}")
    draw.shuffle(order)
    groups = []
    for start in range(0, len(order), size * 16):
        like = sorted(order[start : start + size * 16], key=lambda one: max(len(pair.ids) for pair in one.gold))
        groups += [like[at : at + size] for at in range(0, len(like), size)]
    draw.shuffle(groups)
    return groups


def _rate(step: int, steps: int) -> float:
    warm = max(1, steps // 10)
    return min(step / warm, (steps - step) / max(1, steps - warm))


def _step(
    model: SpanModel, optimiser: torch.optim.Optimizer, group: Sequence[Example], negatives: int, rate: float, key: str
) -> float:
    draw = random.Random(key)
    generator = torch.Generator().manual_seed(draw.getrandbits(63))
    passages: list[list[Pair]] = [
        one.gold + draw.sample(one.negatives, min(negatives, len(one.negatives))) for one in group
    ]
    spans, computed = model([pair for several in passages for pair in several], generator)
    losses, start = [], 0
    for example, several in zip(group, passages, strict=True):
        end = start + len(several)
        losses.append(example.loss(list(spans[start:end]), computed[start:end]))
        start = end
    loss = torch.stack(losses).mean()
    for part in optimiser.param_groups:
        part["lr"] = rate
    optimiser.zero_grad()
    torch.autograd.backward(loss)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return loss.item()


def _identity(questions: Sequence[Question], rankings: Sequence[Sequence[Passage]]) -> str:
    digest = hashlib.sha256()
    for question, ranking in zip(questions, rankings, strict=True):
        digest.update(
            json.dumps(
                [question.text, question.answers, question.gold_passages, [one.text for one in ranking]]
            ).encode()
        )
    return digest.hexdigest()


def _save_checkpoint(
    path: Path, inputs: dict[str, Any], model: SpanModel, optimiser: torch.optim.Optimizer, step: int
) -> None:
    from safetensors.torch import save

    tensors = {f"model.{name}": tensor.detach() for name, tensor in model.named_parameters()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{index}.{name}": tensor for name, tensor in state.items()}
    with create(path) as handle:
        write(handle, save(tensors, {"inputs": json.dumps(inputs, sort_keys=True), "step": str(step)}))


def _resume(path: Path, inputs: dict[str, Any], model: SpanModel, optimiser: torch.optim.Optimizer) -> int:
    """Load the checkpoint if there is one; returns the number of steps done."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        return 0
    try:
        opened = safe_open(path, "pt")
    except SafetensorError as error:
        raise IfqaError(f"{path} is damaged ({error}); remove it to start again") from error
    with opened as file:
        notes = file.metadata()
        if not notes or notes.get("inputs") != json.dumps(inputs, sort_keys=True):
            raise IfqaError(
                f"{path} is of another training (other data or settings); remove it, or train into another folder"
            )
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name, parameter in model.named_parameters():
        parameter.data.copy_(tensors[f"model.{name}"])
    saved = optimiser.state_dict()
    for name, tensor in tensors.items():
        if name.startswith("optimiser."):
            _, index, field = name.split(".")
            saved["state"].setdefault(int(index), {})[field] = tensor
    optimiser.load_state_dict(saved)
    return int(notes["step"])


def _save(folder: Path, inputs: dict[str, Any], model: SpanModel, made: dict[str, Any]) -> dict[str, Any]:
    """Write the weights in half precision, peft's configuration, and last the manifest."""
    from safetensors.torch import save

    adapter = {name: tensor.half().contiguous() for name, tensor in model.encoder.adapter_tensors().items()}
    heads = {
        name: tensor.detach().half() for name, tensor in model.named_parameters() if not name.startswith("encoder.")
    }
    (folder / "manifest.json").unlink(missing_ok=True)  # an older manifest would vouch for half-written weights
    for name, tensors in (("adapter_model", adapter), ("heads", heads)):
        with create(folder / f"{name}.safetensors") as handle:
            write(handle, save(tensors, {"format": "pt"}))
    layers = "|".join(name.replace(".", r"\.") for name in LINEAR)
    rank = inputs["settings"]["rank"]
    write_json(
        folder / "adapter_config.json",
        {"peft_type": "LORA", "task_type": "FEATURE_EXTRACTION", "base_model_name_or_path": NAME, "r": rank, "lora_alpha": rank,
         "lora_dropout": 0.0, "bias": "none", "target_modules": rf"encoder\.layer\.\d+\.({layers})", "inference_mode": True},
    )  # fmt: skip
    manifest = inputs | made | {
        "encoder": {"name": NAME, "sha256": WEIGHTS_SHA256},
        "versions": {name: metadata.version(name) for name in ("torch", "tokenizers", "safetensors")},
        "files": resume.hashes(folder, ["adapter_*", "heads.safetensors"]),
    }  # fmt: skip
    write_json(folder / "manifest.json", manifest)
    return manifest
