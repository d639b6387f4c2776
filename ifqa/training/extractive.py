"""Trains the extractive reader (`ifqa.reading.span.reader`): on reading questions first, then on
counterfactual questions, with the help of a larger reader if there is one
(`ifqa.training.teacher`).
"""

import logging
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ifqa.errors import ConfigError, FormatError
from ifqa.formats.questions import read_questions
from ifqa.models.places import MINILM
from ifqa.models.span_encoder import EncoderFiles, find_encoder
from ifqa.protocols import NO_DATA, PathSetting, TrainerFlag, TrainingData
from ifqa.reading.span.reader import weights_folder
from ifqa.reading.span.weights import (
    fingerprint_weights,
    load_mixture,
    load_span_manifest,
    resolve_encoder,
)
from ifqa.records import Question
from ifqa.settings import Natural, NotNegative, PartShare, Positive
from ifqa.storage.files import sha256
from ifqa.training import checkpoints
from ifqa.training.trainer import EpochTrainer, refuse_family, require_any, shuffle_batches

if TYPE_CHECKING:
    from ifqa.training.extractive_phase import Example
    from ifqa.training.teacher import Teacher

logger = logging.getLogger(__name__)

READING = "reading"  # the first phase's folder, in the training's
SEEDS = "seeds"  # the folder of the trainings to average
#: The heads' rate as a multiple of the encoder's in the first phase: fresh heads need larger steps
#: than trained weights.
_HEADS = 5.0
_WORDS = 190  # most words in a reading question's context; more do not fit the reader


class Extractive(EpochTrainer):
    """Train the span reader on all-MiniLM-L6-v2, or on another encoder: --set
    encoder=all-mpnet-base-v2.
    """

    runtime_only = (
        "encoder",
        "reading",
        "start",
        "reading_epochs",
        "reading_rate",
        "reading_batch",
        "teacher",
        "teacher_share",
        *EpochTrainer.runtime_only,
    )
    retrieved = 20

    class Settings(EpochTrainer.Settings):
        encoder: PathSetting = MINILM
        """The encoder: "all-MiniLM-L6-v2", "all-mpnet-base-v2", or a folder with a BERT, MPNet,
        ModernBERT or DeBERTa-v3 (`ifqa.models.span_encoder`).
        """
        reading: Annotated[Sequence[PathSetting], TrainerFlag()] = ()
        """Files of reading questions to train on first, compressed or not: SQuAD's .json, or rows
        (.jsonl, .json) with question, context and answers.

        Each has a passage; one without answers has none there. They train all of the encoder's
        layers; the result stays in the folder `reading`.
        """
        start: PathSetting = ""
        """The folder to start from: such a folder `reading`, or weights that ship with ifqa,
        "shipped" or "extractive-large". Questions without a split family, such as your own, may go
        on from weights of any family, and the result is of that family.
        """
        average: Positive = 1
        """The number of trainings after the reading questions, with consecutive seeds, whose
        weights are averaged (Wortsman et al. 2022, "Model soups"). They stay in the folder `seeds`
        until the last is done.
        """
        start_share: PartShare = 0.0
        """The start's share in the averaged weights (Wortsman et al. 2022, "Robust fine-tuning of
        zero-shot models"). Training on the counterfactual questions, whose passages are of one
        kind, unlearns other kinds, such as documents.
        """
        teacher: PathSetting = ""
        """Weights of a span reader whose probabilities are learned beside the answers, such as
        "extractive-large" (distillation; Hinton et al. 2015). Its encoder needs the same tokens. It
        reads each passage once.
        """
        teacher_share: PartShare = 0.9
        """The teacher's part of the loss, if there is a teacher."""
        epochs: Natural = 4
        """Passes over the questions; 0 stops after the reading questions."""
        rank: Positive = 64
        """The rank of the stored adapters."""
        learning_rate: NotNegative = 5e-4
        """The highest learning rate, after a tenth of the steps; it then falls to 0."""
        negatives: Natural = 1
        """Negatives per question and pass, up to 4."""
        without_gold: PartShare = 0.2
        """The share of a question's passes that read its negatives alone, where no candidate is
        right.
        """
        batch: Positive = 8
        """Questions per step of AdamW."""
        dropout: PartShare = 0.1
        """The share of dropped features."""
        weight_decay: NotNegative = 0.01
        """The weight decay of AdamW."""
        device: str = "cpu"
        """The device: "cpu", "cuda", or "auto" for a GPU if present. The bundled weights come from
        a CPU with bfloat16; on other hardware the last digits and a few answers differ.
        """
        reading_epochs: Positive = 2
        """Passes over the reading questions."""
        reading_rate: NotNegative = 1.5e-4
        """The highest learning rate on reading questions; five times as high for the heads."""
        reading_batch: Positive = 16
        """Reading questions per step."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.reading or settings.start:
            return
        wanted = "a common start of the trainings; name --reading FILE or --set start=FOLDER"
        if settings.average > 1:
            raise ConfigError(f"average = {settings.average}: wanted {wanted}")
        if settings.start_share:
            raise ConfigError(f"start_share = {settings.start_share:g}: wanted {wanted}")

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        from ifqa.training.extractive_phase import Example

        settings = self.settings
        encoder = find_encoder(settings.encoder)
        require_any(
            dataset,
            lambda question: question.answers and Example(encoder.folder, question).has_target,
            "its answer in a gold passage",
        )
        checkpoints.refuse_foreign_weights(folder)
        if settings.start:
            start = weights_folder(settings.start)
            if dataset.family:
                refuse_family(settings.start, load_span_manifest(start)["family"], dataset)
            fingerprint_weights(start)  # raises if a file is missing
            resolve_encoder(start, settings.encoder)
        if settings.teacher:
            teacher = weights_folder(settings.teacher)
            refuse_family(settings.teacher, load_span_manifest(teacher)["family"], dataset)
            resolve_encoder(teacher)
        _ = self._reading_questions

    def train(
        self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA
    ) -> dict[str, object]:
        """Train, and write `adapter.safetensors`, `heads.safetensors` and `manifest.json`.

        Returns the manifest.

        Random choices depend only on the seed and the step. Questions without a target are left
        out. Ranked passages should be like gold passages, such as BM25's over all gold passages, or
        the network learns to tell the two kinds apart.
        """
        import torch

        from ifqa.training.extractive_phase import Example, open_network, train_phase

        self.check_data(dataset, folder)
        settings = self.settings
        encoder = find_encoder(settings.encoder)
        start = str(weights_folder(settings.start)) if settings.start else ""
        pairs = zip(dataset.questions, dataset.rankings, strict=True)
        examples = [
            example for pair in pairs if (example := Example(encoder.folder, *pair)).has_target
        ]
        if settings.reading:
            self._train_reading(folder / READING, encoder, start)
            start = str(folder / READING)
        inputs = {
            "reader": "extractive",
            "encoder": encoder.identity,
            "start": None,
            "teacher": self._record_teacher(),
            **self.inputs(dataset),
        }
        if start:
            inputs |= _record_start(Path(start), dataset.family)
        if not checkpoints.begin_training(folder, inputs):
            shutil.rmtree(folder / SEEDS, ignore_errors=True)  # left by a kill after the manifest
            return load_span_manifest(folder)
        if settings.average > 1 or settings.start_share:
            return self._train_averaged(dataset, folder, encoder, start, inputs)
        seed = settings.seed
        teacher = self._open_teacher(examples) if settings.teacher else None
        model = open_network(encoder, start, seed, settings.dropout)
        model.encoder.add_adapters(settings.rank, torch.Generator().manual_seed(seed))
        passes = (
            shuffle_batches(
                examples, settings.batch, f"{seed} {epoch}", lambda example: example.length
            )
            for epoch in range(settings.epochs)
        )
        batches = [*chain.from_iterable(passes)]
        logger.info(
            f"{len(examples)} of {len(dataset.questions)} questions have a target; "
            f"{len(batches)} steps"
        )
        return train_phase(
            model,
            batches,
            lambda example: example,
            folder,
            inputs,
            self.step_settings(weight_decay=settings.weight_decay),
            count=len(examples),
            negatives=settings.negatives,
            without_gold=settings.without_gold,
            teacher_loss=teacher.loss if teacher else None,
            teacher_share=settings.teacher_share,
        )

    def _record_teacher(self) -> dict[str, object] | None:
        """What a manifest says of the teacher, if there is one."""
        if not self.settings.teacher:
            return None
        teacher = weights_folder(self.settings.teacher)
        return {**_record_weights(teacher), "share": self.settings.teacher_share}

    def _open_teacher(self, examples: Sequence["Example"]) -> "Teacher":
        from ifqa.training.teacher import open_teacher

        folder = weights_folder(self.settings.teacher)
        teacher = open_teacher(folder, resolve_encoder(folder), self.device)
        for example in examples:
            teacher.check_tokens(example.gold[0])
        return teacher

    def _train_averaged(
        self,
        dataset: TrainingData,
        folder: Path,
        encoder: EncoderFiles,
        start: str,
        inputs: dict[str, object],
    ) -> dict[str, object]:
        from ifqa.training.extractive_phase import open_network, save_training

        settings = self.settings
        first = settings.seed
        folders = {
            seed: folder / SEEDS / str(seed) for seed in range(first, first + settings.average)
        }
        single: dict[str, Any] = {"average": 1, "start_share": 0.0, "reading": (), "start": start}
        manifests = [
            Extractive(settings.model_copy(update={**single, "seed": seed})).train(dataset, place)
            for seed, place in folders.items()
        ]
        shares = {place: (1 - settings.start_share) / len(folders) for place in folders.values()}
        if settings.start_share:
            shares[Path(start)] = settings.start_share
        model = open_network(encoder, "", first, settings.dropout)
        load_mixture(model, shares)
        record = {key: manifests[0][key] for key in ("examples", "steps", "precision")}
        if (log := folders[first] / checkpoints.LOG).exists():
            shutil.copyfile(log, folder / checkpoints.LOG)
        manifest = save_training(model, folder, inputs, record)
        shutil.rmtree(folder / SEEDS)
        return manifest

    @cached_property
    def _reading_questions(self) -> tuple[list[Question], int]:
        """The reading questions whose passages fit the reader, and the number of all reading
        questions.
        """
        files = self.settings.reading
        questions = [question for path in files for question in read_questions(Path(path))]
        sizes = [[len(text.split()) for text in question.gold_passages] for question in questions]
        fitting = [
            question
            for question, words in zip(questions, sizes, strict=True)
            if words and max(words) <= _WORDS
        ]
        if files and not fitting:
            problem = (
                f"none of {len(questions)} reading questions has a passage "
                f"of at most {_WORDS} words"
            )
            raise FormatError(
                f"{files[0]}: {problem}; wanted rows with question, context and answers"
            )
        return fitting, len(questions)

    def _train_reading(self, folder: Path, encoder: EncoderFiles, start: str) -> None:
        """The first phase: train all weights of the encoder's layers on reading questions, from
        `start` if there is one.
        """
        from ifqa.training.extractive_phase import Example, open_network, train_phase

        questions, count = self._reading_questions
        logger.info(
            f"{len(questions):,} of {count:,} reading questions have a "
            f"passage of at most {_WORDS} words"
        )
        settings = self.settings
        seed = settings.seed
        epochs = settings.reading_epochs
        size = settings.reading_batch
        inputs: dict[str, object] = {
            "reader": "extractive",
            "encoder": encoder.identity,
            "family": "",
            "start": None,
            "sources": {Path(path).name: sha256(Path(path)) for path in settings.reading},
            "rows": _count_labels(questions, "source"),
            "licences": _count_labels(questions, "licence"),
            "settings": {
                "seed": seed,
                "epochs": epochs,
                "learning_rate": settings.reading_rate,
                "batch": size,
                "dropout": settings.dropout,
                "weight_decay": settings.weight_decay,
                "rank": settings.rank,
            },
        }
        if start:
            inputs |= _record_start(Path(start), "")
        if not checkpoints.begin_training(folder, inputs):
            return
        model = open_network(encoder, start, seed, settings.dropout)
        model.encoder.train_layers()

        def characters(question: Question) -> int:
            return len(question.text) + max(map(len, question.gold_passages))

        passes = (
            shuffle_batches(questions, size, f"{seed} reading {number}", characters)
            for number in range(epochs)
        )
        train_phase(
            model,
            [*chain.from_iterable(passes)],
            partial(Example, encoder.folder),
            folder,
            inputs,
            self.step_settings(
                learning_rate=settings.reading_rate, weight_decay=settings.weight_decay
            ),
            count=len(questions),
            heads=_HEADS,
        )


def _record_start(start: Path, family: str) -> dict[str, object]:
    """What a manifest says of the weights that a training goes on from.

    `family` is that of its questions.
    """
    record = _record_weights(start)
    return {"start": record, "family": family or record["trained"]["family"]}


def _record_weights(folder: Path) -> dict[str, Any]:
    """What a manifest says of other weights that a training used."""
    return {"sha256": fingerprint_weights(folder), "trained": load_span_manifest(folder)}


def _count_labels(questions: Sequence[Question], label: str) -> dict[str, int]:
    return dict(
        sorted(Counter(question.label(label) or "not named" for question in questions).items())
    )
