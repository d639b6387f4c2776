"""Trains a T5 to generate answers, with transformers' trainer: Fusion-in-Decoder, RAG and UnifiedQA."""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ifqa.errors import IfqaError
from ifqa.models.devices import Features, resolve_device
from ifqa.models.hub import model_fingerprint
from ifqa.protocols import NO_DATA, Recipe, TrainerFlag, TrainingData
from ifqa.reading.t5.checkpoint import (
    DEFAULT_CHECKPOINTS,
    Conventions,
    Mode,
    checkpoint_folder,
    encode_texts,
    load_t5_manifest,
    open_checkpoint,
    pad_ids,
)
from ifqa.reading.t5.readers import first_answer, input_scores, input_text, passage_inputs
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training import checkpoints
from ifqa.training.trainer import DataclassTrainer, fingerprint_questions, refuse_family, require_any, training_passages

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase, Seq2SeqTrainer

    from ifqa.reading.t5.model import FusionInDecoder, GeneratedAnswer

logger = logging.getLogger(__name__)

_MEND = "name a T5 with --set model=DIR"
LARGE = 50_000  # questions from which CausalQA trained for the longer of the published numbers of steps
STEPS, SHORT = 60_000, 6_000  # as Bondarenko et al. (COLING 2022) say; the code's default is the shorter (16)


@dataclass(kw_only=True)
class T5Trainer(DataclassTrainer):
    """Trains a T5; a subclass says what it reads and writes.

    Attributes:
        model: the model to start from: a T5 of the hub, or a checkpoint that the reader takes.
        passages: number of passages of a question, the first retrieved.
        steps, batch: steps of the optimiser (AdamW), and questions a step, over all devices and micro-steps.
        learning_rate, warmup: highest rate, after this many steps (below 1: this share of all), then linear to 0.
        weight_decay, clip: AdamW's decay, and the norm that gradients are clipped to.
        max_tokens: most tokens of question and passage together; the rest is cut off.
        seed: for order, drawn answers and dropout.
        titles: whether passages' titles are read (see `ifqa.reading.t5.checkpoint.Conventions`).
        evaluate_every: steps between checkpoints; each answers the dev questions, and the best checkpoint is kept.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; uses bfloat16 if the device multiplies in it.
        device_batch: questions that go through the network at once; it leaves the gradient the same except for dropout.
        recompute: keep only the input of each of the encoder's layers, and compute them again for the gradients.
    """

    libraries = ("accelerate",)
    runtime_only = ("device", "device_batch", "recompute")
    corpus = "ifqa-gold"
    dev = "full-dev"
    takes_experiment = True

    reader: ClassVar[str]
    max_answer: ClassVar[int] = 50  # most tokens of an answer to a dev question, with the one that starts decoding
    #: Whether the loss is the mean over all tokens of a step's targets, as in transformers' T5; else the mean over questions of
    #: the mean over a target's tokens, as in FiD.
    by_token: ClassVar[bool] = False
    # a subclass may have these as settings
    max_target = 0  # most tokens of a target, 0 for no limit
    gold = "retrieved"

    model: str = "google/flan-t5-base"
    passages: Positive = 20
    steps: Natural
    batch: Positive = 32
    learning_rate: NotNegative = 1e-4
    warmup: NotNegative = 0.1
    weight_decay: NotNegative = 0.01
    clip: NotNegative = 1.0
    max_tokens: Positive = 250
    seed: Natural = 0
    titles: bool = True
    evaluate_every: Positive = 100
    device: str = "auto"
    device_batch: Positive = 1
    recompute: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be met, and name the device."""
        Conventions(self.max_tokens)
        if self.batch % (size := self.device_batch * checkpoints.rank_and_world_size()[1]):
            raise IfqaError(
                f"training setting batch: wanted a multiple of {size}, what the devices take at once, found {self.batch}"
            )
        self.device, self.retrieved = resolve_device(self.device), self.passages
        if self.steps:
            self.evaluate_every = min(self.evaluate_every, self.steps)

    def texts(self, question: Question, passages: Sequence[Passage]) -> Sequence[str]:
        """The inputs of the network: the question with each passage."""
        return passage_inputs(question.text, passages[: self.passages], self.titles)

    def targets(self, question: Question) -> list[str]:
        """The texts that are right; one of them is drawn in each pass over the questions."""
        return [answer for answer in question.answers if answer.strip()]

    def answer(self, text: str) -> str:
        """The answer in what the network wrote."""
        return text

    def network(self, model: "FusionInDecoder", scores: Sequence[Sequence[float]]) -> "FusionInDecoder":
        """The network that is trained, from the T5 that the training starts from and the scores of the training passages."""
        return model

    def rates(self) -> Mapping[str, float]:
        """Parameter of the network -> its own learning rate; it has no weight decay."""
        return {}

    def decode(
        self, model: "FusionInDecoder", features: Features, counts: list[int], scores: list[float]
    ) -> "list[GeneratedAnswer]":
        """How dev questions are answered."""
        from ifqa.reading.t5.model import generate_answers

        return generate_answers(model, features, counts, max_answer_tokens=self.max_answer)

    def finished(self, model: "FusionInDecoder") -> dict[str, object]:
        """Make the trained network the T5 that is saved; gives what else it has learnt, for the manifest."""
        return {}

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Refuse questions without answers, and a model of another split family; the model is not loaded."""
        require_any(data, self.targets, "an answer")
        start = checkpoint_folder(self.model, self.reader, _MEND)
        refuse_family(self.model, load_t5_manifest(start, self.reader).family, data)

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Train, and write a checkpoint for the reader: a T5's files, its tokenizer and a `manifest.json`.

        In each pass over the questions, the target of a question is drawn anew (FiD src/data.py:30-36). An interrupted training
        resumes from its newest checkpoint and ends in the same weights. The checkpoint with the best exact match on the dev
        questions is kept; without any, the last. Questions without answers are left out.
        """
        import torch

        self.check_data(data, folder)
        start = open_checkpoint(self.model, reader=self.reader, mend=_MEND)
        inputs = self.inputs(data) | {
            "recipe": self.recipe,
            "dev": fingerprint_questions(dev, self.scored),
            "start": {"name": self.model, "sha256": model_fingerprint(self.model)},
        }
        if not checkpoints.begin_training(folder, inputs):
            return
        conventions = Conventions(self.max_tokens, self.titles, start.conventions.encoder_eos)
        usable = data.select([n for n, question in enumerate(data.questions) if self.targets(question)])
        rows = TrainingRows(self, usable, start.tokenizer, conventions)
        trainer = _trainer(self, rows, dev, start.model, folder)
        try:
            record = checkpoints.run_trainer(trainer, folder)
        except torch.OutOfMemoryError as error:
            raise IfqaError(
                f"{folder}: {self.passages} passages of {self.max_tokens} tokens do not fit into the memory of {self.device}; "
                "resume with --set device_batch=1 --set recompute=true, or take fewer passages"
            ) from error
        if checkpoints.rank_and_world_size()[0] == 0:
            if dev.questions:
                record |= {"best_step": trainer.state.best_global_step, "dev_EM": trainer.state.best_metric}
                logger.info(
                    f"{folder}: the best weights are of step {record['best_step']}, EM {record['dev_EM']:.1f} on dev"
                )
            inputs |= {"conventions": asdict(conventions)} | self.finished(trainer.model)
            trainer.model.save_pretrained(folder)
            start.tokenizer.save_pretrained(folder)
            checkpoints.finish_training(folder, inputs, record | {"device": self.device}, ["model*.safetensors"])


@dataclass(kw_only=True)
class Fid(T5Trainer):
    """Train Fusion-in-Decoder, a T5, on retrieved passages; torchrun -m ifqa for several GPUs.

    Attributes:
        gold: "retrieved": passages as they were retrieved; "included": if no gold passage is among them, the question's
            first gold passage replaces the last.
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

    gold: Literal["retrieved", "included"] = "retrieved"
    steps: Positive = 1000


@dataclass(kw_only=True)
class Rag(Fid):
    """Train RAG: a T5, and the temperature of the retrieval scores, by the marginal likelihood of the answers.

    Lewis et al. (2020, section 2.4) train the generator and the question encoder together. Here the retriever is fixed, and the
    temperature of its scores' softmax is learnt by the same likelihood at the same time. The loss is the mean over questions of
    -log p(y|x). Dev questions are answered greedily. The settings are not tuned.

    Attributes:
        mode: which likelihood is maximised: "sequence" or "token" (see `ifqa.reading.t5.rag_model.log_likelihoods`).
        passages: the paper retrieves 5 or 10 in training (section 3). An included gold passage gets the score of the last.
        temperature: the temperature that the training starts from; 0 for the mean standard deviation of a question's scores, so
            that the start does not depend on the unit of the retriever's scores.
        temperature_rate: learning rate of the temperature's logarithm; 0 keeps the temperature.
    """

    recipes: ClassVar = {}
    recipe = "ifqa"
    reader = "rag"
    scored = True

    mode: Annotated[
        Mode, TrainerFlag("sequence (a passage for the whole answer) or token (one for each of its tokens).")
    ] = "sequence"
    passages: Positive = 10
    temperature: NotNegative = 0.0
    temperature_rate: NotNegative = 0.01

    def network(self, model: "FusionInDecoder", scores: Sequence[Sequence[float]]) -> "FusionInDecoder":
        """The network with a temperature."""
        from ifqa.reading.t5.rag_model import convert_to_marginal

        return convert_to_marginal(model, self.mode, self.temperature or mean_score_spread(scores, self.passages))

    def rates(self) -> Mapping[str, float]:
        """That of the temperature."""
        return {"log_temperature": self.temperature_rate}

    def decode(
        self, model: "FusionInDecoder", features: Features, counts: list[int], scores: list[float]
    ) -> "list[GeneratedAnswer]":
        """By the marginal likelihood, at the temperature so far."""
        from ifqa.reading.t5.rag_model import Mixture, generate_rag_answers

        mixture = Mixture(self.mode, temperature=float(model.log_temperature.detach().exp()))
        return generate_rag_answers(
            model, features, counts, scores=scores, mixture=mixture, max_answer_tokens=self.max_answer
        )

    def finished(self, model: "FusionInDecoder") -> dict[str, object]:
        """The mode and the learnt temperature."""
        from ifqa.reading.t5.rag_model import restore_t5

        return {"rag": {"mode": self.mode, "temperature": restore_t5(model)}}


def mean_score_spread(scores: Sequence[Sequence[float]], passages: int) -> float:
    """The mean standard deviation of a question's scores, over questions with two passages or more; 1 if all are equal."""
    spreads = [pstdev(row[:passages]) for row in scores if len(row[:passages]) > 1]
    return (fmean(spreads) if spreads else 0.0) or 1.0


@dataclass(kw_only=True)
class UnifiedQA(T5Trainer):
    """Train UnifiedQA, a T5 that reads question and context as one text, as CausalQA did; needs a GPU.

    The input is `ifqa.reading.t5.readers.input_text`, the target all answers of a question, joined by tabs. The loss is the mean
    over the tokens of a step's targets. The settings are those of finetuning/train_unifiedqa.py (9-27, 68-76) in webis-de/
    coling22-benchmark-for-causal-question-answering at fc72cfd8743d, the rest transformers' defaults; CausalQA kept the last
    checkpoint (73).

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
    max_answer = 500

    model: str = DEFAULT_CHECKPOINTS["unifiedqa"]
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
        if self.steps:
            return super().train(data, folder, dev)
        count = sum(1 for question in data.questions if self.targets(question))
        return replace(self, steps=published_steps(count)).train(data, folder, dev)


def published_steps(questions: int) -> int:
    """The steps of CausalQA's training on this many questions."""
    return SHORT if questions < LARGE else STEPS


class TrainingRows:
    """The rows of all steps in training order, as the trainer takes them; in each pass targets are drawn anew."""

    def __init__(
        self, trainer: T5Trainer, data: TrainingData, tokenizer: "PreTrainedTokenizerBase", conventions: Conventions
    ) -> None:
        self.trainer, self.data, self.tokenizer, self.conventions = trainer, data, tokenizer, conventions
        self._read: dict[int, list[list[int]]] = {}
        self._drawn: list[tuple[int, str]] = []  # number of a row's question, and its target
        for turn in range(-(-len(self) // max(1, len(data.questions)))):
            draw = random.Random(f"{trainer.seed} {turn}")
            order = draw.sample(range(len(data.questions)), len(data.questions))
            self._drawn += [(n, draw.choice(trainer.targets(data.questions[n]))) for n in order]

    def __len__(self) -> int:
        return self.trainer.steps * self.trainer.batch

    def __getitem__(self, row: int) -> dict[str, object]:
        """The token ids of a question's inputs and of a target, and what else the loss needs.

        That is the score of each input, and for a loss by token the question's weight.
        """
        (number, target), trainer = self._drawn[row], self.trainer
        if number not in self._read:
            question, ranking = self.data.questions[number], self.data.rankings[number]
            shown = training_passages(question, ranking, trainer.passages, trainer.gold == "included")
            self._read[number] = self._tokens(question, shown)
        label = self._label(target)
        features = self._row(self._read[number], label, self.data, number)
        if trainer.by_token:  # so that the mean over the step's questions is the mean over its tokens
            step = self._drawn[row - row % trainer.batch :][: trainer.batch]
            features["weight"] = trainer.batch * len(label) / sum(len(self._label(target)) for _, target in step)
        return features

    def of_dev(self, dev: TrainingData) -> list[dict[str, object]]:
        """The rows of the dev questions; their labels are their numbers."""
        inputs = [self._tokens(*pair) for pair in zip(dev.questions, dev.rankings, strict=True)]
        return [self._row(ids, [n], dev, n) for n, ids in enumerate(inputs)]

    def _row(self, inputs: list[list[int]], label: list[int], data: TrainingData, n: int) -> dict[str, object]:
        scored = {"scores": input_scores(data.scores[n], len(inputs))} if self.trainer.scored else {}
        return {"passages": inputs, "label": label, **scored}

    def _tokens(self, question: Question, passages: Sequence[Passage]) -> list[list[int]]:
        """Token ids of each input, cut off at the conventions' `max_tokens`."""
        features = encode_texts(self.tokenizer, self.trainer.texts(question, passages), self.conventions)
        pairs = zip(features["input_ids"], features["attention_mask"], strict=True)
        return [ids[mask].tolist() for ids, mask in pairs]

    def _label(self, target: str) -> list[int]:
        most = self.trainer.max_target or None
        ids: list[int] = self.tokenizer(target, max_length=most, truncation=most is not None)["input_ids"]
        return ids


def collate(rows: Sequence[dict[str, Any]]) -> dict[str, "Tensor"]:
    """A batch with the arguments of the network's `forward`."""
    import torch

    passages = pad_ids([ids for row in rows for ids in row["passages"]])
    batch = {
        "passage_ids": passages["input_ids"],
        "passage_mask": passages["attention_mask"],
        "counts": torch.tensor([len(row["passages"]) for row in rows]),
        "labels": pad_ids([row["label"] for row in rows], padding=-100)["input_ids"],
    }
    if "scores" in rows[0]:
        batch["scores"] = torch.tensor([score for row in rows for score in row["scores"]])
    if "weight" in rows[0]:
        batch["weights"] = torch.tensor([row["weight"] for row in rows])
    return batch


def _trainer(
    settings: T5Trainer, rows: TrainingRows, dev: TrainingData, start: "FusionInDecoder", folder: Path
) -> "Seq2SeqTrainer":
    import torch
    from torch import Tensor
    from transformers import EvalPrediction, Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    half = checkpoints.uses_bfloat16(settings.device)
    padding = start.config.pad_token_id

    class Trainer(checkpoints.SequentialSampling, Seq2SeqTrainer):
        def create_optimizer(self, *given: object) -> torch.optim.Optimizer:
            optimiser: torch.optim.Optimizer = super().create_optimizer(*given)
            rates = settings.rates()
            apart = {name: parameter for name, parameter in self.model.named_parameters() if name in rates}
            for group in optimiser.param_groups:
                group["params"] = [p for p in group["params"] if all(p is not other for other in apart.values())]
            for name, parameter in apart.items():
                optimiser.add_param_group({"params": [parameter], "lr": rates[name], "weight_decay": 0.0})
            return optimiser

        def prediction_step(
            self, model: object, inputs: dict[str, Tensor], *_: object, **__: object
        ) -> tuple[None, Tensor, Tensor]:
            """Answers as the reader gives them, padded to one length; the labels are the numbers of the questions."""
            features = {"input_ids": inputs["passage_ids"].cpu(), "attention_mask": inputs["passage_mask"].cpu()}
            with torch.autocast(settings.device, torch.bfloat16, enabled=half):
                known = inputs["scores"].tolist() if settings.scored else []
                readings = settings.decode(self.model, features, inputs["counts"].tolist(), known)
            tokens = [reading.tokens + [padding] * (settings.max_answer - len(reading.tokens)) for reading in readings]
            return None, torch.tensor(tokens, device=self.args.device), inputs["labels"]

    def scores(output: EvalPrediction) -> dict[str, float]:
        texts = rows.tokenizer.batch_decode(output.predictions, skip_special_tokens=True)
        right = [
            exact_match(settings.answer(text), dev.questions[n].answers)
            for text, n in zip(texts, output.label_ids[:, 0], strict=True)
        ]
        return {"EM": 100 * sum(right) / len(right)}

    dev_rows = rows.of_dev(dev)
    set_seed(settings.seed)
    if settings.recompute:
        start.encoder.gradient_checkpointing_enable({"use_reentrant": False})
    model = settings.network(start, rows.data.scores).train()
    arguments = checkpoints.training_arguments(
        Seq2SeqTrainingArguments, folder, seed=settings.seed, batch=settings.device_batch,
        learning_rate=settings.learning_rate, every=settings.evaluate_every, device=settings.device,
        weight_decay=settings.weight_decay, warmup=settings.warmup, max_grad_norm=settings.clip,
        gradient_accumulation_steps=settings.batch // (settings.device_batch * checkpoints.rank_and_world_size()[1]),
        per_device_eval_batch_size=16, predict_with_generate=True, eval_strategy="steps" if dev_rows else "no",
        eval_steps=settings.evaluate_every, load_best_model_at_end=bool(dev_rows),
        metric_for_best_model="EM" if dev_rows else None, greater_is_better=True, ddp_find_unused_parameters=False,
        **checkpoints.CUSTOM_ROWS,
    )  # fmt: skip
    return Trainer(
        model=model, args=arguments, train_dataset=rows, eval_dataset=dev_rows or None, data_collator=collate,
        compute_metrics=scores,
    )  # fmt: skip
