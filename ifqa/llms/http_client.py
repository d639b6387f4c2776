"""Sends one request with OpenAI's client, without retries, and classifies the response: a completion or a kind of failure.

Bodies have a maximum size, so that no server fills the memory. The key is removed from every text that the server returns.
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
from ifqa.llms.credentials import MAX_MESSAGE, NO_KEY, is_local, is_openai, is_trusted, key_forms, redact, remove_key
from ifqa.llms.streaming import TextCallback
from ifqa.records import Completion

CONNECT = 10.0  # seconds until a server counts as down
LONGEST_BODY = 16_000_000  # bytes; an answer of 100,000 tokens takes a few hundred thousand
_NEEDED = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
_PLAIN = {"Accept-Encoding": "identity"}  # no compression: bytes received are bytes in memory
# Error codes that concern a single prompt; servers other than OpenAI's use messages instead
_REQUEST_ERRORS = {
    "context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "content_filter",
    "content_policy_violation", "invalid_prompt",
}  # fmt: skip
_REQUEST_ERROR = re.compile(r"context (length|window|size)|content (filter|management) policy|prompt is too long", re.I)
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_HINTS = {
    401: " (check OPENAI_API_KEY, or the variable in IFQA_KEYS)",
    403: " (the key may not use this model)",
    404: " (check the model and base_url)",
}
_MOST_TOKENS = 10**9  # upper bound for a plausible count
_SHORTEST_KEY = 8  # characters; a shorter key may be a word of an answer


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no completion."""

    #: "retry" if another try may help, "fail" if only this request fails, "stop" if every request would fail.
    action: Literal["retry", "fail", "stop"]
    message: str  # one line, without secrets
    wait: float | None = None  # seconds that the server asks to wait before a retry
    used: tuple[int, int] | None = (0, 0)  # tokens of prompt and answer used nevertheless; None if unknown
    unreachable: bool = False  # no connection was made
    server_down: bool = False  # no connection, no answer, or HTTP 5xx: another server may do better


def parse_response(body: bytes, chat: bool, stop: Sequence[str] = ()) -> Completion | Failure:
    """The completion in the body of a response, or why there is none.

    The text is cut before the first stop string, which some servers leave in. A chat's refusal counts as its text. An empty text
    is an answer, unless the limit on tokens was reached before the text began.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        return Failure("retry", "the response is not a JSON object, or is truncated", used=None)
    used, choice = _parse_usage(answer.get("usage")), _first_choice(answer)
    message = choice.get("message") if chat else choice
    if not isinstance(message, dict):
        return Failure("retry", "the response has no text", used=used)
    text, finish = message.get("content" if chat else "text"), str(choice.get("finish_reason") or "")
    if text is None and chat:
        text = message.get("refusal")
    if finish == "content_filter" and not text:
        return Failure("fail", "the server's content filter blocked the answer", used=used)
    if finish == "length" and not text:
        return Failure("fail", "max_tokens was reached before any text (reasoning?); raise it", used=used)
    if not isinstance(text, str):
        return Failure("retry", "the response has no text", used=used)
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # UTF-8 has no lone surrogates
    end = min((text.index(string) for string in stop if string in text), default=len(text))
    if end < len(text):
        text, finish = text[:end], "stop"
    return Completion(text, *(used or (0, 0)), finish, cached_prompt_tokens=_cached_tokens(answer.get("usage")))


def _first_choice(answer: Mapping[str, object]) -> dict[str, Any]:
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _parse_usage(usage: object) -> tuple[int, int] | None:
    """Tokens of prompt and answer; None unless the server reports plausible numbers for both."""
    counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")] if isinstance(usage, dict) else []
    known = [count for count in counts if type(count) is int and 0 <= count <= _MOST_TOKENS]
    return (known[0], known[1]) if len(known) == 2 else None


def _cached_tokens(usage: object) -> int:
    """Tokens of the prompt that the server had read before; 0 if it reports no plausible number."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    count = details.get("cached_tokens") if isinstance(details, dict) else 0
    return count if type(count) is int and 0 <= count <= _MOST_TOKENS else 0


def _classify_status(error: openai.APIStatusError, key: str) -> Failure:
    """The failure of a response with a status other than 2xx.

    408, 409, 429 and 5xx are retried, unless a quota is used up. A 413 fails its request alone; so does a 400 about length or
    content. Every other status (a bad key, no such model, an unsupported parameter) stops all requests.
    """
    status = error.status_code
    code, message = parse_error_body(error.body)
    line = redact(f"HTTP {status}: {message}", key)
    if code in _QUOTA:
        return Failure("stop", f"{line} (the quota is used up; add credit, or wait for the next period)")
    if status in (408, 409, 429) or status >= 500:
        # A refusal is free; behind a gateway that timed out, the server may have done the work
        used = None if status >= 500 and status != 503 else (0, 0)
        return Failure("retry", line, retry_after(error.response.headers), used, server_down=status >= 500)
    if 300 <= status < 400:
        host = urlsplit(error.response.headers.get("location", "")).netloc or "another address"
        mend = "which is not followed; if you trust that host, set base_url to it"
        return Failure("stop", f"HTTP {status}: a redirect to {redact(host[:100], key)}, {mend}")
    if status == 413 or (status == 400 and (code in _REQUEST_ERRORS or _REQUEST_ERROR.search(message))):
        return Failure("fail", line)
    return Failure("stop", line + _HINTS.get(status, ""))


def parse_error_body(body: object) -> tuple[str, str]:
    """Code and message of an error's body, in any of the common formats."""
    if not isinstance(body, Mapping):
        return "", str(body or "no message")
    codes = [str(body[name]) for name in ("code", "type") if body.get(name)]
    code = next((code for code in codes if code in _REQUEST_ERRORS | _QUOTA), codes[0] if codes else "")
    message = next((body[name] for name in ("message", "detail", "error") if body.get(name)), body)
    return code, message if isinstance(message, str) else json.dumps(message)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from a header with milliseconds, seconds or a date; None without such a header."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            return max(0.0, float(headers.get(name, "")) / unit)
        except ValueError:
            continue
    try:
        retry_date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, retry_date.timestamp() - time.time())


class StreamedAnswer:
    """Assembles the chunks of an answer streamed by OpenAI's API, and calls `on_text` with the text so far.

    `on_text` gets the text without `key`, which the server may repeat, and without an ending that may be the start of `key`.
    """

    def __init__(self, chat: bool, on_text: TextCallback, key: str = "") -> None:
        self._chat, self._on_text, self._key = chat, on_text, key
        self._text: str | None = None
        self._refusal, self._finish = "", ""
        self._usage: object = None
        on_text("")

    def add(self, chunk: object) -> None:
        """Add the next chunk; malformed chunks are ignored."""
        if not isinstance(chunk, dict):
            return
        self._usage = chunk.get("usage") or self._usage
        choice = _first_choice(chunk)
        if choice.get("index"):  # a later choice
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
                self._on_text(self._visible_text(self._text))

    def to_response(self) -> dict[str, object]:
        """The response as it would be without streaming, for `parse_response`; without choices if the stream broke off."""
        text = None if self._refusal and not self._text else self._text
        answer: dict[str, object] = {"text": text}
        if self._chat:
            answer = {"message": {"content": text, "refusal": self._refusal or None}}
        choices = [answer | {"finish_reason": self._finish}] if self._finish else []
        return {"choices": choices, "usage": self._usage}

    def _visible_text(self, text: str) -> str:
        text, held = remove_key(text, self._key), 0
        for form in key_forms(self._key):
            longest = min(len(text), len(form) - 1)
            held = max(held, next((size for size in range(longest, 3, -1) if form.startswith(text[-size:])), 0))
        return text[: len(text) - held][:LONGEST_TEXT]


class _BodyRefused(httpx2.RequestError):  # a subclass, so that the library reports it as a connection error
    """A body is too long or compressed; it was not read."""


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, longest: int) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream, self._longest = response.stream, longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._longest:
                raise _BodyRefused(f"the answer's body has more than {self._longest:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _limit_body(longest: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A hook that limits the size of a response's body. A compressed body is refused, as few bytes can expand to many."""

    async def limit(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            what = f"the answer's body is compressed ({encoding[:40]})"
            raise _BodyRefused(f"{what}, although plain bytes were requested")
        response.stream = _LimitedStream(response, longest)

    return limit


def _strip_headers(key: str) -> Callable[[httpx2.Request], Awaitable[None]]:
    """A hook that removes all headers but the needed ones and the key: the library sends some from the environment."""

    async def strip(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _NEEDED]:
            del request.headers[name]
        request.headers["Authorization"] = f"Bearer {key}"

    return strip


def open_client(url: str, key: str, timeout: float, longest: int = 0) -> openai.AsyncOpenAI:
    """A client that neither follows redirects nor retries. It uses the environment's proxy, except for local servers.

    A response's body has up to `longest` bytes; 0 for LONGEST_BODY.
    """
    http = openai.DefaultAsyncHttpxClient(
        trust_env=not is_local(url), follow_redirects=False, headers=_PLAIN,
        event_hooks={
            "response": [_limit_body(longest or LONGEST_BODY)],
            "request": [] if is_trusted(url) else [_strip_headers(key)],
        },
    )  # fmt: skip
    limits = openai.Timeout(timeout, connect=min(timeout, CONNECT))
    client = openai.AsyncOpenAI(api_key=key, base_url=url, timeout=limits, max_retries=0, http_client=http)
    if not is_openai(url):
        client.organization = client.project = None  # the library takes both from the environment
    return client


async def send(
    client: openai.AsyncOpenAI, arguments: dict[str, object], timeout: float, on_text: TextCallback | None
) -> Completion | Failure:
    """Send a request once, with the API's arguments; the answer is streamed if `on_text` is set."""
    key = "" if client.api_key == NO_KEY else client.api_key
    chat, stop = "messages" in arguments, arguments.get("stop")
    # The client's methods for these endpoints check types, which takes longer than everything else
    path = "/chat/completions" if chat else "/completions"
    try:
        async with asyncio.timeout(timeout):  # the library's own timeout restarts with every byte
            if on_text:
                body = await _send_streaming(client, path, arguments, on_text, _searched(key))
            else:
                body = (await client.post(path, body=arguments, cast_to=httpx2.Response)).content
        reply = parse_response(body, chat, stop if isinstance(stop, list) else ())
    except (openai.APIError, TimeoutError) as error:
        reply = classify_error(error, key, timeout)
    return remove_secrets(reply, key)


def tokens_used(reply: Completion | Failure) -> tuple[tuple[int, int] | None, int]:
    """Tokens of prompt and answer that a reply used, or None if unknown; and those of the prompt that the server had cached."""
    if isinstance(reply, Failure):
        return reply.used, 0
    tokens = reply.prompt_tokens, reply.completion_tokens
    return (tokens if any(tokens) else None), reply.cached_prompt_tokens


def _searched(key: str) -> str:
    """The key to remove from answers; none if it is so short that it may be a word."""
    return key if len(key) >= _SHORTEST_KEY else ""


def remove_secrets(reply: Completion | Failure, key: str) -> Completion | Failure:
    """A reply without the key, cut to the longest text that is stored."""
    if isinstance(reply, Failure):
        return replace(reply, message=remove_key(reply.message, key)[: 2 * MAX_MESSAGE])
    searched = _searched(key)
    text, finish = remove_key(reply.text, searched), redact(reply.finish, searched)
    return truncate_completion(replace(reply, text=text, finish=finish))


async def _send_streaming(
    client: openai.AsyncOpenAI, path: str, arguments: dict[str, object], on_text: TextCallback, key: str
) -> bytes:
    """Send a streaming request; returns the body that it would have without streaming."""
    options = arguments | {"stream": True, "stream_options": {"include_usage": True}}
    stream = await client.post(path, body=options, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object])
    if "text/event-stream" not in stream.response.headers.get("content-type", ""):
        return await stream.response.aread()  # a server without streaming
    answer = StreamedAnswer("messages" in arguments, on_text, key)
    try:
        async for chunk in stream:
            answer.add(chunk)
    except ValueError:  # a chunk is not JSON
        return b""
    return json.dumps(answer.to_response()).encode()


def classify_error(error: openai.APIError | TimeoutError, key: str, timeout: float) -> Failure:
    """The failure that an error of the client means."""
    if isinstance(error, openai.APIStatusError):
        return _classify_status(error, key)
    if not isinstance(error, openai.APIConnectionError | TimeoutError):  # an error event within a stream
        return Failure("retry", redact(f"the answer broke off: {error}", key), used=None)
    cause = error.__cause__ or error
    if isinstance(cause, _BodyRefused):
        return Failure("fail", redact(str(cause), key), used=None)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return Failure("retry", redact(f"cannot connect ({cause})", key), unreachable=True, server_down=True)
    if isinstance(error, openai.APITimeoutError | TimeoutError):
        return Failure("retry", f"no answer within {timeout:g} s", used=None, server_down=True)
    lost = redact(f"connection lost ({cause or type(cause).__name__})", key)
    return Failure("retry", lost, used=None, server_down=True)
