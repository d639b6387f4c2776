"""Language models behind OpenAI's API or any server that speaks it: vLLM, SGLang, llama.cpp,
Ollama, a gateway.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn
from urllib.parse import urlsplit

from pydantic import Field

from ifqa.errors import ConfigError, IfqaError, SchemaRefused, ServiceError, ToolsRefused
from ifqa.formatting import pluralize
from ifqa.llms.budget import Account, Budget, find_price
from ifqa.llms.cache import CacheWriter, CompletionCache, RequestBatch, check_store
from ifqa.llms.credentials import (
    check_address,
    is_local,
    is_openai,
    key_for,
    refuse_secrets,
    resolve_address,
    server_name,
    server_origin,
)
from ifqa.llms.request_form import (
    SCHEMA,
    THINKING_TOKENS,
    TOOLS,
    RequestForm,
    Thinking,
    own_parameter,
)
from ifqa.llms.streaming import text_callback
from ifqa.llms.token_counts import (
    WINDOW,
    bound_prompt_tokens,
    count_prompt_tokens,
    find_window,
    token_counter,
)
from ifqa.protocols import LanguageModel, ProgressCallback, Requirement, no_progress
from ifqa.records import Completion, Estimate, Request, TokenUsage
from ifqa.settings import Natural, NotNegative, PluginSettings, Positive, Text, wanted
from ifqa.storage.files import read_json

if TYPE_CHECKING:
    from ifqa.llms.server_facts import ServerFacts

logger = logging.getLogger(__name__)

CONCURRENCY = 8  # requests in flight
LOCAL_CONCURRENCY = 2  # at a server on this machine that does not tell its slots
_TEXT_MODELS = ("gpt-3.5-turbo-instruct", "davinci-002", "babbage-002")


class OpenAI(LanguageModel):
    """A model on a server that speaks OpenAI's API.

    The key is read from the environment for each call (`ifqa.llms.credentials`) and never stored; a
    server on this machine needs none. Redirects are not followed. All models of a budget share its
    caps. Several threads may call a model at once.

    Attributes:
        name: the model, what is unusual about its requests, and its server if that is not OpenAI's;
            completions are stored under it.
        server: scheme, host and port of the server.
        price: US dollars per million tokens; None if unknown.
    """

    version = 1
    takes = ("root", "budget")
    concurrent = True
    streams = True
    model_settings: ClassVar = {"model": ""}
    runtime_only = (
        "base_url",
        "concurrency",
        "requests_per_minute",
        "timeout",
        "retries",
        "retry_failed",
        "max_cost",
        "max_total_tokens",
        "store",
    )
    retired: ClassVar = {
        "batch": (False, "OpenAI's batch API is not used any more; remove it"),
        "effort": (
            "",
            "set thinking = 'low' in its place, with thinking_tokens = 0 to use completions "
            "that are stored; or set extra = { reasoning_effort = 'minimal' }",
        ),
    }

    class Settings(PluginSettings):
        model: Annotated[
            Text, Field(json_schema_extra=wanted("its name at the server, such as 'gpt-4.1-mini'"))
        ]
        """The model's name at the server."""
        base_url: str = ""
        """The server's address, up to and including "/v1". If it is empty, the environment
        variable OPENAI_BASE_URL has the address, or else it is OpenAI's.
        """
        served_as: Text | None = None
        """Your own name for what is served. It replaces the address wherever the answers of
        different servers are told apart, so that the model may move to another address.
        """
        concurrency: Positive | None = None
        """Maximum number of requests in flight. The default is 8; for a server on this machine it
        is the number of its slots, or 2 if it does not report them.
        """
        requests_per_minute: Natural = 0
        """Rate limit; 0 for none."""
        timeout: Annotated[float, Field(ge=0.001)] = 60.0
        """Seconds without an answer until a request is sent again. To a server on this machine it
        is not sent again; ifqa only says that it waits on.
        """
        window: Natural = 0
        """Tokens of prompt and answer together. With 0, the server is asked, or the model's name
        is looked up in `token_counts.WINDOWS`.
        """
        form: Literal["auto", "chat", "completion"] = "auto"
        """The form of the requests: "chat", "completion", or "auto". With "auto", the few models
        that take no messages get completion requests, and all others chat requests.
        """
        retries: Natural = 6
        """Maximum number of retries of a request after a temporary failure."""
        max_tokens: Positive | None = None
        """Maximum number of tokens of an answer, in place of the prompt's own limit."""
        thinking: Thinking | None = None
        """Whether the model thinks before it answers, and how much. If it is not set, the server
        decides.
        """
        thinking_tokens: Natural | None = None
        """Tokens for thoughts, in addition to those for the answer. The default is 1,024, 4,096
        or 16,384, for `thinking` low, medium or high.
        """
        extra: dict[str, Any] | None = None
        """Further parameters of the requests, passed on unchanged."""
        retry_failed: bool = False
        """Send a request again although a failure is stored for it."""
        max_cost: NotNegative = 0.0
        """Cap in US dollars; 0 for no cap."""
        max_total_tokens: Natural = 0
        """Cap on the tokens of prompts and answers together; 0 for no cap."""
        store: str = "completions"
        """The folder for stored completions, below the working directory."""

    def __init__(
        self, settings: Settings, *, root: Path = Path(), budget: Budget | None = None
    ) -> None:
        """`root` has the store and a prices.toml.

        A `budget` is shared with other models, whose spending then counts towards the caps. Raises
        ConfigError if settings contradict each other or the model, or the price for `max_cost` is
        unknown.
        """
        model = settings.model
        thinking = settings.thinking
        max_cost = settings.max_cost
        self.url = resolve_address(settings.base_url)
        self.server = server_origin(self.url)
        self.model = model
        self.chat = settings.form == "chat" or (
            settings.form == "auto" and not model.startswith(_TEXT_MODELS)
        )
        if thinking and not self.chat:
            raise ConfigError(
                f"thinking = {thinking!r} is for chat models; {model} continues a text; remove it"
            )
        self.price = find_price(model, self.url, root)
        if max_cost and self.price is None:
            at = "" if is_openai(self.url) else f" at {urlsplit(self.url).netloc}"
            raise ConfigError(
                f"max_cost is ${max_cost:g}, but the price of {model!r}{at} is unknown: "
                "add it to a prices.toml here, below "
                f'[models] as "{model}" = {{ input = DOLLARS, output = DOLLARS }} per million '
                "tokens; or cap the tokens instead"
            )
        per_minute = settings.requests_per_minute
        self.interval = 60 / per_minute if per_minute else 0.0
        self.timeout = settings.timeout
        self.retries = settings.retries
        self.max_tokens = settings.max_tokens or 0
        self.thinking_tokens = THINKING_TOKENS[thinking or "off"]
        if settings.thinking_tokens is not None:
            self.thinking_tokens = settings.thinking_tokens
        if self.chat and thinking != "off":
            # OpenAI's thoughts are never in the text
            self.cut = "in thoughts" if thinking and not is_openai(self.url) else "in text"
        self._where = _where(self.url, settings.served_as)
        self._cache = CompletionCache(root / settings.store, settings.retry_failed)
        self._remembered = self._cache.server_facts(self._identity)
        refused = self._remembered.get("refused")
        self.form = RequestForm(
            model,
            is_openai(self.url),
            thinking,
            settings.extra or {},
            frozenset(map(str, refused)) if isinstance(refused, list) else frozenset(),
        )
        self._concurrency = settings.concurrency
        self._window = settings.window
        self.account = Account(self.price, max_cost, settings.max_total_tokens, budget)
        self._cached = 0

    @property
    def _identity(self) -> str:
        return f"{self.model}{self._where}"

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._name_in(self.form)

    def _name_in(self, form: RequestForm) -> str:
        """The name of the completions of requests in a form."""
        return f"{self.model}{form.suffix}{self._where}"

    @property
    def takes_schema(self) -> bool:  # type: ignore[override]
        """Whether the server has not refused a schema."""
        return SCHEMA not in self.form.refused

    @property
    def takes_tools(self) -> bool:  # type: ignore[override]
        """Whether it is a chat, and the server has not refused functions."""
        return self.chat and TOOLS not in self.form.refused

    @property
    def sent(self) -> str:  # type: ignore[override]
        """The form of its requests."""
        return self.form.describe(self.chat)

    @cached_property
    def window(self) -> int:  # type: ignore[override]
        """Tokens of prompt and answer together: as set, else as the server says, else by the
        model's name.
        """
        if self._window:
            return self._window
        remembered = self._remembered.get("window")
        known = (
            self._facts.window
            or (remembered if isinstance(remembered, int) else 0)
            or find_window(self.model)
        )
        if not known:
            logger.info(
                f"{self.model}: its context window is unknown; assuming {WINDOW} tokens; "
                "set llm.window to change that"
            )
        return known or WINDOW

    @property
    def concurrency(self) -> int:
        """How many requests may be in flight.

        More than a local server has slots would only wait there.
        """
        if not is_local(self.url):
            return self._concurrency or CONCURRENCY
        slots = self._facts.slots
        return (
            min(self._concurrency or slots, slots)
            if slots
            else self._concurrency or LOCAL_CONCURRENCY
        )

    @cached_property
    def _facts(self) -> "ServerFacts":
        """What the server says of the model; OpenAI's is not asked."""
        from ifqa.llms.request_scheduler import run  # these load OpenAI's client
        from ifqa.llms.server_facts import ServerFacts, ask_server

        if is_openai(self.url):
            return ServerFacts()
        try:
            key = key_for(self.url)
        except IfqaError:  # stored completions need no key
            return ServerFacts()
        return run(ask_server(self.url, key, self.model))

    @classmethod
    def served_by(cls, settings: Settings) -> str:
        return settings.served_as or server_name(resolve_address(settings.base_url))

    @classmethod
    def requirements(cls, settings: Settings, root: Path) -> list[Requirement]:
        """A key, unless the server is on this machine."""
        try:
            url = resolve_address(settings.base_url)
            if is_local(url):
                return []
            key_for(url)
        except IfqaError as error:
            return [Requirement("an API key", str(error))]
        return [Requirement("an API key")]

    @classmethod
    def require_access(cls, settings: Settings, root: Path) -> None:
        """Require a key, unless completions are stored already.

        And that no batch of the model waits to be fetched.
        """
        store = root / settings.store
        _refuse_unfetched_batch(store, settings.model)
        try:
            key_for(resolve_address(settings.base_url))
        except IfqaError as error:
            if not CompletionCache(store).has_completions():
                raise
            logger.info(f"{error}; completions stored in {store} need no key")

    @classmethod
    def refuse_settings(cls, settings: Settings) -> None:
        """Refuse an address or a parameter with a key in it, and a store outside of the working
        directory.
        """
        extra = settings.extra or {}
        check_address(settings.base_url)
        check_store(settings.store)
        refuse_secrets("llm.extra", extra)
        try:
            json.dumps(extra, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"llm.extra: wanted values that JSON has ({error})") from error
        if name := own_parameter(extra):
            raise ConfigError(
                f"llm.extra: {name!r} is set by ifqa; remove it (an answer's tokens: "
                "llm.max_tokens)"
            )

    def count(self, text: str) -> int:
        """Tokens of a text: exact if the model's vocabulary is on this machine, else an upper
        estimate.
        """
        return token_counter(self.model)(text)

    @property
    def spent(self) -> TokenUsage:
        account = self.account
        return TokenUsage(
            account.calls, self._cached, *account.spent, account.cost, account.cached_prompt_tokens
        )

    def estimate(self, requests: Sequence[Request]) -> Estimate:
        """The cost of the requests; stored and repeated requests cost nothing. Sends nothing."""
        missing = self._cache.missing(self.name, requests)
        prompt = sum(count_prompt_tokens(request, self.count) for request in missing)
        answers = sum(request.max_tokens for request in missing)
        return Estimate(
            len(missing), prompt, answers, self.price.cost(prompt, answers) if self.price else None
        )

    def affordable(self, groups: Sequence[Sequence[Request]]) -> tuple[int, str]:
        account = self.account
        if not account.max_cost and not account.max_tokens:
            return len(groups), ""
        count = token_counter(self.model)
        prompt_tokens = 0
        completion_tokens = 0
        for number, group in enumerate(groups):
            for request in self._cache.missing(self.name, group):
                prompt_tokens += bound_prompt_tokens(request, count) + account.extra
                completion_tokens += request.max_tokens
            if not account.affords(prompt_tokens, completion_tokens):
                return number, account.refusal
        return len(groups), ""

    def complete(
        self, requests: Sequence[Request], advance: ProgressCallback = no_progress
    ) -> list[Completion]:
        """The completions of the requests, in order; each is stored before it is returned.

        Stored completions are not requested again. Equal requests are sent once, across threads and
        processes. A failed completion has `error`; the next call retries it, unless the failure is
        permanent and so stored. After an interrupt no more requests are sent; those in flight get a
        few seconds, and their completions are stored before the interrupt is raised. `advance` is
        called with the number of requests done. A parameter that the server refuses is left out of
        all requests.

        Raises:
            SchemaRefused: the server does not take the requests' JSON schema; nothing was asked.
            ToolsRefused: the server does not take the requests' functions; nothing was asked.
            ServiceError: a retry would not help (a bad key, no such model, a used-up quota; the
                message quotes the server).
            IfqaError: a completion cannot be written. In both cases, completions in flight have
                been stored.
        """
        while True:
            form = self.form  # once, as another thread may learn meanwhile
            if TOOLS in form.refused and any(request.tools for request in requests):
                self._refuse_tools()
            batch = RequestBatch(self._cache, self._name_in(form), requests, advance)
            stored = batch.answered
            try:
                refused = self._send_missing(form, batch, requests) if batch.missing else ""
            finally:
                with self.account.budget.lock:
                    self._cached += batch.cached
            if not refused:
                return batch.completions()
            self._learn(refused, form, batch.answered - stored)
            batch.withdraw()
            if refused == SCHEMA:
                mend = "name a prompt without one, such as open-book"
                raise SchemaRefused(f"{self.name}: the server takes no JSON schema; {mend}")
            if refused == TOOLS:
                self._refuse_tools()

    def _refuse_tools(self) -> NoReturn:
        mend = "let the model write lines: --set reader.calls=lines"
        raise ToolsRefused(f"{self.name}: the server takes no functions; {mend}")

    def _send_missing(
        self, form: RequestForm, batch: RequestBatch, requests: Sequence[Request]
    ) -> str:
        """Send the missing requests of a batch.

        Returns the parameter that the server refuses, if there is one.
        """
        # These load OpenAI's client
        from ifqa.llms.request_scheduler import FormRefused, RequestScheduler, run

        name = self._name_in(form)
        _refuse_unfetched_batch(self._cache.folder, self.model)
        self._explain_unused(name, form, batch.missing)
        key = key_for(self.url)
        concurrency = self.concurrency
        self._remember()
        with CacheWriter(self._cache, name, batch.missing, concurrency) as writer:
            on_text = text_callback() if batch.missing[0] == requests[0] else None
            try:
                run(RequestScheduler(self, form, key, concurrency, batch, writer, on_text).ask())
            except FormRefused as refusal:
                return refusal.parameter
        return ""

    def _learn(self, parameter: str, form: RequestForm, answered: int) -> None:
        """Leave out a parameter from now on.

        ServiceError if the server has just answered with it.
        """
        other = form.without(parameter)
        assert other, "the scheduler has checked it"
        with self.account.budget.lock:  # another thread may have learnt another parameter
            self.form = replace(other, refused=other.refused | self.form.refused)
        self._remember()
        if answered and form.changes_answers(parameter):
            raise ServiceError(
                f"{self._name_in(form)}: the server refuses {parameter!r}, but has answered "
                f"{answered:,} requests with it, and "
                "different requests do not make one reading; run the same command again to "
                "ask all of them without it"
            )
        logger.info(f"{self._name_in(form)}: the server refuses {parameter!r}; asking without it")

    def _remember(self) -> None:
        """Store what has been learnt of the server, if that is new."""
        facts: dict[str, object] = (
            {"refused": sorted(self.form.refused)} if self.form.refused else {}
        )
        if not self._window and "window" in vars(self) and self._facts.window:
            facts["window"] = self.window
        facts = self._remembered | facts
        if facts != self._remembered:
            self._cache.remember_server(self._identity, facts)
            self._remembered = facts

    def _explain_unused(self, name: str, form: RequestForm, missing: Sequence[Request]) -> None:
        """Say how many of the requests version 0.2 has stored under a host without its port."""
        if is_openai(self.url):
            return
        host = "localhost" if is_local(self.url) else urlsplit(self.url).hostname
        earlier = f"{self.model}{form.suffix} at {host}"
        if earlier != name and (count := len(self._cache.get(earlier, missing))):
            stored = pluralize(count, "completion")
            logger.info(
                f"{name}: {stored} that an earlier version has stored as '{earlier}' "
                f"{'is' if count == 1 else 'are'} not used, because "
                "another server may have answered"
            )

    def check_ready(self) -> None:
        key_for(self.url)

    def check_servers(self) -> Iterable[Requirement]:
        from ifqa.llms.server_check import check_server  # loads OpenAI's client

        return [check_server(self)]


def _where(url: str, served_as: str | None) -> str:
    """The end of a model's name that tells its server from others; empty for OpenAI's."""
    if served_as:
        return f" served as {served_as}"
    return "" if is_openai(url) else f" at {server_name(url)}"


def _refuse_unfetched_batch(store: Path, model: str) -> None:
    """Stop before anything is paid twice: version 0.2 may have left a batch of the model's requests
    at a server.
    """
    for path in sorted((store / "batches").glob("*.json")):
        batch = read_json(path)
        name = str(batch.get("model", "")) if isinstance(batch, dict) else ""
        if name == model or name.startswith(f"{model} "):
            raise IfqaError(
                f"{path} is a batch of {name} that was not fetched, and ifqa has no batch API "
                "any more: fetch it with version 0.2, or delete the file to send its requests again"
            )
