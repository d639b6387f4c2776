"""The folder of a trained reader of multiple choice: its manifest, and what its weights were trained on."""

import hashlib
from pathlib import Path
from typing import Any

from pydantic import Field

from ifqa.errors import IfqaError
from ifqa.settings import Stored, check_stored
from ifqa.storage.files import read_json, require, sha256


class Manifest(Stored):
    """The `manifest.json` of `ifqa train adaboost`, `decomp-attn` or `choice`.

    Attributes:
        reader: the reader that the weights are for.
        family: the split family of the training questions.
        sources: file of training questions -> SHA-256.
        settings: of the training.
        classes: the answers that a classifier chooses from, as `ifqa.reading.choice.offered.plain` writes them.
    """

    reader: str
    family: str
    sources: dict[str, str]
    settings: dict[str, Any]
    classes: list[str] = Field(default_factory=list)


def manifest_of(checkpoint: str, reader: str) -> Manifest:
    """The manifest of a reader's weights.

    Raises:
        IfqaError: it is missing, `ifqa train` did not write it, or the weights are of another reader.
    """
    mend = f"name a folder that `ifqa train {reader}` made"
    if (Path(checkpoint) / "inputs.json").exists() and not (Path(checkpoint) / "manifest.json").exists():
        raise IfqaError(f"{checkpoint} holds a training that is not finished; run its `ifqa train {reader}` again")
    path = Path(checkpoint) / "manifest.json"
    if not path.exists():
        raise IfqaError(f"weights of reader {reader!r} not found: {path} does not exist; {mend}")
    found = check_stored(Manifest, read_json(path), str(path), mend)
    if found.reader != reader:
        raise IfqaError(f"{checkpoint} holds weights of reader {found.reader!r}; {mend}")
    return found


def identity_of(checkpoint: str, name: str, reader: str) -> str:
    """SHA-256 of a reader's weights, the file `name`, and of its manifest's settings and classes."""
    found = manifest_of(checkpoint, reader)
    weights = sha256(require(Path(checkpoint) / name, f"weights of reader {reader!r}"))
    return hashlib.sha256(f"{weights} {found.settings} {found.classes}".encode()).hexdigest()
