"""Signals: Ctrl-C held back while a process starts, and the handlers of C and Java libraries kept beside another library's.

The Java machine lives by its handler of SIGSEGV: its threads stop, as they must now and then, by a fault that it answers.
Ray takes that handler's place, and on leaving sets the default there, by which the next such fault ends the process.
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
    """Put the handlers of all crashes back on leaving, as the C library has them; Python's `signal` knows its own alone."""
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
    """Ctrl-C goes to every process of a terminal; what starts here inherits that it is held back."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
