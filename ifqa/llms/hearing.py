"""Hears a completion while it is generated: whoever waits for an answer can show it piece by piece.

What listens stands beside the requests, not in them: a completion is the same, and stored the same, whether it is heard or not.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ifqa.llms.completions import LONGEST_TEXT
from ifqa.llms.failures import blot, secrets_of

if TYPE_CHECKING:
    import openai

Heard = Callable[[str], None]  #: called with the text so far; a failed request that is tried again begins with ""

_listener: ContextVar[Heard | None] = ContextVar("listener", default=None)


@contextmanager
def listening(heard: Heard | None) -> Iterator[None]:
    """Within the block and this thread, `heard` hears the first request of each call of `LanguageModel.complete`."""
    before = _listener.set(heard)
    try:
        yield
    finally:
        _listener.reset(before)


def listener() -> Heard | None:
    """Who listens in this thread; None for nobody."""
    return _listener.get()


class Pieces:
    """Adds up the pieces of a streamed answer of OpenAI's API, and lets `heard` hear the text so far.

    Args:
        chat: whether the pieces are a chat's.
        heard: gets the text without `secret`, and without an end that may begin it.
        secret: the key that the server was sent, which it may repeat; "" if it was sent none.
    """

    def __init__(self, chat: bool, heard: Heard, secret: str = "") -> None:
        self._chat, self._heard, self._secret = chat, heard, secret
        self._text = self._refusal = ""
        self._came, self._finish, self._usage = False, "", None
        heard("")

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
        said = choice.get("delta") if self._chat else choice
        if not isinstance(said, dict):
            return
        text, refusal = said.get("content" if self._chat else "text"), said.get("refusal")
        self._came |= isinstance(text, str)
        self._refusal += refusal if isinstance(refusal, str) else ""
        if isinstance(text, str) and text:
            self._text += text
            self._heard(self._shown())

    def whole(self) -> dict[str, Any]:
        """The answer as the server sends it in one piece, as `read_answer` takes it; without choices if it was cut off."""
        text = self._text if self._came and (self._text or not self._refusal) else None
        said: dict[str, Any] = {"text": text}
        if self._chat:
            said = {"message": {"content": text, "refusal": self._refusal or None}}
        choices = [said | {"finish_reason": self._finish}] if self._finish else []
        return {"choices": choices, "usage": self._usage}

    def _shown(self) -> str:
        text, held = blot(self._text, self._secret), 0
        for secret in secrets_of(self._secret):
            longest = min(len(text), len(secret) - 1)
            held = max(held, next((size for size in range(longest, 3, -1) if secret.startswith(text[-size:])), 0))
        return text[: len(text) - held][:LONGEST_TEXT]


async def heard_body(
    client: "openai.AsyncOpenAI", path: str, arguments: dict[str, Any], chat: bool, heard: Heard, secret: str
) -> bytes:
    """Ask OpenAI's API for an answer in pieces; gives the body that the server would have sent in one piece.

    Raises:
        openai.APIError: as the client's `post`; or the server says within the stream that it failed.
    """
    import openai

    asked = arguments | {"stream": True, "stream_options": {"include_usage": True}}
    stream = await client.post(path, body=asked, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object])
    if "text/event-stream" not in stream.response.headers.get("content-type", ""):
        return await stream.response.aread()  # a server that sends its answers whole
    pieces = Pieces(chat, heard, secret)
    try:
        async for piece in stream:
            pieces.add(piece)
    except ValueError:  # a piece that is no JSON
        return b""
    return json.dumps(pieces.whole()).encode()
