"""Run a function over many tasks on a Ray cluster."""

import ctypes
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from ifqa.errors import IfqaError
from ifqa.workers.local import ATTEMPTS, died

Task = TypeVar("Task")
Result = TypeVar("Result")

_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTERM")
_ROOM = 1024  # bytes, more than any system's struct sigaction has


def on_ray(
    function: Callable[[Task], Result], tasks: Iterator[Task], workers: int, gpus: int, name: Callable[[Task], str]
) -> Iterator[tuple[Task, Result]]:
    """Yield each task and its result, as `ifqa.workers.tasks.run` does."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray sends usage statistics by default
    try:
        import ray
    except ModuleNotFoundError as error:
        raise IfqaError("engine 'ray' needs ray; install it with: pip install 'ifqa[ray]'") from error
    started = not ray.is_initialized()
    if started:
        with _handlers_kept():
            _join_cluster(ray)
    remote = ray.remote(max_retries=ATTEMPTS - 1, num_gpus=1 if gpus else 0)(function)
    most = workers or 2 * int(ray.cluster_resources().get("CPU", 1))  # type: ignore[no-untyped-call]
    running: dict[ray.ObjectRef[Result], Task] = {}
    failure: Exception | None = None
    more = True
    try:
        while running or (more and not failure):
            if more and not failure and len(running) < most:
                batch = list(islice(tasks, 1))
                running |= {remote.remote(task): task for task in batch}
                more = bool(batch)
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
                failure = failure or died(name(finished), type(error).__name__)
    finally:
        if started:
            with _handlers_kept():
                ray.shutdown()
    if failure:
        raise failure


@contextmanager
def _handlers_kept() -> Iterator[None]:
    """Restore the C handlers of all crash signals on leaving; Python's `signal` module knows only Python's handlers.

    Java stops its threads by a fault that its SIGSEGV handler answers. Ray replaces the handler, and on shutdown sets the
    default one, with which the next such fault ends the process.
    """
    if os.name != "posix":  # Windows has no such handlers
        yield
        return
    sigaction = ctypes.CDLL(None).sigaction
    before = {signal.Signals[name]: ctypes.create_string_buffer(_ROOM) for name in _SIGNALS}
    for number, handler in before.items():
        sigaction(int(number), None, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            sigaction(int(number), handler, None)


def _join_cluster(ray: Any) -> None:
    """Connect to the cluster that RAY_ADDRESS names, or start a cluster on this machine."""
    address = os.environ.get("RAY_ADDRESS", "")
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    try:
        if colon:  # Ray would retry for minutes
            socket.create_connection((host, int(port)), timeout=10).close()
        ray.init(log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    except (OSError, ValueError, RuntimeError) as error:
        wanted = "wanted the address of a running cluster, as host:6379, or no RAY_ADDRESS to start one here"
        raise IfqaError(f"Ray cannot be reached (RAY_ADDRESS={address!r}: {error}); {wanted}") from error
