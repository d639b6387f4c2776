"""The span reader's weights in a folder: `encoder.safetensors`, `heads.safetensors` and `manifest.json`, in half precision."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.storage.files import read_json, require, sha256

if TYPE_CHECKING:
    from ifqa.reading.span.network import SpanModel

ENCODER, HEADS = "encoder.safetensors", "heads.safetensors"


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest of a training.

    Raises:
        IfqaError: there is none, or it is of something else.
    """
    path = require(folder / "manifest.json", "the weights of reader 'extractive'")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("family"), str):
        raise IfqaError(f"{path}: no 'family' in it; wanted a folder that `ifqa train extractive` made")
    return manifest


def identity_of(folder: Path) -> str:
    """SHA-256 over the files of weights."""
    hashes = [sha256(require(folder / name, "weights of reader 'extractive'")) for name in (ENCODER, HEADS)]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def load_weights(model: "SpanModel", folder: Path) -> None:
    """Put a folder's weights into a network.

    Raises:
        IfqaError: a file is missing or damaged, or of a network of another shape.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        model.encoder.load_layers(load_file(require(folder / ENCODER, "encoder")))
        heads = load_file(require(folder / HEADS, "heads"))
        model.load_state_dict({name: tensor.float() for name, tensor in heads.items()})
    except (SafetensorError, KeyError, RuntimeError) as error:
        raise IfqaError(
            f"{folder}: these weights are not whole ({str(error).splitlines()[0]}); train or install them again"
        ) from error
