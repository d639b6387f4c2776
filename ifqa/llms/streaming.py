"""Shows a completion while it is generated: whoever waits for an answer can print it piece by piece.

Streaming does not affect the requests, the cache's keys or the stored completions.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ifqa.llms.cache import LONGEST_TEXT
from ifqa.llms.response_parsing import forms_of, without_key

TextCallback = Callable[
    [str], None
]  #: called with the text so far; a failed request that is tried again begins with ""

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


class StreamedAnswer:
    """Adds up the pieces of a streamed answer of OpenAI's API, and gives `on_text` the text so far.

    Args:
        chat: whether the pieces are a chat's.
        on_text: gets the text without `key`, and without an end that may begin it.
        key: that the server was sent, and may repeat; "" if it was sent none.
    """

    def __init__(self, chat: bool, on_text: TextCallback, key: str = "") -> None:
        self._chat, self._on_text, self._key = chat, on_text, key
        self._text: str | None = None
        self._refusal, self._finish, self._usage = "", "", None
        on_text("")

    def add(self, piece: object) -> None:
        """Take the next piece; one that is not as the API has it adds nothing."""
        if not isinstance(piece, dict):
            return
        self._usage = piece.get("usage") or self._usage
        choices = piece.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict) or choice.get("index"):  # of several answers the first
            return
        self._finish = choice.get("finish_reason") or self._finish
        delta = choice.get("delta") if self._chat else choice
        if not isinstance(delta, dict):
            return
        text, refusal = delta.get("content" if self._chat else "text"), delta.get("refusal")
        self._refusal += refusal if isinstance(refusal, str) else ""
        if isinstance(text, str):
            self._text = (self._text or "") + text
            if text:
                self._on_text(self._shown(self._text))

    def whole(self) -> dict[str, Any]:
        """The answer as the server sends it in one piece, as `read_answer` takes it; without choices if it was cut off."""
        text = None if self._refusal and not self._text else self._text
        answer: dict[str, Any] = {"text": text}
        if self._chat:
            answer = {"message": {"content": text, "refusal": self._refusal or None}}
        choices = [answer | {"finish_reason": self._finish}] if self._finish else []
        return {"choices": choices, "usage": self._usage}

    def _shown(self, text: str) -> str:
        text, held = without_key(text, self._key), 0
        for form in forms_of(self._key):
            longest = min(len(text), len(form) - 1)
            held = max(held, next((size for size in range(longest, 3, -1) if form.startswith(text[-size:])), 0))
        return text[: len(text) - held][:LONGEST_TEXT]
