"""What plugins ask of language models: requests, tokens and US dollars, used and estimated."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict


@dataclass(frozen=True, slots=True)
class Spent:
    """A model's use: requests sent (with retries), completions from the store, tokens, and US dollars.

    If the server does not report a request's tokens, their upper bound is counted. `cost` is None if the price is unknown.
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None

    def since(self, before: "Spent") -> "Spent":
        """The use since an earlier state."""
        cost = None if self.cost is None else self.cost - (before.cost or 0.0)
        return Spent(
            self.calls - before.calls, self.cached - before.cached, self.prompt_tokens - before.prompt_tokens,
            self.completion_tokens - before.completion_tokens, cost,
        )  # fmt: skip


class SpentTable(TypedDict):
    """A `Spent` in JSON."""

    calls: int
    cached: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class Usage(TypedDict, total=False):
    """What a plugin has asked a language model, for a stage's manifest."""

    spent: SpentTable
    took: Sequence[int]  # tokens of the prompts and of the completions behind all answers, those from the store too
    server: str  # scheme, host and port of the server that was asked
    retry: int  # questions to ask again: a request failed
    not_asked: int  # questions not asked, because a cap was reached
    too_long: int  # questions not asked, because the prompt does not fit the model's window
    unparsed: int  # questions in whose completion no answer was found
    left_out: int  # passages left out, because the model's window was full
    cut: int  # questions whose completion was cut at its longest


class Estimate(NamedTuple):
    """What requests would take: calls for those not in the store, their tokens, US dollars (None: unknown)."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
