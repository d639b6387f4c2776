"""Trains a T5 to generate answers, with transformers' trainer: what Fusion-in-Decoder and UnifiedQA share."""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import identity_of
from ifqa.progress import say
from ifqa.reading.t5.checkpoint import Checkpoint, checkpoint_folder, family_of, open_checkpoint
from ifqa.reading.t5.text import Conventions, check, padded, tokenise
from ifqa.records import Passage, Question
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training import resume
from ifqa.training.material import Material

if TYPE_CHECKING:
    from torch import Tensor

Dev = tuple[Sequence[Question], Sequence[Sequence[Passage]]]
_MACHINE = ("device", "device_batch", "micro_batch", "recompute")  # changing these makes no different training


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


@dataclass(frozen=True)
class Task:
    """What a network learns for a reader.

    Attributes:
        reader: "fid" or "unifiedqa".
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


def checked(chosen: Chosen) -> Chosen:
    """A recipe with its device by name, after checks.

    Raises:
        IfqaError: there is no such device, or a value is out of range.
    """
    check(Conventions(chosen.max_tokens))
    if chosen.batch % (size := chosen.device_batch * resume.world()[1]):
        raise IfqaError(
            f"training setting batch: wanted a multiple of {size}, what the devices take at once, found {chosen.batch}"
        )
    return replace(chosen, device=resolve_device(chosen.device))


def refuse(task: Task, material: Material) -> None:
    """Raise the errors of `run` that need no rankings, before passages are retrieved; the model is not loaded."""
    if not any(map(task.targets, material.questions)):
        raise IfqaError(f"none of {len(material.questions)} training questions has an answer; wanted annotated ones")
    family = family_of(checkpoint_folder(task.chosen.model, task.reader), task.reader)
    if family not in ("", material.family):
        raise IfqaError(
            f"{task.chosen.model} was trained on {family} and may not be trained further on {material.family}, "
            "which holds the same questions; begin with another model"
        )


def run(task: Task, material: Material, folder: Path, dev: Dev, recipe: str) -> None:
    """Train, and write a checkpoint: a T5's files, its tokenizer and a `manifest.json`.

    An interrupted training resumes from its newest checkpoint and ends in the same weights.

    Args:
        task: what is learnt, with a recipe that `checked` has checked.
        material: questions without a target are left out.
        folder: the checkpoint is written here.
        dev: questions and rankings; the checkpoint with the best exact match on them is kept. Without any, the last is kept.
        recipe: the recipe's name, for the manifest.

    Raises:
        IfqaError: as `refuse`; `folder` holds another training; or memory ran out.
    """
    import torch

    chosen = task.chosen
    refuse(task, material)
    usable = [n for n, question in enumerate(material.questions) if task.targets(question)]
    start = open_checkpoint(chosen.model, reader=task.reader)
    inputs = {
        "family": material.family,
        "sources": material.sources,
        "recipe": recipe,
        "settings": {name: value for name, value in asdict(chosen).items() if name not in _MACHINE},
        "questions": resume.identity(material.questions, material.rankings),
        "dev": resume.identity(*dev),
        "start": {"name": chosen.model, "sha256": identity_of(chosen.model)},
    }
    if not resume.begin(folder, inputs):
        return
    conventions = Conventions(chosen.max_tokens, chosen.titles, start.conventions.encoder_eos)
    several = [material.questions[n] for n in usable], [material.rankings[n] for n in usable]
    trainer = _trainer(task, Rows(task, *several, start.tokenizer, conventions), dev, start, folder)
    try:
        made = resume.fit(trainer, folder, task.about)
    except torch.OutOfMemoryError as error:
        raise IfqaError(f"{folder}: {task.too_large}") from error
    if resume.world()[0] == 0:
        if dev[0]:
            made |= {"best_step": trainer.state.best_global_step, "dev_EM": trainer.state.best_metric}
            say(f"{folder}: the weights after step {made['best_step']}, with an EM of {made['dev_EM']:.1f} on dev")
        trainer.model.save_pretrained(folder)
        start.tokenizer.save_pretrained(folder)
        inputs |= {"conventions": asdict(conventions)}
        resume.finish(folder, inputs, made | {"device": chosen.device}, ["model*.safetensors"])


class Rows:
    """The rows of all steps in training order, as the trainer takes them.

    Row `n` depends only on the seed and the number of its pass, so a training can resume at any row.
    """

    def __init__(
        self, task: Task, questions: Sequence[Question], rankings: Sequence[Sequence[Passage]], tokenizer: Any,
        conventions: Conventions,
    ) -> None:  # fmt: skip
        self.task, self.questions, self.rankings = task, questions, rankings
        self.tokenizer, self.conventions = tokenizer, conventions
        self._read: dict[int, list[list[int]]] = {}
        self._passes: dict[int, list[tuple[int, str]]] = {}

    def __len__(self) -> int:
        return self.task.chosen.steps * self.task.chosen.batch

    def __getitem__(self, row: int) -> dict[str, object]:
        """The token ids of a question's inputs and of a target; for a loss by token also the question's weight in it."""
        number, target = self._drawn(row)
        if number not in self._read:
            question = self.questions[number]
            passages = self.task.training_passages(question, self.rankings[number])
            self._read[number] = _token_ids(self.task.texts(question, passages), self.tokenizer, self.conventions)
        label = self._label(target)
        made: dict[str, object] = {"passages": self._read[number], "label": label}
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


def _token_ids(texts: Sequence[str], tokenizer: Any, conventions: Conventions) -> list[list[int]]:
    features = tokenise(tokenizer, texts, conventions)
    pairs = zip(features["input_ids"], features["attention_mask"], strict=True)
    return [ids[mask].tolist() for ids, mask in pairs]


def _collate(rows: Sequence[dict[str, Any]]) -> dict[str, "Tensor"]:
    """A batch with the arguments of `FusionInDecoder.forward`."""
    import torch

    passages = padded([ids for row in rows for ids in row["passages"]])
    labels = padded([row["label"] for row in rows], padding=-100)["input_ids"]
    counts = torch.tensor([len(row["passages"]) for row in rows])
    weighed = {"weights": torch.tensor([row["weight"] for row in rows])} if "weight" in rows[0] else {}
    return {
        "passage_ids": passages["input_ids"], "passage_mask": passages["attention_mask"], "counts": counts,
        "labels": labels, **weighed,
    }  # fmt: skip


def _trainer(task: Task, rows: Rows, dev: Dev, start: Checkpoint, folder: Path) -> Any:
    import torch
    from torch.utils.data import SequentialSampler
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    from ifqa.reading.t5.answer import read

    chosen = task.chosen
    half = half_precision(chosen.device) is torch.bfloat16
    padding = start.model.config.pad_token_id

    class Trainer(Seq2SeqTrainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(rows)

        def prediction_step(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
            """Answers as the reader gives them, padded to one length; the labels are the numbers of the questions."""
            features = {"input_ids": inputs["passage_ids"].cpu(), "attention_mask": inputs["passage_mask"].cpu()}
            with torch.autocast(chosen.device, torch.bfloat16, enabled=half):
                readings = read(self.model, features, inputs["counts"].tolist(), max_answer_tokens=task.max_answer)
            tokens = [one.tokens + [padding] * (task.max_answer - len(one.tokens)) for one in readings]
            return None, torch.tensor(tokens, device=self.args.device), inputs["labels"]

    def scores(made: Any) -> dict[str, float]:
        texts = start.tokenizer.batch_decode(made.predictions, skip_special_tokens=True)
        right = [
            exact_match(task.answer(text), dev[0][n].answers)
            for text, n in zip(texts, made.label_ids[:, 0], strict=True)
        ]
        return {"EM": 100 * sum(right) / len(right)}

    dev_rows = [
        {"passages": _token_ids(task.texts(question, ranking), start.tokenizer, rows.conventions), "label": [n]}
        for n, (question, ranking) in enumerate(zip(*dev, strict=True))
    ]
    set_seed(chosen.seed)
    model = start.model.train()
    model.micro_batch, model.recompute = task.micro_batch, chosen.recompute
    arguments = Seq2SeqTrainingArguments(
        output_dir=str(folder / resume.CHECKPOINTS), num_train_epochs=1, learning_rate=chosen.learning_rate,
        per_device_train_batch_size=chosen.device_batch, per_device_eval_batch_size=16,
        gradient_accumulation_steps=chosen.batch // (chosen.device_batch * resume.world()[1]),
        weight_decay=chosen.weight_decay, warmup_steps=chosen.warmup, max_grad_norm=chosen.clip,
        lr_scheduler_type="linear", bf16=half, use_cpu=chosen.device == "cpu", predict_with_generate=True,
        eval_strategy="steps" if dev_rows else "no", eval_steps=chosen.evaluate_every, save_strategy="steps",
        save_steps=chosen.evaluate_every, save_total_limit=2, logging_steps=chosen.evaluate_every,
        load_best_model_at_end=bool(dev_rows), metric_for_best_model="EM" if dev_rows else None, greater_is_better=True,
        remove_unused_columns=False, report_to="none", disable_tqdm=True, seed=chosen.seed,
        ddp_find_unused_parameters=False, log_level="error", log_level_replica="error",
    )  # fmt: skip
    # In one process, several GPUs would split a question's passages between them; torchrun starts one process for each
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return Trainer(
        model=model, args=arguments, train_dataset=rows, eval_dataset=dev_rows or None, data_collator=_collate,
        compute_metrics=scores,
    )  # fmt: skip
