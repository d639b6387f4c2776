"""Shows a completion while it is generated: whoever waits for an answer can print it piece by piece.

Streaming does not affect the requests, the cache's keys or the stored completions.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Called with the text so far; a failed request that is tried again begins with "".
TextCallback = Callable[[str], None]

_callback: ContextVar[TextCallback | None] = ContextVar("callback", default=None)


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
