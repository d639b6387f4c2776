"""Sends one request by OpenAI's client, once, and reads the response: a completion, or what the failure means.

The size of bodies is limited, so that no server fills the memory, and every text that comes back is without the key.
"""

import asyncio
import email.utils
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import openai

from ifqa.llms.cache import LONGEST_TEXT, truncate_completion
from ifqa.llms.credentials import (
    LONGEST_MESSAGE,
    NO_KEY,
    is_local,
    is_openai,
    key_encodings,
    redact,
    remove_key,
    takes_openai_key,
)
from ifqa.llms.streaming import TextCallback
from ifqa.records import Completion

CONNECT = 10.0  # seconds to connect; after that the server counts as down
LONGEST_BODY = 16_000_000  # bytes; an answer of 100,000 tokens has some hundred thousand
_NEEDED = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
_PLAIN = {"Accept-Encoding": "identity"}  # no compression, so that counted bytes are bytes in memory
# Codes of errors that concern one prompt alone; servers other than OpenAI's say it in words
_REQUEST_ERROR_CODES = {
    "context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "content_filter",
    "content_policy_violation", "invalid_prompt",
}  # fmt: skip
_REQUEST_ERROR_PATTERN = re.compile(
    r"context (length|window|size)|content (filter|management) policy|prompt is too long", re.I
)
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_HINTS = {
    401: " (check OPENAI_API_KEY, or the variable in IFQA_KEYS)",
    403: " (the key may not use this model)",
    404: " (check the model and base_url)",
}
_MOST_TOKENS = 10**9  # of one answer; no window is nearly as large
_SHORTEST_KEY = 8  # characters; a shorter key may be a word of an answer


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no completion.

    Attributes:
        verdict: "again" if another try may help, "alone" if only this request fails, "all" if every other request
            would fail too.
        words: the reason in one line, without secrets.
        wait: seconds to wait before the next try, as the server asks; None if it does not.
        used: tokens of prompt and answer that were used all the same; None if the server may have done the work and did
            not say how much.
        unreachable: no connection was made.
    """

    verdict: Literal["again", "alone", "all"]
    words: str
    wait: float | None = None
    used: tuple[int, int] | None = (0, 0)
    unreachable: bool = False


def _redactable_key(key: str) -> str:
    """The key, if it is long enough to be looked for in an answer; otherwise ""."""
    return key if len(key) >= _SHORTEST_KEY else ""


def _sanitize_reply(reply: Completion | Failure, key: str) -> Completion | Failure:
    """What is let in of a server's answer, before anything is stored, shown or counted.

    Every text is without the key that the server was sent ("" for none), and of bounded length.
    """
    if isinstance(reply, Failure):  # its words are the server's, shortened, and our own
        return replace(reply, words=remove_key(reply.words, key)[: 2 * LONGEST_MESSAGE])
    key = _redactable_key(key)
    return truncate_completion(replace(reply, text=remove_key(reply.text, key), finish=redact(reply.finish, key)))


def parse_response(body: bytes, chat: bool, stop: Sequence[str] = ()) -> Completion | Failure:
    """The completion in the body of a response, or why there is none.

    The text ends before the first of the stop strings, as some servers leave them in. A chat's refusal is its text. An
    empty text is an answer, unless the limit on tokens was reached before the text began.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        return Failure("again", "the answer is no JSON object, or is cut short", used=None)
    used, choice = _parse_usage(answer.get("usage")), _first_choice(answer)
    message = choice.get("message") if chat else choice
    if not isinstance(message, dict):
        return Failure("again", "the answer has no text in it", used=used)
    text, finish = message.get("content" if chat else "text"), str(choice.get("finish_reason") or "")
    if text is None and chat:
        text = message.get("refusal")
    if finish == "content_filter" and not text:
        return Failure("alone", "the server's content filter held the answer back", used=used)
    if finish == "length" and not text:
        return Failure("alone", "max_tokens was used up before any text (reasoning?); raise it", used=used)
    if not isinstance(text, str):
        return Failure("again", "the answer has no text in it", used=used)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # UTF-8 has no lone surrogates
    end = min((text.index(string) for string in stop if string in text), default=len(text))
    if end < len(text):
        text, finish = text[:end], "stop"
    return Completion(text, *(used or (0, 0)), finish)


def _first_choice(answer: Mapping[str, object]) -> dict[str, Any]:
    """The first of several answers; empty if there is none."""
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _parse_usage(usage: object) -> tuple[int, int] | None:
    """Tokens of the prompt and the answer; None if the server does not give both as possible numbers."""
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(usage, dict) else []
    known = [count for count in counts if type(count) is int and 0 <= count <= _MOST_TOKENS]
    return (known[0], known[1]) if len(known) == 2 else None


def _classify_status(error: openai.APIStatusError, key: str) -> Failure:
    """What a response with a status other than 2xx means.

    408, 409, 429 and 5xx are tried again, except when a quota is used up. A 413 concerns its request alone. So does a 400
    if its code or message is about length or content (a context too long, a filter). Every other status (a bad key, no
    such model, a parameter the model does not take) stops everything.
    """
    status = error.status_code
    code, words = _parse_error_body(error.body)
    line = redact(f"HTTP {status}: {words}", key)
    if code in _QUOTA:
        return Failure("all", f"{line} (no quota is left; add credit, or wait for the next period)")
    if status in (408, 409, 429) or status >= 500:
        # A refusal is free; if a gateway gave up, the server behind it may have done the work
        used = None if status >= 500 and status != 503 else (0, 0)
        return Failure("again", line, retry_after(error.response.headers), used)
    if 300 <= status < 400:
        there = urlsplit(error.response.headers.get("location", "")).netloc or "another place"
        mend = "which is not followed; if you trust that host, set base_url to it"
        return Failure("all", f"HTTP {status}: a redirect to {redact(there[:100], key)}, {mend}")
    if status == 413 or (status == 400 and (code in _REQUEST_ERROR_CODES or _REQUEST_ERROR_PATTERN.search(words))):
        return Failure("alone", line)
    return Failure("all", line + _HINTS.get(status, ""))


def _parse_error_body(body: object) -> tuple[str, str]:
    """Code and message of an error's body, in any of the common shapes."""
    if not isinstance(body, Mapping):
        return "", str(body or "no words")
    codes = [str(body[name]) for name in ("code", "type") if body.get(name)]
    code = next((code for code in codes if code in _REQUEST_ERROR_CODES | _QUOTA), codes[0] if codes else "")
    words = next((body[name] for name in ("message", "detail", "error") if body.get(name)), body)
    return code, words if isinstance(words, str) else json.dumps(words)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from a response's headers: milliseconds, seconds, or a date; None if the headers do not say."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers.get(name, "")) / unit)
        except ValueError:
            continue
    try:
        then = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, then.timestamp() - time.time())


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
        self._refusal, self._finish = "", ""
        self._usage: object = None
        on_text("")

    def add(self, piece: object) -> None:
        """Take the next piece; one that is not as the API has it adds nothing."""
        if not isinstance(piece, dict):
            return
        self._usage = piece.get("usage") or self._usage
        choice = _first_choice(piece)
        if choice.get("index"):  # of several answers the first
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

    def whole(self) -> dict[str, object]:
        """The answer as the server sends it in one piece, as `parse_response` takes it; without choices if it was cut off."""
        text = None if self._refusal and not self._text else self._text
        answer: dict[str, object] = {"text": text}
        if self._chat:
            answer = {"message": {"content": text, "refusal": self._refusal or None}}
        choices = [answer | {"finish_reason": self._finish}] if self._finish else []
        return {"choices": choices, "usage": self._usage}

    def _shown(self, text: str) -> str:
        text, held = remove_key(text, self._key), 0
        for form in key_encodings(self._key):
            longest = min(len(text), len(form) - 1)
            held = max(held, next((size for size in range(longest, 3, -1) if form.startswith(text[-size:])), 0))
        return text[: len(text) - held][:LONGEST_TEXT]


class _BodyRefused(httpx2.RequestError):  # the library passes on every error of a connection
    """A body was not read: it is too long, or compressed."""


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response) -> None:
        self._stream = response.stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        if isinstance(self._stream, httpx2.AsyncByteStream):  # true of every asynchronous client
            async for chunk in self._stream:
                size += len(chunk)
                if size > LONGEST_BODY:
                    raise _BodyRefused(f"the answer's body has more than {LONGEST_BODY:,} bytes")
                yield chunk

    async def aclose(self) -> None:
        if isinstance(self._stream, httpx2.AsyncByteStream):
            await self._stream.aclose()


async def _limit_body(response: httpx2.Response) -> None:
    """Limit the length of a response's body, whatever its status. A compressed one is refused: few bytes can become many."""
    packing = response.headers.get("content-encoding", "identity")
    if packing.lower() != "identity":
        raise _BodyRefused(f"the answer's body is compressed ({packing[:40]}), although plain bytes were requested")
    response.stream = _LimitedStream(response)


def _strip_headers(key: str) -> Callable[[httpx2.Request], Awaitable[None]]:
    """Leave a request no header but the needed ones and the key: the library adds those of the environment for any host."""

    async def strip(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _NEEDED]:
            del request.headers[name]
        request.headers["Authorization"] = f"Bearer {key}"

    return strip


def open_client(url: str, key: str, timeout: float) -> openai.AsyncOpenAI:
    """A client for a server. It follows no redirect and tries nothing again; the environment's proxy is not for this machine."""
    web = openai.DefaultAsyncHttpxClient(
        trust_env=not is_local(url), follow_redirects=False, headers=_PLAIN,
        event_hooks={"response": [_limit_body], "request": [] if takes_openai_key(url) else [_strip_headers(key)]},
    )  # fmt: skip
    limits = openai.Timeout(timeout, connect=min(timeout, CONNECT))
    client = openai.AsyncOpenAI(api_key=key, base_url=url, timeout=limits, max_retries=0, http_client=web)
    if not is_openai(url):
        client.organization = client.project = None  # the library takes both from the environment
    return client


async def send(
    client: openai.AsyncOpenAI, arguments: dict[str, object], timeout: float, on_text: TextCallback | None
) -> Completion | Failure:
    """Send a request once, with the API's arguments, streamed if anybody reads along; all that comes back is `admitted`."""
    key = "" if client.api_key == NO_KEY else client.api_key
    chat, stop = "messages" in arguments, arguments.get("stop")
    # Not the methods for the endpoints: they spend more time on checking types than all the rest takes
    path = "/chat/completions" if chat else "/completions"
    try:
        async with asyncio.timeout(timeout):  # the library's own timeout restarts with every byte
            if on_text:
                body = await _send_streaming(client, path, arguments, on_text, _redactable_key(key))
            else:
                body = (await client.post(path, body=arguments, cast_to=httpx2.Response)).content
        reply = parse_response(body, chat, stop if isinstance(stop, list) else ())
    except (openai.APIError, TimeoutError) as error:
        reply = _classify_error(error, key, timeout)
    return _sanitize_reply(reply, key)


async def _send_streaming(
    client: openai.AsyncOpenAI, path: str, arguments: dict[str, object], on_text: TextCallback, key: str
) -> bytes:
    """The body that the server would have sent in one piece."""
    options = arguments | {"stream": True, "stream_options": {"include_usage": True}}
    stream = await client.post(path, body=options, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object])
    if "text/event-stream" not in stream.response.headers.get("content-type", ""):
        return await stream.response.aread()  # a server that sends its answers whole
    answer = StreamedAnswer("messages" in arguments, on_text, key)
    try:
        async for piece in stream:
            answer.add(piece)
    except ValueError:  # a piece that is no JSON
        return b""
    return json.dumps(answer.whole()).encode()


def _classify_error(error: openai.APIError | TimeoutError, key: str, timeout: float) -> Failure:
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error, key)
    if not isinstance(error, openai.APIConnectionError | TimeoutError):  # the server says it within a stream
        return Failure("again", redact(f"the answer broke off: {error}", key), used=None)
    cause = error.__cause__ or error
    if isinstance(cause, _BodyRefused):
        return Failure("alone", redact(str(cause), key), used=None)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return Failure("again", redact(f"cannot connect ({cause})", key), unreachable=True)
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Failure("again", f"no answer within {timeout:g} s", used=None)
    return Failure("again", redact(f"connection lost ({cause or type(cause).__name__})", key), used=None)
