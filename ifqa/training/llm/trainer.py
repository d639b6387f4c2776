"""Tunes a language model for the reader 'llm': an adapter (LoRA, Hu et al. 2022), on answers or on preferences between them.

The prompts are those that the reader sends, and the loss is on the answer alone. transformers' trainer runs it, so that a
killed tuning goes on with the same weights.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.models.causal import ADAPTER, SETTINGS, Found, base_of, find
from ifqa.models.devices import half_precision
from ifqa.progress import bar, say
from ifqa.prompting.prompts import load_prompt, prompt_path
from ifqa.protocols import Place
from ifqa.settings import Natural, NotNegative, Positive, Share, checked
from ifqa.storage.files import create, read_json, sha256, write, write_json
from ifqa.training import resume
from ifqa.training.llm.loss import collate, log_probabilities, loss_of
from ifqa.training.llm.pairs import pairs
from ifqa.training.llm.rows import Asks, Row, with_answers, with_preferences
from ifqa.training.material import Material

Method = Literal["sft", "dpo"]
RATES: Mapping[Method, float] = {"sft": 3e-4, "dpo": 5e-5}  # learning rates, if none is given
DEPTH = 20  # passages that are retrieved for a question; `passages` is at most this
_REFERENCE = (
    "reference.json"  # among the checkpoints: the log probabilities of preferred and rejected answers at the start
)


@checked("training setting", given=["material", "folder"])
def train(
    material: Material,
    folder: Path,
    *,
    model: Place = "smollm2",
    method: Method = "sft",
    prompt: str = "short",
    passages: Annotated[int, Field(ge=1, le=DEPTH)] = 5,
    alone: Share = 0.5,
    epochs: Positive = 1,
    rank: Positive = 32,
    learning_rate: NotNegative | None = None,
    batch: Positive = 8,
    device_batch: Positive = 8,
    beta: NotNegative = 0.1,
    max_tokens: Positive = 1024,
    seed: Natural = 0,
    device: str = "auto",
    checkpoint_every: Positive = 25,
) -> None:
    """Tune, and write peft's `adapter_model.safetensors`, `adapter_config.json` and a `manifest.json`.

    An interrupted tuning resumes from its newest checkpoint and ends in the same weights.

    Args:
        material: questions without an answer are left out. With "dpo", so are those without a pair (`ifqa.training.llm.pairs`).
        folder: the adapter is written here.
        model: what is tuned: "smollm2", a GGUF file, a folder, a model of the hub, or an adapter, which is tuned on.
        method: "sft": the gold answer is learnt (supervised fine-tuning); "dpo": the answer of passage and supposition is
            preferred to that of the real world (direct preference optimisation, Rafailov et al. 2023, equation 7).
        prompt: a file `prompts/NAME.toml` without reasoning, which the reader is to use.
        passages: the first retrieved passages in a prompt; if no gold passage is among them, one replaces the last.
        alone: share of the prompts that have the gold passages alone instead. With "dpo" all have.
        epochs, rank, learning_rate, batch, seed: passes over the questions, rank of the adapters on all linear layers, highest
            rate of AdamW (after a tenth of the steps, then linear to 0; if None, that of RATES), questions a step, seed of all
            draws.
        device_batch: questions that go through the network at once; a divisor of `batch`.
        beta: of "dpo": how much a difference of log probabilities counts.
        max_tokens: tokens of a prompt and its answer; passages that do not fit are left out, as the reader leaves them out.
        device: "cpu", "cuda", or "auto" for a GPU if there is one; uses bfloat16 if the device multiplies in it.
        checkpoint_every: steps between checkpoints.

    Raises:
        IfqaError: nothing to train on, a setting out of range, the model is not here or was tuned on another split family, the
            prompt shows reasoning, or `folder` holds another training.
    """
    from peft.helpers import disable_input_dtype_casting

    refuse(
        material, folder, model=model, method=method, prompt=prompt, batch=batch, device_batch=device_batch, seed=seed
    )
    found = find(model)
    rate = RATES[method] if learning_rate is None else learning_rate
    settings = {
        "method": method, "prompt": prompt, "passages": passages, "alone": alone, "epochs": epochs, "rank": rank,
        "learning_rate": rate, "batch": batch, "beta": beta, "max_tokens": max_tokens, "seed": seed,
    }  # fmt: skip
    base = base_of(Path(model)) if found.adapter else model
    inputs = {
        "family": material.family,
        "sources": material.sources,
        "settings": settings,
        "prompt": sha256(prompt_path(prompt)),
        "questions": resume.identity(material.questions, material.rankings),
        "base": {"name": base, "sha256": Found(found.folder).identity},
        "start": {"name": model, "sha256": found.identity} if found.adapter else {},
    }
    if not resume.begin(folder, inputs):
        return
    reader = HF(model=str(found.folder), device=device)
    asks = Asks(reader, load_prompt(prompt), max_tokens)
    rows = with_preferences(material, asks, settings) if method == "dpo" else with_answers(material, asks, settings)
    say(f"{folder}: {len(rows):,} {'pairs of answers' if method == 'dpo' else 'prompts with answers'}")
    network = _adapted(reader, found, rank, seed)
    if method == "dpo":
        _reference(network, rows, folder, device_batch, asks.pad)
    trainer = _trainer(network, rows, folder, settings, asks.pad, device_batch, checkpoint_every)
    with disable_input_dtype_casting(network):  # autocast casts, and need not cast back what peft cast to float32
        made = resume.fit(trainer, folder, "tuning the language model")
    _save(folder, trainer.model, base)
    resume.finish(folder, inputs, made | {"rows": len(rows), "device": str(reader.model.device)}, ["adapter_*"])


def refuse(
    material: Material, folder: Path, *, model: Place = "smollm2", method: Method = "sft", prompt: str = "short", batch: int = 8,
    device_batch: int = 8, seed: int = 0, **_: object,
) -> None:  # fmt: skip
    """Raise the errors of `train` that need no rankings, before passages are retrieved; the arguments are those of `train`."""
    if batch % device_batch:
        raise IfqaError(f"batch = {batch}: wanted a multiple of device_batch, {device_batch}, what is computed at once")
    answered = [one for one in material.questions if one.answers and one.answers[0].strip()]
    if not answered:
        raise IfqaError(
            f"none of {len(material.questions)} training questions has an answer; wanted annotated questions"
        )
    asks = load_prompt(prompt)
    if asks.steps or asks.calculator:
        raise IfqaError(f"prompt {prompt!r} shows reasoning, which the questions do not have; take another, as 'short'")
    if method == "dpo" and not pairs(answered, seed):
        raise IfqaError(
            f"none of {len(answered)} training questions has an answer of the real world, or a name or number as answer that "
            "stands in its gold passage; wanted questions that do"
        )
    family = find(model).family
    if family not in ("", material.family):
        raise IfqaError(
            f"{model} was tuned on {family} and may not be tuned further on {material.family}, which holds the same questions; "
            "begin with another model"
        )


def _adapted(reader: HF, found: Found, rank: int, seed: int) -> Any:
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
    return get_peft_model(
        reader.model, LoraConfig(r=rank, lora_alpha=rank, target_modules="all-linear", task_type="CAUSAL_LM")
    )


def _half(device: str) -> bool:
    """Whether a device computes in bfloat16; the adapter's own weights are in float32."""
    import torch

    return half_precision(device) is torch.bfloat16


def _reference(network: Any, rows: Sequence[Row], folder: Path, at_once: int, pad: int) -> None:
    """Put the log probabilities of the answers at the start into the rows; a resumed training reads them from its checkpoints."""
    import torch

    path = folder / resume.CHECKPOINTS / _REFERENCE
    if path.exists():
        known = read_json(path)
    else:
        known = []
        network.eval()
        half = torch.autocast(network.device.type, torch.bfloat16, enabled=_half(network.device.type))
        with torch.inference_mode(), half, bar("log probabilities at the start", len(rows)) as advance:
            for start in range(0, len(rows), at_once):
                group = rows[start : start + at_once]
                batch = {name: one.to(network.device) for name, one in collate(group, pad).items()}
                known += log_probabilities(network, batch).sum(1).view(2, -1).T.tolist()
                advance(len(group))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, known)
    for row, reference in zip(rows, known, strict=True):
        row["reference"] = reference


def _trainer(
    network: Any, rows: list[Row], folder: Path, settings: Mapping[str, Any], pad: int, at_once: int, checkpoint_every: int
) -> Any:  # fmt: skip
    from torch.utils.data import SequentialSampler
    from transformers import Trainer, TrainingArguments, set_seed

    device = network.device.type

    class Tuner(Trainer):
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(rows)

        def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
            return loss_of(model, inputs, settings["beta"])

    set_seed(settings["seed"])
    arguments = TrainingArguments(
        output_dir=str(folder / resume.CHECKPOINTS), num_train_epochs=1, per_device_train_batch_size=at_once,
        gradient_accumulation_steps=settings["batch"] // at_once, learning_rate=settings["learning_rate"], weight_decay=0.0,
        warmup_steps=0.1, lr_scheduler_type="linear", bf16=_half(device),
        use_cpu=device == "cpu", save_strategy="steps", save_steps=checkpoint_every, save_total_limit=2,
        logging_steps=checkpoint_every, remove_unused_columns=False, report_to="none", disable_tqdm=True,
        seed=settings["seed"], log_level="error", log_level_replica="error",
    )  # fmt: skip
    trainer = Tuner(model=network, args=arguments, train_dataset=rows, data_collator=lambda some: collate(some, pad))
    trainer.model_accepts_loss_kwargs = False  # the loss is a mean over questions, which accumulation averages
    return trainer


def _save(folder: Path, network: Any, base: str) -> None:
    """Write the adapter in half precision, under peft's names, with peft's configuration."""
    from safetensors.torch import load_file, save

    made = folder / resume.CHECKPOINTS / "adapter"
    network.save_pretrained(str(made))
    tensors = {name: tensor.half().contiguous() for name, tensor in load_file(made / ADAPTER).items()}
    with create(folder / ADAPTER) as handle:
        write(handle, save(tensors, {"format": "pt"}))
    settings = read_json(made / SETTINGS)
    modules = sorted(settings["target_modules"])  # a set, which peft writes in another order in every process
    write_json(folder / SETTINGS, {**settings, "target_modules": modules, "base_model_name_or_path": base})
