"""A model's device and precision, and batches of texts of similar length with a limited number of
tokens.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ifqa.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    import torch

Features = dict[str, Any]
Batch = tuple[list[int], Features]  # the indices of texts, and their features
#: Tokens in a batch, with padding: they fit a CPU's cache, or keep a GPU busy.
BATCH_TOKENS = {"cpu": 2048, "cuda": 65_536, "mps": 16_384}
_OUT_OF_MEMORY = re.compile("out of memory|can't allocate memory|not enough memory", re.I)
CHUNK = 2048  # texts to tokenise and sort by length at a time


def resolve_device(device: str) -> str:
    """The device; for "auto" a GPU if present, else the CPU."""
    import torch

    available = {
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if device == "auto":
        return "cuda" if available["cuda"] else "cpu"
    if device not in available:
        raise unknown_name("device", device, ["auto", *available])
    if not available[device]:
        raise ConfigError(
            f'device {device!r} is not available to torch here; use "auto", or see: ifqa doctor'
        )
    return device


def half_precision(device: str) -> "torch.dtype":
    """bfloat16 if the hardware supports bfloat16 multiplication, else float32."""
    import torch

    if device == "cuda":  # older GPUs emulate bfloat16, slower than float32
        return (
            torch.bfloat16
            if torch.cuda.is_bf16_supported(including_emulation=False)
            else torch.float32
        )
    if device != "cpu":
        return torch.float32
    cpu = torch.cpu
    return (
        torch.bfloat16
        if cpu._is_avx512_bf16_supported() or cpu._is_amx_tile_supported()
        else torch.float32
    )


def resolve_precision(precision: str, device: str) -> "torch.dtype":
    """The dtype for the setting "precision"; for "auto", the device's `half_precision`."""
    import torch

    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    return half_precision(device) if precision == "auto" else dtypes[precision]


def split_batches(
    features: Features, count: int, budget: int, multiple: int = 1
) -> Iterator[Batch]:
    """Split the features of `count` texts, padded tensors [texts, tokens], into trimmed batches,
    longest texts first.

    Other features go unchanged into every batch. `budget` is the tokens in a batch, with padding; a
    longer text gets its own batch. A batch's length is rounded up to a multiple of `multiple`, at
    most to the length of the features.
    """
    import torch

    mask = features.get("attention_mask")
    if mask is None or mask.shape[0] != count:  # bags of words have no padding
        yield list(range(count)), features
        return
    lengths = mask.sum(1)
    order = torch.argsort(lengths, descending=True, stable=True)
    left = int(mask[:, -1:].sum()) > int(mask[:, :1].sum())  # decoders are padded on the left
    tensors = {
        key: tensor
        for key, tensor in features.items()
        if getattr(tensor, "shape", ())[:2] == mask.shape
    }
    start = 0
    while start < count:
        longest = max(1, int(lengths[order[start]]))
        longest = min(-(-longest // multiple) * multiple, mask.shape[1])
        rows = order[start : start + max(1, budget // longest)]
        columns = slice(mask.shape[1] - longest, None) if left else slice(0, longest)
        yield (
            rows.tolist(),
            {**features, **{key: tensor[rows][:, columns] for key, tensor in tensors.items()}},
        )
        start += len(rows)


def to_device(batch: Features, device: str) -> Features:
    import torch

    tensors = {key: entry for key, entry in batch.items() if isinstance(entry, torch.Tensor)}
    return batch | {key: tensor.to(device, non_blocking=True) for key, tensor in tensors.items()}


def is_out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Whether memory ran out; torch has an error class only for CUDA, so the message decides."""
    return isinstance(error, MemoryError) or bool(_OUT_OF_MEMORY.search(str(error)))
