"""Batches of texts of like length, by a budget of tokens and not of texts: little is padding, and memory is bounded."""

import re
from collections.abc import Iterator
from typing import Any

Features = dict[str, Any]
#: Tokens in a batch, padding counted: what a cache holds on a CPU, and what keeps a GPU busy.
BUDGET = {"cpu": 2048, "cuda": 65_536, "mps": 16_384}
_OUT_OF_MEMORY = re.compile("out of memory|can't allocate memory|not enough memory", re.I)
CHUNK = 2048  # texts tokenised at a time, and sorted by length


def batches(features: Features, count: int, budget: int, multiple: int = 1) -> Iterator[tuple[list[int], Features]]:
    """Padded token ids, [texts, tokens], in batches, longest first: (which texts, their features without the padding).

    Args:
        features: of a tokenizer; what is no tensor of that shape goes with every batch as it is.
        count: texts.
        budget: tokens in a batch, padding counted; a longer text is a batch of its own.
        multiple: a batch's length is rounded up to a multiple of it, where the features are that long.
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
                key: value[rows][:, columns] if hasattr(value, "shape") and value.shape[:2] == mask.shape else value
                for key, value in features.items()
            },
        )
        start += len(rows)


def to_device(batch: Features, device: str) -> Features:
    """The batch's tensors where the model is."""
    return {key: value.to(device, non_blocking=True) if hasattr(value, "to") else value for key, value in batch.items()}


def out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Whether it says that a device's memory was too small: torch has a class for CUDA's alone, and words for all."""
    return isinstance(error, MemoryError) or bool(_OUT_OF_MEMORY.search(str(error)))
