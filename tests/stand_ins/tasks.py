"""Functions that the tests of ifqa.workers.pool run in other processes."""

import os
import signal
import time
from pathlib import Path

from ifqa import progress
from ifqa.errors import IfqaError


def square(n):
    return n * n


def slow_square(n):
    time.sleep(0.1)
    return n * n


def process(_):
    time.sleep(0.05)
    return os.getpid()


def threads(_):
    time.sleep(0.05)
    return os.environ["OMP_NUM_THREADS"]


def gpu(_):
    time.sleep(0.05)
    return os.environ["CUDA_VISIBLE_DEVICES"]


def no_seven(n):
    if n == 7:
        raise IfqaError("seven is not allowed")
    return n


def die_once(task):
    """Die at 3; later tasks wait until each of two GPUs has one, so that none takes them all."""
    mark, n = task
    if n == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES")
    if n > 3:
        mark.with_suffix(f".{gpu}").touch()
        until = time.monotonic() + 60
        while len(list(mark.parent.glob("died.*"))) < 2 and time.monotonic() < until:
            time.sleep(0.05)
    return n, gpu


def die_at_three(n):
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def read(path):
    return path.read_bytes()


def bug_at_two(n):
    return 1 / (n - 2)


def sleep_for_ever(folder):
    Path(folder, str(os.getpid())).touch()
    time.sleep(3600)


def work_for_ever(folder):
    from ifqa.workers.pool import map_tasks

    list(map_tasks(sleep_for_ever, [folder] * 4, workers=2))


def report(number):
    progress.report(f"file {number}", 0.5)
    return number
