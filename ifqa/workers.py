"""A function over many tasks, on processes of this machine or on a Ray cluster; results come as they are finished.

Workers hold no state and write nothing: a task goes to one as a value, its result comes back as a value, and whoever
asked writes it down. So nothing depends on how many there are, where they run, or when one dies.
"""

import multiprocessing
import os
import re
import signal
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, cycle, islice
from multiprocessing.connection import wait
from typing import Any, Literal, TypeVar

from ifqa.errors import IfqaError
from ifqa.signals import handlers_kept

Engine = Literal["local", "ray"]
Task = TypeVar("Task")
Result = TypeVar("Result")

_RAY = re.compile(r"(^|/)(ray|raylet|gcs_server)(::|/|\s|$)")  # in the command line of what Ray starts

ATTEMPTS = 2  # at a task whose worker dies


def cores() -> int:
    """How many processes can run at once here."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    workers: int = 0,
    engine: Engine = "local",
    gpus: int = 0,
    name: Callable[[Task], str] = str,
) -> Iterator[tuple[Task, Result]]:
    """Each task and its result, in the order in which they are finished.

    Args:
        function: a function of a module, so that another process can import it.
        tasks: taken as workers become free: at most two for each are in memory.
        workers: how many; 0 for as many as there are cores, here or in the cluster. One works in this process.
        engine: "local" for processes of this machine, "ray" for the cluster that RAY_ADDRESS names, or one made here.
        gpus: of this machine; each worker sees one of them. With Ray, any number but 0 gives each task a GPU of its own.
        name: what an error calls a task.

    Raises:
        IfqaError: the function or `tasks` raised one, or a worker died twice at the same task, which is named. Before
            that, the results of the tasks that were being worked on are given.
        RuntimeError: the function has a bug; its traceback stands on stderr.
    """
    broken: list[IfqaError] = []
    source = _until_broken(tasks, broken)
    if engine == "ray":
        yield from _on_ray(function, source, workers, gpus, name)
    else:
        workers = workers or cores()
        first = list(islice(source, 2))
        alone = workers == 1 or len(first) < 2
        source = chain(first, source)
        del first  # tasks are large
        if alone:
            yield from ((task, function(task)) for task in source)
        else:
            yield from _on_processes(function, source, workers, gpus, name)
    if broken:
        raise broken[0]


def _until_broken(tasks: Iterable[Task], broken: list[IfqaError]) -> Iterator[Task]:
    """The tasks up to an error in reading them, which is put by until they are done."""
    try:
        yield from tasks
    except IfqaError as error:
        broken.append(error)


class _Worker:
    """A process, and our end of the pipe to it."""

    def __init__(self, function: Callable[[Any], Any], gpu: str | None) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks of Java and torch
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(function, theirs, gpu), daemon=True)
        with _no_interrupts():  # until it says itself that it does not heed them
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


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Ctrl-C goes to every process of a terminal; what starts here inherits that it is held back."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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


def _on_processes(
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
                        failure = failure or _died(name(worker.task), worker.process.exitcode or 0)
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


def _died(task: str, code: int | str) -> Exception:
    if code == 1:
        return RuntimeError(f"a worker broke at {task}; its traceback stands above")
    how = f"signal {-code}" if isinstance(code, int) and code < 0 else code
    return IfqaError(
        f"a worker died {ATTEMPTS} times at {task} ({how}); if memory ran out, use fewer workers; what is finished is "
        "kept, the same command goes on from there"
    )


def _on_ray(
    function: Callable[[Task], Result], tasks: Iterator[Task], workers: int, gpus: int, name: Callable[[Task], str]
) -> Iterator[tuple[Task, Result]]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it reports home unless told not to
    try:
        import ray
    except ModuleNotFoundError as error:
        raise IfqaError("engine 'ray' needs ray; install it with: pip install 'ifqa[ray]'") from error
    started = not ray.is_initialized()
    if started:
        pipe = _guarded()
        with handlers_kept():
            _join_cluster(ray)
    remote = ray.remote(max_retries=ATTEMPTS - 1, num_gpus=1 if gpus else 0)(function)
    most = workers or 2 * int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
    running: dict[Any, Task] = {}
    failure: Exception | None = None
    more = True
    try:
        while running or (more and not failure):
            if more and not failure and len(running) < most:
                task = list(islice(tasks, 1))
                running |= {remote.remote(one): one for one in task}
                more = bool(task)
                continue
            (ready,), _ = ray.wait(list(running), num_returns=1)
            given = running.pop(ready)
            try:
                yield given, ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                if not isinstance(error.cause, IfqaError | OSError):
                    raise
                failure = failure or error.cause
            except ray.exceptions.RayError as error:
                failure = failure or _died(name(given), type(error).__name__)
    finally:
        if started:
            with handlers_kept():
                ray.shutdown()
            pipe.close()
    if failure:
        raise failure


def _join_cluster(ray: Any) -> None:
    """Connect to the cluster that RAY_ADDRESS names, or make one here.

    Raises:
        IfqaError: nothing answers there.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    try:
        if colon:  # Ray itself would knock for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as error:
        raise IfqaError(
            f"Ray cannot be reached (RAY_ADDRESS={address!r}: {error}); wanted the address of a running cluster, as "
            "host:6379, or none to make one here"
        ) from error


def _guarded() -> Any:
    """Start a process that ends what Ray has started here when this one closes the pipe, or is killed.

    Ray's own agents outlive their node by half a minute and more, looking for it.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with _no_interrupts():
        context.Process(target=_bury, args=(theirs, os.getpid()), daemon=True).start()
    theirs.close()
    ours.recv()  # it is on guard
    return ours


def _bury(pipe: Any, parent: int) -> None:
    import psutil

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe.send("on guard")
    family: set[psutil.Process] = set()  # a process is its number and its time of birth
    with suppress(psutil.NoSuchProcess):
        while not pipe.poll(timeout=0.5):
            family |= set(psutil.Process(parent).children(recursive=True))
    for process in list(family):  # and what they have started since
        with suppress(psutil.NoSuchProcess):
            family |= set(process.children(recursive=True))
    for process in family - {psutil.Process()}:
        with suppress(psutil.NoSuchProcess):
            if _RAY.search(" ".join(process.cmdline())):
                process.kill()
