"""The span reader's weights in a folder: `adapter.safetensors`, `heads.safetensors` and `manifest.json`.

The adapter is what training changed in the encoder's layers, in half precision. The difference of a linear layer's weights is
stored as two matrices of low rank, `B @ A`: the best approximation of that rank, by singular values. All else, which is
small (biases and layer norms), is stored whole.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.models.encoders import EncoderFiles, find_encoder
from ifqa.storage.files import atomic_write, read_json, require_file, sha256, write_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from ifqa.models.transformer import Encoder
    from ifqa.reading.span.network import SpanModel

ADAPTER, HEADS = "adapter.safetensors", "heads.safetensors"


def load_span_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a training."""
    path = require_file(folder / "manifest.json", "the weights of reader 'extractive'")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("family"), str):
        raise IfqaError(f"{path}: no 'family' in it; wanted a folder that `ifqa train extractive` made")
    encoder = manifest.get("encoder")
    if not isinstance(encoder, dict) or not all(isinstance(encoder.get(key), str) for key in ("name", "sha256")):
        raise IfqaError(f"{path}: no encoder with name and sha256 in it; train the weights again")
    return manifest


def resolve_encoder(folder: Path, encoder: str = "", root: Path = Path()) -> EncoderFiles:
    """The files of the encoder that a folder's weights were trained on; an IfqaError if `encoder` is another.

    `encoder` is a name or folder as `ifqa.models.encoders.find_encoder` takes it; empty for the name in the manifest.
    """
    wanted = load_span_manifest(folder)["encoder"]
    found = find_encoder(encoder or wanted["name"], root)
    if found.sha256 != wanted["sha256"]:
        raise IfqaError(
            f"{folder} was trained on the encoder {wanted['name']} (SHA-256 {wanted['sha256'][:8]}...), and {found.folder} "
            f"holds another ({found.sha256[:8]}...); name the folder of that encoder as encoder"
        )
    return found


def fingerprint_weights(folder: Path) -> str:
    """SHA-256 over the files of weights."""
    hashes = [sha256(require_file(folder / name, "weights of reader 'extractive'")) for name in (ADAPTER, HEADS)]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def save_weights(model: "SpanModel", folder: Path, rank: int) -> None:
    """Write a network's adapter, of at most this rank, and its heads."""
    from safetensors.torch import save

    heads = {name: tensor.detach() for name, tensor in model.named_parameters() if not name.startswith("encoder.")}
    for name, tensors in ((ADAPTER, _adapter(model.encoder, rank)), (HEADS, heads)):
        with atomic_write(folder / name) as handle:
            write_bytes(
                handle,
                save({key: tensor.half().cpu().contiguous() for key, tensor in tensors.items()}, {"format": "pt"}),
            )


def load_weights(model: "SpanModel", folder: Path) -> None:
    """Put a folder's weights into a network that nothing was loaded into yet."""
    load_averaged_weights(model, [folder])


def load_averaged_weights(model: "SpanModel", folders: Sequence[Path]) -> None:
    """Put the mean of several folders' weights into a network that nothing was loaded into yet; errors as `load_weights`."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    encoder, layers, heads = model.encoder.layer_tensors(), [], []
    folder = folders[0]
    try:
        for folder in folders:
            adapter, head = (load_file(require_file(folder / file, "weights")) for file in (ADAPTER, HEADS))
            adapter = {name: tensor.float() for name, tensor in adapter.items()}
            heads.append({name: tensor.float() for name, tensor in head.items()})
            layers.append(
                {name: adapter[name] if name in adapter else tensor + adapter[f"{name}.B"] @ adapter[f"{name}.A"]
                 for name, tensor in encoder.items()}
            )  # fmt: skip
        model.encoder.load_layers({name: torch.stack([each[name] for each in layers]).mean(0) for name in encoder})
        model.load_state_dict({name: torch.stack([each[name] for each in heads]).mean(0) for name in heads[0]})
    except (SafetensorError, KeyError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise IfqaError(f"{folder}: these weights are not whole ({reason}); train or install them again") from error


def _adapter(encoder: "Encoder", rank: int) -> dict[str, "Tensor"]:
    import torch

    from ifqa.models.encoders import open_encoder

    original, trained = open_encoder(encoder.folder), encoder.layer_tensors()
    linear = {f"{name}.weight" for name in original.layer_names()}
    stored: dict[str, Tensor] = {}
    for name, first in original.layer_tensors().items():
        if name in linear:
            u, s, v = torch.linalg.svd(trained[name].cpu() - first, full_matrices=False)
            root = s[:rank].sqrt()  # shared by both, so that neither leaves the range of half precision
            stored |= {f"{name}.A": root[:, None] * v[:rank], f"{name}.B": u[:, :rank] * root}
        else:
            stored[name] = trained[name]
    return stored
