"""What a T5 learns for a reader: the settings of its training, its task, and the rows of each step."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ifqa.reading.rag import scores_of
from ifqa.reading.t5.text import Conventions, padded, tokenise
from ifqa.records import Passage, Question
from ifqa.settings import Natural, NotNegative, Positive

if TYPE_CHECKING:
    from torch import Tensor

    from ifqa.reading.t5.answer import Reading
    from ifqa.reading.t5.model import FusionInDecoder

Scores = Sequence[Sequence[float]]  # the retriever's, of each passage of each ranking; empty if a training needs none


class Dev(NamedTuple):
    """The questions that choose the best checkpoint, the passages retrieved for each, and their scores."""

    questions: Sequence[Question] = ()
    rankings: Sequence[Sequence[Passage]] = ()
    scores: Scores = ()


NO_DEV = Dev()


@dataclass(frozen=True)
class Recipe:
    """The settings of a training that do not depend on what the reader reads.

    Attributes:
        model: the model to start from: a T5 of the hub, or a checkpoint that the reader takes.
        passages: number of passages of a question, the first retrieved.
        steps, batch: steps of the optimiser (AdamW), and questions a step, over all devices and micro-steps.
        learning_rate, warmup: highest rate, after this many steps (below 1: this share of all), then linear to 0.
        weight_decay, clip: AdamW's decay, and the norm that gradients are clipped to.
        max_tokens: most tokens of question and passage together; the rest is cut off.
        titles: whether passages' titles are read (see `ifqa.reading.t5.text.Conventions`).
        evaluate_every: steps between checkpoints; each answers the dev questions, and the best checkpoint is kept.
        seed: for order, drawn answers and dropout.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; uses bfloat16 if the device multiplies in it.
        device_batch: questions that go through the network at once; it leaves the gradient the same except for dropout.
        recompute: keep only the encoder's output, and compute the encoder again for the gradients.
    """

    model: str
    passages: Positive
    steps: Natural
    batch: Positive
    learning_rate: NotNegative
    warmup: NotNegative
    weight_decay: NotNegative
    clip: NotNegative
    max_tokens: Positive
    evaluate_every: Positive
    titles: bool = True
    seed: Natural = 0
    device: str = "auto"
    device_batch: Positive = 1
    recompute: bool = True


Chosen = TypeVar("Chosen", bound=Recipe)


def fused(model: Any, features: Any, counts: list[int], scores: list[float], most: int) -> "list[Reading]":
    """The answers of Fusion-in-Decoder, which asks for no scores."""
    from ifqa.reading.t5.answer import read

    return read(model, features, counts, max_answer_tokens=most)


@dataclass(frozen=True)
class Task:
    """What a network learns for a reader.

    Attributes:
        reader: "fid", "rag" or "unifiedqa".
        about: what the bar calls the training.
        chosen: its recipe.
        training_passages: (question, its ranking) -> the passages it is trained with.
        texts: (question, passages) -> the inputs of the network.
        targets: question -> the texts that are right; one of them is drawn in each pass over the questions.
        max_target: most tokens of a target; None for no limit.
        max_answer: most tokens of an answer to a dev question, including the token that starts decoding.
        answer: what the network wrote -> the answer.
        by_token: whether the loss is the mean over all tokens of a step's targets, as in transformers' T5; else the mean over
            questions of the mean over a target's tokens, as in FiD.
        micro_batch: passages that go through the encoder at once, 0 for all.
        too_large: the end of the message if memory runs out: what does not fit, and what to set.
        network: (the T5 that the training starts from, the scores of the training passages) -> the network that is trained.
        scored: whether the network is given the passages' retrieval scores.
        rates: parameter of the network -> its own learning rate; it has no weight decay.
        decode: how dev questions are answered: (network, features, counts, scores, most tokens of an answer) -> their readings.
        finished: makes the trained network the T5 that is saved, and gives what else it has learnt for the manifest.
    """

    reader: str
    about: str
    chosen: Recipe
    training_passages: Callable[[Question, Sequence[Passage]], Sequence[Passage]]
    texts: Callable[[Question, Sequence[Passage]], Sequence[str]]
    targets: Callable[[Question], Sequence[str]]
    max_target: int | None
    max_answer: int
    answer: Callable[[str], str]
    by_token: bool
    micro_batch: int
    too_large: str
    network: "Callable[[FusionInDecoder, Scores], FusionInDecoder]" = lambda model, scores: model
    scored: bool = False
    rates: Mapping[str, float] = field(default_factory=dict)
    decode: "Callable[[Any, Any, list[int], list[float], int], list[Reading]]" = fused
    finished: Callable[[Any], dict[str, object]] = lambda model: {}


class Rows:
    """The rows of all steps in training order, as the trainer takes them.

    Row `n` depends only on the seed and the number of its pass, so a training can resume at any row.
    """

    def __init__(
        self, task: Task, questions: Sequence[Question], rankings: Sequence[Sequence[Passage]], tokenizer: Any,
        conventions: Conventions, scores: Scores = (),
    ) -> None:  # fmt: skip
        self.task, self.questions, self.rankings, self.scores = task, questions, rankings, scores
        self.tokenizer, self.conventions = tokenizer, conventions
        self._read: dict[int, list[list[int]]] = {}
        self._passes: dict[int, list[tuple[int, str]]] = {}

    def __len__(self) -> int:
        return self.task.chosen.steps * self.task.chosen.batch

    def __getitem__(self, row: int) -> dict[str, object]:
        """The token ids of a question's inputs and of a target, and what else the task's loss needs.

        That is the score of each input, and for a loss by token the question's weight.
        """
        number, target = self._drawn(row)
        if number not in self._read:
            question = self.questions[number]
            passages = self.task.training_passages(question, self.rankings[number])
            self._read[number] = token_ids(self.task.texts(question, passages), self.tokenizer, self.conventions)
        label = self._label(target)
        made: dict[str, object] = {"passages": self._read[number], "label": label}
        if self.task.scored:
            made["scores"] = scores_of(self.scores[number], len(self._read[number]))
        if self.task.by_token:  # so that the mean over the step's questions is the mean over its tokens
            size = self.task.chosen.batch
            step = range(row - row % size, row - row % size + size)
            made["weight"] = size * len(label) / sum(len(self._label(self._drawn(n)[1])) for n in step)
        return made

    def _drawn(self, row: int) -> tuple[int, str]:
        """The number of a row's question, and the target drawn for it."""
        turn, place = divmod(row, len(self.questions))
        if turn not in self._passes:
            draw = random.Random(f"{self.task.chosen.seed} {turn}")
            order = draw.sample(range(len(self.questions)), len(self.questions))
            drawn = [(n, draw.choice(self.task.targets(self.questions[n]))) for n in order]
            self._passes = {n: one for n, one in self._passes.items() if n == turn - 1} | {turn: drawn}
        return self._passes[turn][place]

    def _label(self, target: str) -> list[int]:
        most = self.task.max_target
        ids: list[int] = self.tokenizer(target, max_length=most, truncation=most is not None)["input_ids"]
        return ids


def token_ids(texts: Sequence[str], tokenizer: Any, conventions: Conventions) -> list[list[int]]:
    """Token ids of each text, cut off at the conventions' `max_tokens`."""
    features = tokenise(tokenizer, texts, conventions)
    pairs = zip(features["input_ids"], features["attention_mask"], strict=True)
    return [ids[mask].tolist() for ids, mask in pairs]


def collate(rows: Sequence[dict[str, Any]]) -> dict[str, "Tensor"]:
    """A batch with the arguments of the network's `forward`."""
    import torch

    passages = padded([ids for row in rows for ids in row["passages"]])
    labels = padded([row["label"] for row in rows], padding=-100)["input_ids"]
    counts = torch.tensor([len(row["passages"]) for row in rows])
    several = [score for row in rows for score in row.get("scores", ())]
    scored = {"scores": torch.tensor(several)} if several else {}
    weighed = {"weights": torch.tensor([row["weight"] for row in rows])} if "weight" in rows[0] else {}
    return {
        "passage_ids": passages["input_ids"], "passage_mask": passages["attention_mask"], "counts": counts,
        "labels": labels, **scored, **weighed,
    }  # fmt: skip
