"""Training Fusion-in-Decoder (`ifqa.reading.fid.reader`) with transformers' trainer."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import identity_of
from ifqa.progress import say
from ifqa.reading.fid.checkpoint import Checkpoint, open_checkpoint
from ifqa.reading.fid.text import MAX_ANSWER, Conventions, check, padded, passage_inputs, tokenise
from ifqa.records import Passage, Question, gold_id
from ifqa.scoring.measures.covers import covers
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.settings import Natural, NotNegative, Positive
from ifqa.training import recipes, resume
from ifqa.training.material import Material

if TYPE_CHECKING:
    from torch import Tensor

Gold = Literal["retrieved", "included"]
_MACHINE = (
    "device",
    "device_batch",
    "micro_batch",
    "recompute",
)  # changing these does not make it a different training


@dataclass(frozen=True)
class Recipe:
    """All settings of a training.

    Attributes:
        model: the model to start from: a T5 of the hub, or a checkpoint that reader 'fid' takes.
        passages: number of passages of a question, the first retrieved.
        gold: "retrieved": passages as they were retrieved; "included": if no gold passage is among them, the question's
            first gold passage replaces the last.
        steps, batch: steps of the optimiser (AdamW), and questions a step, over all devices and micro-steps.
        learning_rate, warmup: highest rate, after this many steps (below 1: this share of all), then linear to 0.
        weight_decay, clip: AdamW's decay, and the norm that gradients are clipped to.
        max_tokens: most tokens of question and passage together; the rest is cut off.
        titles: whether passages' titles are read (see `ifqa.reading.fid.text.Conventions`).
        evaluate_every: steps between checkpoints; each answers the dev questions, and the best checkpoint is kept.
        seed: for order, drawn answers and dropout.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; uses bfloat16 if the device multiplies in it.
        device_batch: questions that go through the network at once.
        micro_batch: passages that go through the encoder at once, 0 for all. It and `device_batch` leave the gradient the
            same except for dropout.
        recompute: keep only the encoder's output of each micro-batch, and compute the encoder again for the gradients.
    """

    model: str = "google/flan-t5-base"
    passages: Positive = 20
    gold: Gold = "retrieved"
    steps: Positive = 1000
    batch: Positive = 32
    learning_rate: NotNegative = 1e-4
    warmup: NotNegative = 0.1
    weight_decay: NotNegative = 0.01
    clip: NotNegative = 1.0
    max_tokens: Positive = 250
    titles: bool = True
    evaluate_every: Positive = 100
    seed: Natural = 0
    device: str = "auto"
    device_batch: Positive = 1
    micro_batch: Natural = 16
    recompute: bool = True


RECIPES = {
    # FiD-large on Natural Questions: README:110-126, and src/options.py:20-31 for options the README does not name. FiD
    # trained on 64 GPUs with a question each and accumulated no gradients, so its steps are steps of the optimiser too
    "published": Recipe(
        model="google-t5/t5-large", passages=100, steps=15_000, batch=64, learning_rate=5e-5, warmup=1000,
        evaluate_every=500,
    ),
    "ifqa": Recipe(),
}  # fmt: skip


def resolve(recipe: str = "ifqa", **changes: object) -> Recipe:
    """A copy of a recipe with some settings changed.

    Raises:
        IfqaError: there is no such recipe, setting or device, or a value is out of range.
    """
    chosen = recipes.changed(RECIPES, recipe, changes)
    check(Conventions(chosen.max_tokens))
    if chosen.batch % (size := chosen.device_batch * resume.world()[1]):
        raise IfqaError(
            f"training setting batch: wanted a multiple of {size}, what the devices take at once, found {chosen.batch}"
        )
    every = min(chosen.evaluate_every, chosen.steps)
    return replace(chosen, evaluate_every=every, device=resolve_device(chosen.device))


def train(
    material: Material,
    folder: Path,
    *,
    dev: tuple[Sequence[Question], Sequence[Sequence[Passage]]] = ((), ()),
    recipe: str = "ifqa",
    **changes: object,
) -> None:
    """Train, and write a checkpoint for reader 'fid': a T5's files, its tokenizer and a `manifest.json`.

    In each pass over the questions, the target of a question is one of its answers, drawn anew (FiD src/data.py:30-36). An
    interrupted training resumes from its newest checkpoint and ends in the same weights.

    Args:
        material: questions without answers are left out.
        folder: the checkpoint is written here.
        dev: questions and rankings; the checkpoint with the best exact match on them is kept. Without any, the last is kept.
        recipe: "ifqa", this project's settings, not tuned; or "published", those of FiD-large.
        changes: settings that differ from the recipe's (see `Recipe`).

    Raises:
        IfqaError: nothing to train on, a setting out of range, `folder` holds another training, or the model was trained on
            another family.
    """
    questions, rankings = material.questions, material.rankings
    import torch

    chosen = resolve(recipe, **changes)
    start = open_checkpoint(chosen.model)
    if start.family not in ("", material.family):
        raise IfqaError(
            f"{chosen.model} was trained on {start.family} and may not be trained further on {material.family}, "
            "which holds the same questions; begin with another model"
        )
    inputs = {
        "family": material.family,
        "sources": material.sources,
        "recipe": recipe,
        "settings": {name: value for name, value in asdict(chosen).items() if name not in _MACHINE},
        "questions": resume.identity(questions, rankings),
        "dev": resume.identity(*dev),
        "start": {"name": chosen.model, "sha256": identity_of(chosen.model)},
    }
    if not resume.begin(folder, inputs):
        return
    conventions = Conventions(chosen.max_tokens, chosen.titles, start.conventions.encoder_eos)
    usable = [n for n, question in enumerate(questions) if any(answer.strip() for answer in question.answers)]
    if not usable:
        raise IfqaError(f"none of {len(questions)} training questions has an answer; wanted annotated questions")
    rows = Rows([questions[n] for n in usable], [rankings[n] for n in usable], start, conventions, chosen)
    trainer = _trainer(rows, dev, start, conventions, folder, chosen)
    try:
        made = resume.fit(trainer, folder, "training Fusion-in-Decoder")
    except torch.OutOfMemoryError as error:
        raise IfqaError(
            f"{folder}: {chosen.passages} passages, {chosen.micro_batch or 'all'} at a time, do not fit into the memory of "
            f"{chosen.device}; resume with --set device_batch=1 --set micro_batch=4 --set recompute=true, or fewer passages"
        ) from error
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
        self, questions: Sequence[Question], rankings: Sequence[Sequence[Passage]], start: Checkpoint,
        conventions: Conventions, chosen: Recipe,
    ) -> None:  # fmt: skip
        self.questions, self.rankings = questions, rankings
        self.tokenizer, self.conventions, self.chosen = start.tokenizer, conventions, chosen
        self._read: dict[int, list[list[int]]] = {}
        self._pass: tuple[int, list[tuple[int, str]]] = (-1, [])

    def __len__(self) -> int:
        return self.chosen.steps * self.chosen.batch

    def __getitem__(self, row: int) -> dict[str, object]:
        """The token ids of a question's passages and of an answer."""
        turn, place = divmod(row, len(self.questions))
        if self._pass[0] != turn:
            draw = random.Random(f"{self.chosen.seed} {turn}")
            order = draw.sample(range(len(self.questions)), len(self.questions))
            self._pass = turn, [(n, draw.choice([a for a in self.questions[n].answers if a.strip()])) for n in order]
        number, answer = self._pass[1][place]
        if number not in self._read:
            passages = training_passages(
                self.questions[number], self.rankings[number], self.chosen.passages, self.chosen.gold
            )
            self._read[number] = _token_ids(self.questions[number], passages, self.tokenizer, self.conventions)
        return {"passages": self._read[number], "label": self.tokenizer(answer)["input_ids"]}


def training_passages(question: Question, ranking: Sequence[Passage], most: int, gold: str) -> list[Passage]:
    """The passages that a question is trained with: the first `most` of its ranking, with a gold passage if "included"."""
    chosen = list(ranking[:most])
    if gold == "included" and question.gold_passages:
        texts = question.gold_passages
        if not any(covers(passage.text, text) for passage in chosen for text in texts):
            chosen = [*chosen[: most - 1], Passage(gold_id(texts[0]), "", texts[0])]
    return chosen


def _token_ids(
    question: Question, passages: Sequence[Passage], tokenizer: Any, conventions: Conventions
) -> list[list[int]]:
    features = tokenise(tokenizer, passage_inputs(question.text, passages, conventions.titles), conventions)
    pairs = zip(features["input_ids"], features["attention_mask"], strict=True)
    return [ids[mask].tolist() for ids, mask in pairs]


def _collate(rows: Sequence[dict[str, Any]]) -> dict[str, "Tensor"]:
    """A batch with the arguments of `FusionInDecoder.forward`."""
    import torch

    passages = padded([ids for row in rows for ids in row["passages"]])
    labels = padded([row["label"] for row in rows], padding=-100)["input_ids"]
    counts = torch.tensor([len(row["passages"]) for row in rows])
    return {
        "passage_ids": passages["input_ids"], "passage_mask": passages["attention_mask"], "counts": counts, "labels": labels
    }  # fmt: skip


def _trainer(
    rows: Rows, dev: tuple[Sequence[Question], Sequence[Sequence[Passage]]], start: Checkpoint, conventions: Conventions,
    folder: Path, chosen: Recipe,
) -> Any:  # fmt: skip
    import torch
    from torch.utils.data import SequentialSampler
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    from ifqa.reading.fid.answer import read

    half = half_precision(chosen.device) is torch.bfloat16
    padding = start.model.config.pad_token_id

    class Trainer(Seq2SeqTrainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(rows)

        def prediction_step(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
            """Answers as the reader gives them, padded to one length; the labels are the numbers of the questions."""
            features = {"input_ids": inputs["passage_ids"].cpu(), "attention_mask": inputs["passage_mask"].cpu()}
            with torch.autocast(chosen.device, torch.bfloat16, enabled=half):
                readings = read(self.model, features, inputs["counts"].tolist(), max_answer_tokens=MAX_ANSWER)
            tokens = [one.tokens + [padding] * (MAX_ANSWER - len(one.tokens)) for one in readings]
            return None, torch.tensor(tokens, device=self.args.device), inputs["labels"]

    def scores(made: Any) -> dict[str, float]:
        answers = start.tokenizer.batch_decode(made.predictions, skip_special_tokens=True)
        right = [
            exact_match(answer, dev[0][n].answers) for answer, n in zip(answers, made.label_ids[:, 0], strict=True)
        ]
        return {"EM": 100 * sum(right) / len(right)}

    dev_rows = [
        {"passages": _token_ids(question, ranking[: chosen.passages], start.tokenizer, conventions), "label": [n]}
        for n, (question, ranking) in enumerate(zip(*dev, strict=True))
    ]
    set_seed(chosen.seed)
    model = start.model.train()
    model.micro_batch, model.recompute = chosen.micro_batch, chosen.recompute
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
