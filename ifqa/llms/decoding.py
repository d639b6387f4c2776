"""Draws the tokens of a batch's rows and ends each row, independently of the other rows."""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ifqa.errors import IfqaError
from ifqa.llms.completions import bounded, content
from ifqa.llms.hearing import Heard
from ifqa.records import Completion, Request

if TYPE_CHECKING:
    from torch import Tensor

_COLDEST = 1e-4  # the lowest temperature used: lower ones draw the same, but overflow float32


class Rows:
    """The texts of a batch's rows so far. A stopping criterion of transformers' `generate`.

    Args:
        requests: one per row.
        ends: tokens that end an answer.
        decode: turns tokens into text, without `ends`.
        piece: gives the text of one token.
        heard: called with the first row's text after each of its tokens.
    """

    def __init__(
        self, requests: Sequence[Request], ends: frozenset[int], decode: Callable[[Sequence[int]], str],
        piece: Callable[[int], str], heard: Heard | None = None,
    ) -> None:  # fmt: skip
        self._ends, self._decode, self._piece, self._heard = ends, decode, piece, heard
        self._stops = [[stop for stop in request.stop if stop] for request in requests]
        self._most = [request.max_tokens for request in requests]
        self._tokens: list[list[int]] = [[] for _ in requests]
        self._finish = [""] * len(requests)

    def __call__(self, ids: "Tensor", scores: Any, **_: Any) -> "Tensor":
        """Which rows have ended, [rows]; called after each step with all tokens so far, [rows, tokens]."""
        for row, token in enumerate(ids[:, -1].tolist()):
            if not self._finish[row]:
                self._tokens[row].append(token)
                self._finish[row] = self._end(row, token)
                if self._heard and row == 0:
                    self._heard(self._text(row))
        return ids.new_tensor([bool(one) for one in self._finish]).bool()

    def completion(self, row: int, prompt_tokens: int) -> Completion:
        """A row's text up to its first stop string; its tokens are all that were computed, with the end token."""
        return bounded(Completion(self._text(row), prompt_tokens, len(self._tokens[row]), self._finish[row]))

    def _text(self, row: int) -> str:
        """A row's text so far, up to its first stop string."""
        text = self._decode(self._tokens[row])
        return text[: min((text.index(stop) for stop in self._stops[row] if stop in text), default=len(text))]

    def _end(self, row: int, token: int) -> str:
        if token in self._ends:
            return "stop"
        # Search the whole text only after a token that can end a stop string
        if any(_may_end(stop, self._piece(token)) for stop in self._stops[row]):
            text = self._decode(self._tokens[row])
            if any(stop in text for stop in self._stops[row]):
                return "stop"
        return "length" if len(self._tokens[row]) == self._most[row] else ""


def _may_end(stop: str, piece: str) -> bool:
    # A character outside ASCII may be split over several tokens, and some decoders drop a token's blanks
    return stop[-1] in piece or not stop[-1].isascii() or stop[-1] == " "


class Draws:
    """Draws the tokens of rows with a temperature; other rows keep their likeliest token. A logits processor of `generate`.

    A row has a random number between 0 and 1 for each step, from a generator seeded by its request alone. It takes the
    token whose share of the cumulated probabilities contains the number. So a draw does not depend on other rows, on the
    device or on the model's name.
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
        """Logits of the next token, [rows, vocabulary]; in rows with a temperature all but the drawn token are -inf."""
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
    """The seed of a request's draws: 63 bits of the SHA-256 of its content, with the number of the sample."""
    canonical = json.dumps(content("", request), sort_keys=True, separators=(",", ":"))
    return int(hashlib.sha256(canonical.encode()).hexdigest()[:16], 16) >> 1
