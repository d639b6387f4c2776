"""Trains weights of the reader `choice` further, on questions and on their opposites, so that both
get answers that agree.

    python bench/choice_consistency.py models/choice-made data/choice/made-train.jsonl \
        --to models/choice-consistent

For an epoch, each question with a word of direction is read with a partner: one with the opposite
change, effect, or both, whose answer follows from its own ("no effect" stays). The loss has
`symmetry` times the mean difference of the log probabilities of both right answers (Asai and
Hajishirzi, ACL 2020, "Logic-Guided Data Augmentation and Regularization"; 0.5 there, also from the
second epoch on).
"""

import argparse
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ifqa.companions.wiqa.direction_lexicon import opposite
from ifqa.companions.wiqa.question_generation import word_stem
from ifqa.companions.wiqa.release import split_stem
from ifqa.companions.wiqa.trainers import Choice, select_multiple_choice
from ifqa.models.devices import Features
from ifqa.plugins import open_benchmark
from ifqa.protocols import NO_DATA, TrainingData
from ifqa.records import Passage, Question
from ifqa.settings import Positive
from ifqa.storage.files import sha256
from ifqa.training import checkpoints
from ifqa.training.trainer import configure_trainer

if TYPE_CHECKING:
    from torch import Tensor, nn

TURNED = {"more": "less", "less": "more"}


class ConsistentChoice(Choice):
    """`Choice` with a partner for each question, for one epoch."""

    class Settings(Choice.Settings):
        epochs: Positive = 1
        """Passes over the questions."""
        symmetry: float = 0.5
        """The weight of the mean difference of both log probabilities."""

    settings: Settings

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        dataset = select_multiple_choice(dataset)
        draw = random.Random(self.settings.seed)
        options = {place: partners(question) for place, question in enumerate(dataset.questions)}
        pairs = [
            (place, draw.choice(questions)) for place, questions in options.items() if questions
        ]
        self._partner = {place: len(options) + n for n, (place, _) in enumerate(pairs)}
        questions = [*dataset.questions, *(partner for _, partner in pairs)]
        rankings = [*dataset.rankings, *(dataset.rankings[place] for place, _ in pairs)]
        super().train(replace(dataset, questions=questions, rankings=rankings), folder, dev)

    def fit(
        self,
        model: "nn.Module",
        folder: Path,
        labels: Sequence[int],
        collate: Callable[[Sequence[int]], Features],
        logits: Callable[["nn.Module", Features], "Tensor"],
        warmup: float = 0.0,
        weight_decay: float = 0.0,
    ) -> dict[str, object]:
        import torch
        import torch.nn.functional as F

        def loss(model: "nn.Module", inputs: Features) -> "Tensor":
            right = inputs.pop("right")
            first = inputs.pop("first")
            second = inputs.pop("second")
            scores = logits(model, inputs).float()
            log_shares = scores.log_softmax(-1).gather(1, right[:, None]).squeeze(1)
            difference = (log_shares[first] - log_shares[second]).abs().sum() / max(1, len(first))
            return F.cross_entropy(scores, right) + self.settings.symmetry * difference

        def batch(rows: Sequence[int]) -> Features:
            first = [place for place, row in enumerate(rows) if row in self._partner]
            read = [*rows, *(self._partner[rows[place]] for place in first)]
            places = {
                "first": first,
                "second": [*range(len(rows), len(read))],
                "right": [labels[n] for n in read],
            }
            return collate(read) | {
                name: torch.tensor(numbers, dtype=torch.long) for name, numbers in places.items()
            }

        own = len(labels) - len(self._partner)
        rows = random.Random(self.settings.seed).sample(range(own), own)
        record = checkpoints.train_with_loss(
            loss,
            model,
            rows,
            batch,
            folder,
            self.step_settings(weight_decay=weight_decay, warmup=warmup),
        )
        return record | {"examples": len(labels)}


def partners(question: Question) -> list[Question]:
    """The questions with the opposite change, effect, or both, as far as the lexicon has a word to
    turn.
    """
    change, effect = split_stem(question.text)
    answer = question.answers[0]
    other_change = opposite(change)
    other_effect = opposite(effect)
    texts = [
        (other_change, effect, True),
        (change, other_effect, True),
        (other_change, other_effect, False),
    ]
    return [
        replace(
            question,
            id=f"{question.id}~",
            text=word_stem(first, second),
            answers=(TURNED.get(answer, answer) if turns else answer,),
        )
        for first, second, turns in texts
        if first and second
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("weights", help="a folder of ifqa train choice")
    parser.add_argument(
        "questions",
        help="a file of benchmark 'file', such as made-train.jsonl of choice_questions.py",
    )
    parser.add_argument("--to", type=Path, required=True, help="folder of the weights")
    arguments = parser.parse_args()
    source = open_benchmark("file")
    questions = source.questions(arguments.questions)
    files = {str(path): sha256(path) for path in source.files(arguments.questions)}
    paragraphs = [[Passage("", "", question.context)] for question in questions]
    trainer = configure_trainer(ConsistentChoice, encoder=arguments.weights)
    trainer.train(TrainingData(questions, paragraphs, "", files), arguments.to)
