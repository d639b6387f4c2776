"""Trains a T5 to generate answers, with transformers' trainer: Fusion-in-Decoder and UnifiedQA."""

import logging
import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ifqa.errors import ConfigError
from ifqa.formatting import one_decimal
from ifqa.models.causal_lm import base_model
from ifqa.models.devices import Features, resolve_device
from ifqa.models.loading import weights_fingerprint
from ifqa.protocols import NO_DATA, Recipe, TrainingData
from ifqa.reading.t5 import checkpoint as t5
from ifqa.reading.t5.readers import first_answer, input_text, passage_inputs
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.settings import Natural, NotNegative, PluginSettings, Positive
from ifqa.training import checkpoints
from ifqa.training.trainer import (
    BaseTrainer,
    fingerprint_questions,
    refuse_family,
    require_any,
    training_passages,
)

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import Seq2SeqTrainer


logger = logging.getLogger(__name__)

_MEND = "name a T5 with --set model=DIR"
LARGE = 50_000  # with this many questions or more, CausalQA trained for STEPS
# From Bondarenko et al. (COLING 2022); their code defaults to the shorter (16)
STEPS, SHORT = 60_000, 6_000


class T5Trainer(BaseTrainer):
    """A trainer of a T5; a subclass defines the inputs and the targets."""

    runtime_only = ("device", "device_batch", "recompute")
    corpus = "ifqa-gold"
    dev = "full-dev"
    takes_experiment = True

    reader: ClassVar[str]
    # Tokens of an answer to a dev question, including the start token
    max_answer: ClassVar[int] = 50
    #: Whether the loss is the mean over a step's target tokens, as in transformers' T5, or over
    #: questions' means, as in FiD.
    by_token: ClassVar[bool] = False
    # a subclass may take these from its settings
    max_target = 0  # most tokens of a target; 0 for no limit
    rank = 0
    gold = "retrieved"

    class Settings(PluginSettings):
        model: str = "google/flan-t5-base"
        """The start: a T5 on the hub, or a checkpoint of the reader."""
        passages: Positive = 20
        """Passages retrieved per question."""
        steps: Natural
        """Steps of the optimiser, AdamW."""
        batch: Positive = 32
        """Questions per step, over all devices and micro-steps."""
        learning_rate: NotNegative = 1e-4
        """The highest learning rate; it then falls linearly to 0."""
        warmup: NotNegative = 0.1
        """Steps before the highest rate; below 1, a share of all steps."""
        weight_decay: NotNegative = 0.01
        """The weight decay of AdamW."""
        clip: NotNegative = 1.0
        """The norm that gradients are clipped to."""
        max_tokens: Positive = 250
        """Most tokens of question and passage together."""
        seed: Natural = 0
        """The seed for the order, the drawn answers and dropout."""
        titles: bool = True
        """Whether to read titles."""
        evaluate_every: Positive = 100
        """Steps between checkpoints; each answers the dev questions."""
        device: str = "auto"
        """The device: "cpu", "cuda", or "auto" for a GPU if present; in bfloat16 if the hardware
        supports it.
        """
        device_batch: Positive = 1
        """Questions in a forward pass; changes the gradient only by dropout."""
        recompute: bool = True
        """Whether to recompute the encoder's layers for the gradient, to save memory."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        if settings.steps:
            every = min(settings.evaluate_every, settings.steps)
            settings = settings.model_copy(update={"evaluate_every": every})
        super().__init__(settings)
        t5.Conventions(settings.max_tokens)
        if settings.batch % (size := settings.device_batch * checkpoints.rank_and_world_size()[1]):
            wanted = f"wanted a multiple of {size}, the questions in a forward pass"
            raise ConfigError(f"training setting batch: {wanted}, found {settings.batch}")
        self.device = resolve_device(settings.device)
        self.retrieved = settings.passages

    def texts(self, question: Question, passages: Sequence[Passage]) -> Sequence[str]:
        settings = self.settings
        return passage_inputs(question.text, passages[: settings.passages], settings.titles)

    def targets(self, question: Question) -> list[str]:
        """The right answers; each pass over the questions draws a target from them."""
        return [answer for answer in question.answers if answer.strip()]

    def answer(self, text: str) -> str:
        return text

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        require_any(dataset, self.targets, "an answer")
        model = self.settings.model
        start = t5.checkpoint_folder(model, self.reader, _MEND)
        refuse_family(model, t5.load_t5_manifest(start, self.reader).family, dataset)

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write the best checkpoint by exact match on dev, or else the last.

        Each pass draws new targets (FiD src/data.py:30-36). Questions without answers are left out.
        """
        import torch

        self.check_data(dataset, folder)
        settings = self.settings
        start = t5.open_checkpoint(
            settings.model, reader=self.reader, mend=_MEND, merged=not self.rank
        )
        inputs = self.inputs(dataset) | {
            "recipe": self.recipe,
            "dev": fingerprint_questions(dev),
            "start": {"name": settings.model, "sha256": start.fingerprint} | start.training,
        }
        if self.rank:
            base = base_model(start.adapter) if start.adapter else settings.model
            inputs["base"] = {
                "name": base,
                "sha256": weights_fingerprint(start.weights, only_weights=True),
            }
        if not checkpoints.begin_training(folder, inputs):
            return
        conventions = t5.Conventions(
            settings.max_tokens, settings.titles, start.conventions.encoder_eos
        )
        usable = dataset.select(
            [n for n, question in enumerate(dataset.questions) if self.targets(question)]
        )
        rows = TrainingRows(self, usable, start.tokenizer, conventions)
        network: Any = start.model
        if self.rank:
            network = checkpoints.add_adapter(
                network, self.rank, settings.seed, start.adapter, start.weights
            )
        trainer = _trainer(self, rows, dev, network, folder)
        try:
            record = checkpoints.run_trainer(trainer, folder)
        except torch.OutOfMemoryError as error:
            problem = (
                f"{settings.passages} passages of {settings.max_tokens} tokens do not fit into the "
                f"memory of {self.device}"
            )
            mend = "resume with --set device_batch=1 --set recompute=true, or use fewer passages"
            raise ConfigError(f"{folder}: {problem}; {mend}") from error
        if checkpoints.rank_and_world_size()[0] == 0:
            if dev.questions:
                step = trainer.state.best_global_step
                em = trainer.state.best_metric
                record |= {"best_step": step, "dev_EM": em}
                logger.info(
                    f"{folder}: keeping the weights of step {step}, EM {one_decimal(em)} on dev"
                )
            inputs |= {"conventions": asdict(conventions)}
            if self.rank:
                checkpoints.save_adapter(trainer.model, folder, base)
            else:
                trainer.model.save_pretrained(folder)
                start.tokenizer.save_pretrained(folder)
            weights = ["model*.safetensors", "adapter_*"]
            checkpoints.finish_training(folder, inputs, record | {"device": self.device}, weights)


class Fid(T5Trainer):
    """Train Fusion-in-Decoder, a T5, on retrieved passages; for several GPUs, run torchrun -m
    ifqa.
    """

    recipes: ClassVar = {
        "ifqa": Recipe("one GPU; not tuned"),
        # FiD-large on Natural Questions: README:110-126, and src/options.py:20-31 for other
        # options. FiD trained on 64 GPUs with a question each and no gradient accumulation, so its
        # steps are the optimiser's
        "published": Recipe(
            "as published for FiD-large",
            {
                "model": "google-t5/t5-large",
                "passages": 100,
                "steps": 15_000,
                "batch": 64,
                "learning_rate": 5e-5,
                "warmup": 1000,
                "evaluate_every": 500,
            },
        ),
    }
    reader = "fid"

    class Settings(T5Trainer.Settings):
        gold: Literal["retrieved", "included"] = "retrieved"
        """With "included", the first gold passage replaces the last passage if none was
        retrieved.
        """
        steps: Positive = 1000
        """Steps of the optimiser, AdamW."""
        rank: Natural = 0
        """The rank of adapters (LoRA) on the layers, the only weights trained then; 0 to train all
        weights.
        """

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.gold = settings.gold
        self.rank = settings.rank


class UnifiedQA(T5Trainer):
    """Train UnifiedQA, a T5 that reads question and context as one text, as CausalQA did.

    Needs a GPU.

    The input is `ifqa.reading.t5.readers.input_text`; the target is all answers, joined by tabs.
    The settings are those of finetuning/train_unifiedqa.py (9-27, 68-76) in
    webis-de/coling22-benchmark-for-causal-question-answering at fc72cfd8743d, or transformers'
    defaults; CausalQA kept the last checkpoint (73).
    """

    benchmark = "causalqa"
    split = "original-train"
    corpus = ""
    dev = ""
    part = "dataset"
    recipe = "published"
    reader = "unifiedqa"
    by_token = True
    max_answer = 500

    class Settings(T5Trainer.Settings):
        model: str = t5.DEFAULT_CHECKPOINTS["unifiedqa"]
        """The start: a T5 on the hub, or a checkpoint of the reader."""
        steps: Natural = 0
        """Steps of the optimiser, AdamW; 0 for the published number: 60,000, or 6,000 with fewer
        than 50,000 questions.
        """
        batch: Positive = 2
        """Questions per step, over all devices and micro-steps."""
        learning_rate: NotNegative = 5e-5
        """The highest learning rate; it then falls linearly to 0."""
        warmup: NotNegative = 0.0
        """Steps before the highest rate; below 1, a share of all steps."""
        weight_decay: NotNegative = 0.0
        """The weight decay of AdamW."""
        max_tokens: Positive = 2048
        """Most tokens of question and context together."""
        max_target: Positive = 100
        """Most tokens of a target (47-49)."""
        evaluate_every: Positive = 1000
        """Steps between checkpoints; each answers the dev questions."""
        seed: Natural = 42
        """The seed for the order, the drawn answers and dropout."""
        device_batch: Positive = 2
        """Questions in a forward pass; changes the gradient only by dropout."""
        recompute: bool = False
        """Whether to recompute the encoder's layers for the gradient, to save memory."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.max_target = settings.max_target

    def texts(self, question: Question, passages: Sequence[Passage]) -> Sequence[str]:
        settings = self.settings
        return [input_text(question, passages[: settings.passages], settings.titles)]

    def targets(self, question: Question) -> list[str]:
        answers = super().targets(question)
        return ["\t".join(answers)] if answers else []

    def answer(self, text: str) -> str:
        return first_answer(text)

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        if self.settings.steps:
            return super().train(dataset, folder, dev)
        count = sum(1 for question in dataset.questions if self.targets(question))
        settings = self.settings.model_copy(update={"steps": published_steps(count)})
        return UnifiedQA(settings).train(dataset, folder, dev)


def published_steps(questions: int) -> int:
    return SHORT if questions < LARGE else STEPS


class TrainingRows:
    """The rows of all steps in training order; each pass over the questions draws new targets."""

    def __init__(
        self, trainer: T5Trainer, dataset: TrainingData, tokenizer: Any, conventions: t5.Conventions
    ) -> None:
        self.trainer = trainer
        self.dataset = dataset
        self.tokenizer = tokenizer
        self.conventions = conventions
        self._inputs: dict[int, list[list[int]]] = {}  # question's index -> token ids of its inputs
        self._targets: list[tuple[int, str]] = []  # each row's question, by index, and target
        questions = dataset.questions
        batch = trainer.settings.batch
        for epoch in range(-(-len(self) // max(1, len(questions)))):
            draw = random.Random(f"{trainer.settings.seed} {epoch}")
            order = draw.sample(range(len(questions)), len(questions))
            self._targets += [(n, draw.choice(trainer.targets(questions[n]))) for n in order]
        for start in range(
            0, len(self), batch
        ):  # rows of similar length share a forward pass, with less padding
            step = self._targets[start : start + batch]
            self._targets[start : start + batch] = sorted(
                step, key=lambda row: self._length(row[0])
            )

    def _length(self, index: int) -> int:
        """About the characters of a question's passages."""
        question = self.dataset.questions[index]
        ranking = self.dataset.rankings[index]
        texts = [
            passage.text for passage in ranking[: self.trainer.settings.passages]
        ] or question.gold_passages[:1]
        return sum(map(len, texts))

    def __len__(self) -> int:
        return self.trainer.settings.steps * self.trainer.settings.batch

    def __getitem__(self, row: int) -> dict[str, object]:
        """Token ids of a question's inputs and of its target, and for a loss by token a weight."""
        (index, target) = self._targets[row]
        trainer = self.trainer
        if index not in self._inputs:
            question = self.dataset.questions[index]
            ranking = self.dataset.rankings[index]
            shown = training_passages(
                question, ranking, trainer.settings.passages, trainer.gold == "included"
            )
            self._inputs[index] = self._tokens(question, shown)
        label = self._label(target)
        features: dict[str, object] = {"passages": self._inputs[index], "label": label}
        if trainer.by_token:  # makes the mean over the step's questions a mean over its tokens
            batch = trainer.settings.batch
            step = self._targets[row - row % batch :][:batch]
            features["weight"] = (
                batch * len(label) / sum(len(self._label(target)) for _, target in step)
            )
        return features

    def dev_rows(self, dev: TrainingData) -> list[dict[str, object]]:
        inputs = [self._tokens(*pair) for pair in zip(dev.questions, dev.rankings, strict=True)]
        return [{"passages": ids, "label": [n]} for n, ids in enumerate(inputs)]

    def _tokens(self, question: Question, passages: Sequence[Passage]) -> list[list[int]]:
        features = t5.encode_texts(
            self.tokenizer, self.trainer.texts(question, passages), self.conventions
        )
        return [
            ids[mask].tolist()
            for ids, mask in zip(features["input_ids"], features["attention_mask"], strict=True)
        ]

    def _label(self, target: str) -> list[int]:
        most = self.trainer.max_target or None
        ids: list[int] = self.tokenizer(target, max_length=most, truncation=most is not None)[
            "input_ids"
        ]
        return ids


def collate(rows: Sequence[dict[str, Any]]) -> dict[str, "Tensor"]:
    import torch

    passages = t5.pad_ids([ids for row in rows for ids in row["passages"]])
    batch = {
        "passage_ids": passages["input_ids"],
        "passage_mask": passages["attention_mask"],
        "counts": torch.tensor([len(row["passages"]) for row in rows]),
        "labels": t5.pad_ids([row["label"] for row in rows], padding=-100)["input_ids"],
    }
    if "weight" in rows[0]:
        batch["weights"] = torch.tensor([row["weight"] for row in rows])
    return batch


def _trainer(
    configured: T5Trainer, rows: TrainingRows, dev: TrainingData, start: Any, folder: Path
) -> "Seq2SeqTrainer":
    import torch
    from torch import Tensor
    from transformers import EvalPrediction, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    from ifqa.reading.t5.fusion_in_decoder import generate_answers

    settings = configured.settings
    device = configured.device
    most = configured.max_answer
    half = checkpoints.uses_bfloat16(device)
    padding = start.config.pad_token_id

    class Trainer(checkpoints.SequentialSampling, Seq2SeqTrainer):
        def prediction_step(
            self, _: object, inputs: Features, *__: object, **___: object
        ) -> tuple[None, Tensor, Tensor]:
            """The reader's answers, padded to one length, and the questions' indices as labels."""
            features = {
                "input_ids": inputs["passage_ids"].cpu(),
                "attention_mask": inputs["passage_mask"].cpu(),
            }
            with torch.autocast(device, torch.bfloat16, enabled=half):
                network = self.model.get_base_model() if configured.rank else self.model
                answers = generate_answers(
                    network, features, inputs["counts"].tolist(), max_answer_tokens=most
                )
            tokens = [answer.tokens + [padding] * (most - len(answer.tokens)) for answer in answers]
            return None, torch.tensor(tokens, device=self.args.device), inputs["labels"]

    def scores(output: EvalPrediction) -> dict[str, float]:
        texts = rows.tokenizer.batch_decode(output.predictions, skip_special_tokens=True)
        pairs = zip(texts, output.label_ids[:, 0], strict=True)
        right = [
            exact_match(configured.answer(text), dev.questions[n].answers) for text, n in pairs
        ]
        return {"EM": 100 * sum(right) / len(right)}

    dev_rows = rows.dev_rows(dev)
    set_seed(settings.seed)
    if settings.recompute:
        start.encoder.gradient_checkpointing_enable({"use_reentrant": False})
    steps = checkpoints.StepSettings(
        seed=settings.seed,
        batch=settings.device_batch,
        learning_rate=settings.learning_rate,
        every=settings.evaluate_every,
        device=device,
        weight_decay=settings.weight_decay,
        warmup=settings.warmup,
    )
    arguments = checkpoints.training_arguments(
        Seq2SeqTrainingArguments,
        folder,
        steps,
        max_grad_norm=settings.clip,
        gradient_accumulation_steps=settings.batch
        // (settings.device_batch * checkpoints.rank_and_world_size()[1]),
        per_device_eval_batch_size=16,
        predict_with_generate=True,
        eval_strategy="steps" if dev_rows else "no",
        eval_steps=settings.evaluate_every,
        load_best_model_at_end=bool(dev_rows),
        metric_for_best_model="EM" if dev_rows else None,
        greater_is_better=True,
        ddp_find_unused_parameters=False,
        **checkpoints.CUSTOM_ROWS,
    )
    datasets = {"train_dataset": rows, "eval_dataset": dev_rows or None}
    return Trainer(
        model=start.train(),
        args=arguments,
        **datasets,
        data_collator=collate,
        compute_metrics=scores,
    )
