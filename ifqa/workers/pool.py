"""Maps a function over tasks, on processes of this machine or on a Ray cluster.

Results come as tasks finish.

Workers hold no state and write nothing: the caller writes their results. So the output does not
depend on the workers' number and machines, nor on their deaths.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, cycle, islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Literal, TypeVar, get_args

from ifqa import progress
from ifqa.errors import ConfigError, IfqaError, MissingInput, ServiceError, unknown_name
from ifqa.workers.hardware import cores, gpu_names

logger = logging.getLogger(__name__)

Engine = Literal["local", "ray"]
Task = TypeVar("Task")
Result = TypeVar("Result")

ATTEMPTS = 2  # tries of a task whose worker dies
_NODE_SECONDS = 120  # until a node must have answered; its worker starts first
# Ray replaces their handlers
_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTERM")
_SIGACTION_BYTES = 1024  # more than the size of struct sigaction on any system


@dataclass(frozen=True)
class Workers:
    """The workers of a stage: `number` processes (0: one per core) of this machine or of a Ray
    cluster.
    """

    number: int = 1
    engine: Engine = "local"

    def __post_init__(self) -> None:
        if self.engine not in get_args(Engine):
            raise unknown_name("engine", self.engine, get_args(Engine))
        if type(self.number) is not int or self.number < 0:
            wanted = "a whole number of processes, or 0 for one per core"
            raise ConfigError(f"workers: wanted {wanted}; found {self.number!r:.80}")

    @property
    def alone(self) -> bool:
        """Whether this process does all tasks."""
        return self.engine == "local" and (self.number or cores()) == 1


def map_tasks(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    workers: int = 0,
    engine: Engine = "local",
    gpus: int = 0,
) -> Iterator[tuple[Task, Result]]:
    """Yield each task and its result, in the order in which they finish.

    Raises IfqaError if `function` or `tasks` raised it, or if a worker died twice at a task; the
    results of running tasks come first. Raises RuntimeError if the function has a bug; its
    traceback is on stderr.

    Args:
        function: a function of a module, so that another process can import it.
        tasks: read as workers become free; at most two tasks per worker are in memory.
        workers: number of workers; 0 for one per core of the machine or the cluster. A single
            worker is this process.
        engine: "local" for processes of this machine; "ray" for the cluster of RAY_ADDRESS, or a
            cluster started here.
        gpus: GPUs of this machine; each worker sees one GPU. With Ray, any number above 0 gives
            each task a GPU.
    """
    errors: list[IfqaError] = []
    source = _read_tasks(tasks, errors)
    if engine == "ray":
        yield from _map_on_ray(function, source, workers, gpus)
    else:
        workers = workers or cores()
        first = list(islice(source, 2))
        alone = workers == 1 or len(first) < 2
        source = chain(first, source)
        del first  # tasks are large
        if alone:
            yield from ((task, function(task)) for task in source)
        else:
            yield from _map_on_processes(function, source, workers, gpus)
    if errors:
        raise errors[0]


def _read_tasks(tasks: Iterable[Task], errors: list[IfqaError]) -> Iterator[Task]:
    """The tasks up to an error in reading them.

    The error is appended to `errors`, to be raised once the tasks finish.
    """
    try:
        yield from tasks
    except IfqaError as error:
        errors.append(error)


@contextmanager
def block_interrupts() -> Iterator[None]:
    """Block SIGINT in the block and in processes started there, because Ctrl-C reaches every
    process of a terminal.
    """
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _hide_main_script() -> Iterator[None]:
    """Keep processes started in the block from running the main script again, which would wait for
    its own locks.
    """
    main = vars(sys.modules["__main__"])
    spec = main.get("__spec__")
    file = main.pop("__file__", None)
    main["__spec__"] = None
    try:
        yield
    finally:
        main["__spec__"] = spec
        if file:
            main["__file__"] = file


class _Worker(Generic[Task, Result]):
    """A worker process, the parent's end of its pipe, and a list with its current task, empty when
    idle.
    """

    def __init__(self, function: Callable[[Task], Result], gpu: str | None, threads: int) -> None:
        # A fork would copy locked mutexes of Java and torch
        context = multiprocessing.get_context("spawn")
        self.gpu = gpu
        (self.pipe, worker_end) = context.Pipe()
        given = (function, worker_end, gpu, threads)
        self.process = context.Process(target=_serve, args=given, daemon=True)
        with block_interrupts(), _hide_main_script():  # interrupts until `_serve` ignores them
            self.process.start()
        worker_end.close()
        self.tasks: list[tuple[int, Task]] = []

    def send(self, task: tuple[int, Task]) -> None:
        self.tasks = [task]
        # The worker died while idle; reading its pipe will report it
        with suppress(BrokenPipeError):
            self.pipe.send(task[1])

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(
    function: Callable[[Any], object], pipe: Connection, gpu: str | None, threads: int
) -> None:
    """A worker's loop: receive a task, send its result, until the pipe closes or the parent
    ends.
    """
    # torch reads it when it is imported; all workers with a thread for each core would wait for
    # each other
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    if gpu is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # CUDA reads it at its first use
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles interrupts
    threading.Thread(target=_end_with_parent, daemon=True).start()
    progress.send_reports(lambda name, done, _: pipe.send((name, done)))
    with suppress(EOFError):
        while True:
            try:
                # unnamed, so that large tasks and results can be freed
                pipe.send((function(pipe.recv()),))
            except (IfqaError, OSError) as error:
                pipe.send(error)


def _end_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def _map_on_processes(  # noqa: PLR0912
    function: Callable[[Task], Result], tasks: Iterator[Task], workers: int, gpus: int
) -> Iterator[tuple[Task, Result]]:
    devices = deque(
        islice(cycle((gpu_names() or map(str, range(gpus))) if gpus else [None]), workers)
    )
    threads = max(1, cores() // workers)
    numbered = enumerate(tasks)
    # Tasks read while every worker was busy, and tasks to retry
    waiting: deque[tuple[int, Task]] = deque()
    deaths: Counter[int] = Counter()
    busy: list[_Worker[Task, Result]] = []
    idle: list[_Worker[Task, Result]] = []
    failure: Exception | None = None
    has_more = True
    try:
        while True:
            while waiting and len(busy) < workers and not failure:
                free = idle.pop() if idle else _Worker(function, devices.popleft(), threads)
                busy.append(free)
                busy[-1].send(waiting.popleft())
            if reading := has_more and not failure and len(waiting) < workers:
                waiting.extend(batch := list(islice(numbered, 1)))
                has_more = bool(batch)
            elif not busy:
                break
            for pipe in wait([worker.pipe for worker in busy], timeout=0 if reading else None):
                worker = next(worker for worker in busy if worker.pipe is pipe)
                [(number, task)] = worker.tasks
                try:
                    reply = worker.pipe.recv()
                    # About its task, which goes on
                    if isinstance(reply, tuple) and len(reply) == 2:
                        progress.report(*reply, worker)
                        continue
                    busy.remove(worker)
                except (EOFError, OSError):
                    busy.remove(worker)
                    worker.stop()
                    devices.append(worker.gpu)
                    deaths[number] += 1
                    if deaths[number] < ATTEMPTS:
                        waiting.appendleft((number, task))
                    else:
                        failure = failure or _worker_death_error(
                            str(task), worker.process.exitcode or 0
                        )
                    continue
                idle.append(worker)
                if isinstance(reply, Exception):
                    failure = failure or reply
                else:
                    yield task, reply[0]
                worker.tasks.clear()  # frees the memory, as the next line does
                task = reply = None  # type: ignore[assignment]
    finally:
        for worker in busy + idle:
            worker.stop()
    if failure:
        raise failure


def _worker_death_error(task: str, code: int | str) -> Exception:
    """The error of a worker that died at each attempt at a task.

    `code` is its exit code, or the cluster's error.
    """
    if code == 1:
        return RuntimeError(f"a worker failed at {task}; its traceback is above")
    cause = f"signal {-code}" if isinstance(code, int) and code < 0 else code
    advice = "if memory ran out, use fewer workers; run the same command again to continue"
    return IfqaError(f"a worker died {ATTEMPTS} times at {task} ({cause}); {advice}")


def _map_on_ray(
    function: Callable[[Task], Result], tasks: Iterator[Task], workers: int, gpus: int
) -> Iterator[tuple[Task, Result]]:
    failure: Exception | None = None
    has_more = True
    with _open_cluster() as ray:
        remote = ray.remote(max_retries=ATTEMPTS - 1, num_gpus=1 if gpus else 0)(function)
        capacity = workers or 2 * int(ray.cluster_resources().get("CPU", 1))
        running: dict[Any, Task] = {}
        while running or (has_more and not failure):
            if has_more and not failure and len(running) < capacity:
                batch = list(islice(tasks, 1))
                running |= {remote.remote(task): task for task in batch}
                has_more = bool(batch)
                continue
            (ready,), _ = ray.wait(list(running), num_returns=1)
            finished = running.pop(ready)
            try:
                yield finished, ray.get(ready)
            except ray.exceptions.RayTaskError as error:
                if not isinstance(error.cause, IfqaError | OSError):
                    raise
                failure = failure or error.cause
            except ray.exceptions.RayError as error:
                failure = failure or _worker_death_error(str(finished), type(error).__name__)
    if failure:
        raise failure


def ask_nodes(function: Callable[[Task], Result], task: Task) -> list[tuple[str, Result | str]]:
    """Each node of the Ray cluster by host name and address, with the result of `function(task)`
    there, or why there is none.
    """
    answers: list[tuple[str, Result | str]] = []
    with _open_cluster() as ray:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as OnNode

        nodes = [node for node in ray.nodes() if node["Alive"]]
        pinned = (OnNode(node["NodeID"], soft=False) for node in nodes)
        references = [
            ray.remote(num_cpus=0, scheduling_strategy=place)(function).remote(task)
            for place in pinned
        ]
        for node, answer in zip(nodes, references, strict=True):
            name = (
                f"{node['NodeManagerHostname']} "
                f"({node['NodeManagerAddress']}:{node['NodeManagerPort']})"
            )
            try:
                answers.append((name, ray.get(answer, timeout=_NODE_SECONDS)))
            except ray.exceptions.RayError as error:
                # ifqa cannot be imported there, or the node died
                answers.append((name, str(error).strip().splitlines()[-1]))
    return answers


@contextmanager
def _open_cluster() -> Iterator[Any]:
    """The module ray, connected to a cluster.

    At the end the connection is closed, unless the caller had opened it.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends usage statistics by default
    try:
        import ray
    except ModuleNotFoundError as error:
        raise MissingInput(
            "engine 'ray' needs ray; install it with: pip install 'ifqa[ray]'"
        ) from error
    started = not ray.is_initialized()
    if started:
        with _restore_handlers():
            _join_cluster(ray)
    try:
        yield ray
    finally:
        if started:
            with _restore_handlers():
                ray.shutdown()


@contextmanager
def _restore_handlers() -> Iterator[None]:
    """Restore the C handlers of all crash signals on exit.

    Python's `signal` module knows only Python's handlers.

    Java stops its threads with faults that its SIGSEGV handler catches. Ray replaces this handler,
    and on shutdown sets the default handler, so the next fault would end the process.
    """
    if os.name != "posix":  # Windows has no such handlers
        yield
        return
    sigaction = ctypes.CDLL(None).sigaction
    before = {
        signal.Signals[name]: ctypes.create_string_buffer(_SIGACTION_BYTES) for name in _SIGNALS
    }
    for number, handler in before.items():
        sigaction(int(number), None, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            sigaction(int(number), handler, None)


def _join_cluster(ray: Any) -> None:
    """Connect to the cluster of RAY_ADDRESS, or to the newest on this machine, or start a cluster
    here.
    """
    address = os.environ.get("RAY_ADDRESS", "")
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    try:
        if colon:  # Ray would retry for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        context = ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
        if context.dashboard_url:  # a cluster started by `ray start` has one
            logger.info(f"Ray's dashboard: http://{context.dashboard_url}")
    except (OSError, ValueError, RuntimeError) as error:
        wanted = (
            "wanted the address of a running cluster, such as host:6379, or no RAY_ADDRESS to "
            "start a cluster here"
        )
        raise ServiceError(
            f"Ray cannot be reached (RAY_ADDRESS={address!r}: {error}); {wanted}"
        ) from error
