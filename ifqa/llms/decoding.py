"""How the rows of a batch are drawn and where each ends: by its own request, whatever is beside it."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.llms.completions import content
from ifqa.records import Completion, Request

if TYPE_CHECKING:
    from torch import Tensor

_COLDEST = 1e-4  # a temperature below it is as good as this one, and does not leave the range of float32


class Rows:
    """What the rows of a batch have written. A stopping criterion of transformers' `generate`.

    Args:
        requests: each row's.
        ends: tokens that end an answer.
        decode: tokens to text, without those.
        piece: the text of one token.
    """

    def __init__(
        self, requests: Sequence[Request], ends: frozenset[int], decode: Callable[[Sequence[int]], str],
        piece: Callable[[int], str],
    ) -> None:  # fmt: skip
        self._ends, self._decode, self._piece = ends, decode, piece
        self._stops = [[stop for stop in request.stop if stop] for request in requests]
        self._most = [request.max_tokens for request in requests]
        self._tokens: list[list[int]] = [[] for _ in requests]
        self._finish = [""] * len(requests)

    def __call__(self, ids: "Tensor", scores: Any, **_: Any) -> "Tensor":
        """Which rows have ended, [rows]; told all tokens so far, [rows, tokens], after each step."""
        for row, token in enumerate(ids[:, -1].tolist()):
            if not self._finish[row]:
                self._tokens[row].append(token)
                self._finish[row] = self._end(row, token)
        return ids.new_tensor([bool(one) for one in self._finish]).bool()

    def completion(self, row: int, prompt_tokens: int) -> Completion:
        """What a row wrote, up to its first stop; the tokens are all that were computed, the last one's end counted."""
        text = self._decode(self._tokens[row])
        cut = min((text.index(stop) for stop in self._stops[row] if stop in text), default=len(text))
        return Completion(text[:cut], prompt_tokens, len(self._tokens[row]), self._finish[row])

    def _end(self, row: int, token: int) -> str:
        if token in self._ends:
            return "stop"
        # Only after a token that can be the last of a stop is the whole text looked at
        if any(_may_end(stop, self._piece(token)) for stop in self._stops[row]):
            text = self._decode(self._tokens[row])
            if any(stop in text for stop in self._stops[row]):
                return "stop"
        return "length" if len(self._tokens[row]) == self._most[row] else ""


def _may_end(stop: str, piece: str) -> bool:
    # A character outside of ASCII may be of several tokens, and some decoders drop a token's blanks
    return stop[-1] in piece or not stop[-1].isascii() or stop[-1] == " "


class Draws:
    """Draws the tokens of rows that have a temperature; others keep their likeliest. A logits processor of `generate`.

    A row has one number between 0 and 1 for each step, out of a generator that its request alone seeds, and takes the
    token in whose share of the probabilities it falls: no draw hangs on a neighbour, the device or the model's name.
    """

    def __init__(self, requests: Sequence[Request], device: str) -> None:
        import torch

        self._step = 0
        self._rows = [row for row, request in enumerate(requests) if request.temperature > 0]
        drawn = [requests[row] for row in self._rows]
        self._temperatures = torch.tensor([[max(one.temperature, _COLDEST)] for one in drawn], device=device)
        most = max((one.max_tokens for one in drawn), default=0)
        self._numbers = torch.zeros(len(drawn), most)
        for row, request in enumerate(drawn):
            generator = torch.Generator().manual_seed(seed(request))
            self._numbers[row, : request.max_tokens] = torch.rand(request.max_tokens, generator=generator)
        self._numbers = self._numbers.to(device)

    def __call__(self, ids: "Tensor", scores: "Tensor") -> "Tensor":
        """Logits of the next token, [rows, vocabulary], with the drawn ones alone left where there is a temperature."""
        import torch

        if self._step == 0 and scores.isnan().any():
            raise IfqaError("the model's probabilities are no numbers (NaN): its weights are damaged")
        if self._rows and self._step < self._numbers.shape[1]:
            shares = (scores[self._rows] / self._temperatures).softmax(-1).cumsum(-1)
            places = self._numbers[:, self._step : self._step + 1] * shares[:, -1:]
            tokens = torch.searchsorted(shares, places, right=True).clamp(max=shares.shape[1] - 1)
            scores[self._rows] = torch.full_like(shares, float("-inf")).scatter(1, tokens, 0.0)
        self._step += 1
        return scores


def seed(request: Request) -> int:
    """Of a request's draws: 63 bits of the SHA-256 of all that it is, its sample's number among it."""
    canonical = json.dumps(content("", request), sort_keys=True, separators=(",", ":"))
    return int(hashlib.sha256(canonical.encode()).hexdigest()[:16], 16) >> 1
