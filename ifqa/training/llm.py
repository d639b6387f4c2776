"""Tunes a language model for the reader 'llm': an adapter (LoRA, Hu et al. 2022), on answers or on preferences between them.

The prompts are those that the reader sends, and the loss is on the answer alone.
"""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.models.causal_lm import CausalLMFiles, base_model, find_causal_lm
from ifqa.progress import bar
from ifqa.prompting.context_window import fit_prompt
from ifqa.prompting.demonstrations import Demo
from ifqa.prompting.prompts import Prompt, load_prompt, prompt_path
from ifqa.protocols import NO_DATA, TrainerFlag, TrainingData
from ifqa.records import Passage, Question, gold_id
from ifqa.settings import NotNegative, Positive, Share
from ifqa.storage.files import read_json, sha256, write_json
from ifqa.training import checkpoints
from ifqa.training.preference_pairs import make_preference_pairs
from ifqa.training.trainer import EpochTrainer, refuse_family, require_any, shuffle_batches, training_passages

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor

logger = logging.getLogger(__name__)

Method = Literal["sft", "dpo"]
RATES: Mapping[Method, float] = {"sft": 3e-4, "dpo": 5e-5}  # learning rates, if none is given
DEPTH = 20  # passages that are retrieved for a question; `passages` is at most this
_REFERENCE = "reference.json"  # among the checkpoints: the log probabilities of both answers at the start


@dataclass(kw_only=True)
class Llm(EpochTrainer):
    """Tune a language model for the reader 'llm', as an adapter: --model FOLDER then reads with it.

    Attributes:
        method: "sft": the gold answer is learnt (supervised fine-tuning); "dpo": the answer of passage and supposition is
            preferred to that of the real world (direct preference optimisation, Rafailov et al. 2023, equation 7).
        prompt: a file `prompts/NAME.toml` without reasoning, which the reader is to use.
        passages: the first retrieved passages in a prompt; if no gold passage is among them, one replaces the last.
        alone: share of the prompts that have the gold passages alone instead. With "dpo" all have.
        rank: of the adapters on all linear layers.
        learning_rate: if None, that of RATES.
        device_batch: questions that go through the network at once; a divisor of `batch`.
        beta: of "dpo": how much a difference of log probabilities counts.
        max_tokens: tokens of a prompt and its answer; passages that do not fit are left out, as the reader leaves them out.
    """

    runtime_only = ("model", "device_batch", *EpochTrainer.runtime_only)
    libraries = ("peft", "accelerate")
    retrieved = DEPTH

    method: Annotated[
        Method, TrainerFlag("sft (learn the answers) or dpo (prefer them to those of the real world).")
    ] = "sft"
    model: Annotated[
        str, TrainerFlag("Model to tune: smollm2, a GGUF file, a folder, a hub's name, or an adapter's folder.")
    ] = "smollm2"
    prompt: str = "short"
    passages: Annotated[int, Field(ge=1, le=DEPTH)] = 5
    alone: Share = 0.5
    epochs: Positive = 1
    rank: Positive = 32
    learning_rate: NotNegative | None = None  # type: ignore[assignment]
    batch: Positive = 8
    device_batch: Positive = 8
    beta: NotNegative = 0.1
    max_tokens: Positive = 1024
    device: str = "auto"
    checkpoint_every: Positive = 25

    def __post_init__(self) -> None:
        """Take the method's learning rate if none is given."""
        super().__post_init__()
        if self.learning_rate is None:
            self.learning_rate = RATES[self.method]
        if self.batch % self.device_batch:
            raise IfqaError(
                f"batch = {self.batch}: wanted a multiple of device_batch, {self.device_batch}, what is computed at once"
            )

    def check_data(self, data: TrainingData, folder: Path) -> None:
        """Refuse questions without an answer or a pair, a prompt with reasoning, and a model of another split family."""
        require_any(data, has_gold_answer, "an answer")
        prompt = load_prompt(self.prompt)
        if prompt.steps or prompt.calculator:
            raise IfqaError(
                f"prompt {self.prompt!r} shows reasoning, which the questions do not have; take another, as 'short'"
            )
        if self.method == "dpo" and not make_preference_pairs(list(filter(has_gold_answer, data.questions)), self.seed):
            raise IfqaError(
                f"none of {len(data.questions)} training questions has a name or number as answer that stands in its gold "
                "passage; wanted questions that do"
            )
        refuse_family(self.model, find_causal_lm(self.model).family, data)

    def train(self, data: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Tune, and write peft's `adapter_model.safetensors`, `adapter_config.json` and a `manifest.json`.

        An interrupted tuning resumes from its newest checkpoint and ends in the same weights. Questions without an answer, or
        with "dpo" without a pair (`ifqa.training.preference_pairs`), are left out.
        """
        from peft.helpers import disable_input_dtype_casting

        self.check_data(data, folder)
        source = find_causal_lm(self.model)
        base = base_model(Path(self.model)) if source.adapter else self.model
        inputs = self.inputs(data) | {
            "prompt": sha256(prompt_path(self.prompt)),
            "base": {"name": base, "sha256": CausalLMFiles(source.folder).fingerprint},
            "start": {"name": self.model, "sha256": source.fingerprint} if source.adapter else {},
        }
        if not checkpoints.begin_training(folder, inputs):
            return
        reader = HF(model=str(source.folder), device=self.device)
        asks = PromptTokenizer(reader, load_prompt(self.prompt), self.max_tokens)
        passes = {"epochs": self.epochs, "batch": self.batch, "seed": self.seed}
        if self.method == "dpo":
            rows = preference_rows(data, asks, **passes)
        else:
            rows = answer_rows(data, asks, **passes, passages=self.passages, alone=self.alone)
        logger.info(f"{folder}: {len(rows):,} {'pairs of answers' if self.method == 'dpo' else 'prompts with answers'}")
        network = add_adapter(reader, source, self.rank, self.seed)
        if self.method == "dpo":
            _add_reference(network, rows, folder, self.device_batch, asks.pad)
        with disable_input_dtype_casting(network):  # autocast casts, and need not cast back what peft cast to float32
            record = checkpoints.train_with_loss(
                partial(batch_loss, beta=self.beta), network, rows, partial(collate, pad=asks.pad), folder, seed=self.seed,
                batch=self.device_batch, gradient_accumulation_steps=self.batch // self.device_batch,
                learning_rate=self.learning_rate or 0.0, every=self.checkpoint_every, device=network.device.type,
            )  # fmt: skip
        checkpoints.save_adapter(network, folder, base)
        record |= {"rows": len(rows), "device": str(reader.model.device)}
        checkpoints.finish_training(folder, inputs, record, ["adapter_*"])


def add_adapter(reader: HF, found: CausalLMFiles, rank: int, seed: int) -> "PeftModel":
    """The model with an adapter to train: a fresh one, or that of an earlier tuning."""
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import set_seed

    set_seed(seed)
    reader.model.config.use_cache = False
    if found.adapter:
        network = PeftModel.from_pretrained(reader.model, str(found.adapter), is_trainable=True, local_files_only=True)
        # at each checkpoint peft reads the model's vocabulary from here, and would ask the hub for a name
        network.peft_config["default"].base_model_name_or_path = str(found.folder)
        return network
    lora = LoraConfig(r=rank, lora_alpha=rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(reader.model, lora)


class PromptRow(TypedDict, total=False):
    """The tokens of a prompt, and of one or two answers with their end: the right one, and the rejected one.

    `reference` has the answers' log probabilities at the start.
    """

    prompt: list[int]
    answers: list[list[int]]
    reference: list[float]


class PromptTokenizer:
    """Makes the tokens of prompts as the reader's language model gets them, and those of the answers to learn.

    `prompt` is without reasoning; `most` tokens of a prompt and its answer are used.
    """

    def __init__(self, reader: HF, prompt: Prompt, most: int) -> None:
        self._reader, self._prompt, self._window = reader, prompt, min(most, reader.window)
        self.pad: int = reader.tokenizer.pad_token_id or 0

    def row(self, question: Question, passages: Sequence[Passage], *answers: str) -> PromptRow | None:
        """A question's row; None if its prompt does not fit even without passages."""
        reader, prompt = self._reader, self._prompt
        fitted = fit_prompt(prompt, question.text, passages, reader, choices=question.choices, window=self._window)
        if fitted.problem:
            return None
        [request] = fitted.requests()
        texts = [prompt.show(Demo(question.text, answer)) for answer in answers]
        if not reader.chat:
            texts = [text.removeprefix(prompt.opening) for text in texts]
        end = reader.tokenizer.eos_token_id
        tokens = [[*reader.tokenise(text, add_special_tokens=False), end][: prompt.max_tokens] for text in texts]
        return {"prompt": reader.ids(request), "answers": tokens}


def has_gold_answer(question: Question) -> bool:
    """Whether a question has an answer to learn."""
    return bool(question.answers and question.answers[0].strip())


def answer_rows(
    data: TrainingData, asks: PromptTokenizer, *, epochs: int, batch: int, seed: int, passages: int, alone: float
) -> list[PromptRow]:
    """A row for each question and pass, in training order, with the passages that are drawn for it."""
    rows: list[PromptRow] = []
    for epoch in range(epochs):
        draw = random.Random(f"{seed} {epoch}")
        drawn = []
        for question, ranking in zip(data.questions, data.rankings, strict=True):
            if has_gold_answer(question):
                gold = _as_passages(question.gold_passages)
                apart = draw.random() < alone
                shown = gold if apart and gold else training_passages(question, ranking, passages, True)
                drawn.append(asks.row(question, shown, question.answers[0]))
        rows += _shuffle_rows(drawn, batch, f"{seed} {epoch}")
    return rows


def preference_rows(
    data: TrainingData, asks: PromptTokenizer, *, epochs: int, batch: int, seed: int
) -> list[PromptRow]:
    """A row for each pair and pass, in training order."""
    rows = [
        asks.row(pair.question, _as_passages(pair.passages), pair.chosen, pair.rejected)
        for pair in make_preference_pairs(data.questions, seed)
    ]
    return [row for epoch in range(epochs) for row in _shuffle_rows(rows, batch, f"{seed} {epoch}")]


def _as_passages(texts: Sequence[str]) -> list[Passage]:
    return [Passage(gold_id(text), "", text) for text in texts]


def _shuffle_rows(rows: Sequence[PromptRow | None], size: int, key: str) -> list[PromptRow]:
    """The rows of a pass, shuffled, with rows of similar length beside each other."""
    groups = shuffle_batches([row for row in rows if row], size, key, lambda row: len(row["prompt"]))
    return [row for group in groups for row in group]


def collate(rows: Sequence[PromptRow], pad: int) -> "dict[str, Tensor]":
    """A batch, padded on the left: all first answers, then all second ones, with the log probabilities at the start."""
    import torch

    answers = [row["answers"][n] for n in range(len(rows[0]["answers"])) for row in rows]
    texts = [row["prompt"] + answer for row, answer in zip([*rows] * len(rows[0]["answers"]), answers, strict=True)]
    width, most = max(map(len, texts)), max(map(len, answers))
    batch = {
        "input_ids": torch.tensor([[pad] * (width - len(text)) + text for text in texts]),
        "attention_mask": torch.tensor([[0] * (width - len(text)) + [1] * len(text) for text in texts]),
        "answers": torch.tensor([[0] * (most - len(answer)) + [1] * len(answer) for answer in answers]),
    }
    if "reference" in rows[0]:
        batch["reference"] = torch.tensor([row["reference"] for row in rows])
    return batch


def log_probabilities(network: "PeftModel", batch: "Mapping[str, Tensor]") -> "Tensor":
    """The log probability of each token of the answers, [rows, tokens], 0 beside them."""
    import torch

    mask, answers = batch["attention_mask"], batch["answers"]
    most = answers.shape[1]
    inputs = {"input_ids": batch["input_ids"], "attention_mask": mask}
    inputs["position_ids"] = (mask.cumsum(1) - 1).clamp(min=0)
    logits = network(**inputs, logits_to_keep=most + 1).logits[:, :-1].float()  # each but the last predicts the next
    tokens = batch["input_ids"][:, -most:, None]
    return torch.log_softmax(logits, -1).gather(-1, tokens).squeeze(-1) * answers


def batch_loss(network: "PeftModel", batch: "Mapping[str, Tensor]", beta: float) -> "Tensor":
    """The mean loss of a batch's questions.

    With one answer each, the mean of -log p over the answer's tokens. With two, -log sigmoid of `beta` times the difference of
    two gains in log probability since the start: that of the first answer less that of the second.
    """
    import torch.nn.functional as F

    tokens = log_probabilities(network, batch)
    if "reference" not in batch:
        return -(tokens.sum(1) / batch["answers"].sum(1)).mean()
    right, wrong = (tokens.sum(1).view(2, -1).T - batch["reference"]).unbind(1)
    return -F.logsigmoid(beta * (right - wrong)).mean()


def _add_reference(network: "PeftModel", rows: Sequence[PromptRow], folder: Path, at_once: int, pad: int) -> None:
    """Put the log probabilities of the answers at the start into the rows; a resumed training reads them from its checkpoints."""
    import torch

    path = folder / checkpoints.CHECKPOINTS / _REFERENCE
    if path.exists():
        known = read_json(path)
    else:
        known, kind = [], network.device.type
        network.eval()
        half = torch.autocast(kind, torch.bfloat16, enabled=checkpoints.uses_bfloat16(kind))
        with torch.inference_mode(), half, bar("log probabilities at the start", len(rows)) as advance:
            for start in range(0, len(rows), at_once):
                batch = collate(rows[start : start + at_once], pad)
                batch = {name: tensor.to(network.device) for name, tensor in batch.items()}
                known += log_probabilities(network, batch).sum(1).view(2, -1).T.tolist()
                advance(len(rows[start : start + at_once]))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, known)
    for row, reference in zip(rows, known, strict=True):
        row["reference"] = reference
