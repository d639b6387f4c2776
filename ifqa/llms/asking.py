"""Sends many requests to one server: in parallel, paced, retried, within a budget, each answer stored at once."""

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from ifqa.errors import IfqaError
from ifqa.llms.cancelling import cancellation
from ifqa.llms.failures import Failure
from ifqa.llms.keeping import Keeper
from ifqa.llms.money import Account, Room
from ifqa.progress import say
from ifqa.records import Completion, Request

BACKOFF = 0.5  # seconds before the second try, where the server names none; doubled for each further one
LONGEST_BACKOFF = 30.0
LONGEST_WAIT = 120.0  # if the server asks for a longer wait, the run stops
_MOMENT = 0.2  # seconds
_LOOK_AGAIN = 0.05  # seconds
GRACE = 5.0  # seconds that requests in flight get after an interrupt, as they are paid for


@dataclass
class Round:
    """The requests of one call, and what they share.

    Attributes:
        name: the server's name in messages.
        send: sends one request, once.
        keeper: claims completions and stores them, in a thread; a completion is stored before it is handed on.
        room: upper bounds of a request's prompt tokens and answer tokens.
        account: tokens and money set aside and spent.
        retries: further tries of a request.
        interval: seconds from one request to the next; 0 for no pace.
        arrived: called with each request's number and its completion or failure.
    """

    name: str
    send: Callable[[Request], Awaitable[Completion | Failure]]
    keeper: Keeper
    room: Callable[[Request], tuple[int, int]]
    account: Account
    retries: int
    interval: float
    arrived: Callable[[int, Completion], None]
    _stopped: asyncio.Event = field(default_factory=asyncio.Event)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)
    _why: str = ""
    _next_turn: float = 0.0
    _answered: bool = False
    _said: bool = False
    _said_others: bool = False

    async def ask(self, requests: list[Request], concurrency: int) -> None:
        """Ask all requests, `concurrency` at a time.

        Raises:
            IfqaError: the server refuses, and another try would not help; completions in flight have been stored.
        """
        await asyncio.sleep(0)  # who was cancelled before sends nothing
        concurrency = min(concurrency, len(requests))
        todo = deque((number, request, 0) for number, request in enumerate(requests))
        with ThreadPoolExecutor(concurrency, "completions") as threads:
            tasks = [asyncio.create_task(self._work(todo, threads)) for _ in range(concurrency)]
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            except asyncio.CancelledError:
                self._stop("interrupted")
                if not cancellation() and any(not task.done() for task in tasks):
                    say(
                        f"{self.name}: keeping what is in flight, at most {GRACE:g} s; interrupt again to leave at once"
                    )
                    await asyncio.wait(tasks, timeout=GRACE)
                raise
            else:
                self._stop(self._why)  # a worker that raised stops the others
                await asyncio.wait(tasks)
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, BaseException):
                raise outcome
        if self._why:
            raise IfqaError(self._why)

    async def _work(self, todo: deque[tuple[int, Request, int]], threads: ThreadPoolExecutor) -> None:
        """Ask one request after another; an answer is written while the next request is in flight."""
        keeping: asyncio.Task[None] | None = None
        while todo and not self._stopped.is_set():
            number, request, passed = todo.popleft()
            if not self.keeper.claim(request):
                await self._pass_over(passed)
                todo.append((number, request, passed + 1))
                continue
            completion = self.keeper.get(request) or await self._one(request)
            if keeping:
                await keeping
            keeping = asyncio.create_task(self._keep(number, request, completion, threads))
        if keeping:
            await keeping

    async def _keep(self, number: int, request: Request, got: Completion | None, threads: ThreadPoolExecutor) -> None:
        why = ""
        if got and not got.error and not got.cached:
            loop = asyncio.get_running_loop()
            try:
                # If the wait is cancelled, the thread still finishes, so the completion is stored in any case
                why = await asyncio.shield(loop.run_in_executor(threads, self.keeper.keep, request, got))
            except IfqaError as error:
                why, got = str(error), None
        self.keeper.release(request)  # not reached if the wait was cancelled: the thread may still be writing
        if why:
            self._stop(why)
        if got:
            self.arrived(number, got)

    async def _pass_over(self, passed: int) -> None:
        """Someone else asks for this request: do other work first, and wait if it comes up again."""
        if passed:
            if not self._said_others:
                self._said_others = True
                say(f"{self.name}: some of these prompts are being asked by another run; waiting for its answers")
            await self._pause(_LOOK_AGAIN)

    async def _one(self, request: Request) -> Completion | None:
        """A request's completion or final failure; None if asking stopped before the request was sent."""
        prompt, answer = self.room(request)
        words = ""
        for tried in range(self.retries + 1):
            while (room := self.account.reserve(prompt, answer)) is None:
                if not self.account.budget.open:  # no request is out, so no room will come back
                    return Completion(error=f"{self.account.refusal}{f' (after {words})' if words else ''}")
                await self._settlement()
                if self._stopped.is_set():
                    return None
            used: tuple[int, int] | None = (0, 0)
            try:
                await self._turn()
                if self._stopped.is_set():
                    return None
                used = None  # if the connection breaks, the server may have done the work
                self.account.calls += 1
                got = await self.send(request)
                used = _used(got)
            finally:
                self._settle(room, used)
            if isinstance(got, Completion):
                self._answered = True
                return got
            words = got.words
            if got.verdict == "alone":
                return Completion(error=words)
            if got.verdict == "all":
                self._stop(f"{self.name}: {words}")
                return None
            if got.wait is not None and got.wait > LONGEST_WAIT:
                self._stop(f"{self.name}: {words}; the server asks to wait {got.wait:,.0f} s: run this again then")
                return None
            if tried < self.retries:
                await self._back_off(tried, got)
            elif got.unreachable and not self._answered:
                self._stop(f"{self.name}: {words} (after {self.retries + 1} tries; is the server up?)")
                return None
            if self._stopped.is_set():
                return None
        return Completion(error=f"{words} (after {self.retries + 1} tries)")

    async def _back_off(self, tried: int, failure: Failure) -> None:
        if not self._said:
            self._said = True
            say(f"{self.name}: {failure.words}; such requests are tried again, at most {self.retries} times")
        if failure.wait is not None:  # the pause holds for all requests
            self._next_turn = max(self._next_turn, asyncio.get_running_loop().time() + failure.wait)
        longest = min(LONGEST_BACKOFF, BACKOFF * 2.0**tried)
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

    async def _settlement(self) -> None:
        """Wait until one of our requests is back, or for a moment, as another thread's may be back."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), _MOMENT)

    def _settle(self, room: Room, used: tuple[int, int] | None) -> None:
        self.account.settle(room, used)
        self._settled.set()
        self._settled = asyncio.Event()

    def _stop(self, why: str) -> None:
        self._why = self._why or why
        self._stopped.set()
        self._settled.set()


def _used(got: Completion | Failure) -> tuple[int, int] | None:
    if isinstance(got, Failure):
        return got.used
    used = (got.prompt_tokens, got.completion_tokens)
    return used if any(used) else None


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; in a new thread if this thread already runs a loop (Jupyter).

    Raises:
        asyncio.CancelledError: this thread's `cancellation` is done.
    """
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []
    cancelled = cancellation()

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
