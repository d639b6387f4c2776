"""Run a function over many tasks on processes of this machine."""

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from ifqa.errors import IfqaError

Task = TypeVar("Task")
Result = TypeVar("Result")

ATTEMPTS = 2  # at a task whose worker dies


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Block SIGINT in the block; a process started there inherits that (Ctrl-C reaches every process of a terminal)."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker(Generic[Task, Result]):
    """A worker process, the parent's end of the pipe to it, and the task that it does, in a list; none when idle."""

    def __init__(self, function: Callable[[Task], Result], gpu: str | None) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of Java and torch
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(function, theirs, gpu), daemon=True)
        with no_interrupts():  # until `_serve` ignores them
            self.process.start()
        theirs.close()
        self.tasks: list[tuple[int, Task]] = []

    def give(self, numbered: tuple[int, Task]) -> None:
        self.tasks = [numbered]
        with suppress(BrokenPipeError):  # the worker died while idle; reading its pipe will show that
            self.pipe.send(numbered[1])

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(function: Callable[[Any], object], pipe: Connection, gpu: str | None) -> None:
    """The loop of a worker: receive a task, send its result, until the pipe closes or the parent is gone."""
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # CUDA reads it when it starts, after torch is imported
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError):
        while True:
            try:
                pipe.send((function(pipe.recv()),))  # task and result are large: unnamed, both can be freed
            except (IfqaError, OSError) as error:
                pipe.send(error)


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def on_processes(
    function: Callable[[Task], Result], tasks: Iterator[Task], workers: int, gpus: int, name: Callable[[Task], str]
) -> Iterator[tuple[Task, Result]]:
    """Yield each task and its result, as `ifqa.workers.tasks.run` does."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if gpus else [""]
    devices = cycle(visible if visible != [""] else map(str, range(gpus)) if gpus else [None])
    numbered = enumerate(tasks)
    waiting: deque[tuple[int, Task]] = deque()  # tasks read while every worker was busy, and tasks to retry
    deaths: Counter[int] = Counter()
    busy: list[_Worker[Task, Result]] = []
    idle: list[_Worker[Task, Result]] = []
    failure: Exception | None = None
    more = True
    try:
        while True:
            while waiting and len(busy) < workers and not failure:
                busy.append(idle.pop() if idle else _Worker(function, next(devices)))
                busy[-1].give(waiting.popleft())
            if reading := more and not failure and len(waiting) < workers:
                waiting.extend(read := list(islice(numbered, 1)))
                more = bool(read)
            elif not busy:
                break
            for pipe in wait([worker.pipe for worker in busy], timeout=0 if reading else None):
                worker = next(worker for worker in busy if worker.pipe is pipe)
                busy.remove(worker)
                [(number, task)] = worker.tasks
                try:
                    answer = worker.pipe.recv()
                except (EOFError, OSError):
                    worker.stop()
                    deaths[number] += 1
                    if deaths[number] < ATTEMPTS:
                        waiting.appendleft((number, task))
                    else:
                        failure = failure or died(name(task), worker.process.exitcode or 0)
                    continue
                idle.append(worker)
                if isinstance(answer, Exception):
                    failure = failure or answer
                else:
                    yield task, answer[0]
                worker.tasks.clear()  # it is large, as the next two
                task = answer = None  # type: ignore[assignment]
    finally:
        for worker in busy + idle:
            worker.stop()
    if failure:
        raise failure


def died(task: str, code: int | str) -> Exception:
    """The error of a worker that died at each attempt at a task; `code` is its exit code, or what a cluster says of it."""
    if code == 1:
        return RuntimeError(f"a worker failed at {task}; its traceback is above")
    how = f"signal {-code}" if isinstance(code, int) and code < 0 else code
    return IfqaError(
        f"a worker died {ATTEMPTS} times at {task} ({how}); if memory ran out, use fewer workers; what is finished is "
        "kept, the same command goes on from there"
    )
