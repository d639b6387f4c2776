"""Trains a network to score the choices of questions, with transformers' trainer: what 'decomp-attn' and 'choice' share."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.models.devices import half_precision, resolve_device
from ifqa.records import Passage, Question
from ifqa.training import resume
from ifqa.training.choice.answered import right
from ifqa.training.choice.consistency import directed, followed, mirrored
from ifqa.training.material import Material

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Plan:
    """The settings of a training that do not depend on the network.

    Attributes:
        seed: for order and draws, and for the network's weights and dropout, from which `resume.fit` starts.
        epochs, batch: passes over the questions, and questions a step.
        learning_rate, warmup: highest rate, and the share of the steps before it is reached.
        optimiser, schedule: transformers' names, such as "adamw_torch" and "linear".
        weight_decay: the optimiser's.
        augment: whether a question is also trained on its mirrored and its following question, one of each drawn in each pass.
        symmetry, transitivity: weights of the two losses of consistency; 0 for none.
        checkpoint_every: steps between checkpoints.
    """

    seed: int
    epochs: int
    batch: int
    learning_rate: float
    warmup: float
    optimiser: str
    schedule: str
    weight_decay: float
    augment: bool
    symmetry: float
    transitivity: float
    checkpoint_every: int


@dataclass(frozen=True)
class Asked:
    """A question as the network reads it.

    Attributes:
        read: what `Task.collate` takes.
        label: the place of the right choice.
        directed: the places of the choices that say more and less; -1 where there is none.
        counted: whether it is trained on; else it is read for a loss of consistency alone.
    """

    read: Any
    label: int
    directed: tuple[int, int]
    counted: bool


@dataclass(frozen=True)
class Group:
    """A training question first, and what it is drawn with: the places of its mirrored question, and of the chain's other two."""

    asked: list[Asked]
    mirror: int = 0
    chain: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Task:
    """What a network reads and scores.

    Attributes:
        about: what the bar calls the training.
        encode: (question, its passages) -> what `collate` takes.
        collate: what several questions were encoded to -> the arguments of `logits`.
        logits: (network, those arguments) -> logits [questions, choices], -inf where a question has fewer choices.
        place: (question, place of a choice) -> the column of `logits`.
    """

    about: str
    encode: Callable[[Question, Sequence[Passage]], Any]
    collate: Callable[[Sequence[Any]], dict[str, "Tensor"]]
    logits: Callable[[Any, dict[str, "Tensor"]], "Tensor"]
    place: Callable[[Question, int], int]


def fit(model: Any, task: Task, material: Material, plan: Plan, folder: Path, device: str) -> dict[str, Any]:
    """Train, resuming from the newest checkpoint in `folder`; returns steps and mean loss.

    A step's rows depend only on the seed and the step, and a checkpoint holds the states of the optimiser and of all random
    generators, so a killed training ends in the same weights.
    """
    import torch
    from torch.utils.data import SequentialSampler
    from transformers import Trainer, TrainingArguments

    rows = Rows(task, material, plan)

    class Choosing(Trainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(rows)

        def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
            features = {name.removeprefix("read_"): one for name, one in inputs.items() if name.startswith("read_")}
            return losses(task.logits(model, features).float(), inputs, plan)

    device = resolve_device(device)
    half = half_precision(device) is torch.bfloat16
    arguments = TrainingArguments(
        output_dir=str(folder / resume.CHECKPOINTS), num_train_epochs=1, learning_rate=plan.learning_rate,
        per_device_train_batch_size=plan.batch, weight_decay=plan.weight_decay, warmup_steps=plan.warmup,
        optim=plan.optimiser, lr_scheduler_type=plan.schedule, bf16=half, use_cpu=device == "cpu", save_strategy="steps",
        save_steps=plan.checkpoint_every, save_total_limit=2, logging_steps=plan.checkpoint_every,
        remove_unused_columns=False, report_to="none", disable_tqdm=True, seed=plan.seed, log_level="error",
        log_level_replica="error",
    )  # fmt: skip
    arguments._n_gpu = min(arguments.n_gpu, 1)  # a step's questions belong together
    trainer = Choosing(model=model, args=arguments, train_dataset=rows, data_collator=rows.collated)
    return resume.fit(trainer, folder, task.about) | {"examples": len(material.questions)}


class Rows:
    """The groups of all steps in training order, as the trainer takes them."""

    def __init__(self, task: Task, material: Material, plan: Plan) -> None:
        self.task, self.plan = task, plan
        self.questions, self.rankings = material.questions, material.rankings
        chained = plan.augment or plan.transitivity
        self._mirrored = [mirrored(one) if plan.augment or plan.symmetry else [] for one in self.questions]
        self._followed = followed(self.questions) if chained else {}
        self._orders: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self.plan.epochs * len(self.questions)

    def __getitem__(self, row: int) -> Group:
        """A question, and one mirrored and one following question if they are wanted; drawn by the seed and the row."""
        turn, place = divmod(row, len(self.questions))
        if turn not in self._orders:
            draw = random.Random(f"{self.plan.seed} {turn}")
            self._orders[turn] = draw.sample(range(len(self.questions)), len(self.questions))
        number = self._orders[turn][place]
        draw = random.Random(f"{self.plan.seed} {row} drawn")
        ranking, augment = self.rankings[number], self.plan.augment
        asked, mirror, chain = [self._asked(self.questions[number], ranking, True)], 0, (0, 0)
        if self._mirrored[number]:
            mirror = len(asked)
            asked.append(self._asked(draw.choice(self._mirrored[number]), ranking, augment))
        if number in self._followed:
            second, third = draw.choice(self._followed[number])
            chain = (len(asked), len(asked) + 1)
            asked.append(self._asked(self.questions[second], self.rankings[second], False))
            asked.append(self._asked(third, ranking, augment))
        return Group(asked, mirror, chain)

    def _asked(self, question: Question, ranking: Sequence[Passage], counted: bool) -> Asked:
        def column(place: int) -> int:
            return self.task.place(question, place) if place >= 0 else -1

        more, less = map(column, directed(question))
        return Asked(self.task.encode(question, ranking), column(right(question)), (more, less), counted)

    def collated(self, groups: Sequence[Group]) -> dict[str, "Tensor"]:
        """A step's tensors: what the network reads, labels and `counted` [questions], `mirrors` [n, 2] and `chains` [m, 3].

        Mirrors and chains are numbers of questions; `directed` [questions, 2] has the columns of more and less.
        """
        import torch

        asked = [one for group in groups for one in group.asked]
        starts = [sum(len(group.asked) for group in groups[:n]) for n in range(len(groups))]
        pairs = list(zip(starts, groups, strict=True))
        mirrors = [[start, start + group.mirror] for start, group in pairs if group.mirror]
        chains = [[start, *(start + one for one in group.chain)] for start, group in pairs if group.chain[0]]
        read = self.task.collate([one.read for one in asked])
        return {f"read_{name}": tensor for name, tensor in read.items()} | {
            "choice": torch.tensor([one.label for one in asked]),
            "counted": torch.tensor([one.counted for one in asked]),
            "directed": torch.tensor([one.directed for one in asked]),
            "mirrors": torch.tensor(mirrors, dtype=torch.long).reshape(-1, 2),
            "chains": torch.tensor(chains, dtype=torch.long).reshape(-1, 3),
        }


def losses(logits: "Tensor", step: dict[str, "Tensor"], plan: Plan) -> "Tensor":
    """Cross-entropy, and the weighted losses of consistency, on a step's logits [questions, choices] (see `Rows.collated`).

    Symmetry is |z(right) - z'(right')| of a question and its mirrored one; transitivity is |z1(more) + z2(more) - z3(more)| +
    |z1(more) + z2(less) - z3(less)| of a chain. Both are on logits, as in Asai and Hajishirzi's code (modeling_roberta_consistency.py
    in AkariAsai/logic_guided_qa), and means over the pairs and chains of the step; there they are means over the whole step.
    """
    import torch.nn.functional as F

    labels, counted = step["choice"], step["counted"]
    loss = F.cross_entropy(logits[counted], labels[counted])
    if plan.symmetry and len(step["mirrors"]):
        own, other = (logits[ones, labels[ones]] for ones in step["mirrors"].unbind(1))
        loss = loss + plan.symmetry * (own - other).abs().mean()
    if plan.transitivity and len(step["chains"]):
        ones = step["chains"].unbind(1)
        more = [logits[one, step["directed"][one, 0]] for one in ones]
        less = [logits[one, step["directed"][one, 1]] for one in ones]
        broken = (more[0] + more[1] - more[2]).abs() + (more[0] + less[1] - less[2]).abs()
        loss = loss + plan.transitivity * broken.mean()
    return loss
