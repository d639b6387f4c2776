"""What tokens cost, and caps that hold: room is set aside before a request goes out and settled when it is back."""

import ipaddress
import math
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import Field

from ifqa.settings import Table, check_table
from ifqa.storage.files import read_toml
from ifqa.storage.resources import find_resource

PRICES = "prices.toml"
Dollars = Annotated[float, Field(ge=0, description="US dollars per million tokens")]


class PricesTable(Table):
    """A price file; `models` has a table for each model."""

    dated: str
    source: str
    models: dict[str, Any]


class PriceTable(Table):
    """The prices of a model."""

    input: Dollars
    output: Dollars


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens put in and got out, the day they held, and where they stood."""

    input: float
    output: float
    dated: str = ""
    source: str = ""

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """US dollars for so many tokens."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000


def is_local(url: str) -> bool:
    """Whether a server is this machine itself."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def price_of(model: str, url: str = "", root: Path = Path()) -> Price | None:
    """A model's price out of prices.toml; None where it is unknown, which is never taken for nothing.

    The table is looked for below `root`, then in the repository, then the package. A name with a date has
    the price of the name without, unless the table has it. A server on this machine costs nothing unless the table
    prices its model.

    Raises:
        IfqaError: the table is not one; the key is in the message.
    """
    path = find_resource(PRICES, root)
    if path:
        table = check_table(PricesTable, read_toml(path), str(path))
        for name in (model, re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)):
            if name in table.models:
                price = check_table(PriceTable, table.models[name], f"{path}: models.{name!r}")
                return Price(price.input, price.output, table.dated, table.source)
    return Price(0.0, 0.0, source="a server on this machine") if is_local(url) else None


class Room(NamedTuple):
    """What is set aside for one request: tokens of the prompt and the answer; `extra` of the prompt's were learnt."""

    prompt: int
    completion: int
    extra: int


class Budget:
    """What language models spend together, and what is set aside for requests that are out; one for a whole command.

    Several threads may share it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.accounts: list[Account] = []

    @property
    def open(self) -> int:
        """How many requests are out, of all models."""
        return sum(one.open for one in self.accounts)


class Account:
    """Tokens of one model spent and set aside, against caps that hold for all that its budget's models spend together.

    `spent + set aside` never exceeds a cap, so neither does what is billed, as long as no request takes more than was
    set aside for it. A server that does count more prompt tokens than the bound raises every later bound by as much.
    What a model of unknown price spends counts in tokens alone. `calls` counts the requests that went out, for whoever
    sends them.

    Args:
        price: what tokens cost; None where it is unknown.
        max_cost: US dollars; 0 for no cap.
        max_tokens: prompt and completion tokens together; 0 for no cap.
        budget: shared with other models; None for one of its own.
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

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> Room | None:
        """Set room aside for a request that goes out now; None, and nothing set aside, where a cap would be passed."""
        with self.budget.lock:
            room = Room(prompt_tokens + self.extra, completion_tokens, self.extra)
            before, self.aside = self.aside, (self.aside[0] + room.prompt, self.aside[1] + room.completion)
            accounts = self.budget.accounts
            tokens = sum(sum(one.spent) + sum(one.aside) for one in accounts)
            if (self.max_tokens and tokens > self.max_tokens) or (
                self.max_cost and self.price and math.fsum(one.at_most for one in accounts) > self.max_cost
            ):
                self.aside = before
                return None
            self.open += 1
            return room

    def settle(self, room: Room, used: tuple[int, int] | None) -> None:
        """Take a request's room back and count what it used; None where that is unknown, and all of it counts."""
        used = (room.prompt, room.completion) if used is None else used
        with self.budget.lock:
            self.aside = (self.aside[0] - room.prompt, self.aside[1] - room.completion)
            self.spent = (self.spent[0] + used[0], self.spent[1] + used[1])
            self.open -= 1
            self.extra = max(self.extra, room.extra + used[0] - room.prompt)

    @property
    def cost(self) -> float | None:
        """US dollars spent; None where the price is unknown."""
        return None if self.price is None else self.price.of(*self.spent)

    @property
    def at_most(self) -> float:
        """US dollars spent and set aside; 0 where the price is unknown."""
        prompt, completion = self.spent[0] + self.aside[0], self.spent[1] + self.aside[1]
        return self.price.of(prompt, completion) if self.price else 0.0

    @property
    def refusal(self) -> str:
        """What is said of a request that did not fit."""
        caps = [f"${self.max_cost:g} (max_cost)"] if self.max_cost else []
        caps += [f"{self.max_tokens:,} tokens (max_total_tokens)"] if self.max_tokens else []
        return f"not asked: the cap of {' and '.join(caps)} leaves no room for it"
