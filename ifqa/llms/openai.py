"""Language models behind OpenAI's API or any server that speaks it: vLLM, Ollama, llama.cpp, `transformers serve`."""

import json
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from ifqa.errors import ConfigError, IfqaError
from ifqa.llms.budget import Account, Budget, find_price
from ifqa.llms.cache import CacheWriter, CompletionCache, RequestBatch, check_store
from ifqa.llms.credentials import check_address, is_local, is_openai, key_for, resolve_addresses, server_origin
from ifqa.llms.streaming import text_callback
from ifqa.llms.token_counts import WINDOW, count_prompt_tokens, find_window, token_counter
from ifqa.protocols import LanguageModel, ProgressCallback, Requirement, no_progress
from ifqa.records import Completion, Estimate, Request, TokenUsage
from ifqa.settings import Natural, NotNegative, Positive, check_arguments

logger = logging.getLogger(__name__)

_TEXT_MODELS = ("gpt-3.5-turbo-instruct", "davinci-002", "babbage-002")


class OpenAI(LanguageModel):
    """A model on a server that speaks OpenAI's API.

    The key is read from the environment for each call (`ifqa.llms.credentials`) and never stored; a server on this machine needs
    none. Redirects are not followed. All models of a budget share its caps. Several threads may call a model at once.

    Args:
        model: the model's name at the server.
        base_url: the server's address, up to "/v1"; "" for the environment's OPENAI_BASE_URL, or else OpenAI's. Several
            addresses, separated by spaces, are servers of the same model that get the requests in turn.
        batch: send all requests of a stage as one file through the server's batch API, which OpenAI answers within a day at half
            the price; only the first address gets it.
        concurrency: maximum number of requests in flight.
        requests_per_minute: rate limit; 0 for none.
        timeout: seconds until a request is retried.
        window: tokens of prompt and answer together; 0 looks it up in `token_counts.WINDOWS`, by the model's name.
        form: "chat", "completion", or "auto": completion for the few models that take no messages, else chat.
        retries: maximum number of retries of a request after a temporary failure.
        max_cost: cap in US dollars; 0 for no cap.
        max_total_tokens: cap on tokens of prompts and answers; 0 for no cap.
        effort: `reasoning_effort` of reasoning chat models; "" leaves it to the server. From GPT-5 on, some models take a
            temperature of 0 only with "none".
        store: the folder for completions, below `root`.
        root: the folder with `store` and a prices.toml.
        budget: shared with other models, whose spending then counts towards the caps.

    Attributes:
        name: the model, its effort if set, and its first host if that is not OpenAI's; completions are stored under it.
        server: scheme, host and port of the first server.
        price: US dollars per million tokens; None if unknown.
    """

    version = 1
    concurrent = True
    streams = True
    takes_schema = True
    model_settings: ClassVar = {"model": ""}
    runtime_only = (
        "base_url", "batch", "concurrency", "requests_per_minute", "timeout", "retries", "max_cost", "max_total_tokens", "store",
    )  # fmt: skip

    @check_arguments("setting of llm 'openai'")
    def __init__(
        self, *, model: Annotated[str, Field(pattern=r"\S", description="its name at the server, such as 'gpt-4.1-mini'")],
        base_url: str = "", batch: bool = False, concurrency: Positive = 8, requests_per_minute: Natural = 0,
        timeout: Annotated[float, Field(ge=0.001)] = 60.0, window: Natural = 0,
        form: Literal["auto", "chat", "completion"] = "auto", retries: Natural = 6, max_cost: NotNegative = 0.0,
        max_total_tokens: Natural = 0, effort: str = "", store: str = "completions", root: Path = Path(),
        budget: Budget | None = None,
    ) -> None:  # fmt: skip
        self.urls = resolve_addresses(base_url)
        self.url = self.urls[0]
        self.server = server_origin(self.url)
        self.model = model
        self.name = f"{model} effort {effort}" if effort else model
        if not is_openai(self.url):  # all servers on this machine share their completions
            self.name += f" at {'localhost' if is_local(self.url) else urlsplit(self.url).hostname}"
        self.chat = form == "chat" or (form == "auto" and not model.startswith(_TEXT_MODELS))
        self.window = window or find_window(model) or WINDOW
        if not window and not find_window(model):
            logger.info(f"{model}: its context window is unknown; assuming {WINDOW} tokens; set window to change that")
        self.price = find_price(model, self.url, root)
        if batch and self.price and is_openai(self.url):
            self.price = self.price.halved()
        self.batch = batch
        if max_cost and self.price is None:
            at = "" if is_openai(self.url) else f" at {urlsplit(self.url).netloc}"
            raise ConfigError(
                f"max_cost is ${max_cost:g}, but the price of {model!r}{at} is unknown: add it to a prices.toml here, below "
                f'[models] as "{model}" = {{ input = DOLLARS, output = DOLLARS }} per million tokens; or cap the tokens instead'
            )
        self.concurrency = concurrency
        self.interval = 60 / requests_per_minute if requests_per_minute else 0.0
        self.timeout = timeout
        self.retries = retries
        self._effort = effort
        self._cache = CompletionCache(root / store)
        self.account = Account(self.price, max_cost, max_total_tokens, budget)
        self._cached = 0

    @classmethod
    def requirements(cls, *, base_url: str = "", **_: object) -> list[Requirement]:
        """A key, unless the server is on this machine."""
        try:
            remote = [address for address in resolve_addresses(base_url) if not is_local(address)]
            if not remote:
                return []
            for address in remote:
                key_for(address)
        except IfqaError as error:
            return [Requirement("an API key", str(error))]
        return [Requirement("an API key")]

    @classmethod
    def require_access(
        cls, *, base_url: str = "", store: str = "completions", root: Path = Path(), **_: object
    ) -> None:
        """Require a key, unless completions are stored already."""
        try:
            for address in resolve_addresses(base_url):
                key_for(address)
        except IfqaError as error:
            if not CompletionCache(root / store).has_completions():
                raise
            logger.info(f"{error}; completions stored in {root / store} need no key")

    @classmethod
    def refuse_settings(cls, *, base_url: str = "", store: str = "", **_: object) -> None:
        """Refuse an address with a key in it, and a store outside of the working directory."""
        for address in base_url.split():
            check_address(address)
        check_store(store)

    def count(self, text: str) -> int:
        """Tokens of a text: exact if the model's vocabulary is on this machine, else an upper estimate."""
        return token_counter(self.model)(text)

    @property
    def spent(self) -> TokenUsage:
        account = self.account
        return TokenUsage(account.calls, self._cached, *account.spent, account.cost, account.cached_prompt_tokens)

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """The cost of the requests; stored and repeated requests cost nothing. Sends nothing."""
        missing = self._cache.missing(self.name, requests)
        prompt = sum(count_prompt_tokens(request, self.count) for request in missing)
        answers = sum(request.max_tokens for request in missing)
        return Estimate(len(missing), prompt, answers, self.price.cost(prompt, answers) if self.price else None)

    def complete(self, requests: Sequence[Request], advance: ProgressCallback = no_progress) -> list[Completion]:
        """The completions of the requests, in order; each is stored before it is returned.

        Stored completions are not requested again. Equal requests are sent once, across threads and processes. A failed
        completion has `error`; the next call retries it. After an interrupt no more requests are sent; those in flight get a few
        seconds, and their completions are stored before the interrupt is raised. `advance` is called with the number of
        requests done.

        Raises:
            ServiceError: a retry would not help (a bad key, no such model, a used-up quota; the message quotes the server).
            IfqaError: a completion cannot be written. In both cases, completions in flight have been stored.
        """
        batch = RequestBatch(self._cache, self.name, requests, advance)
        try:
            if missing := batch.missing:
                # both load OpenAI's client
                from ifqa.llms.batch_api import complete_batch
                from ifqa.llms.request_scheduler import RequestScheduler, run

                keys = [key_for(url) for url in self.urls]
                with CacheWriter(self._cache, self.name, missing, self.concurrency) as writer:
                    if self.batch:
                        complete_batch(self, keys[0], batch, writer, self._cache)
                    else:
                        on_text = text_callback() if missing[0] == requests[0] else None
                        run(RequestScheduler(self, keys, batch, writer, on_text).ask())
        finally:
            with self.account.budget.lock:
                self._cached += batch.cached
        return batch.completions()

    def check_ready(self) -> None:
        for url in self.urls:
            key_for(url)

    def check_servers(self) -> Iterable[Requirement]:
        from ifqa.llms.server_check import check_servers  # loads OpenAI's client

        return check_servers(self)

    def arguments(self, request: Request) -> dict[str, object]:
        """The API's arguments for a request.

        OpenAI's chat gets max_completion_tokens, as its reasoning models refuse max_tokens; other servers get max_tokens.
        A temperature of 1, OpenAI's default, is not sent to OpenAI: reasoning models refuse any other value.
        """
        openai = is_openai(self.url)
        arguments: dict[str, object] = {"model": self.model}
        arguments["max_completion_tokens" if openai and request.messages else "max_tokens"] = request.max_tokens
        if request.messages:
            arguments["messages"] = [{"role": role, "content": content} for role, content in request.messages]
        else:
            arguments["prompt"] = request.text
        if not (openai and request.temperature == 1):
            arguments["temperature"] = request.temperature
        if request.stop:
            arguments["stop"] = list(request.stop)
        if request.schema:
            schema = {"name": "answer", "strict": True, "schema": json.loads(request.schema)}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        if self._effort and request.messages:
            arguments["reasoning_effort"] = self._effort
        return arguments
