"""Sends many requests to one server: in parallel, paced, retried, within a budget, each answer stored at once."""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ifqa.errors import IfqaError
from ifqa.llms.budget import Account
from ifqa.llms.cache import CacheWriter
from ifqa.llms.response_parsing import Failure
from ifqa.progress import say
from ifqa.records import Completion, Request

BACKOFF = 0.5  # seconds before the second try, where the server names none; doubled for each further one
LONGEST_BACKOFF = 30.0
LONGEST_WAIT = 120.0  # if the server asks for a longer wait, the run stops
GRACE = 5.0  # seconds that requests in flight get after an interrupt, as they are paid for
_CLAIMS = 4  # requests that a worker claims at a time, at most, so that two runs of the same ones share the work
_POLL = 0.1  # seconds

_T = TypeVar("_T")
_cancelled: ContextVar["Future[None] | None"] = ContextVar("cancelled", default=None)


@contextmanager
def cancellable(cancelled: "Future[None]") -> Iterator[None]:
    """Within the block and this thread, requests to a server end with `asyncio.CancelledError` once `cancelled` is done."""
    before = _cancelled.set(cancelled)
    try:
        yield
    finally:
        _cancelled.reset(before)


@dataclass
class RequestScheduler:
    """Asks the requests of one call.

    It tries again itself, not the client's library: each try has its place in the budget and the pace, a broken answer is
    tried again like a broken connection, and the wait that a server asks for holds for all requests.

    Attributes:
        name: the server's name in messages.
        send: sends one request, once.
        writer: claims completions and stores them, in a thread; a completion is stored before it is handed on.
        bounds: upper bounds of a request's prompt tokens and answer tokens.
        account: tokens and money set aside and spent.
        concurrency: requests in flight at a time.
        retries: further tries of a request.
        interval: seconds from one request to the next; 0 for no pace.
        settle: called with each request and its completion or failure.
    """

    name: str
    send: Callable[[Request], Awaitable[Completion | Failure]]
    writer: CacheWriter
    bounds: Callable[[Request], tuple[int, int]]
    account: Account
    concurrency: int
    retries: int
    interval: float
    settle: Callable[[Request, Completion], None]
    _waiting: dict[Request, None] = field(default_factory=dict)
    _claimed: deque[Request] = field(default_factory=deque)
    _claiming: asyncio.Lock = field(default_factory=asyncio.Lock)
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _why: str = ""
    _next_turn: float = 0.0
    _answered: bool = False
    _notices: set[str] = field(default_factory=set)

    async def ask(self, requests: list[Request]) -> None:
        """Ask all requests; those that another process or thread asks for are waited for.

        Raises:
            IfqaError: the server refuses, and another try would not help; completions in flight have been stored.
        """
        await asyncio.sleep(0)  # a call that was cancelled before sends nothing
        self._waiting = dict.fromkeys(requests)
        concurrency = min(self.concurrency, len(requests))
        with ThreadPoolExecutor(concurrency, "completions") as self._threads:
            tasks = [asyncio.create_task(self._work()) for _ in range(concurrency)]
            try:
                _, running = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
                if running:  # one has failed
                    self._stopped.set()
                    await asyncio.wait(running)
            except asyncio.CancelledError:
                self._stopped.set()
                if not _cancelled.get() and not all(task.done() for task in tasks):
                    say(
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

    async def _work(self) -> None:
        """Ask one request after another, until none is left or asking stops."""
        while request := await self._next():
            completion = await self._complete(request)
            if completion is None:
                return
            if completion.error:
                await self._in_thread(self.writer.release, request)
            else:
                # If the wait is cancelled, the thread still finishes, so the completion is stored in any case
                if why := await asyncio.shield(self._in_thread(self.writer.keep, request, completion)):
                    self._stop(why)
            self.settle(request, completion)

    async def _next(self) -> Request | None:
        """A request that is claimed; None if none is left or asking stops."""
        async with self._claiming:
            while self._waiting and not self._claimed and not self._stopped.is_set():
                claimed, stored = await self._in_thread(self.writer.claim, self._waiting, _CLAIMS * self.concurrency)
                self._claimed += claimed
                for request, completion in stored.items():
                    self.settle(request, completion)
                for request in (*claimed, *stored):
                    del self._waiting[request]
                if not claimed and not stored:
                    words = "some of these prompts are being asked by another run; waiting for its answers"
                    self._notice("others", words)
                    await self._pause(_POLL)
        return self._claimed.popleft() if self._claimed and not self._stopped.is_set() else None

    async def _complete(self, request: Request) -> Completion | None:
        """A request's completion or final failure; None if asking stopped before the request was sent."""
        words = ""
        for tries in range(1, self.retries + 2):
            while (room := self.account.reserve(*self.bounds(request))) is None:
                if not self.account.budget.open:  # no request is out, so no room will come back
                    return Completion(error=f"{self.account.refusal}{f' (after {words})' if words else ''}")
                await self._pause(_POLL)
                if self._stopped.is_set():
                    return None
            used: tuple[int, int] | None = (0, 0)
            try:
                await self._turn()
                if self._stopped.is_set():
                    return None
                used = None  # if the connection breaks, the server may have done the work
                self.account.calls += 1
                reply = await self.send(request)
                used = reply.used if isinstance(reply, Failure) else _used(reply)
            finally:
                self.account.settle(room, used)
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
            elif tries <= self.retries:
                self._notice("retries", f"{words}; such requests are tried again, at most {self.retries} times")
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
        self._next_turn = turn + self.interval
        await self._pause(turn - now)

    async def _pause(self, seconds: float) -> None:
        """Sleep; a stop ends the sleep."""
        if seconds > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)

    def _in_thread(self, function: Callable[..., _T], *arguments: object) -> "asyncio.Future[_T]":
        return asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _notice(self, kind: str, words: str) -> None:
        """Print a line, once of a kind."""
        if kind not in self._notices:
            self._notices.add(kind)
            say(f"{self.name}: {words}")

    def _stop(self, why: str) -> None:
        self._why = self._why or why
        self._stopped.set()


def _used(completion: Completion) -> tuple[int, int] | None:
    """The tokens that the server reports; None if it reports none."""
    tokens = completion.prompt_tokens, completion.completion_tokens
    return tokens if any(tokens) else None


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; in a new thread if this thread already runs a loop (Jupyter).

    Raises:
        asyncio.CancelledError: it was `cancellable`, and was cancelled.
    """
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    cancelled = _cancelled.get()

    def cancel(_: object = None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended in the meantime
            for loop, task in running:
                loop.call_soon_threadsafe(task.cancel)

    async def noted() -> None:
        task = asyncio.current_task()
        assert task
        running.append((asyncio.get_running_loop(), task))
        if cancelled:
            cancelled.add_done_callback(cancel)
        await coroutine

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
