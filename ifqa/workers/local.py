"""A function over many tasks on processes of this machine."""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, islice
from multiprocessing.connection import wait
from typing import Any, TypeVar

from ifqa.errors import IfqaError
from ifqa.workers.signals import no_interrupts

Task = TypeVar("Task")
Result = TypeVar("Result")

ATTEMPTS = 2  # at a task whose worker dies


class _Worker:
    """A process, and our end of the pipe to it."""

    def __init__(self, function: Callable[[Any], Any], gpu: str | None) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of Java and torch
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(function, theirs, gpu), daemon=True)
        with no_interrupts():  # until it says itself that it does not heed them
            self.process.start()
        theirs.close()
        self.number = -1
        self.task: Any = None

    def give(self, number: int, task: Any) -> None:
        self.number, self.task = number, task
        with suppress(BrokenPipeError):  # it died while it had nothing to do: its pipe will say so
            self.pipe.send(task)

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(function: Callable[[Any], Any], pipe: Any, gpu: str | None) -> None:
    """A worker's life: tasks in, results out, until the pipe closes or the parent is gone."""
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # read when CUDA starts, which importing torch does not
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError):
        while True:
            try:
                pipe.send((function(pipe.recv()),))  # by no name: both are large, and would stay until the next ones
            except (IfqaError, OSError) as error:
                pipe.send(error)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def on_processes(
    function: Callable[[Task], Result], tasks: Iterator[Task], workers: int, gpus: int, name: Callable[[Task], str]
) -> Iterator[tuple[Task, Result]]:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpus else [""]
    devices = cycle(visible if visible != [""] else map(str, range(gpus)) if gpus else [None])
    numbered = enumerate(tasks)
    waiting: deque[tuple[int, Task]] = deque()  # read while every worker is busy, or to be tried again
    deaths: Counter[int] = Counter()
    busy: list[_Worker] = []
    idle: list[_Worker] = []
    failure: Exception | None = None
    more = True
    try:
        while True:
            while waiting and len(busy) < workers and not failure:
                busy.append(idle.pop() if idle else _Worker(function, next(devices)))
                busy[-1].give(*waiting.popleft())
            if reading := more and not failure and len(waiting) < workers:
                waiting.extend(task := list(islice(numbered, 1)))
                more = bool(task)
            elif not busy:
                break
            for pipe in wait([worker.pipe for worker in busy], timeout=0 if reading else None):
                worker = next(worker for worker in busy if worker.pipe is pipe)
                busy.remove(worker)
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    worker.stop()
                    deaths[worker.number] += 1
                    if deaths[worker.number] < ATTEMPTS:
                        waiting.appendleft((worker.number, worker.task))
                    else:
                        failure = failure or died(name(worker.task), worker.process.exitcode or 0)
                    continue
                idle.append(worker)
                if isinstance(answer, Exception):
                    failure = failure or answer
                else:
                    yield worker.task, answer[0]
                worker.task = answer = None  # they are large
    finally:
        for worker in busy + idle:
            worker.stop()
    if failure:
        raise failure


def died(task: str, code: int | str) -> Exception:
    if code == 1:
        return RuntimeError(f"a worker broke at {task}; its traceback stands above")
    how = f"signal {-code}" if isinstance(code, int) and code < 0 else code
    return IfqaError(
        f"a worker died {ATTEMPTS} times at {task} ({how}); if memory ran out, use fewer workers; what is finished is "
        "kept, the same command goes on from there"
    )
