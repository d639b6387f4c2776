"""Trains UnifiedQA (`ifqa.reading.unifiedqa`) as CausalQA did, with the trainer of `ifqa.training.t5`.

Line numbers are those of finetuning/train_unifiedqa.py in webis-de/coling22-benchmark-for-causal-question-answering at
fc72cfd8743d.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ifqa.protocols import NO_DATA, TrainingData
from ifqa.reading.t5.checkpoint import DEFAULT
from ifqa.reading.unifiedqa import MAX_ANSWER, first_answer, input_text
from ifqa.records import Passage, Question
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training.t5 import T5Trainer

LARGE = 50_000  # questions from which a training takes the longer of the published numbers of steps
STEPS, SHORT = 60_000, 6_000  # as Bondarenko et al. (COLING 2022) say; the code's default is the shorter (16)


@dataclass(kw_only=True)
class UnifiedQA(T5Trainer):
    """Train UnifiedQA, a T5 that reads question and context as one text, as CausalQA did; needs a GPU.

    The input is `ifqa.reading.unifiedqa.input_text`, the target all answers of a question, joined by tabs. The loss is the mean
    over the tokens of a step's targets. The settings are CausalQA's (9-27, 68-76), the rest transformers' defaults; CausalQA kept
    the last checkpoint (73).

    Attributes:
        steps: 0 for the published number: 60,000, or 6,000 with less than 50,000 questions.
        max_target: most tokens of a target, which is all answers of a question, joined by tabs (47-49).
    """

    benchmark = "causalqa"
    split = "original-train"
    corpus = ""
    dev = ""
    part = "dataset"
    recipe = "published"
    reader = "unifiedqa"
    by_token = True

    model: str = DEFAULT["unifiedqa"]
    steps: Natural = 0
    batch: Positive = 2
    learning_rate: NotNegative = 5e-5
    warmup: NotNegative = 0.0
    weight_decay: NotNegative = 0.0
    max_tokens: Positive = 2048
    max_target: Positive = 100
    evaluate_every: Positive = 1000
    seed: Natural = 42
    device_batch: Positive = 2
    recompute: bool = False

    @property
    def max_answer(self) -> int:
        """That of the reader."""
        return MAX_ANSWER

    def texts(self, question: Question, passages: Sequence[Passage]) -> Sequence[str]:
        """Question and passages as one text."""
        return [input_text(question, passages[: self.passages], self.titles)]

    def targets(self, question: Question) -> list[str]:
        """The one target of a question, all its answers joined by tabs; none for a question without answers."""
        answers = super().targets(question)
        return ["\t".join(answers)] if answers else []

    def answer(self, text: str) -> str:
        """The first of the answers that the network wrote."""
        return first_answer(text)

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train for the published number of steps, if none is set."""
        if not self.steps:
            count = sum(1 for question in data.questions if self.targets(question))
            return replace(self, steps=published_steps(count)).train(data, folder, dev)
        return super().train(data, folder, dev)


def published_steps(questions: int) -> int:
    """The steps of a training on this many questions."""
    return SHORT if questions < LARGE else STEPS
