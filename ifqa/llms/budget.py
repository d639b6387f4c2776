"""Token prices, caps that reserve tokens before a request is sent, and the usage of each plugin."""

import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from ifqa.errors import ServiceError
from ifqa.llms.cache import sum_tokens
from ifqa.llms.credentials import OPENAI, is_local, is_openai
from ifqa.protocols import LanguageModel, ProgressCallback, no_progress
from ifqa.records import Completion, Request, StageUsage
from ifqa.settings import StrictModel, parse_section, wanted
from ifqa.storage.files import read_toml
from ifqa.storage.resources import BUNDLED, find_resource

PRICES = "prices.toml"
Dollars = Annotated[float, Field(ge=0, json_schema_extra=wanted("US dollars per million tokens"))]


class PriceFile(StrictModel):
    """A price file; `models` has a section for each model."""

    dated: str
    source: str
    models: dict[str, object]


class Price(StrictModel):
    """US dollars per million tokens of input and output.

    `cached` is for input that the server had read before, if it differs.
    """

    input: Dollars
    output: Dollars
    cached: Dollars | None = None

    def cost(
        self, prompt_tokens: int, completion_tokens: int, cached_prompt_tokens: int = 0
    ) -> float:
        cached = self.input if self.cached is None else self.cached
        prompt = (prompt_tokens - cached_prompt_tokens) * self.input + cached_prompt_tokens * cached
        return (prompt + completion_tokens * self.output) / 1_000_000


def find_price(model: str, url: str = OPENAI, root: Path = Path()) -> Price | None:
    """The price of a server's model from prices.toml.

    None if it is unknown, which never counts as free.

    The file is looked up below `root`, then in the repository, then in the package. The package's
    file has OpenAI's prices and is ignored for other remote hosts. A dated name without an entry
    has the price of the undated name. A local server is free unless the file prices its model: it
    may be a proxy for OpenAI.
    """
    path = find_resource(PRICES, root)
    if path and (path.parent != BUNDLED or is_openai(url) or is_local(url)):
        prices = parse_section(PriceFile, read_toml(path), str(path))
        for name in (model, re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)):
            if name in prices.models:
                return parse_section(Price, prices.models[name], f"{path}: models.{name!r}")
    return Price(input=0.0, output=0.0) if is_local(url) else None


class Reservation(NamedTuple):
    """Tokens reserved for one request.

    `extra` is the part of `prompt` for a server that counts more tokens than we do.
    """

    prompt: int
    completion: int
    extra: int


class Budget:
    """The accounts of all language models of a command. Threads may share a budget."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.accounts: list[Account] = []

    @property
    def in_flight(self) -> int:
        return sum(account.in_flight for account in self.accounts)


class Account:
    """Tokens that one model has spent and reserved, under caps that all models of its budget share.

    `spent + reserved` never exceeds a cap, so neither does the bill, unless a request uses more
    than it reserved. If a server counts more prompt tokens than the bound, later bounds are raised
    by the difference. A model of unknown price (None) counts towards the cap on tokens only.
    `max_tokens` caps prompts and completions together; 0 is no cap. `calls` counts the requests
    sent; the sender updates it.
    """

    def __init__(
        self,
        price: Price | None,
        max_cost: float = 0.0,
        max_tokens: int = 0,
        budget: Budget | None = None,
    ) -> None:
        self.price = price
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.budget = budget or Budget()
        self.calls = self.in_flight = self.extra = self.cached_prompt_tokens = 0
        self.spent = self.reserved = (0, 0)
        with self.budget.lock:
            self.budget.accounts.append(self)

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> Reservation | None:
        """Reserve tokens for a request; None, with nothing reserved, if that would exceed a cap."""
        with self.budget.lock:
            reservation = Reservation(prompt_tokens + self.extra, completion_tokens, self.extra)
            before = self.reserved
            self.reserved = (before[0] + reservation.prompt, before[1] + reservation.completion)
            if self._exceeds_cap():
                self.reserved = before
                return None
            self.in_flight += 1
            return reservation

    def affords(self, prompt_tokens: int, completion_tokens: int) -> bool:
        """Whether the caps have room for so many tokens; nothing is reserved."""
        with self.budget.lock:
            before = self.reserved
            self.reserved = (before[0] + prompt_tokens, before[1] + completion_tokens)
            exceeds = self._exceeds_cap()
            self.reserved = before
            return not exceeds

    def _exceeds_cap(self) -> bool:
        """Whether what is spent and reserved exceeds a cap; the caller has the budget's lock."""
        accounts = self.budget.accounts
        tokens = sum(sum(account.spent) + sum(account.reserved) for account in accounts)
        cost = math.fsum(account.committed_cost for account in accounts)
        over_cost = bool(self.max_cost and self.price and cost > self.max_cost)
        return over_cost or bool(self.max_tokens and tokens > self.max_tokens)

    def settle(
        self, reservation: Reservation, used: tuple[int, int] | None, cached: int = 0
    ) -> None:
        """Release a reservation and count the tokens used.

        None (unknown) counts the whole reservation.

        `cached` are those of the prompt that the server had read before.
        """
        used = (reservation.prompt, reservation.completion) if used is None else used
        with self.budget.lock:
            self.reserved = (
                self.reserved[0] - reservation.prompt,
                self.reserved[1] - reservation.completion,
            )
            self.spent = (self.spent[0] + used[0], self.spent[1] + used[1])
            self.cached_prompt_tokens += min(cached, used[0])
            self.in_flight -= 1
            self.extra = max(self.extra, reservation.extra + used[0] - reservation.prompt)

    @property
    def cost(self) -> float | None:
        """US dollars spent; None if the price is unknown."""
        return (
            None if self.price is None else self.price.cost(*self.spent, self.cached_prompt_tokens)
        )

    @property
    def committed_cost(self) -> float:
        """US dollars spent and reserved; 0 if the price is unknown."""
        prompt = self.spent[0] + self.reserved[0]
        completion = self.spent[1] + self.reserved[1]
        return self.price.cost(prompt, completion, self.cached_prompt_tokens) if self.price else 0.0

    @property
    def refusal(self) -> str:
        caps = [f"${self.max_cost:g} (max_cost)"] if self.max_cost else []
        caps += [f"{self.max_tokens:,} tokens (max_total_tokens)"] if self.max_tokens else []
        return f"not asked: it would exceed the cap of {' and '.join(caps)}"


Count = Literal["retry", "stored_failures", "not_asked", "too_long", "unparsed", "left_out", "cut"]
COUNTS: tuple[Count, ...] = get_args(Count)


class UsageMeter:
    """One plugin's use of a model; `counts` has its events by key.

    `keys` are those that the plugin counts itself, in order.
    """

    def __init__(self, llm: LanguageModel, keys: Sequence[Count] = COUNTS) -> None:
        self.counts: Counter[Count] = Counter()
        self._llm = llm
        self._keys = keys
        self._before = llm.spent
        self._tokens = (0, 0)

    def complete(
        self, requests: Sequence[Request], advance: ProgressCallback = no_progress
    ) -> list[Completion]:
        completions = self._llm.complete(requests, advance=advance)
        self._tokens = sum_tokens(completions, self._tokens)
        return completions

    def count_failures(self, completions: Sequence[Completion]) -> None:
        """Count a question's failed requests: those that the next run retries, and those that are
        stored.
        """
        failed = [completion for completion in completions if completion.error]
        passing = [completion for completion in failed if not completion.permanent]
        self.counts["retry"] += bool(passing)
        self.counts["stored_failures"] += bool(failed) and not passing
        not_asked = [
            completion for completion in passing if completion.error.startswith("not asked")
        ]
        self.counts["not_asked"] += bool(not_asked) and len(failed) == len(completions)

    def usage(self) -> StageUsage:
        """The usage so far, as in manifests; without "server" for a model that runs here."""
        usage: StageUsage = {}
        for key in self._keys:
            usage[key] = self.counts[key]
        if self._llm.server:
            usage["server"] = self._llm.server
        if self._llm.sent:
            usage["sent"] = self._llm.sent
        spent = self._llm.spent.since(self._before)
        usage["spent"] = {
            "calls": spent.calls, "cached": spent.cached, "prompt_tokens": spent.prompt_tokens,
            "completion_tokens": spent.completion_tokens, "cost": spent.cost,
            "cached_prompt_tokens": spent.cached_prompt_tokens,
        }  # fmt: skip
        usage["took"] = self._tokens
        return usage


def refuse_failures(count: int, errors: Sequence[str], what: str) -> None:
    """Stop if requests failed that may succeed later, before their absence decides anything.

    `what` opens the message: what failed, and how many.

    Raises:
        ServiceError: `count` is not 0.
    """
    if count:
        reason = next(filter(None, errors), "a request failed")
        raise ServiceError(
            f"{what} ({reason}); nothing was written. Run the same command again: what was "
            "answered is stored, and costs nothing"
        )
