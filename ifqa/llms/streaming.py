"""Streaming and cancellation of completions.

Neither affects requests, cache keys or stored completions.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

_T = TypeVar("_T")
#: Called with the text so far; a retried request starts again with "".
TextCallback = Callable[[str], None]

_callback: ContextVar[TextCallback | None] = ContextVar("callback", default=None)
_cancelled: ContextVar["Future[None] | None"] = ContextVar("cancelled", default=None)
text_callback = _callback.get  # the callback of this thread, if any
cancellation = _cancelled.get  # the future whose completion cancels this thread's requests, if any


@contextmanager
def _bind(variable: ContextVar[_T], content: _T) -> Iterator[None]:
    before = variable.set(content)
    try:
        yield
    finally:
        variable.reset(before)


def streaming(on_text: TextCallback | None) -> AbstractContextManager[None]:
    """Within the block and this thread, `on_text` gets the text of the first request of each
    `LanguageModel.complete`.
    """
    return _bind(_callback, on_text)


def cancellable(cancelled: "Future[None]") -> AbstractContextManager[None]:
    """Within the block and this thread, requests to a server end with `asyncio.CancelledError` once
    `cancelled` is done.
    """
    return _bind(_cancelled, cancelled)
