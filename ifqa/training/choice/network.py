"""Trains a network to score the choices of questions, with transformers' trainer: what 'decomp-attn' and 'choice' share."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.protocols import TrainingData
from ifqa.records import Passage, Question
from ifqa.settings import NotNegative, Positive
from ifqa.training import checkpoints
from ifqa.training.choice.questions import directed, followed, mirrored, right
from ifqa.training.trainer import Passes

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Asked:
    """A question as the network reads it.

    Attributes:
        read: what `ChoiceTrainer.collate` takes.
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


@dataclass(kw_only=True)
class ChoiceTrainer(Passes):
    """Trains a network that scores choices; a subclass says what it reads.

    Attributes:
        augment: whether a question is also trained on its mirrored and its following question, one of each drawn in each pass.
        symmetry, transitivity: weights of the two losses of consistency, 0 for none; Asai and Hajishirzi (2020) have augment,
            0.5 and 0.1.
    """

    libraries = ("accelerate",)
    benchmark = "wiqa"
    split = "train"
    corpus = None
    warmup = 0.0  # the share of the steps before the highest rate; a subclass may have a setting of this name
    weight_decay = 0.0  # AdamW's, likewise

    augment: bool = False
    symmetry: NotNegative = 0.0
    transitivity: NotNegative = 0.0
    device: str = "auto"
    checkpoint_every: Positive = 200

    def encode(self, question: Question, passages: Sequence[Passage]) -> Any:
        """What `collate` takes of a question."""
        raise NotImplementedError

    def collate(self, encoded: Sequence[Any]) -> dict[str, "Tensor"]:
        """The arguments of `logits`, of several questions."""
        raise NotImplementedError

    def logits(self, model: Any, read: dict[str, "Tensor"]) -> "Tensor":
        """Logits [questions, choices], -inf where a question has fewer choices."""
        raise NotImplementedError

    def column(self, question: Question, place: int) -> int:
        """The column of `logits` of the choice at a place."""
        return place

    def fit(self, model: Any, data: TrainingData, folder: Path) -> dict[str, Any]:
        """Train, resuming from the newest checkpoint in `folder`; returns steps and mean loss.

        A step's rows depend only on the seed and the step, and a checkpoint holds the states of the optimiser and of all random
        generators, so a killed training ends in the same weights.
        """
        from transformers import Trainer, TrainingArguments

        rows, settings = Rows(self, data), self

        class Choosing(checkpoints.InOrder, Trainer):
            def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
                features = {
                    name.removeprefix("read_"): tensor for name, tensor in inputs.items() if name.startswith("read_")
                }
                return losses(settings.logits(model, features).float(), inputs, settings)

        arguments = checkpoints.arguments(
            TrainingArguments, folder, seed=self.seed, batch=self.batch, learning_rate=self.learning_rate,
            every=self.checkpoint_every, device=self.device, weight_decay=self.weight_decay, warmup=self.warmup,
            **checkpoints.PLAIN,
        )  # fmt: skip
        arguments._n_gpu = min(arguments.n_gpu, 1)  # a step's questions belong together
        trainer = Choosing(model=model, args=arguments, train_dataset=rows, data_collator=rows.collated)
        return checkpoints.fit(trainer, folder) | {"examples": len(data.questions)}


class Rows:
    """The groups of all steps in training order, as the trainer takes them."""

    def __init__(self, trainer: ChoiceTrainer, data: TrainingData) -> None:
        self.trainer, self.questions, self.rankings = trainer, data.questions, data.rankings
        chained, turned = trainer.augment or trainer.transitivity, trainer.augment or trainer.symmetry
        self._mirrored = [mirrored(question) if turned else [] for question in self.questions]
        self._followed = followed(self.questions) if chained else {}
        self._orders: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return self.trainer.epochs * len(self.questions)

    def __getitem__(self, row: int) -> Group:
        """A question, and one mirrored and one following question if they are wanted; drawn by the seed and the row."""
        turn, place = divmod(row, len(self.questions))
        if turn not in self._orders:
            draw = random.Random(f"{self.trainer.seed} {turn}")
            self._orders[turn] = draw.sample(range(len(self.questions)), len(self.questions))
        number = self._orders[turn][place]
        draw = random.Random(f"{self.trainer.seed} {row} drawn")
        ranking, augment = self.rankings[number], self.trainer.augment
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
            return self.trainer.column(question, place) if place >= 0 else -1

        more, less = map(column, directed(question))
        return Asked(self.trainer.encode(question, ranking), column(right(question)), (more, less), counted)

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
        read = self.trainer.collate([one.read for one in asked])
        return {f"read_{name}": tensor for name, tensor in read.items()} | {
            "choice": torch.tensor([one.label for one in asked]),
            "counted": torch.tensor([one.counted for one in asked]),
            "directed": torch.tensor([one.directed for one in asked]),
            "mirrors": torch.tensor(mirrors, dtype=torch.long).reshape(-1, 2),
            "chains": torch.tensor(chains, dtype=torch.long).reshape(-1, 3),
        }


def losses(logits: "Tensor", step: dict[str, "Tensor"], trainer: ChoiceTrainer) -> "Tensor":
    """Cross-entropy, and the weighted losses of consistency, on a step's logits [questions, choices] (see `Rows.collated`).

    Symmetry is |z(right) - z'(right')| of a question and its mirrored one; transitivity is |z1(more) + z2(more) - z3(more)| +
    |z1(more) + z2(less) - z3(less)| of a chain. Both are on logits, as in Asai and Hajishirzi's code (AkariAsai/logic_guided_qa,
    modeling_roberta_consistency.py), and means over the pairs and chains of the step; there they are means over the whole step.
    """
    import torch.nn.functional as F

    labels, counted = step["choice"], step["counted"]
    loss = F.cross_entropy(logits[counted], labels[counted])
    if trainer.symmetry and len(step["mirrors"]):
        own, other = (logits[ones, labels[ones]] for ones in step["mirrors"].unbind(1))
        loss = loss + trainer.symmetry * (own - other).abs().mean()
    if trainer.transitivity and len(step["chains"]):
        ones = step["chains"].unbind(1)
        more = [logits[one, step["directed"][one, 0]] for one in ones]
        less = [logits[one, step["directed"][one, 1]] for one in ones]
        broken = (more[0] + more[1] - more[2]).abs() + (more[0] + less[1] - less[2]).abs()
        loss = loss + trainer.transitivity * broken.mean()
    return loss
