"""Training the extractive reader (`ifqa.reading.span.reader`): reading questions first, then counterfactual questions."""

import logging
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.formats.questions import read_questions
from ifqa.models.encoders import EncoderFiles, find_encoder
from ifqa.models.hub import MINILM
from ifqa.protocols import NO_DATA, PathSetting, TrainerFlag, TrainingData
from ifqa.reading.span.weights import fingerprint_weights, load_span_manifest, load_weights, resolve_encoder
from ifqa.records import Question
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.storage.files import sha256
from ifqa.training import checkpoints
from ifqa.training.pretraining_questions import make_pretraining_questions
from ifqa.training.trainer import EpochTrainer, refuse_family, require_any, shuffle_batches

logger = logging.getLogger(__name__)

READING = "reading"  # the folder of the first phase, in that of the training
SEEDS = "seeds"  # that of the trainings that are averaged
#: The heads' rate in the first phase, times the encoder's, whose weights need smaller steps than fresh heads.
_HEADS = 5.0
_WORDS = 190  # of a reading question's context; more do not fit the reader


@dataclass(kw_only=True)
class Extractive(EpochTrainer):
    """Train the span reader on all-MiniLM-L6-v2, or on another encoder: --set encoder=all-mpnet-base-v2.

    Attributes:
        encoder: what is trained: "all-MiniLM-L6-v2", "all-mpnet-base-v2", or a folder with a BERT or an MPNet
            (`ifqa.models.encoders`).
        reading: files of reading questions, as `ifqa.formats.questions.read_questions` reads them, each with its passage and
            its answer in it. They are trained on before the training questions, with all weights of the encoder's layers,
            and the result is kept in the folder `reading` of the weights, from which another training can start.
        start: a folder that such a training wrote, to start from instead.
        average: trainings after the reading questions, each with the next seed, whose weights are averaged (Wortsman et al. 2022,
            "Model soups"). They lie in the folder `seeds` until the last is done.
        practice: practice questions per training passage (`ifqa.training.pretraining_questions`), trained on once at the start.
        rank, negatives, dropout, weight_decay: rank of what is stored, negatives per question in each pass, share of features
            dropped, AdamW's decay.
        reading_epochs, reading_rate, reading_batch: as epochs, learning_rate and batch, of the reading questions. The heads' rate
            is five times as high.
        device: the bundled weights were trained on a CPU that multiplies in bfloat16; on other hardware the last digits differ,
            and so do a few answers.
    """

    runtime_only = (
        "encoder", "reading", "start", "reading_epochs", "reading_rate", "reading_batch", *EpochTrainer.runtime_only,
    )  # fmt: skip
    retrieved = 20

    encoder: PathSetting = MINILM
    reading: Annotated[
        Sequence[PathSetting],
        TrainerFlag(
            "Reading questions to train on first: SQuAD's .json, or rows (.jsonl, .json) with question, context and answers, "
            "packed or not. Repeatable."
        ),
    ] = ()
    start: PathSetting = ""
    average: Positive = 1
    epochs: Positive = 4
    rank: Positive = 64
    learning_rate: NotNegative = 5e-4
    negatives: Natural = 1
    batch: Positive = 8
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    practice: Natural = 2
    weight_decay: NotNegative = 0.01
    reading_epochs: Positive = 2
    reading_rate: NotNegative = 1.5e-4
    reading_batch: Positive = 16

    def __post_init__(self) -> None:
        """Refuse two starts, and an average without one."""
        super().__post_init__()
        if self.reading and self.start:
            raise IfqaError("wanted reading questions or a start, found both; a start has read its questions already")
        if self.average > 1 and not (self.reading or self.start):
            raise IfqaError(
                f"average = {self.average}: wanted a common start of what is averaged; name --reading FILE or --set start=FOLDER"
            )

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Refuse questions without a target, a start of another family or encoder, and reading questions that do not fit."""
        from ifqa.training.extractive_loop import Example

        encoder = find_encoder(self.encoder)
        require_any(data, lambda question: Example(encoder.folder, question).has_target, "its answer in a gold passage")
        checkpoints.refuse_foreign_weights(folder)
        if self.start:
            start = Path(self.start)
            refuse_family(self.start, load_span_manifest(start)["family"], data)
            fingerprint_weights(start)  # all of its files are there
            resolve_encoder(start, self.encoder)
        _ = self._questions

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> dict[str, object]:
        """Train, and write `adapter.safetensors`, `heads.safetensors` and `manifest.json` (see `ifqa.reading.span.weights`).

        All draws depend only on the seed and the number of the step. Questions are left out if no gold passage contains the
        answer or a span near it, and the answer cannot be computed. The rankings should hold passages of the same kind as the
        gold passages, as BM25 over the gold passages of all training questions gives, or the network learns to tell the two
        kinds apart. A question's own gold passages and passages that contain an answer are no negatives. It gives the manifest.
        """
        import torch

        from ifqa.training.extractive_loop import Example, Schedule, open_network, train_phase

        self.check_data(data, folder)
        encoder, start = find_encoder(self.encoder), self.start
        pairs = zip(data.questions, data.rankings, strict=True)
        examples = [example for pair in pairs if (example := Example(encoder.folder, *pair)).has_target]
        if self.reading:
            start = str(folder / READING)
            self._read(Path(start), encoder)
        inputs = {"reader": "extractive", "encoder": encoder.identity} | self.inputs(data)
        if start:
            inputs["start"] = {"sha256": fingerprint_weights(Path(start)), "trained": load_span_manifest(Path(start))}
        if not checkpoints.begin_training(folder, inputs):
            return load_span_manifest(folder)
        if self.average > 1:
            return self._averaged(data, folder, encoder, start, inputs)
        texts = list(dict.fromkeys(text for question in data.questions for text in question.gold_passages))
        practice = make_pretraining_questions(texts, self.seed, self.practice) if self.practice else ()
        warm_up = [example for question in practice if (example := Example(encoder.folder, question)).has_target]
        rounds = [warm_up, *[examples] * self.epochs]
        model = open_network(encoder, start, self.seed, self.dropout)
        model.encoder.add_adapters(self.rank, torch.Generator().manual_seed(self.seed))
        steps = sum(-(-len(some) // self.batch) for some in rounds)
        plan = Schedule(
            self.seed, steps, self.learning_rate, 1.0, self.weight_decay, self.negatives, self.checkpoint_every
        )
        logger.info(f"{len(examples)} of {len(data.questions)} questions have a target; {plan.steps} steps")
        groups = chain.from_iterable(
            shuffle_batches(some, self.batch, f"{self.seed} {number}", lambda example: example.length)
            for number, some in enumerate(rounds)
        )
        return train_phase(model, groups, lambda example: example, plan, folder, inputs, self.device, len(examples))

    def _averaged(
        self, data: TrainingData, folder: Path, encoder: EncoderFiles, start: str, inputs: dict[str, object]
    ) -> dict[str, object]:
        """Train with each seed, and write the mean of their weights."""
        from ifqa.training.extractive_loop import open_network, save_training

        places = {seed: folder / SEEDS / str(seed) for seed in range(self.seed, self.seed + self.average)}
        single = replace(self, average=1, reading=(), start=start)
        manifests = [replace(single, seed=seed).train(data, place) for seed, place in places.items()]
        model = open_network(encoder, "", self.seed, self.dropout)
        load_weights(model, *places.values())
        record = {key: manifests[0][key] for key in ("examples", "steps", "precision")}
        manifest = save_training(model, folder, inputs, record)
        for place in places.values():
            shutil.rmtree(place)
        return manifest

    @cached_property
    def _questions(self) -> tuple[list[Question], int]:
        """The reading questions whose passages fit the reader, and how many there are in all; none without files."""
        every = [question for path in self.reading for question in read_questions(Path(path))]
        fitting = [
            question
            for question in every
            if (texts := question.gold_passages) and all(len(text.split()) <= _WORDS for text in texts)
        ]
        if self.reading and not fitting:
            raise IfqaError(
                f"{self.reading[0]}: none of {len(every)} reading questions has a passage of at most {_WORDS} words; wanted "
                "rows with question, context and answers"
            )
        return fitting, len(every)

    def _read(self, folder: Path, encoder: EncoderFiles) -> None:
        """The first phase: train all weights of the encoder's layers on reading questions."""
        from ifqa.training.extractive_loop import Example, Schedule, open_network, train_phase

        questions, count = self._questions
        logger.info(f"{len(questions):,} of {count:,} reading questions have a passage of at most {_WORDS} words")
        seed, epochs, size = self.seed, self.reading_epochs, self.reading_batch
        inputs = {
            "reader": "extractive",
            "encoder": encoder.identity,
            "family": "",
            "sources": {Path(path).name: sha256(Path(path)) for path in self.reading},
            "rows": _count_labels(questions, "source"),
            "licences": _count_labels(questions, "licence"),
            "settings": {"seed": seed, "epochs": epochs, "learning_rate": self.reading_rate, "batch": size,
                         "dropout": self.dropout, "weight_decay": self.weight_decay, "rank": self.rank},
        }  # fmt: skip
        if not checkpoints.begin_training(folder, inputs):
            return
        model = open_network(encoder, "", seed, self.dropout)
        model.encoder.train_layers()
        steps = epochs * -(-len(questions) // size)
        plan = Schedule(seed, steps, self.reading_rate, _HEADS, self.weight_decay, 0, self.checkpoint_every)

        def characters(question: Question) -> int:
            return len(question.text) + max(map(len, question.gold_passages))

        passes = [shuffle_batches(questions, size, f"{seed} reading {number}", characters) for number in range(epochs)]
        encode, groups = partial(Example, encoder.folder), chain.from_iterable(passes)
        train_phase(model, groups, encode, plan, folder, inputs, self.device, len(questions))


def _count_labels(questions: Sequence[Question], label: str) -> dict[str, int]:
    """The number of questions of each value of a label."""
    return dict(sorted(Counter(question.label(label) or "not named" for question in questions).items()))
