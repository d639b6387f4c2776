"""Batches of texts of similar length with a budget of tokens, which bounds memory and keeps padding small."""

import re
from collections.abc import Iterator
from typing import Any

Features = dict[str, Any]
#: Tokens in a batch, with padding: as many as a CPU's cache holds, or as keep a GPU busy.
BUDGET = {"cpu": 2048, "cuda": 65_536, "mps": 16_384}
_OUT_OF_MEMORY = re.compile("out of memory|can't allocate memory|not enough memory", re.I)
CHUNK = 2048  # texts that are tokenised and sorted by length at a time


def batches(features: Features, count: int, budget: int, multiple: int = 1) -> Iterator[tuple[list[int], Features]]:
    """Split padded token ids, [texts, tokens], into batches, longest texts first.

    Args:
        features: a tokenizer's output. Values that are no tensor of that shape go with every batch unchanged.
        count: number of texts.
        budget: tokens in a batch, with padding; a longer text is a batch of its own.
        multiple: a batch's length is rounded up to a multiple of this, but not above the length of the features.

    Yields:
        The numbers of the batch's texts, and their features without superfluous padding.
    """
    import torch

    mask = features.get("attention_mask")
    if mask is None or mask.shape[0] != count:  # bags of words have no padding
        yield list(range(count)), features
        return
    lengths = mask.sum(1)
    order = torch.argsort(lengths, descending=True, stable=True)
    left = int(mask[:, -1:].sum()) > int(mask[:, :1].sum())  # decoders are padded on the left
    start = 0
    while start < count:
        longest = max(1, int(lengths[order[start]]))
        longest = min(-(-longest // multiple) * multiple, mask.shape[1])
        rows = order[start : start + max(1, budget // longest)]
        columns = slice(mask.shape[1] - longest, None) if left else slice(0, longest)
        yield (
            rows.tolist(),
            {
                key: value[rows][:, columns]
                if isinstance(value, torch.Tensor) and value.shape[:2] == mask.shape
                else value
                for key, value in features.items()
            },
        )
        start += len(rows)


def to_device(batch: Features, device: str) -> Features:
    """The batch with its tensors on the model's device."""
    import torch

    tensors = {key: value for key, value in batch.items() if isinstance(value, torch.Tensor)}
    return batch | {key: tensor.to(device, non_blocking=True) for key, tensor in tensors.items()}


def out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Whether an error says that a device is out of memory. torch has a class for CUDA alone, so the message decides."""
    return isinstance(error, MemoryError) or bool(_OUT_OF_MEMORY.search(str(error)))
