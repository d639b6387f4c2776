"""Sends many requests to one server: in parallel, rate-limited, retried, within a budget.

Completions are stored at once.
"""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from contextvars import copy_context
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from ifqa.errors import IfqaError, ServiceError
from ifqa.llms.budget import Account
from ifqa.llms.cache import CacheWriter, RequestBatch
from ifqa.llms.credentials import is_local
from ifqa.llms.http_client import open_client, send, tokens_used
from ifqa.llms.request_form import RequestForm
from ifqa.llms.response_parsing import Failure
from ifqa.llms.streaming import TextCallback, cancellation
from ifqa.llms.token_counts import bound_prompt_tokens, estimate_tokens, token_counter
from ifqa.records import Completion, Request
from ifqa.tracing import model_span

logger = logging.getLogger(__name__)

BACKOFF = 0.5  # seconds before the first retry if the server does not say; doubles with each retry
LONGEST_BACKOFF = 30.0
LONGEST_WAIT = 120.0  # if the server asks for a longer wait, the run stops
GRACE = 5.0  # seconds that requests in flight get after an interrupt, as they are paid for
# Requests that a worker claims at a time, so that two runs of the same requests share the work
_CLAIMS = 4
_POLL = 0.1  # seconds

_T = TypeVar("_T")


class ServedModel(Protocol):
    """The part of `OpenAI` that sends requests."""

    model: str
    url: str
    chat: bool
    account: Account
    retries: int
    interval: float
    timeout: float
    form: RequestForm

    @property
    def name(self) -> str: ...


class FormRefused(IfqaError):
    """The server refuses a parameter that requests can do without."""

    def __init__(self, parameter: str) -> None:
        super().__init__(f"the server refuses {parameter!r}")
        self.parameter = parameter


class RequestScheduler:
    """Sends the missing requests of a batch, which is one call of `OpenAI.complete`, to the model's
    server.

    Retries are not left to the client's library: each try counts towards the budget and the rate
    limit, malformed responses are asked for once more, and a wait that the server asks for delays
    all requests. A completion is stored before it is settled in its batch. `on_text` gets the text
    of the first request while it is generated.
    """

    def __init__(
        self,
        model: ServedModel,
        form: RequestForm,
        key: str,
        concurrency: int,
        batch: RequestBatch,
        writer: CacheWriter,
        on_text: TextCallback | None,
    ) -> None:
        self.name = f"{model.model} at {urlsplit(model.url).netloc}"
        self._model = model
        self._form = form
        self._key = key
        self._concurrency = concurrency
        self._account = model.account
        self._batch = batch
        self._writer = writer
        self._on_text = on_text
        capped = self._account.max_cost or self._account.max_tokens
        # Only caps need a tight bound
        self._count = token_counter(model.model) if capped else estimate_tokens
        self._waiting = dict.fromkeys(batch.missing)
        self._claimed: deque[Request] = deque()
        self._claiming = asyncio.Lock()
        self._stopped = asyncio.Event()
        self._error: IfqaError | None = None
        self._next_turn = 0.0
        self._answered = False
        self._logged_kinds: set[str] = set()

    async def ask(self) -> None:
        """Send all requests, and wait for those that another process or thread is sending.

        Raises:
            ServiceError: the server refuses all requests.
            FormRefused: the server refuses a parameter that the requests can do without.
        """
        await asyncio.sleep(0)  # a call that is already cancelled sends nothing
        if not self._account.calls:
            logger.info(f"asking {self.name}")
        workers = min(self._concurrency, len(self._waiting))
        # A server on this machine may compute for minutes; asked again, it would compute twice
        timeout = None if is_local(self._model.url) else self._model.timeout
        with ThreadPoolExecutor(workers, "completions") as self._threads:
            async with open_client(self._model.url, self._key, timeout) as self._client:
                tasks = [asyncio.create_task(self._work()) for _ in range(workers)]
                try:
                    _, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                    if running:  # a task has failed
                        self._stopped.set()
                        await asyncio.wait(running)
                except asyncio.CancelledError:
                    self._stopped.set()
                    if not cancellation() and not all(task.done() for task in tasks):
                        grace = f"waiting up to {GRACE:g} s for requests in flight"
                        logger.info(f"{self.name}: {grace}; interrupt again to stop at once")
                        await asyncio.wait(tasks, timeout=GRACE)
                    raise
                finally:
                    for task in tasks:
                        task.cancel()
                    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        if self._error:
            raise self._error

    async def _work(self) -> None:
        while request := await self._next():
            with model_span(self._model.model, "openai", request, self._model.url) as finish:
                completion = await self._complete(request)
                finish(completion)
            if completion is None:
                return
            if completion.error and not completion.permanent:
                await self._in_thread(self._writer.release, request)
            # If the wait is cancelled, the thread still stores the completion
            elif error := await asyncio.shield(
                self._in_thread(self._writer.store, request, completion)
            ):
                self._stop(error)
            self._batch.settle(request, completion)

    async def _next(self) -> Request | None:
        """A claimed request; None if none is left or requests have stopped."""
        async with self._claiming:
            while self._waiting and not self._claimed and not self._stopped.is_set():
                limit = _CLAIMS * self._concurrency
                claimed, stored = await self._in_thread(self._writer.claim, self._waiting, limit)
                self._claimed += claimed
                for request, completion in stored.items():
                    self._batch.settle(request, completion)
                for request in (*claimed, *stored):
                    del self._waiting[request]
                if not claimed and not stored:
                    self._log_once(
                        "others",
                        "another run is sending some of these requests; waiting for its answers",
                    )
                    await self._pause(_POLL)
        return self._claimed.popleft() if self._claimed and not self._stopped.is_set() else None

    async def _complete(self, request: Request) -> Completion | None:  # noqa: C901, PLR0912
        """A request's completion or final failure.

        None if requests stopped before it was sent, or another form is needed.
        """
        message = ""
        retries = self._model.retries
        asked_again = False
        bounds = bound_prompt_tokens(request, self._count), request.max_tokens
        for tries in range(1, retries + 2):
            while (reservation := self._account.reserve(*bounds)) is None:
                if not self._account.budget.in_flight:  # no reservation will be released
                    return Completion(
                        error=f"{self._account.refusal}{f' (after {message})' if message else ''}"
                    )
                await self._pause(_POLL)
                if self._stopped.is_set():
                    return None
            used: tuple[int, int] | None = (0, 0)
            cached = 0
            try:
                await self._wait_for_turn()
                if self._stopped.is_set():
                    return None
                used = None  # if the connection breaks, the server may have done the work
                self._account.calls += 1
                reply = await self._send(request)
                used, cached = tokens_used(reply)
            finally:
                self._account.settle(reservation, used, cached)
            if isinstance(reply, Completion):
                self._answered = True
                return reply
            message = reply.message
            if reply.action == "fail" or (reply.action == "once" and (asked_again or not retries)):
                return self._fail_for_good(reply)
            if reply.action == "refused":
                self._refuse_form(reply)
            elif reply.action == "stop":
                self._refuse(message)
            elif reply.wait is not None and reply.wait > LONGEST_WAIT:
                self._refuse(
                    f"{message}; the server asks to wait {reply.wait:,.0f} s; "
                    "run this again after that"
                )
            elif reply.action == "once":
                asked_again = True
                self._log_once("once", f"{message}; such requests are sent once more")
            elif tries <= retries:
                self._log_once(
                    "retries", f"{message}; such requests are retried, at most {retries} times"
                )
                await self._back_off(tries, reply.wait)
            elif reply.unreachable and not self._answered:
                self._refuse(f"{message} (after {tries} tries; is the server up?)")
            if self._stopped.is_set():
                return None
        return Completion(error=f"{message} (after {tries} tries)")

    async def _send(self, request: Request) -> Completion | Failure:
        """Send a request once.

        While a server on this machine computes beyond the timeout, say so and wait on.
        """
        on_text = self._on_text if request == self._batch.missing[0] else None
        arguments = self._form.arguments(request)
        if on_text:
            arguments |= self._form.stream_arguments()
        if not is_local(self._model.url):
            return await send(self._client, arguments, self._model.timeout, on_text)
        sending = asyncio.ensure_future(send(self._client, arguments, None, on_text))
        try:
            done, _ = await asyncio.wait([sending], timeout=self._model.timeout)
            if not done:
                slow = f"no answer within {self._model.timeout:g} s (llm.timeout)"
                self._log_once(
                    "slow",
                    f"{slow}; waiting on, because a server on this machine may still compute",
                )
            return await sending
        finally:
            sending.cancel()

    def _fail_for_good(self, failure: Failure) -> Completion:
        """The failure of a request that would fail again, which is stored."""
        self._log_once(
            "failed", f"{failure.message}; stored as failed, so only --retry-failed asks again"
        )
        tokens = failure.used or (0, 0)
        return Completion("", *tokens, error=failure.message, permanent=True)

    def _refuse_form(self, failure: Failure) -> None:
        """Stop, so that all requests are sent without the parameter that the server refuses, if
        they can do without it.
        """
        if self._form.without(failure.parameter):
            self._stop(FormRefused(failure.parameter))
        else:
            self._refuse(failure.message)

    async def _back_off(self, tries: int, seconds: float | None) -> None:
        if seconds is not None:  # the server's wait delays all requests
            self._next_turn = max(self._next_turn, asyncio.get_running_loop().time() + seconds)
        longest = min(LONGEST_BACKOFF, BACKOFF * 2.0 ** (tries - 1))
        await self._pause(longest * random.uniform(0.5, 1.0))  # spreads retries

    async def _wait_for_turn(self) -> None:
        """Wait for this request's turn under the rate limit and the server's wait."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next_turn)
        self._next_turn = turn + self._model.interval
        await self._pause(turn - now)

    async def _pause(self, seconds: float) -> None:
        """Sleep for some seconds, or until requests stop."""
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    def _in_thread(self, function: Callable[..., _T], *arguments: object) -> "asyncio.Future[_T]":
        return asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _log_once(self, kind: str, message: str) -> None:
        if kind not in self._logged_kinds:
            self._logged_kinds.add(kind)
            logger.info(f"{self.name}: {message}")

    def _refuse(self, message: str) -> None:
        self._stop(ServiceError(f"{self.name}: {message}"))

    def _stop(self, error: IfqaError) -> None:
        self._error = self._error or error
        self._stopped.set()


def run(coroutine: Coroutine[object, object, _T]) -> _T:
    """A coroutine's result, from a new thread if this thread runs an event loop (Jupyter).

    CancelledError if it was cancelled.
    """
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[_T]]] = []
    cancelled = cancellation()

    def cancel(_: object = None) -> None:
        with suppress(RuntimeError):  # the loop has ended
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)

    async def run_task() -> _T:
        task = asyncio.create_task(coroutine)
        running.append((asyncio.get_running_loop(), task))
        if cancelled:
            cancelled.add_done_callback(cancel)
        return await task

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run_task())
    with ThreadPoolExecutor(1, "asking") as thread:
        future = thread.submit(copy_context().run, asyncio.run, run_task())
        try:
            # A wait without timeout would ignore interrupts on Windows
            while not wait([future], timeout=0.2).done:
                pass
            return future.result()
        except KeyboardInterrupt:
            cancel()
            raise
