"""One training in one folder, with transformers' trainers: start it, resume it after a kill, finish
it.

During training, `inputs.json` identifies the training, and `checkpoints/` holds its checkpoints.
`log.jsonl` has loss, learning rate and speed. The last file written, in the checkpoints and in the
folder, is `manifest.json`. A folder that holds another training, finished or not, is refused.
"""

import errno
import json
import logging
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import ConfigError, FormatError
from ifqa.formatting import one_decimal
from ifqa.models.causal_lm import ADAPTER, SETTINGS
from ifqa.models.devices import half_precision
from ifqa.progress import bar
from ifqa.protocols import no_progress
from ifqa.storage import artifacts
from ifqa.storage.append_log import truncate_log
from ifqa.storage.files import (
    atomic_write,
    flush_to_disk,
    json_line,
    read_json,
    sha256,
    write_bytes,
    write_json,
)
from ifqa.storage.resources import library_versions

if TYPE_CHECKING:
    from peft import PeftModel
    from torch import Tensor
    from torch.optim import Optimizer
    from torch.utils.data import BatchSampler, SequentialSampler
    from transformers import Trainer, TrainerCallback, TrainingArguments

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
INPUTS = "inputs.json"
CHECKPOINTS = "checkpoints"
LOG = "log.jsonl"
_PREFIX, _STATE = "checkpoint-", "trainer_state.json"  # transformers' names
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
_ENCODERS = ("*_encoder", "[0-9]_*")  # folders of a trained dense retriever
_LOGGED = 10  # lines of the log between two checkpoints
# PyTorch and safetensors do not raise an OSError when they cannot write a file.
_UNWRITTEN = re.compile(
    r"inline_container|PytorchStreamWriter|No space left|quota exceeded|File too large", re.I
)
_LIBRARIES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "peft",
    "accelerate",
    "scikit-learn",
    "tokenizers",
    "safetensors",
)


@dataclass(frozen=True, kw_only=True)
class StepSettings:
    """How a network is trained, step by step."""

    seed: int
    batch: int  # rows in a forward pass
    learning_rate: float  # the highest
    every: int  # steps between checkpoints
    device: str
    weight_decay: float = 0.0
    warmup: float = 0.1  # steps before the highest rate; below 1, a share of all steps
    # Whether networks are cast to bfloat16; None: if the hardware supports it
    bf16: bool | None = None


def rank_and_world_size() -> tuple[int, int]:
    """This process's rank and the number of processes.

    Torchrun and `accelerate launch` start a process per GPU.
    """
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def refuse_foreign_weights(folder: Path) -> None:
    """Refuse a folder with weights or checkpoints that ifqa did not train and a training would
    overwrite.
    """
    manifests = [path for path in (folder / MANIFEST, folder / INPUTS) if path.exists()]
    foreign = [path for path in manifests if not isinstance(read_json(path), dict)]
    if not manifests:
        folders = (folder, *(path for name in _ENCODERS for path in folder.glob(name)))
        foreign = sorted(
            path for each in folders for path in each.glob("*") if path.suffix in _WEIGHTS
        )
        foreign += filter(Path.exists, [folder / CHECKPOINTS])
    if foreign:
        raise ConfigError(
            f"{foreign[0]} is not from a training of ifqa; train into "
            "another folder, or move it away"
        )


def begin_training(folder: Path, inputs: Mapping[str, object]) -> bool:
    """Whether to train: False if the folder holds a finished training with the same inputs and
    undamaged weights.
    """
    refuse_foreign_weights(folder)
    if (folder / MANIFEST).exists():
        manifest = _require_same(folder, MANIFEST, inputs)
        file = damaged_file(folder, manifest.get("record", manifest).get("files", {}))
        if not file:
            logger.info(f"{folder}: up to date")
            remove_leftovers(folder)  # of a run that was killed after its manifest
            return False
        logger.info(f"{folder}: {file} is missing or altered; training again")
    if (folder / INPUTS).exists():
        _require_same(folder, INPUTS, inputs)
    if rank_and_world_size()[0] == 0:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / INPUTS, inputs)
        (folder / MANIFEST).unlink(missing_ok=True)  # it would vouch for half-written weights
    return True


def _require_same(folder: Path, name: str, inputs: Mapping[str, object]) -> dict[str, Any]:
    recorded: dict[str, Any] = read_json(folder / name)
    if changed := sorted(
        key for key in inputs if recorded.get(key) != json.loads(json.dumps(inputs[key]))
    ):
        mend = "train into another folder, or remove this one"
        raise ConfigError(
            f"{folder} holds another training (changed: {', '.join(changed)}); {mend}"
        )
    return recorded


class TrainingLog:
    """The log of a training, `log.jsonl`."""

    def __init__(self, folder: Path, done: int, steps: int) -> None:
        """Continue the log of a training of `steps` steps after its step `done`.

        A new training gets a new log.
        """
        self._path = folder / LOG
        self._steps = steps
        truncate_log(
            self._path, lambda _, line: isinstance(step := line.get("step"), int) and step <= done
        )
        self._last = done, time.monotonic()

    def add(self, step: int, **measures: float) -> None:
        """Append a line for the steps up to `step`, as one write."""
        now = time.monotonic()
        (last, since) = self._last
        if step > last:
            self._last = step, now
            measures["steps_per_second"] = (step - last) / max(now - since, 1e-6)
        numbers = {
            name: float(f"{number:.6g}")
            for name, number in measures.items()
            if math.isfinite(number)
        }
        with open(self._path, "ab") as handle:
            write_bytes(handle, json_line({"step": step, "steps": self._steps, **numbers}))


def _reporter(trainer: "Trainer", folder: Path, stack: ExitStack) -> "TrainerCallback":
    """A callback that shows a training's progress, writes its log, and completes its checkpoints.

    Of several processes the first does so; `stack` ends its bar.
    """
    from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState

    main = rank_and_world_size()[0] == 0

    class Reporter(TrainerCallback):
        def on_save(self, args: object, state: TrainerState, *_: object, **__: object) -> None:
            # Each process writes the state of its own random generators
            trainer.accelerator.wait_for_everyone()
            if main:
                mark_complete(checkpoint_folder(folder, state.global_step))

        def on_train_begin(
            self, args: object, state: TrainerState, *_: object, **__: object
        ) -> None:
            self.advance = (
                stack.enter_context(bar(f"training {folder.name}", state.max_steps))
                if main
                else no_progress
            )
            self.advance(state.global_step)
            # The state has its path as it was before the folder was moved
            if state.best_global_step:
                state.best_model_checkpoint = str(checkpoint_folder(folder, state.best_global_step))
            self.log = TrainingLog(folder, state.global_step, state.max_steps) if main else None

        def on_step_end(
            self, args: object, state: TrainerState, control: TrainerControl, **_: object
        ) -> None:
            self.advance(1)
            control.should_log |= state.global_step == state.max_steps

        def on_log(
            self,
            args: object,
            state: TrainerState,
            *_: object,
            logs: dict[str, float],
            **__: object,
        ) -> None:
            names = {"loss": "loss", "learning_rate": "learning_rate", "eval_EM": "dev_EM"}
            measures = {name: logs[key] for key, name in names.items() if key in logs}
            if not self.log or not measures:
                return
            self.log.add(state.global_step, **measures)
            step = f"step {state.global_step}/{state.max_steps}"
            if "dev_EM" in measures:
                logger.info(f"{step}, dev EM {one_decimal(measures['dev_EM'])}")
            elif state.global_step % trainer.args.save_steps == 0:
                logger.info(f"{step}, loss {measures['loss']:.3f}")

    return Reporter()


def run_trainer(trainer: "Trainer", folder: Path) -> dict[str, object]:
    """Run a trainer to its end, resuming from its newest complete checkpoint; returns the steps."""
    from transformers.trainer_callback import PrinterCallback, ProgressCallback

    main = rank_and_world_size()[0] == 0
    stack = ExitStack()
    # These print to stdout, which is for results
    for printing in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(printing)
    trainer.add_callback(_reporter(trainer, folder, stack))
    if main:
        remove_damaged_checkpoints(folder)
    trainer.accelerator.wait_for_everyone()
    if newest := newest_checkpoint(folder):
        logger.info(f"{folder}: resuming after step {checkpoint_step(newest)}")
    with stack:
        output = trainer.train(resume_from_checkpoint=str(newest) if newest else None)
    return {"steps": output.global_step}


def train_with_loss(
    loss: "Callable[[Any, dict[str, Any]], Tensor]",
    model: object,
    rows: "Sized",
    collate: "Callable[[list[Any]], dict[str, Any]]",
    folder: Path,
    steps: StepSettings,
    optimizer: "Optimizer | None" = None,
    **more: object,
) -> dict[str, object]:
    """Train a network on rows in their order.

    `collate` batches them, `more` are further arguments of transformers.

    Without an optimiser it is AdamW with one rate.
    """
    from transformers import Trainer, TrainingArguments

    class LossTrainer(SequentialSampling, Trainer):
        def compute_loss(
            self, model: object, inputs: "dict[str, Any]", *_: object, **__: object
        ) -> "Tensor":
            return loss(model, inputs)

    arguments = training_arguments(TrainingArguments, folder, steps, **more, **CUSTOM_ROWS)
    trainer = LossTrainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        data_collator=collate,
        optimizers=(optimizer, None),
    )
    # The loss is a mean over questions, which accumulation averages
    trainer.model_accepts_loss_kwargs = False
    return run_trainer(trainer, folder)


def mark_complete(checkpoint: Path) -> None:
    """Write a checkpoint's manifest, its last file, which lists the others.

    They are on the disk before it.
    """
    for path in checkpoint.rglob("*"):
        if path.is_file():
            flush_to_disk(path)
    files = artifacts.hash_files(checkpoint)
    write_json(checkpoint / MANIFEST, {"step": checkpoint_step(checkpoint), "files": files})


def remove_damaged_checkpoints(folder: Path) -> None:
    """Remove a training's newest checkpoints up to the first that is whole, and name each with its
    fault.

    They have to go: transformers keeps the newest ones when it removes the oldest.
    """
    for checkpoint in reversed(_checkpoints(folder)):
        fault = checkpoint_fault(checkpoint)
        if not fault:
            return
        logger.warning(
            f"{checkpoint}: {fault}; taking the checkpoint before it, or else starting anew"
        )
        shutil.rmtree(checkpoint)


def checkpoint_fault(checkpoint: Path) -> str:
    """What is wrong with a checkpoint; empty if all its files are as its manifest lists them."""
    if not (checkpoint / MANIFEST).exists():
        return f"{MANIFEST} is missing, because the training was stopped as it wrote"
    try:
        manifest = read_json(checkpoint / MANIFEST)
    except FormatError:
        return f"{MANIFEST} is damaged"
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict):  # written before version 0.3
        return f"{MANIFEST} does not list the files"
    actual = artifacts.hash_files(checkpoint)
    for name, recorded in files.items():
        if name not in actual:
            return f"{name} is missing"
        if actual[name] != recorded:
            return f"{name} was changed or is damaged"
    best = read_json(checkpoint / _STATE).get("best_global_step") or checkpoint_step(checkpoint)
    if best != checkpoint_step(checkpoint):
        with_best = checkpoint.with_name(f"{_PREFIX}{best}")
        if fault := checkpoint_fault(with_best):
            return f"the best weights are in {with_best.name}, where {fault}"
    return ""


def newest_checkpoint(folder: Path) -> Path | None:
    """A training's newest checkpoint, if it has any."""
    return next(reversed(_checkpoints(folder)), None)


@contextmanager
def report_full_disk(folder: Path) -> Iterator[None]:
    """Raise IfqaError, which names the folder and the free bytes, if a training cannot write
    there.
    """
    from safetensors import SafetensorError

    with artifacts.report_full_disk(folder):
        try:
            yield
        except (RuntimeError, SafetensorError) as error:
            if not _UNWRITTEN.search(str(error)):
                raise
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


def sequential_batch_sampler(
    dataset: "Sized", batch_size: int, drop_last: bool, **_: object
) -> "BatchSampler":
    from torch.utils.data import BatchSampler, SequentialSampler

    return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)


def uses_bfloat16(device: str) -> bool:
    import torch

    return half_precision(device) is torch.bfloat16


def training_arguments(
    kind: type["TrainingArguments"], folder: Path, steps: StepSettings, **more: object
) -> "TrainingArguments":
    """Arguments of a transformers trainer: one pass over rows in training order.

    `more` are further arguments of it.
    """
    arguments = kind(
        output_dir=str(folder / CHECKPOINTS),
        num_train_epochs=1,
        per_device_train_batch_size=steps.batch,
        seed=steps.seed,
        learning_rate=steps.learning_rate,
        weight_decay=steps.weight_decay,
        warmup_steps=steps.warmup,
        lr_scheduler_type="linear",
        bf16=uses_bfloat16(steps.device) if steps.bf16 is None else steps.bf16,
        use_cpu=steps.device == "cpu",
        save_strategy="steps",
        save_steps=steps.every,
        save_total_limit=2,
        logging_steps=max(1, steps.every // _LOGGED),
        report_to="none",
        disable_tqdm=True,
        **more,
    )
    # Else several GPUs split a batch; torchrun starts a process for each
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


#: Further arguments for rows that are not columns of a table.
CUSTOM_ROWS: dict[str, Any] = {
    "remove_unused_columns": False,
    "log_level": "error",
    "log_level_replica": "error",
}


class SequentialSampling:
    """Makes a transformers trainer take its rows in order."""

    def _get_train_sampler(self, *_: object) -> "SequentialSampler":
        from torch.utils.data import SequentialSampler

        return SequentialSampler(self.train_dataset)  # type: ignore[attr-defined]


def save_tensors(path: Path, tensors: "Mapping[str, Tensor]") -> None:
    """Write a safetensors file, marked as PyTorch's libraries mark theirs."""
    from safetensors.torch import save

    on_cpu = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    with atomic_write(path) as handle:
        write_bytes(handle, save(on_cpu, {"format": "pt"}))


def add_adapter(
    model: Any, rank: int, seed: int, adapter: Path | None, base: Path, task: str | None = None
) -> "PeftModel":
    """A model with an adapter (LoRA) to train on all linear layers but the output's: a fresh one,
    or that in `adapter`.

    `base` is the model's folder, and `task` peft's name of its kind.
    """
    from peft import LoraConfig, PeftModel, get_peft_model
    from transformers import set_seed

    set_seed(seed)
    model.config.use_cache = False
    if adapter:
        network = PeftModel.from_pretrained(
            model, str(adapter), is_trainable=True, local_files_only=True
        )
        # peft reads the vocabulary from here at each checkpoint; given a name, it would ask the hub
        network.peft_config["default"].base_model_name_or_path = str(base)
        return network
    return get_peft_model(
        model, LoraConfig(r=rank, lora_alpha=rank, target_modules="all-linear", task_type=task)
    )


def save_adapter(network: "PeftModel", folder: Path, base: str) -> None:
    """Write a network's adapter in half precision and peft's configuration of it.

    `base` is the base model's name.
    """
    from safetensors.torch import load_file

    source = folder / CHECKPOINTS / "adapter"
    network.save_pretrained(str(source))
    save_tensors(
        folder / ADAPTER,
        {name: tensor.half() for name, tensor in load_file(source / ADAPTER).items()},
    )
    settings = read_json(source / SETTINGS)
    # Peft makes it from a set, whose order differs between processes
    if isinstance(settings["target_modules"], list):
        settings["target_modules"].sort()
    write_json(folder / SETTINGS, {**settings, "base_model_name_or_path": base})


def finish_training(
    folder: Path,
    inputs: Mapping[str, object],
    record: Mapping[str, object],
    weights: Sequence[str],
    flat: bool = False,
) -> dict[str, object]:
    """Write the manifest, with the SHA-256 of the weights (glob patterns).

    `flat` puts the record's keys beside the inputs.
    """
    paths = sorted({path for pattern in weights for path in folder.glob(pattern) if path.is_file()})
    for path in paths:
        flush_to_disk(path)
    files = {path.relative_to(folder).as_posix(): sha256(path) for path in paths}
    record = {**record, "versions": library_versions(_LIBRARIES), "files": files}
    manifest = {**inputs, **(record if flat else {"record": record})}
    write_json(folder / MANIFEST, manifest)
    remove_leftovers(folder)
    return manifest


def remove_leftovers(folder: Path) -> None:
    """Remove what only an unfinished training needs."""
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    (folder / INPUTS).unlink(missing_ok=True)


def damaged_file(folder: Path, files: Mapping[str, str]) -> str:
    """The first file that is missing or whose SHA-256 differs; empty if all are undamaged."""
    return next(
        (
            name
            for name in files
            if not (folder / name).is_file() or sha256(folder / name) != files[name]
        ),
        "",
    )


def _checkpoints(folder: Path) -> list[Path]:
    paths = (folder / CHECKPOINTS).glob(f"{_PREFIX}*")
    return sorted(
        (path for path in paths if path.name.removeprefix(_PREFIX).isdecimal()), key=checkpoint_step
    )


def checkpoint_folder(folder: Path, step: int) -> Path:
    return folder / CHECKPOINTS / f"{_PREFIX}{step}"


def checkpoint_step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix(_PREFIX))
