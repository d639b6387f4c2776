"""Sends many requests to one server: in parallel, rate-limited, retried, within a budget; completions are stored at once."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AsyncExitStack, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import openai

from ifqa.errors import IfqaError, ServiceError
from ifqa.llms.budget import Account
from ifqa.llms.cache import CacheWriter, RequestBatch
from ifqa.llms.http_client import Failure, open_client, send, tokens_used
from ifqa.llms.streaming import TextCallback, cancellation
from ifqa.llms.token_counts import bound_prompt_tokens, estimate_tokens, token_counter
from ifqa.records import Completion, Request
from ifqa.tracing import model_span

logger = logging.getLogger(__name__)

BACKOFF = 0.5  # seconds before the first retry if the server does not say; doubles with each retry
LONGEST_BACKOFF = 30.0
LONGEST_WAIT = 120.0  # if the server asks for a longer wait, the run stops
LEFT_OUT = 30.0  # seconds for which a failed one of several servers gets no requests
GRACE = 5.0  # seconds that requests in flight get after an interrupt, as they are paid for
_CLAIMS = 4  # requests that a worker claims at a time, so that two runs of the same requests share the work
_POLL = 0.1  # seconds

_T = TypeVar("_T")


class ServedModel(Protocol):
    """The part of `OpenAI` that sends requests."""

    name: str
    model: str
    server: str
    url: str
    urls: list[str]
    chat: bool
    batch: bool
    account: Account
    concurrency: int
    retries: int
    interval: float
    timeout: float

    def arguments(self, request: Request) -> dict[str, object]: ...


@dataclass
class Server:
    """One of the servers that share the requests."""

    url: str
    client: openai.AsyncOpenAI
    left_out_until: float = 0.0  # the event loop's time


class RequestScheduler:
    """Sends the missing requests of a batch, which is one call of `OpenAI.complete`.

    Several servers get requests in turn; one that is down or fails gets none for a while.

    Retries are not left to the client's library: each try counts towards the budget and the rate limit, malformed responses are
    retried like broken connections, and a wait that the server asks for delays all requests. A completion is stored before it is
    settled in its batch. `on_text` gets the text of the first request while it is generated.
    """

    def __init__(
        self, model: ServedModel, keys: Sequence[str], batch: RequestBatch, writer: CacheWriter,
        on_text: TextCallback | None,
    ) -> None:  # fmt: skip
        self.name = f"{model.model} at {' and '.join(urlsplit(url).netloc for url in model.urls)}"
        self._model, self._keys, self._account = model, keys, model.account
        self._servers: deque[Server] = deque()
        self._batch, self._writer, self._on_text = batch, writer, on_text
        capped = self._account.max_cost or self._account.max_tokens
        self._count = token_counter(model.model) if capped else estimate_tokens  # only caps need a tight bound
        self._waiting = dict.fromkeys(batch.missing)
        self._claimed: deque[Request] = deque()
        self._claiming, self._stopped = asyncio.Lock(), asyncio.Event()
        self._error: IfqaError | None = None
        self._next_turn, self._answered = 0.0, False
        self._logged_kinds: set[str] = set()

    async def ask(self) -> None:
        """Send all requests, and wait for those that another process or thread is sending; ServiceError if the server refuses."""
        await asyncio.sleep(0)  # a call that is already cancelled sends nothing
        if not self._account.calls:
            logger.info(f"asking {self.name}")
        concurrency = min(self._model.concurrency, len(self._waiting))
        with ThreadPoolExecutor(concurrency, "completions") as self._threads:
            async with AsyncExitStack() as stack:
                for url, key in zip(self._model.urls, self._keys, strict=True):
                    client = await stack.enter_async_context(open_client(url, key, self._model.timeout))
                    self._servers.append(Server(url, client))
                tasks = [asyncio.create_task(self._work()) for _ in range(concurrency)]
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
            if completion.error:
                await self._in_thread(self._writer.release, request)
            # If the wait is cancelled, the thread still stores the completion
            elif error := await asyncio.shield(self._in_thread(self._writer.store, request, completion)):
                self._stop(error)
            self._batch.settle(request, completion)

    async def _next(self) -> Request | None:
        """A claimed request; None if none is left or requests have stopped."""
        async with self._claiming:
            while self._waiting and not self._claimed and not self._stopped.is_set():
                limit = _CLAIMS * self._model.concurrency
                claimed, stored = await self._in_thread(self._writer.claim, self._waiting, limit)
                self._claimed += claimed
                for request, completion in stored.items():
                    self._batch.settle(request, completion)
                for request in (*claimed, *stored):
                    del self._waiting[request]
                if not claimed and not stored:
                    self._log_once("others", "another run is sending some of these requests; waiting for its answers")
                    await self._pause(_POLL)
        return self._claimed.popleft() if self._claimed and not self._stopped.is_set() else None

    async def _complete(self, request: Request) -> Completion | None:
        """A request's completion or final failure; None if requests stopped before it was sent."""
        message, retries = "", self._model.retries
        on_text = self._on_text if request == self._batch.missing[0] else None
        bounds = bound_prompt_tokens(request, self._count), request.max_tokens
        for tries in range(1, retries + 2):
            while (reservation := self._account.reserve(*bounds)) is None:
                if not self._account.budget.in_flight:  # no reservation will be released
                    return Completion(error=f"{self._account.refusal}{f' (after {message})' if message else ''}")
                await self._pause(_POLL)
                if self._stopped.is_set():
                    return None
            used: tuple[int, int] | None = (0, 0)
            cached = 0
            server = self._next_server()
            try:
                await self._wait_for_turn()
                if self._stopped.is_set():
                    return None
                used = None  # if the connection breaks, the server may have done the work
                self._account.calls += 1
                reply = await send(server.client, self._model.arguments(request), self._model.timeout, on_text)
                used, cached = tokens_used(reply)
            finally:
                self._account.settle(reservation, used, cached)
            if isinstance(reply, Completion):
                self._answered = True
                return reply
            message = reply.message
            if reply.action == "fail":
                return Completion(error=message)
            if reply.action == "stop":
                self._refuse(message)
            elif reply.wait is not None and reply.wait > LONGEST_WAIT:
                self._refuse(f"{message}; the server asks to wait {reply.wait:,.0f} s; run this again after that")
            elif tries <= retries:
                self._log_once("retries", f"{message}; such requests are retried, at most {retries} times")
                if not self._leave_out(server, reply):  # else another server gets the request at once
                    await self._back_off(tries, reply.wait)
            elif reply.unreachable and not self._answered:
                self._refuse(f"{message} (after {tries} tries; is the server up?)")
            if self._stopped.is_set():
                return None
        return Completion(error=f"{message} (after {tries} tries)")

    def _next_server(self) -> Server:
        """The next server in turn; those left out come last."""
        now = asyncio.get_running_loop().time()
        server = min(self._servers, key=lambda server: max(server.left_out_until, now))
        self._servers.remove(server)
        self._servers.append(server)
        return server

    def _leave_out(self, server: Server, failure: Failure) -> bool:
        """Leave out a server that is down for a while; returns whether it was left out and another is up."""
        if not failure.server_down or len(self._servers) == 1:
            return False
        now = asyncio.get_running_loop().time()
        if server.left_out_until <= now:
            logger.info(f"{urlsplit(server.url).netloc}: {failure.message}; left out for {LEFT_OUT:g} s")
        server.left_out_until = now + LEFT_OUT
        return any(other.left_out_until <= now for other in self._servers if other is not server)

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
    """A coroutine's result, from a new thread if this thread runs an event loop (Jupyter); CancelledError if it was cancelled."""
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
            while not wait([future], timeout=0.2).done:  # a wait without timeout would ignore interrupts on Windows
                pass
            return future.result()
        except KeyboardInterrupt:
            cancel()
            raise
