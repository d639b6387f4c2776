"""One training in one folder: start it, resume it after a kill, finish it, with transformers' trainers.

`inputs.json` holds the training's settings and the identity of its data; `checkpoints/` holds the trainer's checkpoints;
`manifest.json` is written last. A folder that holds another training is refused, whether that is finished or not.
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
_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
_ENCODERS = ("*_encoder", "[0-9]_*")  # folders that a training of a dense retriever writes into
_LIBRARIES = ("torch", "transformers", "sentence-transformers", "peft", "accelerate", "scikit-learn")


def world() -> tuple[int, int]:
    """Rank of this process and number of processes: torchrun and `accelerate launch` start one process for each GPU."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def refuse_strangers(folder: Path, checkpoint: str = INPUTS) -> None:
    """Refuse a folder that holds weights of somebody else, which a training would overwrite.

    `checkpoint` is a file by which a folder without a manifest shows that a training of ifqa was interrupted in it.

    Raises:
        IfqaError: there are weights, and no file shows that ifqa made them; or the manifest is no JSON object.
    """
    if any((folder / name).exists() for name in (MANIFEST, INPUTS, checkpoint)):
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
    for name in (MANIFEST, INPUTS):
        path = folder / name
        if path.exists():
            there = read_json(path)
            if changed := sorted(key for key in inputs if there.get(key) != json.loads(json.dumps(inputs[key]))):
                raise IfqaError(
                    f"{folder} holds another training (changed: {', '.join(changed)}); train into another folder"
                )
            if name == MANIFEST:
                file = damaged(folder, there.get("record", {}).get("files", {}))
                if not file:
                    say(f"{folder}: nothing to do, trained by exactly this before")
                    return False
                say(f"{folder}: {file} is missing or altered; training again")
    if (folder / CHECKPOINTS).exists() and not (folder / INPUTS).exists():  # `finish` would delete the user's files
        raise IfqaError(
            f"{folder / CHECKPOINTS} is not from a training of ifqa (no {folder / INPUTS}); "
            "train into another folder, or move it away"
        )
    if world()[0] == 0:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / INPUTS, inputs)
    return True


def fit(trainer: Any, folder: Path, label: str) -> dict[str, Any]:
    """Run a trainer to its end, resuming from its newest whole checkpoint; returns the steps and the mean loss.

    transformers writes a checkpoint file by file and `trainer_state.json` near the end; a checkpoint without that file
    is incomplete.
    """
    from transformers import TrainerCallback

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
    if world()[0] == 0:
        trainer.add_callback(Bar())
    whole = [path for path in _checkpoints(folder) if (path / "trainer_state.json").exists()]
    if whole:
        say(f"{folder}: going on after step {_step(whole[-1])}")
    result = trainer.train(resume_from_checkpoint=str(whole[-1]) if whole else None)
    return {"steps": result.global_step, "loss": round(float(result.training_loss), 4)}


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
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern)})
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
    return sorted((folder / CHECKPOINTS).glob("checkpoint-*"), key=_step)


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])
