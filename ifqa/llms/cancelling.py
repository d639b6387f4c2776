"""Ends what a thread asks a language model as soon as nobody waits for the answer."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar

_cancelled: ContextVar["Future[None] | None"] = ContextVar("cancelled", default=None)


@contextmanager
def cancellable(cancelled: "Future[None]") -> Iterator[None]:
    """Within the block and this thread, requests to a server end with `asyncio.CancelledError` once `cancelled` is done."""
    before = _cancelled.set(cancelled)
    try:
        yield
    finally:
        _cancelled.reset(before)


def cancellation() -> "Future[None] | None":
    """What cancels this thread's requests when it is done; None for nothing."""
    return _cancelled.get()
