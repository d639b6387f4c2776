"""What a caller does while completions are generated: hears a text, or cancels the requests.

Neither affects the requests, the cache's keys or the stored completions.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar

#: Called with the text so far; a failed request that is tried again begins with "".
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
    """The callback of this thread; None for none."""
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
    """What cancels the requests of this thread when it is done; None for nothing."""
    return _cancelled.get()
