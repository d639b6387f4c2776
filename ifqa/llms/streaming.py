"""Streaming and cancellation of completions while they are generated.

Neither affects requests, cache keys or stored completions.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar

#: Called with the text so far; a retried request starts again with "".
TextCallback = Callable[[str], None]

_callback: ContextVar[TextCallback | None] = ContextVar("callback", default=None)
_cancelled: ContextVar["Future[None] | None"] = ContextVar("cancelled", default=None)


@contextmanager
def streaming(on_text: TextCallback | None) -> Iterator[None]:
    """Within the block and this thread, `on_text` gets the text of the first request of each `LanguageModel.complete`."""
    before = _callback.set(on_text)
    try:
        yield
    finally:
        _callback.reset(before)


def text_callback() -> TextCallback | None:
    return _callback.get()


@contextmanager
def cancellable(cancelled: "Future[None]") -> Iterator[None]:
    """Within the block and this thread, requests to a server end with `asyncio.CancelledError` once `cancelled` is done."""
    before = _cancelled.set(cancelled)
    try:
        yield
    finally:
        _cancelled.reset(before)


def cancellation() -> "Future[None] | None":
    """The future whose completion cancels this thread's requests, if any."""
    return _cancelled.get()
