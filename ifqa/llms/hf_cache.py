"""Keys and values of a batch in transformers: those of a beginning that all prompts share are computed once.

Prompts of a run begin alike: with the system's message and the demonstrations, which are often most of a prompt.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

if TYPE_CHECKING:
    from torch import Tensor

_GROUPED = "TRANSFORMERS_SDPA_FORCE_GQA"
_FEWEST = 16  # tokens that are worth a pass of their own


@contextmanager
def grouped(device: str) -> Iterator[None]:
    """On a CPU, let torch's attention take keys that several heads share as they are; else transformers copies them for each."""
    before = os.environ.get(_GROUPED)
    if device == "cpu":  # on a GPU torch has no fast kernel for it with a mask
        os.environ[_GROUPED] = "1"
    try:
        yield
    finally:
        os.environ.pop(_GROUPED, None)
        if before is not None:
            os.environ[_GROUPED] = before


def common(prompts: Sequence[list[int]]) -> int:
    """How many tokens all prompts begin with alike; each keeps one token at least, as the answer begins after it."""
    first, last = min(prompts), max(prompts)  # in the order of a dictionary, all others lie between them
    same = next((n for n, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return min(same, min(map(len, prompts)) - 1)


class Buffer(DynamicLayer):  # type: ignore[misc]  # transformers' classes are not typed
    """A layer's keys and values, [rows, heads, tokens, size], with room for `tokens`, so that a step copies no earlier ones."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._room, self._filled = tokens, 0

    def lazy_initialization(self, key_states: "Tensor", value_states: "Tensor") -> None:
        """Take the memory."""
        super().lazy_initialization(key_states, value_states)
        rows, heads = key_states.shape[:2]
        self._keys = key_states.new_empty((rows, heads, self._room, key_states.shape[-1]))
        self._values = value_states.new_empty((rows, heads, self._room, value_states.shape[-1]))

    def update(self, key_states: "Tensor", value_states: "Tensor", *_: Any, **__: Any) -> tuple["Tensor", "Tensor"]:
        """Add the keys and values of new tokens; gives those of all tokens."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self._filled + key_states.shape[-2]
        self._keys[:, :, self._filled : end], self._values[:, :, self._filled : end] = key_states, value_states
        self._filled = end
        self.keys, self.values = self._keys[:, :, :end], self._values[:, :, :end]
        return self.keys, self.values


class Caches:
    """The caches of a call's batches, each filled with the beginning that all prompts of the call share.

    Args:
        model: a causal language model of transformers.
        prompts: the token ids of all prompts of the call.

    Attributes:
        shared: the number of tokens in a cache at its start.
    """

    def __init__(self, model: Any, prompts: Sequence[list[int]]) -> None:
        # Other layers, such as those of a sliding window or a recurrence, keep what `Buffer` does not
        plain = all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)
        same = common(prompts) if plain and len(prompts) > 1 else 0
        self.shared = same if same >= _FEWEST else 0
        self._model, self._ids, self._plain = model, list(prompts[0][: self.shared]) if prompts else [], plain
        self._layers: list[tuple[Tensor, Tensor]] = []

    def padded(self, prompts: Sequence[list[int]], pad: int) -> tuple["Tensor", "Tensor"]:
        """The token ids of a batch and their mask, [rows, tokens]; the padding stands behind the beginning that all share."""
        width, same, device = max(map(len, prompts)), self.shared, self._model.device
        lacking = [width - len(ids) for ids in prompts]
        padded = [ids[:same] + [pad] * n + ids[same:] for n, ids in zip(lacking, prompts, strict=True)]
        mask = [[1] * same + [0] * n + [1] * (width - same - n) for n in lacking]
        return torch.tensor(padded, device=device), torch.tensor(mask, device=device)

    def cache(self, rows: int, tokens: int) -> Any:
        """A cache for a batch, with room for so many tokens a row; None for a model that keeps something else."""
        if not self._plain:
            return None
        if self._ids and not self._layers:
            self._layers = self._read()
        made = DynamicCache()
        count = self._model.config.get_text_config(decoder=True).num_hidden_layers
        made.layers = [Buffer(tokens) for _ in range(count)]
        for layer, (keys, values) in zip(made.layers, self._layers, strict=False):
            layer.update(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1))
        return made

    def _read(self) -> list[tuple["Tensor", "Tensor"]]:
        """The keys and values of the beginning in each layer, [1, heads, tokens, size]."""
        cache = DynamicCache(config=self._model.config)
        ids = torch.tensor([self._ids], device=self._model.device)
        with torch.inference_mode():
            self._model.base_model(input_ids=ids, past_key_values=cache, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]
