"""Trains Fusion-in-Decoder (`ifqa.reading.fid`) with the trainer of `ifqa.training.t5`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ifqa.protocols import Recipe
from ifqa.reading.t5.base_reader import passage_inputs
from ifqa.records import Passage, Question
from ifqa.settings import Natural, Positive
from ifqa.training.t5 import T5Trainer
from ifqa.training.training_data import Gold, training_passages


@dataclass(kw_only=True)
class Fid(T5Trainer):
    """Train Fusion-in-Decoder, a T5, on retrieved passages; torchrun -m ifqa for several GPUs.

    Attributes:
        gold: "retrieved": passages as they were retrieved; "included": if no gold passage is among them, the question's
            first gold passage replaces the last.
        micro_batch: passages that go through the encoder at once, 0 for all; it leaves the gradient the same except for
            dropout. With `recompute`, only the encoder's output of each micro-batch is kept.
    """

    recipes: ClassVar = {
        "ifqa": Recipe("one GPU; not tuned"),
        # FiD-large on Natural Questions: README:110-126, and src/options.py:20-31 for options the README does not name. FiD
        # trained on 64 GPUs with a question each and accumulated no gradients, so its steps are steps of the optimiser too
        "published": Recipe("FiD-large's", {
            "model": "google-t5/t5-large", "passages": 100, "steps": 15_000, "batch": 64, "learning_rate": 5e-5, "warmup": 1000,
            "evaluate_every": 500,
        }),
    }  # fmt: skip
    reader = "fid"

    gold: Gold = "retrieved"
    steps: Positive = 1000
    micro_batch: Natural = 16

    def read(self, question: Question, ranking: Sequence[Passage]) -> Sequence[Passage]:
        """The first passages, perhaps with a gold passage."""
        return training_passages(question, ranking, self.passages, self.gold)

    def texts(self, question: Question, passages: Sequence[Passage]) -> Sequence[str]:
        """The question with each passage."""
        return passage_inputs(question.text, passages[: self.passages], self.titles)
