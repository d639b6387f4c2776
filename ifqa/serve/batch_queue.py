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

from ifqa.llms.streaming import TextCallback, cancellable
from ifqa.records import Question

_Result = TypeVar("_Result")
_Key = float | None  # what a batch shares: a threshold, or a number of passages
_LULL = 0.05  # of a batch's time: how long the next one is waited for
_LONGEST_WAIT = 60  # seconds that a sender is asked to wait at most


class QueueFull(Exception):
    """No more questions may wait; `seconds` is when some will have been taken."""

    def __init__(self, waiting: int, seconds: int) -> None:
        super().__init__(f"{waiting} questions wait already; ask again in {seconds} s")
        self.seconds = seconds


@dataclass(eq=False)
class Pending(Generic[_Result]):
    """A question in the queue, and how far it is.

    Attributes:
        question, key: the question, and what the questions of a batch share.
        watched: whether its sender watches, so that a language model gives its text while it writes.
        result: its answer; whoever withdraws the question cancels it.
        changed: set at every step.
        ahead: how many wait before it; None once it was taken.
        text: what a language model has written so far.
        arrival, seconds: when it came, and the seconds from then to its result.
    """

    question: Question
    key: _Key
    watched: bool
    result: "asyncio.Future[_Result]"
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ahead: int | None = None
    text: str = ""
    arrival: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def move(self, ahead: int | None) -> None:
        """Set how many wait before it now; None if it was taken."""
        if ahead != self.ahead:
            self.ahead = ahead
            self.changed.set()

    def on_text(self, text: str) -> None:
        """Take the text so far, from any thread."""

        def take() -> None:
            self.text = text
            self.changed.set()

        with suppress(RuntimeError):  # the loop has been closed: nobody is there to see it
            self.result.get_loop().call_soon_threadsafe(take)


class BatchQueue(Generic[_Result]):
    """Runs `work` on batches of what waits.

    Args:
        work: a function from questions, the key that they share, and who hears the text of the first one, to a result for each.
        waiting: how many questions may wait.
        batch: how many are taken at once.
        threads: how many batches are worked on side by side.
        pool: has these threads; None for threads of the queue's own.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Question], _Key, TextCallback | None], Sequence[_Result]],
        waiting: int,
        batch: int,
        threads: int = 1,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._work, self._most, self._batch, self._threads = work, waiting, batch, threads
        self._waiting: deque[Pending[_Result]] = deque()
        self._pool = pool or ThreadPoolExecutor(threads, "batch")
        self._tasks: list[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()
        self._pace = 0.2  # seconds a question, a running mean
        self.busy = 0

    def __len__(self) -> int:
        return sum(not pending.result.done() for pending in self._waiting)

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
        await asyncio.to_thread(self._pool.shutdown)

    def put(self, questions: Sequence[Question], key: _Key, watched: bool = False) -> list[Pending[_Result]]:
        """Queue questions, all or none.

        Raises:
            QueueFull: there is no room for all of them.
        """
        self._waiting = deque(pending for pending in self._waiting if not pending.result.done())
        ahead = len(self._waiting)
        if ahead + len(questions) > self._most:
            raise QueueFull(ahead, min(max(ceil(ahead * self._pace / self._threads), 1), _LONGEST_WAIT))
        loop = asyncio.get_running_loop()
        batch = [Pending[_Result](question, key, watched, loop.create_future()) for question in questions]
        self._waiting.extend(batch)
        for place, pending in enumerate(batch, start=ahead):
            pending.move(place)
        self._arrived.set()
        return batch

    def _take(self) -> list[Pending[_Result]]:
        """The next batch: the oldest question, and others with its key whose ids differ."""
        waiting = [pending for pending in self._waiting if not pending.result.done()]
        batch: dict[str, Pending[_Result]] = {}
        for pending in waiting:
            if len(batch) < self._batch and pending.key == waiting[0].key:
                batch.setdefault(pending.question.id, pending)
        self._waiting = deque(pending for pending in waiting if batch.get(pending.question.id) is not pending)
        for pending in batch.values():
            pending.move(None)
        for place, pending in enumerate(self._waiting):
            pending.move(place)
        return [*batch.values()]

    async def _serve(self) -> None:
        while True:
            if not (batch := self._take()):
                self._arrived.clear()
                await self._arrived.wait()
                continue
            began = time.monotonic()
            self.busy += len(batch)
            try:
                await self._answer(batch)
            finally:
                self.busy -= len(batch)
            seconds = time.monotonic() - began
            self._pace = 0.8 * self._pace + 0.2 * seconds / len(batch)
            # Answered clients often ask again, and the first of them would be a batch alone
            with suppress(TimeoutError):
                async with asyncio.timeout(_LULL * seconds):
                    while 1 < len(batch) > len(self._waiting):
                        self._arrived.clear()
                        await self._arrived.wait()

    async def _answer(self, batch: list[Pending[_Result]]) -> None:
        batch.sort(key=lambda pending: not pending.watched)
        first, questions = batch[0], [pending.question for pending in batch]
        cancelled: Future[None] = Future()

        def withdraw(_: object) -> None:
            if all(pending.result.done() for pending in batch):
                cancelled.cancel()

        for pending in batch:
            pending.result.add_done_callback(withdraw)

        def run() -> Sequence[_Result] | None:
            with cancellable(cancelled), suppress(asyncio.CancelledError):
                return self._work(questions, first.key, first.on_text if first.watched else None)
            return None

        work = asyncio.get_running_loop().run_in_executor(self._pool, run)
        try:
            await asyncio.wait([work])
        finally:  # the queue may close
            cancelled.cancel()
        left = [pending for pending in batch if not pending.result.done()]
        if error := work.exception():  # it goes to who waits for the question
            for pending in left:
                if len(batch) > 1:  # one question may be at fault
                    await self._answer([pending])
                else:
                    pending.result.set_exception(error)
            return
        results = dict(zip(map(id, batch), work.result() or (), strict=False))
        for pending in left:
            pending.seconds = time.monotonic() - pending.arrival
            pending.result.set_result(results[id(pending)])
