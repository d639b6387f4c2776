"""Sends many requests to one server: in parallel, paced, retried, within a budget, each answer stored at once."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

import openai

from ifqa.errors import IfqaError
from ifqa.llms.budget import Account
from ifqa.llms.cache import CacheWriter, RequestBatch
from ifqa.llms.http_client import Failure, open_client, send
from ifqa.llms.streaming import TextCallback, cancellation
from ifqa.llms.token_counts import bound_prompt_tokens, estimate_tokens, token_counter
from ifqa.records import Completion, Request

logger = logging.getLogger(__name__)

BACKOFF = 0.5  # seconds before the second try, where the server names none; doubled for each further one
LONGEST_BACKOFF = 30.0
LONGEST_WAIT = 120.0  # if the server asks for a longer wait, the run stops
GRACE = 5.0  # seconds that requests in flight get after an interrupt, as they are paid for
_CLAIMS = 4  # requests that a worker claims at a time, at most, so that two runs of the same ones share the work
_POLL = 0.1  # seconds

_T = TypeVar("_T")


class ServedModel(Protocol):
    """What of `ifqa.llms.openai.OpenAI` tells how to ask."""

    model: str
    url: str
    account: Account
    concurrency: int
    retries: int
    interval: float
    timeout: float

    def arguments(self, request: Request) -> dict[str, object]:
        """A request as the API takes it."""


class RequestScheduler:
    """Asks the missing requests of a batch, one call's of `OpenAI.complete`.

    It tries again itself, not the client's library: each try has its place in the budget and the pace, a broken answer is
    tried again like a broken connection, and the wait that a server asks for holds for all requests.

    Args:
        model: who is asked, and how: concurrency, retries, pace, time-out and account.
        key: sent to the server.
        batch: its requests; each one's completion or failure is settled there.
        writer: claims completions and stores them, in a thread; a completion is stored before it is settled.
        on_text: gets the text of the first request while it is generated.
    """

    def __init__(
        self, model: ServedModel, key: str, batch: RequestBatch, writer: CacheWriter, on_text: TextCallback | None
    ) -> None:
        self.name = f"{model.model} at {urlsplit(model.url).netloc}"
        self._model, self._key, self._account = model, key, model.account
        self._batch, self._writer, self._on_text = batch, writer, on_text
        capped = self._account.max_cost or self._account.max_tokens
        self._count = token_counter(model.model) if capped else estimate_tokens  # only caps need a close bound
        self._waiting = dict.fromkeys(batch.missing)
        self._claimed: deque[Request] = deque()
        self._claiming, self._stopped = asyncio.Lock(), asyncio.Event()
        self._why = ""
        self._next_turn = 0.0
        self._answered = False
        self._notices: set[str] = set()

    async def ask(self) -> None:
        """Ask all requests; those that another process or thread asks for are waited for.

        Raises:
            IfqaError: the server refuses, and another try would not help; completions in flight have been stored.
        """
        await asyncio.sleep(0)  # a call that was cancelled before sends nothing
        if not self._account.calls:
            logger.info(f"asking {self.name}")
        concurrency = min(self._model.concurrency, len(self._waiting))
        with ThreadPoolExecutor(concurrency, "completions") as self._threads:
            async with open_client(self._model.url, self._key, self._model.timeout) as client:
                tasks = [asyncio.create_task(self._work(client)) for _ in range(concurrency)]
                try:
                    _, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                    if running:  # one has failed
                        self._stopped.set()
                        await asyncio.wait(running)
                except asyncio.CancelledError:
                    self._stopped.set()
                    if not cancellation() and not all(task.done() for task in tasks):
                        logger.info(
                            f"{self.name}: keeping what is in flight, at most {GRACE:g} s; interrupt again to leave at once"
                        )
                        await asyncio.wait(tasks, timeout=GRACE)
                    raise
                finally:
                    for task in tasks:
                        task.cancel()
                    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        if self._why:
            raise IfqaError(self._why)

    async def _work(self, client: openai.AsyncOpenAI) -> None:
        """Ask one request after another, until none is left or asking stops."""
        while request := await self._next():
            completion = await self._complete(client, request)
            if completion is None:
                return
            if completion.error:
                await self._in_thread(self._writer.release, request)
            else:
                # If the wait is cancelled, the thread still finishes, so the completion is stored in any case
                if why := await asyncio.shield(self._in_thread(self._writer.keep, request, completion)):
                    self._stop(why)
            self._batch.settle(request, completion)

    async def _next(self) -> Request | None:
        """A request that is claimed; None if none is left or asking stops."""
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
                    self._notice(
                        "others", "some of these prompts are being asked by another run; waiting for its answers"
                    )
                    await self._pause(_POLL)
        return self._claimed.popleft() if self._claimed and not self._stopped.is_set() else None

    async def _complete(self, client: openai.AsyncOpenAI, request: Request) -> Completion | None:
        """A request's completion or final failure; None if asking stopped before the request was sent."""
        words, retries = "", self._model.retries
        on_text = self._on_text if request == self._batch.missing[0] else None
        bounds = bound_prompt_tokens(request, self._count), request.max_tokens
        for tries in range(1, retries + 2):
            while (room := self._account.reserve(*bounds)) is None:
                if not self._account.budget.open:  # no request is out, so no room will come back
                    return Completion(error=f"{self._account.refusal}{f' (after {words})' if words else ''}")
                await self._pause(_POLL)
                if self._stopped.is_set():
                    return None
            used: tuple[int, int] | None = (0, 0)
            try:
                await self._turn()
                if self._stopped.is_set():
                    return None
                used = None  # if the connection breaks, the server may have done the work
                self._account.calls += 1
                reply = await send(client, self._model.arguments(request), self._model.timeout, on_text)
                tokens = reply.used if isinstance(reply, Failure) else (reply.prompt_tokens, reply.completion_tokens)
                used = tokens if isinstance(reply, Failure) or any(tokens or ()) else None
            finally:
                self._account.settle(room, used)
            if isinstance(reply, Completion):
                self._answered = True
                return reply
            words = reply.words
            if reply.verdict == "alone":
                return Completion(error=words)
            if reply.verdict == "all":
                self._stop(f"{self.name}: {words}")
            elif reply.wait is not None and reply.wait > LONGEST_WAIT:
                when = f"the server asks to wait {reply.wait:,.0f} s: run this again then"
                self._stop(f"{self.name}: {words}; {when}")
            elif tries <= retries:
                self._notice("retries", f"{words}; such requests are tried again, at most {retries} times")
                await self._back_off(tries, reply.wait)
            elif reply.unreachable and not self._answered:
                self._stop(f"{self.name}: {words} (after {tries} tries; is the server up?)")
            if self._stopped.is_set():
                return None
        return Completion(error=f"{words} (after {tries} tries)")

    async def _back_off(self, tries: int, seconds: float | None) -> None:
        if seconds is not None:  # the server's wait holds for all requests
            self._next_turn = max(self._next_turn, asyncio.get_running_loop().time() + seconds)
        longest = min(LONGEST_BACKOFF, BACKOFF * 2.0 ** (tries - 1))
        await self._pause(longest * random.uniform(0.5, 1.0))  # so that retries do not all come at once

    async def _turn(self) -> None:
        """Wait for this request's turn: the pace, and a pause that the server asked for."""
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next_turn)
        self._next_turn = turn + self._model.interval
        await self._pause(turn - now)

    async def _pause(self, seconds: float) -> None:
        """Sleep; a stop ends the sleep."""
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    def _in_thread(self, function: Callable[..., _T], *arguments: object) -> "asyncio.Future[_T]":
        return asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _notice(self, kind: str, words: str) -> None:
        """Print a line, once of a kind."""
        if kind not in self._notices:
            self._notices.add(kind)
            logger.info(f"{self.name}: {words}")

    def _stop(self, why: str) -> None:
        self._why = self._why or why
        self._stopped.set()


def run(coroutine: Coroutine[object, object, None]) -> None:
    """Run a coroutine to its end; in a new thread if this thread already runs a loop (Jupyter).

    Raises:
        asyncio.CancelledError: it was `cancellable`, and was cancelled.
    """
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []
    cancelled = cancellation()

    def cancel(_: object = None) -> None:
        with suppress(RuntimeError):  # the loop has ended in the meantime
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)

    async def noted() -> None:
        task = asyncio.create_task(coroutine)
        running.append((asyncio.get_running_loop(), task))
        if cancelled:
            cancelled.add_done_callback(cancel)
        await task

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(noted())
        return
    with ThreadPoolExecutor(1, "asking") as thread:
        future = thread.submit(asyncio.run, noted())
        try:
            while not wait([future], timeout=0.2).done:  # an endless wait would ignore an interrupt on Windows
                pass
            future.result()
        except KeyboardInterrupt:
            cancel()
            raise
