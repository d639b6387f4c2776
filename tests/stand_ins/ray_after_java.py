"""Shows the handler of SIGSEGV with Java running, with Ray beside it, and after Ray; a script of test_tasks.py."""

import ctypes
import signal

import tasks

from ifqa.retrieval.jvm import java
from ifqa.workers.tasks import run


def handler():
    """The address of the handler, the first field of the C library's struct sigaction on Linux."""
    place = ctypes.create_string_buffer(1024)
    ctypes.CDLL(None).sigaction(int(signal.SIGSEGV), None, place)
    return hex(int.from_bytes(place.raw[:8], "little"))


if __name__ == "__main__":
    java(0)
    print(handler())
    work = run(tasks.square, range(4), workers=2, engine="ray")
    next(work)
    print(handler())
    list(work)
    print(handler())
