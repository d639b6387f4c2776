"""Tunes a language model for the reader 'llm': an adapter (LoRA, Hu et al. 2022).

The prompts are the reader's; the loss is on the answer alone.
"""

import logging
import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from pydantic import Field

from ifqa.errors import ConfigError
from ifqa.llms.hf import HF
from ifqa.models.causal_lm import CausalLMFiles, base_model, find_causal_lm
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.prompts import Prompt, load_prompt, prompt_path
from ifqa.protocols import NO_DATA, TrainerFlag, TrainingData
from ifqa.records import Passage, Question, gold_id
from ifqa.settings import NotNegative, Positive, Share
from ifqa.storage.files import sha256
from ifqa.training import checkpoints
from ifqa.training.trainer import (
    EpochTrainer,
    refuse_family,
    require_any,
    shuffle_batches,
    training_passages,
)

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor

logger = logging.getLogger(__name__)

DEPTH = 20  # passages retrieved for a question


class Llm(EpochTrainer):
    """Tune a language model for the reader 'llm', as an adapter; `ifqa run --model FOLDER` then
    reads with it.
    """

    runtime_only = ("model", "device_batch", *EpochTrainer.runtime_only)
    retrieved = DEPTH

    class Settings(EpochTrainer.Settings):
        model: Annotated[str, TrainerFlag()] = "smollm2"
        """The model to tune: smollm2, a GGUF file, a folder, a name on the hub, or an adapter."""
        prompt: str = "short"
        """The reader's prompt, without reasoning."""
        passages: Annotated[int, Field(ge=1, le=DEPTH)] = 5
        """Passages in a prompt; a gold passage replaces the last if none was retrieved."""
        alone: Share = 0.5
        """The share of prompts with only the gold passages."""
        epochs: Positive = 1
        """Passes over the questions."""
        rank: Positive = 32
        """The rank of new adapters, on all linear layers; an adapter that is trained further keeps
        its own.
        """
        learning_rate: NotNegative = 3e-4
        """The highest learning rate, after a tenth of the steps; it then falls to 0."""
        batch: Positive = 8
        """Questions per step of AdamW."""
        device_batch: Positive = 8
        """Questions in a forward pass; a divisor of `batch`."""
        max_tokens: Positive = 1024
        """Most tokens of prompt and answer; passages that do not fit are left out."""
        device: str = "auto"
        """The device: "cpu", "cuda", or "auto" for a GPU if present; in bfloat16 if the hardware
        supports it.
        """
        checkpoint_every: Positive = 25
        """Steps between checkpoints."""

    settings: Settings

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.batch % settings.device_batch:
            raise ConfigError(
                f"batch = {settings.batch}: wanted a multiple of device_batch, "
                f"{settings.device_batch}"
            )

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        require_any(dataset, has_gold_answer, "an answer")
        name = self.settings.prompt
        if load_prompt(name).steps:
            raise ConfigError(
                f"prompt {name!r} shows reasoning, which questions lack; wanted one such as 'short'"
            )
        model = self.settings.model
        refuse_family(model, find_causal_lm(model).family, dataset)

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Tune, and write peft's adapter and a `manifest.json`.

        Questions without an answer are left out.
        """
        from peft.helpers import disable_input_dtype_casting

        self.check_data(dataset, folder)
        settings = self.settings
        source = find_causal_lm(settings.model)
        base = base_model(source.adapter) if source.adapter else settings.model
        start = {"name": settings.model, "sha256": source.fingerprint} if source.adapter else {}
        inputs = self.inputs(dataset) | {
            "prompt": sha256(prompt_path(settings.prompt)),
            "base": {"name": base, "sha256": CausalLMFiles(source.folder).fingerprint},
            "start": start,
        }
        if not checkpoints.begin_training(folder, inputs):
            return
        reader = HF(HF.Settings(model=str(source.folder), device=self.device))
        tokenizer = PromptTokenizer(reader, load_prompt(settings.prompt), settings.max_tokens)
        rows = self.prompt_rows(dataset, tokenizer)
        if not rows:
            checkpoints.remove_leftovers(folder)
            raise ConfigError(
                f"max_tokens = {settings.max_tokens}: no prompt fits, even without passages; "
                "set it higher"
            )
        logger.info(f"{folder}: {len(rows):,} prompts with answers")
        network = checkpoints.add_adapter(
            reader.model,
            settings.rank,
            settings.seed,
            source.adapter,
            source.folder,
            task="CAUSAL_LM",
        )
        with disable_input_dtype_casting(network):  # autocast would undo peft's casts to float32
            record = checkpoints.train_with_loss(
                batch_loss,
                network,
                rows,
                partial(collate, pad=tokenizer.pad),
                folder,
                self.step_settings(batch=settings.device_batch, device=network.device.type),
                gradient_accumulation_steps=settings.batch // settings.device_batch,
            )
        checkpoints.save_adapter(network, folder, base)
        record |= {"rows": len(rows), "device": str(reader.model.device)}
        checkpoints.finish_training(folder, inputs, record, ["adapter_*"])

    def prompt_rows(self, dataset: TrainingData, tokenizer: "PromptTokenizer") -> "list[PromptRow]":
        """A row per question and pass, in training order, with passages drawn for each pass."""
        settings = self.settings
        rows: list[PromptRow] = []
        for epoch in range(settings.epochs):
            draw = random.Random(f"{settings.seed} {epoch}")
            prompts = []
            for question, ranking in zip(dataset.questions, dataset.rankings, strict=True):
                if has_gold_answer(question):
                    gold_alone = draw.random() < settings.alone
                    shown = [
                        Passage(gold_id(text), "", text)
                        for text in question.gold_passages
                        if gold_alone
                    ]
                    shown = shown or training_passages(question, ranking, settings.passages, True)
                    prompts.append(tokenizer.row(question, shown, question.answers[0]))
            # the prompts that fit, shuffled, with prompts of similar length next to each other
            fitting = [prompt for prompt in prompts if prompt]
            batches = shuffle_batches(
                fitting, settings.batch, f"{settings.seed} {epoch}", lambda row: len(row["prompt"])
            )
            rows += [row for batch in batches for row in batch]
        return rows


class PromptRow(TypedDict):
    """Tokens of a prompt, and of its answer with the end."""

    prompt: list[int]
    answer: list[int]


class PromptTokenizer:
    """Tokenizes prompts and answers as the reader's language model does.

    `most` limits both together.
    """

    def __init__(self, reader: HF, prompt: Prompt, most: int) -> None:
        self._reader = reader
        self._prompt = prompt
        self._window = min(most, reader.window)
        self.pad: int = reader.tokenizer.pad_token_id or 0

    def row(self, question: Question, passages: Sequence[Passage], answer: str) -> PromptRow | None:
        """A question's row; None if its prompt does not fit without passages."""
        reader = self._reader
        prompt = self._prompt
        fitted = fit_prompt(
            prompt, question.text, passages, reader, choices=question.choices, window=self._window
        )
        if fitted.problem:
            return None
        [request] = fitted.requests()
        text = prompt.show(Demo(question.text, answer), reader.chat)
        tokens = [*reader.tokenise(text, add_special_tokens=False), reader.tokenizer.eos_token_id]
        return {"prompt": reader.ids(request), "answer": tokens[: prompt.max_tokens]}


def has_gold_answer(question: Question) -> bool:
    return bool(question.answers and question.answers[0].strip())


def collate(rows: Sequence[PromptRow], pad: int) -> "dict[str, Tensor]":
    """A batch, padded on the left."""
    import torch

    answers = [row["answer"] for row in rows]
    texts = [row["prompt"] + row["answer"] for row in rows]
    width = max(map(len, texts))
    most = max(map(len, answers))
    return {
        "input_ids": torch.tensor([[pad] * (width - len(text)) + text for text in texts]),
        "attention_mask": torch.tensor(
            [[0] * (width - len(text)) + [1] * len(text) for text in texts]
        ),
        "answers": torch.tensor(
            [[0] * (most - len(answer)) + [1] * len(answer) for answer in answers]
        ),
    }


def batch_loss(network: "PeftModel", batch: "Mapping[str, Tensor]") -> "Tensor":
    """The mean over rows of the mean of -log p of an answer's tokens."""
    import torch

    ids = batch["input_ids"]
    mask = batch["attention_mask"]
    answers = batch["answers"]
    most = answers.shape[1]
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    output = network(
        input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=most + 1
    )
    logits = output.logits[:, :-1].float()  # a position's logits predict the next token
    tokens = torch.log_softmax(logits, -1).gather(-1, ids[:, -most:, None]).squeeze(-1) * answers
    return -(tokens.sum(1) / answers.sum(1)).mean()
