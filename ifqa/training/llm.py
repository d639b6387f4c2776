"""Tunes a language model for the reader 'llm': an adapter (LoRA, Hu et al. 2022), on answers or on preferences between them.

The prompts are the reader's; the loss is on the answer alone.
"""

import logging
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from pydantic import Field

from ifqa.errors import ConfigError
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
RATES: Mapping[Method, float] = {"sft": 3e-4, "dpo": 5e-5}  # default learning rates
DEPTH = 20  # passages retrieved for a question
_REFERENCE = "reference.json"  # next to the checkpoints: the answers' log probabilities at the start


@dataclass(kw_only=True)
class Llm(EpochTrainer):
    """Tune a language model for the reader 'llm', as an adapter: --model FOLDER then reads with it."""

    runtime_only = ("model", "device_batch", *EpochTrainer.runtime_only)
    libraries = ("peft", "accelerate")
    retrieved = DEPTH

    method: Annotated[Method, TrainerFlag("sft (learn the answers) or dpo (prefer them to the real world's).")] = "sft"
    model: Annotated[str, TrainerFlag("Start: smollm2, a GGUF file, a folder, a name on the hub, or an adapter.")] = (
        "smollm2"
    )
    prompt: str = "short"  # the reader's prompt, without reasoning
    passages: Annotated[int, Field(ge=1, le=DEPTH)] = 5  # a gold passage replaces the last if none was retrieved
    alone: Share = 0.5  # share of prompts with only the gold passages; all in "dpo"
    epochs: Positive = 1
    rank: Positive = 32  # the rank of the adapters, on all linear layers
    learning_rate: NotNegative | None = None  # type: ignore[assignment]
    batch: Positive = 8
    device_batch: Positive = 8  # questions in a forward pass; a divisor of `batch`
    beta: NotNegative = 0.1  # factor of log probabilities in "dpo"
    max_tokens: Positive = 1024  # most tokens of prompt and answer; passages that do not fit are left out
    device: str = "auto"
    checkpoint_every: Positive = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.learning_rate is None:
            self.learning_rate = RATES[self.method]
        if self.batch % self.device_batch:
            raise ConfigError(f"batch = {self.batch}: wanted a multiple of device_batch, {self.device_batch}")

    def check_data(self, dataset: TrainingData, folder: Path) -> None:
        require_any(dataset, has_gold_answer, "an answer")
        prompt = load_prompt(self.prompt)
        if prompt.steps or prompt.calculator:
            raise ConfigError(
                f"prompt {self.prompt!r} shows reasoning, which questions lack; wanted one such as 'short'"
            )
        if self.method == "dpo" and not make_preference_pairs(dataset.questions, self.seed):
            what = "an answer that is a name or a number in its gold passage"
            raise ConfigError(f"none of {len(dataset.questions)} training questions has {what}; wanted such questions")
        refuse_family(self.model, find_causal_lm(self.model).family, dataset)

    def train(self, dataset: TrainingData, folder: Path, dev: TrainingData = NO_DATA) -> None:
        """Tune, and write peft's adapter and a `manifest.json`; questions without an answer or a preference pair are left out."""
        from peft.helpers import disable_input_dtype_casting

        self.check_data(dataset, folder)
        source = find_causal_lm(self.model)
        base = base_model(Path(self.model)) if source.adapter else self.model
        inputs = self.inputs(dataset) | {
            "prompt": sha256(prompt_path(self.prompt)),
            "base": {"name": base, "sha256": CausalLMFiles(source.folder).fingerprint},
            "start": {"name": self.model, "sha256": source.fingerprint} if source.adapter else {},
        }
        if not checkpoints.begin_training(folder, inputs):
            return
        reader = HF(model=str(source.folder), device=self.device)
        tokenizer = PromptTokenizer(reader, load_prompt(self.prompt), self.max_tokens)
        preferences = self.method == "dpo"
        rows = self.preference_rows(dataset, tokenizer) if preferences else self.answer_rows(dataset, tokenizer)
        logger.info(f"{folder}: {len(rows):,} {'pairs of answers' if preferences else 'prompts with answers'}")
        network = add_adapter(reader, source, self.rank, self.seed)
        if preferences:
            _add_reference(network, rows, folder, self.device_batch, tokenizer.pad)
        with disable_input_dtype_casting(network):  # autocast would undo peft's casts to float32
            record = checkpoints.train_with_loss(
                partial(batch_loss, beta=self.beta), network, rows, partial(collate, pad=tokenizer.pad), folder, seed=self.seed,
                batch=self.device_batch, gradient_accumulation_steps=self.batch // self.device_batch,
                learning_rate=self.learning_rate or 0.0, every=self.checkpoint_every, device=network.device.type,
            )  # fmt: skip
        checkpoints.save_adapter(network, folder, base)
        record |= {"rows": len(rows), "device": str(reader.model.device)}
        checkpoints.finish_training(folder, inputs, record, ["adapter_*"])

    def answer_rows(self, dataset: TrainingData, tokenizer: "PromptTokenizer") -> "list[PromptRow]":
        """A row per question and pass, in training order, with passages drawn for each pass."""
        rows: list[PromptRow] = []
        for epoch in range(self.epochs):
            draw, prompts = random.Random(f"{self.seed} {epoch}"), []
            for question, ranking in zip(dataset.questions, dataset.rankings, strict=True):
                if has_gold_answer(question):
                    gold_alone = draw.random() < self.alone
                    shown = _as_passages(question.gold_passages) if gold_alone else []
                    shown = shown or training_passages(question, ranking, self.passages, True)
                    prompts.append(tokenizer.row(question, shown, question.answers[0]))
            rows += self._shuffle(prompts, epoch)
        return rows

    def preference_rows(self, dataset: TrainingData, tokenizer: "PromptTokenizer") -> "list[PromptRow]":
        pairs = make_preference_pairs(dataset.questions, self.seed)
        rows = [tokenizer.row(pair.question, _as_passages(pair.passages), pair.chosen, pair.rejected) for pair in pairs]
        return [row for epoch in range(self.epochs) for row in self._shuffle(rows, epoch)]

    def _shuffle(self, rows: "Sequence[PromptRow | None]", epoch: int) -> "list[PromptRow]":
        """The rows of a pass, shuffled, with rows of similar length next to each other."""
        fitting = [row for row in rows if row]
        batches = shuffle_batches(fitting, self.batch, f"{self.seed} {epoch}", lambda row: len(row["prompt"]))
        return [row for batch in batches for row in batch]


def add_adapter(reader: HF, files: CausalLMFiles, rank: int, seed: int) -> "PeftModel":
    """The model with an adapter to train: a fresh adapter, or an earlier tuning's."""
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import set_seed

    set_seed(seed)
    reader.model.config.use_cache = False
    if files.adapter:
        network = PeftModel.from_pretrained(reader.model, str(files.adapter), is_trainable=True, local_files_only=True)
        # peft reads the vocabulary from here at each checkpoint; given a name, it would ask the hub
        network.peft_config["default"].base_model_name_or_path = str(files.folder)
        return network
    lora = LoraConfig(r=rank, lora_alpha=rank, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(reader.model, lora)


class PromptRow(TypedDict, total=False):
    """Tokens of a prompt and of its answers with their end: the right answer, and for "dpo" a rejected answer."""

    prompt: list[int]
    answers: list[list[int]]
    reference: list[float]  # the answers' log probabilities at the start


class PromptTokenizer:
    """Tokenizes prompts and the answers to learn as the reader's language model does; `most` limits both together."""

    def __init__(self, reader: HF, prompt: Prompt, most: int) -> None:
        self._reader, self._prompt, self._window = reader, prompt, min(most, reader.window)
        self.pad: int = reader.tokenizer.pad_token_id or 0

    def row(self, question: Question, passages: Sequence[Passage], *answers: str) -> PromptRow | None:
        """A question's row; None if its prompt does not fit without passages."""
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
    return bool(question.answers and question.answers[0].strip())


def _as_passages(texts: Sequence[str]) -> list[Passage]:
    return [Passage(gold_id(text), "", text) for text in texts]


def collate(rows: Sequence[PromptRow], pad: int) -> "dict[str, Tensor]":
    """A batch, padded on the left: all first answers, then all second ones, and their reference log probabilities."""
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
    """The log probability of each answer's tokens, [rows, tokens]; 0 at padding."""
    import torch

    ids, mask, answers = batch["input_ids"], batch["attention_mask"], batch["answers"]
    most, positions = answers.shape[1], (mask.cumsum(1) - 1).clamp(min=0)
    output = network(input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=most + 1)
    logits = output.logits[:, :-1].float()  # a position's logits predict the next token
    tokens = ids[:, -most:, None]
    return torch.log_softmax(logits, -1).gather(-1, tokens).squeeze(-1) * answers


def batch_loss(network: "PeftModel", batch: "Mapping[str, Tensor]", beta: float) -> "Tensor":
    """The mean of -log p of an answer's tokens, or for two answers of -log sigmoid(beta * (gain in log p - other's gain)).

    The latter is direct preference optimisation (Rafailov et al. 2023, equation 7).
    """
    import torch.nn.functional as F

    tokens = log_probabilities(network, batch)
    if "reference" not in batch:
        return -(tokens.sum(1) / batch["answers"].sum(1)).mean()
    right, wrong = (tokens.sum(1).view(2, -1).T - batch["reference"]).unbind(1)
    return -F.logsigmoid(beta * (right - wrong)).mean()


def _add_reference(network: "PeftModel", rows: Sequence[PromptRow], folder: Path, size: int, pad: int) -> None:
    """Add the answers' log probabilities at the start to the rows; a resumed training reads them from a file."""
    import torch

    path = folder / checkpoints.CHECKPOINTS / _REFERENCE
    if path.exists():
        references = read_json(path)
    else:
        references, kind = [], network.device.type
        network.eval()
        half = torch.autocast(kind, torch.bfloat16, enabled=checkpoints.uses_bfloat16(kind))
        with torch.inference_mode(), half, bar("log probabilities at the start", len(rows)) as advance:
            for start in range(0, len(rows), size):
                batch = collate(rows[start : start + size], pad)
                batch = {name: tensor.to(network.device) for name, tensor in batch.items()}
                references += log_probabilities(network, batch).sum(1).view(2, -1).T.tolist()
                advance(len(rows[start : start + size]))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, references)
    for row, reference in zip(rows, references, strict=True):
        row["reference"] = reference
