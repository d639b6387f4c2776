"""Signal handlers that libraries of C and Java have put in place, kept while another library puts its own there.

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
