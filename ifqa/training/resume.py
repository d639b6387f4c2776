"""One training in one folder: start it, resume it after a kill, finish it, with transformers' trainers.

`inputs.json` holds the training's settings and the identity of its data; `checkpoints/` holds the checkpoints, each with a
`manifest.json` of its own that is written last, and the folder's `manifest.json` is written after all. A folder that holds
another training is refused, whether that is finished or not.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ifqa.errors import IfqaError
from ifqa.progress import bar, say
from ifqa.records import Passage, Question
from ifqa.storage.circumstances import versions
from ifqa.storage.files import read_json, sha256, write_json

MANIFEST, INPUTS, CHECKPOINTS = "manifest.json", "inputs.json", "checkpoints"
_PREFIX = "checkpoint-"  # as transformers names them
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
_ENCODERS = ("*_encoder", "[0-9]_*")  # folders that a training of a dense retriever writes into
_LIBRARIES = ("torch", "transformers", "sentence-transformers", "peft", "accelerate", "scikit-learn")


def world() -> tuple[int, int]:
    """Rank of this process and number of processes: torchrun and `accelerate launch` start one process for each GPU."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def refuse_strangers(folder: Path) -> None:
    """Refuse a folder that holds weights of somebody else, which a training would overwrite.

    Raises:
        IfqaError: there are weights, and no file shows that ifqa made them; or the manifest is no JSON object.
    """
    if any((folder / name).exists() for name in (MANIFEST, INPUTS)):
        for path in (folder / MANIFEST, folder / INPUTS):
            if path.exists() and not isinstance(read_json(path), dict):
                raise IfqaError(f"{path} is not from a training of ifqa; train into another folder, or move it away")
        return
    places = (folder, *(path for name in _ENCODERS for path in folder.glob(name)))
    weights = sorted(path for place in places for path in place.glob("*") if path.suffix in _WEIGHTS)
    if weights:
        raise IfqaError(
            f"{weights[0]} is not from a training of ifqa (no {folder / MANIFEST}); train into another folder, or move it away"
        )


def begin(folder: Path, inputs: Mapping[str, object]) -> bool:
    """Whether to train: False if the folder holds a finished training with the same inputs and whole weights.

    Raises:
        IfqaError: the folder holds another training, or checkpoints or weights of an unknown training.
    """
    refuse_strangers(folder)
    if (folder / MANIFEST).exists():
        there = _of_same(folder, MANIFEST, inputs)
        file = damaged(folder, there.get("record", {}).get("files", {}))
        if not file:
            say(f"{folder}: nothing to do, trained by exactly this before")
            return False
        say(f"{folder}: {file} is missing or altered; training again")
    claim(folder, inputs)
    return True


def claim(folder: Path, inputs: Mapping[str, object]) -> None:
    """Mark a folder as that of a training which is not finished.

    Raises:
        IfqaError: the folder holds another training that is not finished, or checkpoints of an unknown training.
    """
    if (folder / INPUTS).exists():
        _of_same(folder, INPUTS, inputs)
    elif (folder / CHECKPOINTS).exists():  # `finish` would delete the user's files
        raise IfqaError(
            f"{folder / CHECKPOINTS} is not from a training of ifqa (no {folder / INPUTS}); "
            "train into another folder, or move it away"
        )
    if world()[0] == 0:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / INPUTS, inputs)


def _of_same(folder: Path, name: str, inputs: Mapping[str, object]) -> dict[str, Any]:
    there: dict[str, Any] = read_json(folder / name)
    if changed := sorted(key for key in inputs if there.get(key) != json.loads(json.dumps(inputs[key]))):
        raise IfqaError(f"{folder} holds another training (changed: {', '.join(changed)}); train into another folder")
    return there


def fit(trainer: Any, folder: Path, label: str) -> dict[str, Any]:
    """Run a trainer to its end, resuming from its newest whole checkpoint; returns the steps and the mean loss."""
    from transformers import TrainerCallback

    class Seal(TrainerCallback):
        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            trainer.accelerator.wait_for_everyone()  # each process writes the state of its own random generators
            if world()[0] == 0:
                best = Path(state.best_model_checkpoint or "").name
                seal(checkpoint_of(folder, state.global_step), best)

    class Bar(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.context = bar(label, state.max_steps)
            self.advance = self.context.__enter__()
            self.advance(state.global_step)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.advance(1)

        def on_log(self, args: Any, state: Any, control: Any, **given: Any) -> None:
            for name, text in (("loss", "loss {:.3f}"), ("eval_EM", "dev EM {:.1f}")):
                if name in given["logs"]:
                    say(f"step {state.global_step}/{state.max_steps}, {text.format(float(given['logs'][name]))}")

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.context.__exit__(None, None, None)

    from transformers.trainer_callback import PrinterCallback, ProgressCallback

    for printing in (PrinterCallback, ProgressCallback):  # these print to stdout, which is for results
        trainer.remove_callback(printing)
    trainer.add_callback(Seal())
    if world()[0] == 0:
        trainer.add_callback(Bar())
    whole = newest(folder) if world()[0] == 0 else None  # one process removes those that are damaged
    trainer.accelerator.wait_for_everyone()
    whole = whole or newest(folder)
    if whole:
        say(f"{folder}: going on after step {step_of(whole)}")
    result = trainer.train(resume_from_checkpoint=str(whole) if whole else None)
    return {"steps": result.global_step, "loss": round(float(result.training_loss), 4)}


def seal(checkpoint: Path, best: str = "") -> None:
    """Write a checkpoint's manifest, with the SHA-256 of each of its files. It is written last: without it, none is whole.

    `best` is the name of the checkpoint whose weights the training gives at its end, empty if that is not known yet.
    """
    manifest = checkpoint / MANIFEST
    manifest.unlink(missing_ok=True)
    write_json(manifest, {"files": hashes(checkpoint, ["**/*"]), "best": "" if best == checkpoint.name else best})


def newest(folder: Path) -> Path | None:
    """The newest whole checkpoint of a training. Those after it are not whole: they are named on stderr and removed."""
    checkpoints = _checkpoints(folder)
    for checkpoint in reversed(checkpoints):
        file = _damaged_file(checkpoint)
        if not file:
            return checkpoint
        before = "training starts anew" if checkpoint == checkpoints[0] else "trying the checkpoint before it"
        say(f"{checkpoint}: {file} is missing or altered; {before}")
        shutil.rmtree(checkpoint)  # else it would count as the newest when the oldest is removed
    return None


def keep_newest(folder: Path, most: int = 2) -> None:
    """Remove all but the newest checkpoints of a training, as transformers does after each that it writes."""
    for checkpoint in _checkpoints(folder)[:-most]:
        shutil.rmtree(checkpoint)


def _damaged_file(checkpoint: Path) -> str:
    try:
        manifest = read_json(checkpoint / MANIFEST)
    except IfqaError:  # it was killed before the manifest, or the manifest is torn
        return MANIFEST
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not files or not isinstance(files, dict):
        return MANIFEST
    best = manifest.get("best")
    file = damaged(checkpoint, files)
    if best and not file and (of_best := _damaged_file(checkpoint.with_name(best))):
        return f"{best}/{of_best}"
    return file


def in_order(dataset: Any, batch_size: int, drop_last: bool, **_: Any) -> Any:
    """A batch sampler for rows that are already in training order."""
    from torch.utils.data import BatchSampler, SequentialSampler

    return BatchSampler(SequentialSampler(dataset), batch_size, drop_last)


def finish(folder: Path, inputs: Mapping[str, object], record: Mapping[str, object], weights: Sequence[str]) -> None:
    """Write the manifest, with the SHA-256 of the weights, and remove the files that only a resumed training needs.

    `weights` are glob patterns, relative to the folder, of the files of weights.
    """
    made = {"versions": versions(_LIBRARIES), "files": hashes(folder, weights)}
    write_json(folder / MANIFEST, {**inputs, "record": {**record, **made}})
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    (folder / INPUTS).unlink(missing_ok=True)


def hashes(folder: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Path relative to the folder -> SHA-256, of the files that match any of the glob patterns."""
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
    return {path.relative_to(folder).as_posix(): sha256(path) for path in paths}


def damaged(folder: Path, files: Mapping[str, str]) -> str:
    """The first file that is missing or whose SHA-256 differs from its entry in `files`; empty if there is none."""
    paths = {name: folder / name for name in files}
    return next((name for name, path in paths.items() if not path.is_file() or sha256(path) != files[name]), "")


def identity(
    questions: Sequence[Question], rankings: Sequence[Sequence[Passage]], scores: Sequence[Sequence[float]] = ()
) -> str:
    """SHA-256 of the training data: questions with choices, answers and gold passages, ranked passages, and given scores."""
    digest = hashlib.sha256()
    for question, ranking in zip(questions, rankings, strict=True):
        texts = [[one.title, one.text] for one in ranking]
        several = [question.text, question.answers, question.gold_passages, texts]
        digest.update(json.dumps([*several, *([question.choices] if question.choices else [])]).encode())
    digest.update(json.dumps([list(several) for several in scores]).encode() if scores else b"")
    return digest.hexdigest()


def _checkpoints(folder: Path) -> list[Path]:
    paths = (folder / CHECKPOINTS).glob(f"{_PREFIX}*")
    return sorted((path for path in paths if path.name.removeprefix(_PREFIX).isdecimal()), key=step_of)


def checkpoint_of(folder: Path, step: int) -> Path:
    """The folder of the checkpoint after a step."""
    return folder / CHECKPOINTS / f"{_PREFIX}{step}"


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was written."""
    return int(checkpoint.name.removeprefix(_PREFIX))
