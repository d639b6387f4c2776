"""A bounded queue of questions that threads answer in batches.

A batch is formed when a thread is free, from the questions that have arrived. Withdrawn questions
are skipped; if all questions of a batch are withdrawn, its language model gets no more requests.
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
_Work = Callable[[Sequence[Question], "_Key", TextCallback | None], Sequence[_Result]]
_Key = float | None  # shared by a batch: a threshold, or a number of passages
# The longest wait for the next batch to fill, as a share of the last batch's time
_WAIT_SHARE = 0.05
_MAX_RETRY_AFTER = 60  # seconds


class QueueFull(Exception):
    """The queue is full; retry after `seconds`."""

    def __init__(self, waiting: int, seconds: int) -> None:
        super().__init__(f"the queue is full with {waiting} questions; retry in {seconds} s")
        self.seconds = seconds


@dataclass(eq=False)
class Pending(Generic[_Result]):
    """A question in the queue, and its progress."""

    question: Question
    key: _Key
    watched: bool  # whether the client gets the language model's text as a stream
    result: "asyncio.Future[_Result]"  # cancelled to withdraw the question
    # Set when `ahead` or `text` changes
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ahead: int | None = None  # the number of questions before it; None once it is in a batch
    text: str = ""  # the language model's text so far
    arrival: float = field(default_factory=time.monotonic)
    seconds: float = 0.0  # from the arrival to the result

    def move(self, ahead: int | None) -> None:
        """Update `ahead`."""
        if ahead != self.ahead:
            self.ahead = ahead
            self.changed.set()

    def on_text(self, text: str) -> None:
        """Update the text so far, from any thread."""

        def update() -> None:
            self.text = text
            self.changed.set()

        with suppress(RuntimeError):  # the loop is closed: no client is left
            self.result.get_loop().call_soon_threadsafe(update)


class BatchQueue(Generic[_Result]):
    """Runs `work` on batches of waiting questions.

    `work` maps questions, their key and a callback for the first question's text to a result for
    each question. At most `waiting` questions wait, and `threads` threads, those of `pool` if
    given, each take batches of at most `batch` questions.
    """

    def __init__(
        self,
        work: _Work[_Result],
        waiting: int,
        batch: int,
        threads: int = 1,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self._work = work
        self._capacity = waiting
        self._batch = batch
        self._threads = threads
        self._waiting: deque[Pending[_Result]] = deque()
        self._pool = pool or ThreadPoolExecutor(threads, "batch")
        self._tasks: list[asyncio.Task[None]] = []
        self._arrived = asyncio.Event()
        self._pace = 0.2  # seconds per question, a running mean
        self.busy = 0

    def __len__(self) -> int:
        return sum(not pending.result.done() for pending in self._waiting)

    @property
    def alive(self) -> bool:
        """Whether the queue takes questions."""
        return bool(self._tasks) and not any(task.done() for task in self._tasks)

    def open(self) -> None:
        """Start to take questions; call it in the event loop."""
        self._tasks = [asyncio.create_task(self._serve()) for _ in range(self._threads)]

    async def close(self) -> None:
        """Take no more questions, and wait for the threads."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._pool.shutdown)

    def put(
        self, questions: Sequence[Question], key: _Key, watched: bool = False
    ) -> list[Pending[_Result]]:
        """Queue all questions, or raise QueueFull."""
        self._waiting = deque(pending for pending in self._waiting if not pending.result.done())
        ahead = len(self._waiting)
        if ahead + len(questions) > self._capacity:
            raise QueueFull(
                ahead, min(max(ceil(ahead * self._pace / self._threads), 1), _MAX_RETRY_AFTER)
            )
        loop = asyncio.get_running_loop()
        batch = [
            Pending[_Result](question, key, watched, loop.create_future()) for question in questions
        ]
        self._waiting.extend(batch)
        for place, pending in enumerate(batch, start=ahead):
            pending.move(place)
        self._arrived.set()
        return batch

    def _take(self) -> list[Pending[_Result]]:
        """The next batch: the oldest question, and other questions with the same key and different
        ids.
        """
        waiting = [pending for pending in self._waiting if not pending.result.done()]
        batch: dict[str, Pending[_Result]] = {}
        for pending in waiting:
            if len(batch) < self._batch and pending.key == waiting[0].key:
                batch.setdefault(pending.question.id, pending)
        self._waiting = deque(
            pending for pending in waiting if batch.get(pending.question.id) is not pending
        )
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
            started = time.monotonic()
            self.busy += len(batch)
            try:
                await self._answer(batch)
            finally:
                self.busy -= len(batch)
            seconds = time.monotonic() - started
            self._pace = 0.8 * self._pace + 0.2 * seconds / len(batch)
            # Answered clients often ask again; without a wait, the first of them would be a batch
            # of its own
            with suppress(TimeoutError):
                async with asyncio.timeout(_WAIT_SHARE * seconds):
                    while 1 < len(batch) > len(self._waiting):
                        self._arrived.clear()
                        await self._arrived.wait()

    async def _answer(self, batch: list[Pending[_Result]]) -> None:
        batch.sort(key=lambda pending: not pending.watched)
        first = batch[0]
        questions = [pending.question for pending in batch]
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
        if error := work.exception():
            for pending in left:
                if len(batch) > 1:  # retry each alone, because a single question may be at fault
                    await self._answer([pending])
                else:
                    pending.result.set_exception(error)
            return
        results = dict(zip(map(id, batch), work.result() or (), strict=False))
        for pending in left:
            pending.seconds = time.monotonic() - pending.arrival
            pending.result.set_result(results[id(pending)])
