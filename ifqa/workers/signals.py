"""Signals: block Ctrl-C while a process starts, and restore Java's signal handlers after Ray replaced them.

The Java machine relies on its SIGSEGV handler: it stops its threads by a fault that the handler answers. Ray replaces the
handler, and on shutdown sets the default handler, with which the next such fault ends the process.
"""

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

_SIGNALS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTERM")
_ROOM = 1024  # bytes, more than any system's struct sigaction has


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Restore the C handlers of all crash signals on leaving; Python's `signal` module knows only Python's handlers."""
    if os.name != "posix":  # Windows has no such handlers
        yield
        return
    sigaction = ctypes.CDLL(None).sigaction
    before = {getattr(signal, name): ctypes.create_string_buffer(_ROOM) for name in _SIGNALS}
    for number, handler in before.items():
        sigaction(int(number), None, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            sigaction(int(number), handler, None)


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Block SIGINT in the block; a process started there inherits that (Ctrl-C reaches every process of a terminal)."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
