"""Arguments for transformers' `generate`: a sampler and a stopping criterion, which treat the rows
of a batch independently.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from ifqa.errors import DamagedArtifact
from ifqa.llms.cache import request_seed, truncate_completion
from ifqa.llms.streaming import TextCallback
from ifqa.records import Completion, Request, TokenLogprob

_GROUPED_VARIABLE = "TRANSFORMERS_SDPA_FORCE_GQA"
_MIN_TEMPERATURE = 1e-4  # lower temperatures draw the same tokens, but overflow float32


@contextmanager
def enable_grouped_attention(device: str) -> Iterator[None]:
    """On a CPU, use torch's grouped-query attention.

    Otherwise transformers copies shared keys for each head.
    """
    before = os.environ.get(_GROUPED_VARIABLE)
    if device == "cpu":  # with a mask, torch has no fast GPU kernel for it
        os.environ[_GROUPED_VARIABLE] = "1"
    try:
        yield
    finally:
        os.environ.pop(_GROUPED_VARIABLE, None)
        if before is not None:
            os.environ[_GROUPED_VARIABLE] = before


class BatchStopping:
    """Stops each row of a batch, which is one request, and keeps its text.

    A stopping criterion of transformers' `generate`.

    `ends` are tokens that end an answer; `decode` turns tokens into text without them. `on_text` is
    called with the first row's text after each of its tokens.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        ends: frozenset[int],
        decode: Callable[[Sequence[int]], str],
        on_text: TextCallback | None = None,
    ) -> None:
        self._ends = ends
        self._decode = decode
        self._on_text = on_text
        self._stops = [[stop for stop in request.stop if stop] for request in requests]
        self._max_tokens = [request.max_tokens for request in requests]
        self._tokens: list[list[int]] = [[] for _ in requests]
        self._finish = [""] * len(requests)

    def __call__(self, ids: Tensor, scores: object, **_: object) -> Tensor:
        """Whether each row has ended, [rows].

        Called after each step with all token ids so far, [rows, tokens].
        """
        for row, token in enumerate(ids[:, -1].tolist()):
            if not self._finish[row]:
                self._tokens[row].append(token)
                self._finish[row] = self._finish_reason(row, token)
                if self._on_text and row == 0:
                    self._on_text(self._text(row))
        return ids.new_tensor([bool(finish) for finish in self._finish]).bool()

    def completion(
        self, row: int, prompt_tokens: int, logprobs: Sequence[float] = ()
    ) -> Completion:
        """A row's completion, up to its first stop string.

        All computed tokens count, including the end token. `logprobs` are those of its tokens.
        """
        tokens = len(self._tokens[row])
        text = self._text(row)
        located = self._locate(row, text, logprobs) if logprobs else ()
        return truncate_completion(
            Completion(text, prompt_tokens, tokens, self._finish[row], logprobs=located)
        )

    def _locate(self, row: int, text: str, logprobs: Sequence[float]) -> tuple[TokenLogprob, ...]:
        """The tokens of a row's text, each by its end in characters."""
        located = list[TokenLogprob]()
        for count, logprob in enumerate(logprobs[: len(self._tokens[row])], start=1):
            end = len(self._decode(self._tokens[row][:count]))
            located.append((min(end, len(text)), round(logprob, 4)))
            if end >= len(text):
                break
        return tuple(located)

    def _text(self, row: int) -> str:
        """A row's text so far, up to its first stop string."""
        text = self._decode(self._tokens[row])
        return text[
            : min(
                (text.index(stop) for stop in self._stops[row] if stop in text), default=len(text)
            )
        ]

    def _finish_reason(self, row: int, token: int) -> str:
        if token in self._ends:
            return "stop"
        text = self._decode(self._tokens[row]) if self._stops[row] else ""
        if any(stop in text for stop in self._stops[row]):
            return "stop"
        return "length" if len(self._tokens[row]) == self._max_tokens[row] else ""


class TokenSampler:
    """Samples the tokens of rows whose temperature is above 0; other rows stay greedy.

    A logits processor of `generate`.

    A generator seeded by a row's request draws a number between 0 and 1 for each step. It selects
    the token by inverse transform sampling, so that a sample depends on no other row, nor on the
    device or the model's name.
    """

    def __init__(self, requests: Sequence[Request], device: str) -> None:
        self._step = 0
        self._keeps_logprobs = any(request.logprobs for request in requests)
        self._logprobs = list[Tensor]()  # of each step's tokens, [rows]
        self._rows = [row for row, request in enumerate(requests) if request.temperature > 0]
        sampled = [requests[row] for row in self._rows]
        temperatures = [[max(request.temperature, _MIN_TEMPERATURE)] for request in sampled]
        self._temperatures = torch.tensor(temperatures, device=device)
        longest = max((request.max_tokens for request in sampled), default=0)
        self._numbers = torch.zeros(len(sampled), longest)
        for row, request in enumerate(sampled):
            generator = torch.Generator().manual_seed(request_seed(request))
            self._numbers[row, : request.max_tokens] = torch.rand(
                request.max_tokens, generator=generator
            )
        self._numbers = self._numbers.to(device)

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        """Logits of the next token, [rows, vocabulary].

        In sampled rows all but the sampled token are -inf.
        """
        if self._step == 0 and scores.isnan().any():
            raise DamagedArtifact("the model's probabilities are NaN: its weights are damaged")
        likelihoods = scores.float().log_softmax(-1) if self._keeps_logprobs else None
        if self._rows and self._step < self._numbers.shape[1]:
            cumulative = (scores[self._rows] / self._temperatures).softmax(-1).cumsum(-1)
            targets = self._numbers[:, self._step : self._step + 1] * cumulative[:, -1:]
            tokens = torch.searchsorted(cumulative, targets, right=True).clamp(
                max=cumulative.shape[1] - 1
            )
            scores[self._rows] = torch.full_like(cumulative, float("-inf")).scatter(1, tokens, 0.0)
        if likelihoods is not None:
            chosen = scores.argmax(-1, keepdim=True)
            self._logprobs.append(likelihoods.gather(1, chosen)[:, 0])
        self._step += 1
        return scores

    def logprobs(self, row: int) -> list[float]:
        """The log probability of each token of a row, at temperature 1.

        Empty unless a request wants them.
        """
        return [float(step[row]) for step in self._logprobs]
