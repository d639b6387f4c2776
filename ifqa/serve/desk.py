"""A bounded queue of questions, taken in batches by threads that search and read.

What a batch holds is decided when a thread is free, so questions that came meanwhile are read together. A question that its
sender has withdrawn is not taken; a batch of which all are withdrawn asks its language model no more.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import Generic, TypeVar

from ifqa.llms.request_scheduler import cancellable
from ifqa.llms.streaming import TextCallback
from ifqa.records import Question

_Result = TypeVar("_Result")
_Key = float | None  # what a batch shares: a threshold, or a number of passages
_LULL = 0.05  # of a batch's time: how long the next one is waited for
_LONGEST_WAIT = 60  # seconds that a sender is asked to wait at most


class Full(Exception):
    """No more questions may wait; `seconds` is when some will have been taken."""

    def __init__(self, waiting: int, seconds: int) -> None:
        super().__init__(f"{waiting} questions wait already; ask again in {seconds} s")
        self.seconds = seconds


class Progress:
    """How far a question is, for a sender who watches; `changed` is set at every step.

    Attributes:
        ahead: how many wait before it; None once it was taken.
        text: what a language model has written so far.
    """

    def __init__(self) -> None:
        self.ahead: int | None = None
        self.text = ""
        self.changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def moved(self, ahead: int | None) -> None:
        """Say how many wait before it now; None if it was taken."""
        self.ahead = ahead
        self.changed.set()

    def on_text(self, text: str) -> None:
        """Take the text so far, from any thread."""

        def take() -> None:
            self.text = text
            self.changed.set()

        with suppress(RuntimeError):  # the loop has been closed: nobody is there to see it
            self._loop.call_soon_threadsafe(take)


@dataclass(eq=False)
class Ticket(Generic[_Result]):
    """A question in the queue. Its `result` is its answer; whoever withdraws the question cancels it."""

    question: Question
    key: _Key
    result: "asyncio.Future[_Result]"
    progress: Progress | None = None
    came: float = field(default_factory=time.monotonic)
    seconds: float = 0.0  # from its coming to its result


class Desk(Generic[_Result]):
    """Runs `work` on batches of what waits.

    Args:
        work: a function from questions, the key that they share, and who hears the first one, to a result for each.
        waiting: how many questions may wait.
        batch: how many are taken at once.
        threads: how many batches are worked on side by side.
        note: called for each result with the seconds since its question came.
        pool: has these threads; None for threads of the desk's own.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Question], _Key, TextCallback | None], Sequence[_Result]],
        waiting: int,
        batch: int,
        threads: int = 1,
        note: Callable[[float], None] = lambda seconds: None,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._work, self._most, self._batch, self._note = work, waiting, batch, note
        self._waiting: deque[Ticket[_Result]] = deque()
        self._threads = threads
        self._pool = pool or ThreadPoolExecutor(threads, "desk")
        self._tasks: list[asyncio.Task[None]] = []
        self._came = asyncio.Event()
        self._pace = 0.2  # seconds a question, a running mean
        self.busy = 0

    def __len__(self) -> int:
        return sum(not one.result.done() for one in self._waiting)

    @property
    def alive(self) -> bool:
        """Whether questions are being taken."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    def open(self) -> None:
        """Start to take questions; called in the loop."""
        self._tasks = [asyncio.create_task(self._serve()) for _ in range(self._threads)]

    async def close(self) -> None:
        """Take no more questions, and wait for the threads."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.get_running_loop().run_in_executor(None, self._pool.shutdown)

    def put(self, questions: Sequence[Question], key: _Key, progress: Progress | None = None) -> list[Ticket[_Result]]:
        """Queue questions, all or none; `progress` is the first one's.

        Raises:
            Full: there is no room for all of them.
        """
        if len(self) != len(self._waiting):  # forget those that were withdrawn
            self._waiting = deque(one for one in self._waiting if not one.result.done())
        if len(self._waiting) + len(questions) > self._most:
            seconds = ceil(len(self._waiting) * self._pace / self._threads)
            raise Full(len(self._waiting), min(max(seconds, 1), _LONGEST_WAIT))
        loop = asyncio.get_running_loop()
        tickets = [Ticket[_Result](one, key, loop.create_future()) for one in questions]
        tickets[0].progress = progress
        if progress:
            progress.moved(len(self._waiting))
        self._waiting.extend(tickets)
        self._came.set()
        return tickets

    def _take(self) -> list[Ticket[_Result]]:
        """The next batch: the oldest question, and others with its key whose ids differ."""
        taken: list[Ticket[_Result]] = []
        left: deque[Ticket[_Result]] = deque()
        ids: set[str] = set()
        for one in self._waiting:
            if one.result.done():
                continue
            if len(taken) < self._batch and (not taken or one.key == taken[0].key) and one.question.id not in ids:
                ids.add(one.question.id)
                taken.append(one)
            else:
                left.append(one)
        self._waiting = left
        for ahead, one in enumerate(left):
            if one.progress and one.progress.ahead != ahead:
                one.progress.moved(ahead)
        for one in taken:
            if one.progress:
                one.progress.moved(None)
        return taken

    async def _serve(self) -> None:
        while True:
            if not (taken := self._take()):
                self._came.clear()
                await self._came.wait()
                continue
            began = time.monotonic()
            self.busy += len(taken)
            try:
                await self._answer(taken)
            finally:
                self.busy -= len(taken)
            took = time.monotonic() - began
            self._pace = 0.8 * self._pace + 0.2 * took / len(taken)
            if len(taken) > 1:
                await self._gather(len(taken), _LULL * took)

    async def _gather(self, wanted: int, seconds: float) -> None:
        """Wait until so many wait again: who was answered often asks on at once, and the first would be a batch alone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while len(self._waiting) < wanted:
                    self._came.clear()
                    await self._came.wait()

    async def _answer(self, taken: list[Ticket[_Result]]) -> None:
        progress = next((one.progress for one in taken if one.progress), None)
        if progress and taken[0].progress is not progress:  # the first question of a batch is streamed
            taken = sorted(taken, key=lambda one: one.progress is not progress)
        questions, on_text = [one.question for one in taken], progress.on_text if progress else None
        cancelled: Future[None] = Future()

        def withdrawn(_: object) -> None:
            if all(one.result.done() for one in taken):
                cancelled.cancel()

        for one in taken:
            one.result.add_done_callback(withdrawn)

        def run() -> Sequence[_Result] | None:
            with cancellable(cancelled), suppress(asyncio.CancelledError):
                return self._work(questions, taken[0].key, on_text)
            return None

        work = asyncio.get_running_loop().run_in_executor(self._pool, run)
        try:
            await asyncio.wait([work])
        finally:  # the desk may close
            cancelled.cancel()
        if error := work.exception():  # it goes to who waits for the question
            for one in taken:
                if one.result.done():
                    continue
                if len(taken) > 1:  # one question may be at fault
                    await self._answer([one])
                else:
                    one.result.set_exception(error)
            return
        if (results := work.result()) is None:  # nobody waits
            return
        for one, result in zip(taken, results, strict=True):
            if not one.result.done():
                one.seconds = time.monotonic() - one.came
                one.result.set_result(result)
                self._note(one.seconds)
