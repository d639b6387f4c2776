"""One phase of the span reader's training in its folder: begun, or found finished; trained; written with its manifest."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch

from ifqa.errors import IfqaError
from ifqa.models.devices import half_precision
from ifqa.models.encoders import Found, open_encoder
from ifqa.reading.span.network import SpanModel
from ifqa.reading.span.weights import ADAPTER, HEADS, load_weights, save_weights
from ifqa.storage.circumstances import versions
from ifqa.storage.files import read_json, write_json
from ifqa.training import resume
from ifqa.training.span.examples import Example
from ifqa.training.span.fitting import Schedule, fit

_Item = TypeVar("_Item")


def begin(folder: Path, inputs: Mapping[str, Any], progress: Callable[[str], None]) -> bool:
    """Whether to train: False if the folder holds this training, finished and whole."""
    resume.refuse_strangers(folder)
    if (folder / resume.MANIFEST).exists():
        there = read_json(folder / resume.MANIFEST)
        if any(there.get(key) != value for key, value in json.loads(json.dumps(inputs)).items()):
            raise IfqaError(f"{folder} holds another training (other data or settings); train into another folder")
        file = resume.damaged(folder, there.get("files", {}))
        if not file:
            progress(f"{folder}: nothing to do, trained by exactly this before")
            return False
        progress(f"{folder}: {file} is missing or altered; training again")
    resume.claim(folder, inputs)  # if it is killed while it saves, the weights are known as its own
    return True


def network(own: Found, start: str, seed: int, dropout: float) -> SpanModel:
    """The encoder with fresh heads, or the network of a training."""
    model = SpanModel(open_encoder(own.folder, dropout))
    model.initialise(torch.Generator().manual_seed(seed))
    if start:
        load_weights(model, Path(start))
    return model


def trained(
    model: SpanModel, groups: Iterator[Sequence[_Item]], encode: Callable[[_Item], Example], plan: Schedule, folder: Path,
    inputs: dict[str, Any], device: str, progress: Callable[[str], None], made: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Train and write the weights."""
    precision = half_precision(device)
    model.encoder.cast(precision)
    fit(model.to(device), groups, encode, plan, folder, f"training {folder.name}", progress)
    return finished(model, folder, inputs, {**made, "steps": plan.steps, "precision": str(precision)})


def finished(model: SpanModel, folder: Path, inputs: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Write the weights and last the manifest, and remove what only a resumed training needs."""
    (folder / resume.MANIFEST).unlink(missing_ok=True)  # an older manifest would vouch for half-written weights
    save_weights(model, folder, inputs["settings"]["rank"])
    manifest = inputs | made | {
        "versions": versions(("torch", "tokenizers", "safetensors")),
        "files": resume.hashes(folder, [ADAPTER, HEADS]),
    }  # fmt: skip
    write_json(folder / resume.MANIFEST, manifest)
    shutil.rmtree(folder / resume.CHECKPOINTS, ignore_errors=True)
    (folder / resume.INPUTS).unlink(missing_ok=True)
    return manifest
