"""The span reader's weights in a folder: `adapter.safetensors`, `heads.safetensors` and
`manifest.json`.

The adapter is what training changed in the encoder's layers, in half precision. A linear layer's
change is stored as the factors of `B @ A`, its best low-rank approximation (by singular values).
Biases and layer norms are stored whole.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ifqa.errors import ConfigError, DamagedArtifact
from ifqa.models.span_encoder import EncoderFiles, find_encoder
from ifqa.storage.files import atomic_write, read_json, require_file, sha256, write_bytes

if TYPE_CHECKING:
    from torch import Tensor

    from ifqa.models.transformer import Encoder
    from ifqa.reading.span.network import SpanModel

ADAPTER, HEADS = "adapter.safetensors", "heads.safetensors"


def load_span_manifest(folder: Path) -> dict[str, Any]:
    """The manifest that `ifqa train extractive` wrote."""
    path = require_file(folder / "manifest.json", "the weights of reader 'extractive'")
    manifest = read_json(path)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("family"), str):
        raise DamagedArtifact(
            f"{path}: no 'family' in it; wanted a folder that `ifqa train extractive` made"
        )
    encoder = manifest.get("encoder")
    if not isinstance(encoder, dict) or not all(
        isinstance(encoder.get(key), str) for key in ("name", "sha256")
    ):
        raise DamagedArtifact(
            f"{path}: no encoder with name and sha256 in it; train the weights again"
        )
    return manifest


def resolve_encoder(folder: Path, encoder: str = "", root: Path = Path()) -> EncoderFiles:
    """The encoder that a folder's weights were trained on, checked by SHA-256.

    `encoder` is a name or folder as `ifqa.models.span_encoder.find_encoder` takes it; empty for the
    name in the manifest.
    """
    trained = load_span_manifest(folder)["encoder"]
    files = find_encoder(encoder or trained["name"], root)
    if files.sha256 != trained["sha256"]:
        raise ConfigError(
            f"{folder} was trained on the encoder {trained['name']} (SHA-256 "
            f"{trained['sha256'][:8]}...), and {files.folder} "
            f"holds another ({files.sha256[:8]}...); set encoder to the folder of that encoder"
        )
    return files


def fingerprint_weights(folder: Path) -> str:
    """SHA-256 over the weights' files."""
    hashes = [
        sha256(require_file(folder / name, "weights of reader 'extractive'"))
        for name in (ADAPTER, HEADS)
    ]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def save_weights(model: "SpanModel", folder: Path, rank: int) -> None:
    """Write a network's adapter, of at most this rank, and its heads."""
    from safetensors.torch import save

    heads = {
        name: tensor.detach()
        for name, tensor in model.named_parameters()
        if not name.startswith("encoder.")
    }
    for name, tensors in ((ADAPTER, _adapter(model.encoder, rank)), (HEADS, heads)):
        halves = {key: tensor.half().cpu().contiguous() for key, tensor in tensors.items()}
        with atomic_write(folder / name) as handle:
            write_bytes(handle, save(halves, {"format": "pt"}))


def load_weights(model: "SpanModel", folder: Path) -> None:
    """Load a folder's weights into a fresh network."""
    load_mixture(model, {folder: 1.0})


def load_mixture(model: "SpanModel", shares: Mapping[Path, float]) -> None:
    """Load the sum of several folders' weights, each times its share, into a fresh network."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    encoder = model.encoder.layer_tensors()
    layers = []
    heads = []
    folder = next(iter(shares))
    try:
        for folder in shares:
            adapter, head = (
                load_file(require_file(folder / file, "weights")) for file in (ADAPTER, HEADS)
            )
            adapter = {name: tensor.float() for name, tensor in adapter.items()}
            heads.append({name: tensor.float() for name, tensor in head.items()})
            layers.append(
                {
                    name: adapter[name]
                    if name in adapter
                    else tensor + adapter[f"{name}.B"] @ adapter[f"{name}.A"]
                    for name, tensor in encoder.items()
                }
            )
        model.encoder.load_layers(_weighted_sum(layers, [*shares.values()]))
        model.load_state_dict(_weighted_sum(heads, [*shares.values()]))
    except (SafetensorError, KeyError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise DamagedArtifact(
            f"{folder}: damaged weights ({reason}); train or install them again"
        ) from error


def _weighted_sum(
    members: Sequence[Mapping[str, "Tensor"]], shares: Sequence[float]
) -> dict[str, "Tensor"]:
    total = {name: shares[0] * tensor for name, tensor in members[0].items()}
    for member, share in zip(members[1:], shares[1:], strict=True):
        for name in total:
            total[name] = total[name] + share * member[name]
    return total


def _adapter(encoder: "Encoder", rank: int) -> dict[str, "Tensor"]:
    import torch

    from ifqa.models.span_encoder import open_encoder

    original = open_encoder(encoder.folder)
    trained = encoder.layer_tensors()
    linear = {f"{name}.weight" for name in original.layer_names()}
    stored: dict[str, Tensor] = {}
    for name, first in original.layer_tensors().items():
        if name in linear:
            u, s, v = torch.linalg.svd(trained[name].cpu() - first, full_matrices=False)
            root = s[:rank].sqrt()  # in both factors, to keep them in the range of half precision
            stored |= {f"{name}.A": root[:, None] * v[:rank], f"{name}.B": u[:, :rank] * root}
        else:
            stored[name] = trained[name]
    return stored
