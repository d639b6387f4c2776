"""Trains a T5 to generate answers, with transformers' trainer: what Fusion-in-Decoder, RAG and UnifiedQA share."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision, resolve_device
from ifqa.models.hub import identity_of
from ifqa.progress import say
from ifqa.reading.rag import scores_of
from ifqa.reading.t5.checkpoint import Checkpoint, checkpoint_folder, family_of, open_checkpoint
from ifqa.reading.t5.text import Conventions, check
from ifqa.scoring.measures.exact_match import exact_match
from ifqa.training import resume
from ifqa.training.material import Material
from ifqa.training.t5_task import Chosen, Dev, Rows, Task, collate, token_ids

_MEND = "name a T5 with --set model=DIR"
_MACHINE = ("device", "device_batch", "micro_batch", "recompute")  # changing these makes no different training


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
    family = family_of(checkpoint_folder(task.chosen.model, task.reader, _MEND), task.reader)
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
        dev: the checkpoint with the best exact match on these questions is kept. Without any, the last is kept.
        recipe: the recipe's name, for the manifest.

    Raises:
        IfqaError: as `refuse`; `folder` holds another training; or memory ran out.
    """
    import torch

    chosen, dev = task.chosen, Dev(*dev)
    refuse(task, material)
    usable = [n for n, question in enumerate(material.questions) if task.targets(question)]
    start = open_checkpoint(chosen.model, reader=task.reader, mend=_MEND)
    inputs: dict[str, object] = {
        "family": material.family,
        "sources": material.sources,
        "recipe": recipe,
        "settings": {name: value for name, value in asdict(chosen).items() if name not in _MACHINE},
        "questions": resume.identity(material.questions, material.rankings, material.scores if task.scored else ()),
        "dev": resume.identity(dev.questions, dev.rankings, dev.scores if task.scored else ()),
        "start": {"name": chosen.model, "sha256": identity_of(chosen.model)},
    }
    if not resume.begin(folder, inputs):
        return
    conventions = Conventions(chosen.max_tokens, chosen.titles, start.conventions.encoder_eos)
    several = [material.questions[n] for n in usable], [material.rankings[n] for n in usable]
    scores = [material.scores[n] for n in usable] if task.scored else []
    rows = Rows(task, *several, start.tokenizer, conventions, scores)
    trainer = _trainer(task, rows, dev, start, folder)
    try:
        made = resume.fit(trainer, folder, task.about)
    except torch.OutOfMemoryError as error:
        raise IfqaError(f"{folder}: {task.too_large}") from error
    if resume.world()[0] == 0:
        if dev.questions:
            made |= {"best_step": trainer.state.best_global_step, "dev_EM": trainer.state.best_metric}
            say(f"{folder}: the weights after step {made['best_step']}, with an EM of {made['dev_EM']:.1f} on dev")
        inputs |= {"conventions": asdict(conventions)} | task.finished(trainer.model)
        trainer.model.save_pretrained(folder)
        start.tokenizer.save_pretrained(folder)
        resume.finish(folder, inputs, made | {"device": chosen.device}, ["model*.safetensors"])


def _trainer(task: Task, rows: Rows, dev: Dev, start: Checkpoint, folder: Path) -> Any:
    import torch
    from torch.utils.data import SequentialSampler
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, set_seed

    chosen = task.chosen
    half = half_precision(chosen.device) is torch.bfloat16
    padding = start.model.config.pad_token_id

    class Trainer(Seq2SeqTrainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(rows)

        def create_optimizer(self, *given: Any) -> Any:
            made = super().create_optimizer(*given)
            own = {name: one for name, one in self.model.named_parameters() if name in task.rates}
            for group in made.param_groups:
                group["params"] = [one for one in group["params"] if all(one is not other for other in own.values())]
            for name, parameter in own.items():
                made.add_param_group({"params": [parameter], "lr": task.rates[name], "weight_decay": 0.0})
            return made

        def prediction_step(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
            """Answers as the reader gives them, padded to one length; the labels are the numbers of the questions."""
            features = {"input_ids": inputs["passage_ids"].cpu(), "attention_mask": inputs["passage_mask"].cpu()}
            with torch.autocast(chosen.device, torch.bfloat16, enabled=half):
                known = inputs["scores"].tolist() if task.scored else []
                readings = task.decode(self.model, features, inputs["counts"].tolist(), known, task.max_answer)
            tokens = [one.tokens + [padding] * (task.max_answer - len(one.tokens)) for one in readings]
            return None, torch.tensor(tokens, device=self.args.device), inputs["labels"]

    def scores(made: Any) -> dict[str, float]:
        texts = start.tokenizer.batch_decode(made.predictions, skip_special_tokens=True)
        right = [
            exact_match(task.answer(text), dev.questions[n].answers)
            for text, n in zip(texts, made.label_ids[:, 0], strict=True)
        ]
        return {"EM": 100 * sum(right) / len(right)}

    dev_rows: list[dict[str, object]] = []
    for n, (question, ranking) in enumerate(zip(dev.questions, dev.rankings, strict=True)):
        passages = token_ids(task.texts(question, ranking), start.tokenizer, rows.conventions)
        scored = {"scores": scores_of(dev.scores[n], len(passages))} if task.scored else {}
        dev_rows.append({"passages": passages, "label": [n], **scored})
    set_seed(chosen.seed)
    model = task.network(start.model, rows.scores).train()
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
        model=model, args=arguments, train_dataset=rows, eval_dataset=dev_rows or None, data_collator=collate,
        compute_metrics=scores,
    )  # fmt: skip
