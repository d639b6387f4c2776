"""Prices of tokens; caps: room is set aside before a request is sent, and settled when its answer is back; and a plugin's use."""

import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from pydantic import Field

from ifqa.llms.cache import sum_tokens
from ifqa.llms.credentials import OPENAI, is_local, is_openai
from ifqa.protocols import LanguageModel, ProgressCallback, no_progress
from ifqa.records import Completion, Request, StageUsage
from ifqa.settings import StrictModel, parse_section
from ifqa.storage.files import read_toml
from ifqa.storage.resources import BUNDLED, find_resource

PRICES = "prices.toml"
Dollars = Annotated[float, Field(ge=0, description="US dollars per million tokens")]


class PriceFile(StrictModel):
    """A price file; `models` has a table for each model."""

    dated: str
    source: str
    models: dict[str, object]


class Price(StrictModel):
    """US dollars per million tokens of input and output."""

    input: Dollars
    output: Dollars

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for these tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000


def find_price(model: str, url: str = OPENAI, root: Path = Path()) -> Price | None:
    """The price of a server's model from prices.toml; None if it is unknown, which never counts as free.

    The table is looked for below `root`, then in the repository, then in the package. The package's table has OpenAI's
    prices, so it says nothing of another host's models, whatever their names. A model's name with a date that is not in
    the table has the price of the name without the date. A server on this machine is free, unless the table has a price
    for its model: it may pass requests on to OpenAI.
    """
    path = find_resource(PRICES, root)
    if path and (path.parent != BUNDLED or is_openai(url) or is_local(url)):
        table = parse_section(PriceFile, read_toml(path), str(path))
        for name in (model, re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)):
            if name in table.models:
                return parse_section(Price, table.models[name], f"{path}: models.{name!r}")
    return Price(input=0.0, output=0.0) if is_local(url) else None


class Reservation(NamedTuple):
    """Tokens set aside for one request. `extra` of the prompt's tokens correct the bound, as the server counts more."""

    prompt: int
    completion: int
    extra: int


class Budget:
    """What all language models of a command spend, and what is set aside for requests that are out.

    Several threads may share a budget.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.accounts: list[Account] = []

    @property
    def open(self) -> int:
        """Number of requests that are out, for all models."""
        return sum(account.open for account in self.accounts)


class Account:
    """Tokens that one model has spent and set aside, under caps that hold for all models of its budget together.

    `spent + set aside` never exceeds a cap. So the bill does not either, as long as no request takes more than was set
    aside for it. If a server counts more prompt tokens than the bound, every later bound is raised by as much. A model of
    unknown price counts towards the cap on tokens only. The sender of requests counts them in `calls`.

    Args:
        price: of tokens; None if it is unknown.
        max_cost: US dollars; 0 for no cap.
        max_tokens: prompt and completion tokens together; 0 for no cap.
        budget: shared with other models; None for a new budget.
    """

    def __init__(
        self, price: Price | None, max_cost: float = 0.0, max_tokens: int = 0, budget: Budget | None = None
    ) -> None:
        self.price = price
        self.max_cost = max_cost
        self.max_tokens = max_tokens
        self.budget = budget or Budget()
        self.calls = 0
        self.spent = (0, 0)
        self.aside = (0, 0)
        self.open = 0
        self.extra = 0
        with self.budget.lock:
            self.budget.accounts.append(self)

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> Reservation | None:
        """Set room aside for a request that goes out now; None, with nothing set aside, if that would exceed a cap."""
        with self.budget.lock:
            room = Reservation(prompt_tokens + self.extra, completion_tokens, self.extra)
            before, self.aside = self.aside, (self.aside[0] + room.prompt, self.aside[1] + room.completion)
            accounts = self.budget.accounts
            tokens = sum(sum(account.spent) + sum(account.aside) for account in accounts)
            if (self.max_tokens and tokens > self.max_tokens) or (
                self.max_cost and self.price and math.fsum(account.at_most for account in accounts) > self.max_cost
            ):
                self.aside = before
                return None
            self.open += 1
            return room

    def settle(self, room: Reservation, used: tuple[int, int] | None) -> None:
        """Release a request's room and count the tokens it used; None (unknown) counts the whole room."""
        used = (room.prompt, room.completion) if used is None else used
        with self.budget.lock:
            self.aside = (self.aside[0] - room.prompt, self.aside[1] - room.completion)
            self.spent = (self.spent[0] + used[0], self.spent[1] + used[1])
            self.open -= 1
            self.extra = max(self.extra, room.extra + used[0] - room.prompt)

    @property
    def cost(self) -> float | None:
        """US dollars spent; None if the price is unknown."""
        return None if self.price is None else self.price.of(*self.spent)

    @property
    def at_most(self) -> float:
        """US dollars spent and set aside; 0 if the price is unknown."""
        prompt, completion = self.spent[0] + self.aside[0], self.spent[1] + self.aside[1]
        return self.price.of(prompt, completion) if self.price else 0.0

    @property
    def refusal(self) -> str:
        """The error of a request that did not fit under the caps."""
        caps = [f"${self.max_cost:g} (max_cost)"] if self.max_cost else []
        caps += [f"{self.max_tokens:,} tokens (max_total_tokens)"] if self.max_tokens else []
        return f"not asked: the cap of {' and '.join(caps)} leaves no room for it"


Count = Literal["retry", "not_asked", "too_long", "unparsed", "left_out", "cut"]
COUNTS: tuple[Count, ...] = get_args(Count)


class UsageMeter:
    """Asks a model for one plugin; what others have asked the same model before does not count.

    Args:
        llm: the model.
        keys: what the plugin counts itself, in the order in which manifests keep it.

    Attributes:
        counts: of the `keys`.
    """

    def __init__(self, llm: LanguageModel, keys: Sequence[Count] = COUNTS) -> None:
        self.counts: Counter[Count] = Counter()
        self._llm, self._keys = llm, keys
        self._before, self._took = llm.spent, (0, 0)

    def complete(self, requests: Sequence[Request], advance: ProgressCallback = no_progress) -> list[Completion]:
        """One completion a request, in their order; their tokens are counted."""
        completions = self._llm.complete(requests, advance=advance)
        self._took = sum_tokens(completions, self._took)
        return completions

    def usage(self) -> StageUsage:
        """The table so far; without "server" if none is asked."""
        table: StageUsage = {}
        for key in self._keys:
            table[key] = self.counts[key]
        if self._llm.server:
            table["server"] = self._llm.server
        spent = self._llm.spent.since(self._before)
        table["spent"] = {
            "calls": spent.calls, "cached": spent.cached, "prompt_tokens": spent.prompt_tokens,
            "completion_tokens": spent.completion_tokens, "cost": spent.cost,
        }  # fmt: skip
        table["took"] = self._took
        return table
