"""What a batch's `generate` of transformers is handed: keys and values, each row's draws, and each row's end.

Prompts of a run begin alike: with the system's message and the demonstrations, which are often most of a prompt. The keys and
values of a beginning that all share are computed once. Rows are drawn and ended independently of one another.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from ifqa.errors import IfqaError
from ifqa.llms.cache import cache_key, truncate_completion
from ifqa.llms.streaming import TextCallback
from ifqa.records import Completion, Request

_GROUPED_VARIABLE = "TRANSFORMERS_SDPA_FORCE_GQA"
_MIN_PREFIX = 16  # tokens that are worth a pass of their own
_MIN_TEMPERATURE = 1e-4  # the lowest temperature used: lower ones draw the same, but overflow float32


@contextmanager
def enable_grouped_attention(device: str) -> Iterator[None]:
    """On a CPU, let torch's attention take keys that several heads share as they are; else transformers copies them for each."""
    before = os.environ.get(_GROUPED_VARIABLE)
    if device == "cpu":  # on a GPU torch has no fast kernel for it with a mask
        os.environ[_GROUPED_VARIABLE] = "1"
    try:
        yield
    finally:
        os.environ.pop(_GROUPED_VARIABLE, None)
        if before is not None:
            os.environ[_GROUPED_VARIABLE] = before


def shared_prefix_length(prompts: Sequence[list[int]]) -> int:
    """How many tokens all prompts begin with alike; each keeps one token at least, as the answer begins after it."""
    first, last = min(prompts), max(prompts)  # in the order of a dictionary, all others lie between them
    same = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return min(same, min(map(len, prompts)) - 1)


class PreallocatedLayer(DynamicLayer):  # type: ignore[misc]  # transformers' classes are not typed
    """A layer's keys and values, [rows, heads, tokens, size], with room for `tokens`, so that a step copies no earlier ones."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._room, self._filled = tokens, 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Take the memory."""
        super().lazy_initialization(key_states, value_states)
        rows, heads = key_states.shape[:2]
        self._keys = key_states.new_empty((rows, heads, self._room, key_states.shape[-1]))
        self._values = value_states.new_empty((rows, heads, self._room, value_states.shape[-1]))

    def update(self, key_states: Tensor, value_states: Tensor, *_: object, **__: object) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens; gives those of all tokens."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        end = self._filled + key_states.shape[-2]
        self._keys[:, :, self._filled : end], self._values[:, :, self._filled : end] = key_states, value_states
        self._filled = end
        self.keys, self.values = self._keys[:, :, :end], self._values[:, :, :end]
        return self.keys, self.values


class PrefixCaches:
    """The caches of a call's batches, each filled with the beginning that all prompts of the call share.

    Args:
        model: a causal language model of transformers.
        prompts: the token ids of all prompts of the call.

    Attributes:
        shared: the number of tokens in a cache at its start.
    """

    def __init__(self, model: PreTrainedModel, prompts: Sequence[list[int]]) -> None:
        # Other layers, such as those of a sliding window or a recurrence, keep what `PreallocatedLayer` does not
        plain = all(type(layer) is DynamicLayer for layer in DynamicCache(config=model.config).layers)
        same = shared_prefix_length(prompts) if plain and len(prompts) > 1 else 0
        self.shared = same if same >= _MIN_PREFIX else 0
        self._model, self._ids, self._plain = model, list(prompts[0][: self.shared]) if prompts else [], plain
        self._layers: list[tuple[Tensor, Tensor]] = []

    def padded(self, prompts: Sequence[list[int]], pad: int) -> tuple[Tensor, Tensor]:
        """The token ids of a batch and their mask, [rows, tokens]; the padding stands behind the beginning that all share."""
        width, same, device = max(map(len, prompts)), self.shared, self._model.device
        lacking = [width - len(ids) for ids in prompts]
        padded = [ids[:same] + [pad] * n + ids[same:] for n, ids in zip(lacking, prompts, strict=True)]
        mask = [[1] * same + [0] * n + [1] * (width - same - n) for n in lacking]
        return torch.tensor(padded, device=device), torch.tensor(mask, device=device)

    def cache(self, rows: int, tokens: int) -> DynamicCache | None:
        """A cache for a batch, with room for so many tokens a row; None for a model that keeps something else."""
        if not self._plain:
            return None
        if self._ids and not self._layers:
            self._layers = self._read()
        cache = DynamicCache()
        count = self._model.config.get_text_config(decoder=True).num_hidden_layers
        cache.layers = [PreallocatedLayer(tokens) for _ in range(count)]
        for layer, (keys, values) in zip(cache.layers, self._layers, strict=False):
            layer.update(keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1))
        return cache

    def _read(self) -> list[tuple[Tensor, Tensor]]:
        """The keys and values of the beginning in each layer, [1, heads, tokens, size]."""
        cache = DynamicCache(config=self._model.config)
        ids = torch.tensor([self._ids], device=self._model.device)
        with torch.inference_mode():
            self._model.base_model(input_ids=ids, past_key_values=cache, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]


class BatchStopping:
    """The texts of a batch's rows so far. A stopping criterion of transformers' `generate`.

    Args:
        requests: one per row.
        ends: tokens that end an answer.
        decode: turns tokens into text, without `end_tokens`.
        on_text: called with the first row's text after each of its tokens.
    """

    def __init__(
        self, requests: Sequence[Request], ends: frozenset[int], decode: Callable[[Sequence[int]], str],
        on_text: TextCallback | None = None,
    ) -> None:  # fmt: skip
        self._ends, self._decode, self._on_text = ends, decode, on_text
        self._stops = [[stop for stop in request.stop if stop] for request in requests]
        self._most = [request.max_tokens for request in requests]
        self._tokens: list[list[int]] = [[] for _ in requests]
        self._finish = [""] * len(requests)

    def __call__(self, ids: Tensor, scores: object, **_: object) -> Tensor:
        """Which rows have ended, [rows]; called after each step with all tokens so far, [rows, tokens]."""
        for row, token in enumerate(ids[:, -1].tolist()):
            if not self._finish[row]:
                self._tokens[row].append(token)
                self._finish[row] = self._end(row, token)
                if self._on_text and row == 0:
                    self._on_text(self._text(row))
        return ids.new_tensor([bool(finish) for finish in self._finish]).bool()

    def completion(self, row: int, prompt_tokens: int) -> Completion:
        """A row's text up to its first stop string; its tokens are all that were computed, with the end token."""
        return truncate_completion(
            Completion(self._text(row), prompt_tokens, len(self._tokens[row]), self._finish[row])
        )

    def _text(self, row: int) -> str:
        """A row's text so far, up to its first stop string."""
        text = self._decode(self._tokens[row])
        return text[: min((text.index(stop) for stop in self._stops[row] if stop in text), default=len(text))]

    def _end(self, row: int, token: int) -> str:
        if token in self._ends:
            return "stop"
        text = self._decode(self._tokens[row]) if self._stops[row] else ""
        if any(stop in text for stop in self._stops[row]):
            return "stop"
        return "length" if len(self._tokens[row]) == self._most[row] else ""


class TokenSampler:
    """Draws the tokens of rows with a temperature; other rows keep their likeliest token. A logits processor of `generate`.

    A row has a random number between 0 and 1 for each step, from a generator seeded by its request alone. It takes the
    token whose share of the cumulated probabilities contains the number. So a draw does not depend on other rows, on the
    device or on the model's name.
    """

    def __init__(self, requests: Sequence[Request], device: str) -> None:
        self._step = 0
        self._rows = [row for row, request in enumerate(requests) if request.temperature > 0]
        drawn = [requests[row] for row in self._rows]
        self._temperatures = torch.tensor(
            [[max(request.temperature, _MIN_TEMPERATURE)] for request in drawn], device=device
        )
        most = max((request.max_tokens for request in drawn), default=0)
        self._numbers = torch.zeros(len(drawn), most)
        for row, request in enumerate(drawn):
            generator = torch.Generator().manual_seed(request_seed(request))
            self._numbers[row, : request.max_tokens] = torch.rand(request.max_tokens, generator=generator)
        self._numbers = self._numbers.to(device)

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        """Logits of the next token, [rows, vocabulary]; in rows with a temperature all but the drawn token are -inf."""
        if self._step == 0 and scores.isnan().any():
            raise IfqaError("the model's probabilities are no numbers (NaN): its weights are damaged")
        if self._rows and self._step < self._numbers.shape[1]:
            shares = (scores[self._rows] / self._temperatures).softmax(-1).cumsum(-1)
            places = self._numbers[:, self._step : self._step + 1] * shares[:, -1:]
            tokens = torch.searchsorted(shares, places, right=True).clamp(max=shares.shape[1] - 1)
            scores[self._rows] = torch.full_like(shares, float("-inf")).scatter(1, tokens, 0.0)
        self._step += 1
        return scores


def request_seed(request: Request) -> int:
    """The seed of a request's draws: 63 bits of the SHA-256 of its content, with the number of the sample."""
    return int(cache_key("", request)[:16], 16) >> 1
