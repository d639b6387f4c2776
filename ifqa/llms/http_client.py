"""Sends one request with OpenAI's client, without retries.

Bodies have a maximum size, so that no server fills the memory. The key is removed from every text
that the server returns.
"""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import httpx2
import openai

from ifqa.errors import ConfigError
from ifqa.llms.cache import truncate_completion
from ifqa.llms.credentials import (
    MAX_MESSAGE,
    NO_KEY,
    is_local,
    is_openai,
    is_trusted,
    redact,
    remove_key,
)
from ifqa.llms.request_form import TOOLS
from ifqa.llms.response_parsing import Failure, StreamedAnswer, classify_status, parse_response
from ifqa.llms.streaming import TextCallback
from ifqa.records import Completion, ToolCall

CONNECT = 10.0  # seconds until a server counts as down
LONGEST_BODY = 16_000_000  # bytes; an answer of 100,000 tokens takes a few hundred thousand
_NEEDED = {
    "host",
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "user-agent",
}
_PLAIN = {"Accept-Encoding": "identity"}  # no compression: bytes received are bytes in memory
_SHORTEST_KEY = 8  # characters; a shorter key may be a word of an answer
_UNTRUSTED = "CERTIFICATE_VERIFY_FAILED"
_NO_TLS = "WRONG_VERSION_NUMBER"


# A subclass, so that the library reports it as a connection error
class _BodyRefused(httpx2.RequestError):
    """A body is too long or compressed; it was not read."""


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpx2.Response, longest: int) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        self._stream = response.stream
        self._longest = longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._longest:
                raise _BodyRefused(f"the answer's body has more than {self._longest:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _limit_body(response: httpx2.Response) -> None:
    """Limit the size of a response's body.

    A compressed body is refused, as few bytes can expand to many.
    """
    encoding = response.headers.get("content-encoding", "identity")
    if encoding.lower() != "identity":
        what = f"the answer's body is compressed ({encoding[:40]})"
        raise _BodyRefused(f"{what}, although plain bytes were requested")
    response.stream = _LimitedStream(response, LONGEST_BODY)


def _strip_headers(key: str) -> Callable[[httpx2.Request], Awaitable[None]]:
    """A hook that removes all headers but the needed ones and the key: the library sends some from
    the environment.
    """

    async def strip(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _NEEDED]:
            del request.headers[name]
        request.headers["Authorization"] = f"Bearer {key}"

    return strip


def _certificates() -> ssl.SSLContext | bool:
    """The authorities of SSL_CERT_FILE or SSL_CERT_DIR, which hold for servers on this machine too.

    Else the usual ones.
    """
    file = os.environ.get("SSL_CERT_FILE") or None
    folder = os.environ.get("SSL_CERT_DIR") or None
    if not file and not folder:
        return True
    try:
        return ssl.create_default_context(cafile=file, capath=folder)
    except OSError as error:  # an SSLError too
        problem = f"{file or folder} cannot be read ({error})"
        raise ConfigError(
            f"SSL_CERT_FILE or SSL_CERT_DIR: {problem}; wanted certificates in PEM format"
        ) from error


def open_client(url: str, key: str, timeout: float | None) -> openai.AsyncOpenAI:
    """A client that neither follows redirects nor retries.

    It uses the environment's proxy, except for local servers.

    `timeout` is in seconds; None waits as long as the connection holds.
    """
    http = openai.DefaultAsyncHttpxClient(
        trust_env=not is_local(url),
        verify=_certificates(),
        follow_redirects=False,
        headers=_PLAIN,
        event_hooks={
            "response": [_limit_body],
            "request": [] if is_trusted(url) else [_strip_headers(key)],
        },
    )
    connect = CONNECT if timeout is None else min(timeout, CONNECT)
    limits = openai.Timeout(timeout, connect=connect)
    client = openai.AsyncOpenAI(
        api_key=key, base_url=url, timeout=limits, max_retries=0, http_client=http
    )
    if not is_openai(url):
        client.organization = client.project = None  # the library takes both from the environment
    return client


async def send(
    client: openai.AsyncOpenAI,
    arguments: dict[str, object],
    timeout: float | None,
    on_text: TextCallback | None = None,
) -> Completion | Failure:
    """Send a request once, with the API's arguments.

    An answer that they want streamed goes to `on_text`, too.
    """
    key = "" if client.api_key == NO_KEY else client.api_key
    # The client's methods for these endpoints check types, which takes longer than everything else
    path = "/chat/completions" if "messages" in arguments else "/completions"
    try:
        async with asyncio.timeout(timeout):  # the library's own timeout restarts with every byte
            if on_text:
                reply = await _send_streaming(client, path, arguments, on_text, key)
            else:
                response = await client.post(path, body=arguments, cast_to=httpx2.Response)
                reply = _read_whole(response, arguments, key)
    except (openai.APIError, httpx2.RequestError, TimeoutError) as error:
        reply = classify_error(error, key, timeout or 0.0, arguments)
    return remove_secrets(reply, key)


def _read_whole(
    response: httpx2.Response, arguments: dict[str, object], key: str
) -> Completion | Failure:
    """The reply in a whole body; some servers always stream."""
    chat = "messages" in arguments
    if not _is_stream(response):
        return parse_response(
            response.content, chat, _stops(arguments), key, has_tools=TOOLS in arguments
        )
    answer = StreamedAnswer(chat, lambda _: None)
    try:
        answer.add_bytes(response.content)
        answer.end()
    except ValueError:
        return Failure("once", "the stream holds something other than JSON", used=None)
    return answer.reply(_stops(arguments), key, has_tools=TOOLS in arguments)


async def _send_streaming(
    client: openai.AsyncOpenAI,
    path: str,
    arguments: dict[str, object],
    on_text: TextCallback,
    key: str,
) -> Completion | Failure:
    """Send a streaming request; returns what the whole stream says."""
    stream = await client.post(
        path, body=arguments, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object]
    )
    response = stream.response
    if not _is_stream(response):  # a server without streaming
        await response.aread()
        return _read_whole(response, arguments, key)
    answer = StreamedAnswer("messages" in arguments, on_text, _searched(key))
    try:
        # The library's iterator hides whether the stream said [DONE]
        async for content in response.aiter_bytes():
            answer.add_bytes(content)
            if answer.done or answer.error:
                break
        answer.end()
    except ValueError:
        return Failure("once", "the stream holds something other than JSON", used=None)
    finally:
        await response.aclose()
    return answer.reply(_stops(arguments), key, has_tools=TOOLS in arguments)


def _is_stream(response: httpx2.Response) -> bool:
    return "text/event-stream" in response.headers.get("content-type", "")


def _stops(arguments: dict[str, object]) -> list[str]:
    stop = arguments.get("stop")
    return stop if isinstance(stop, list) else []


def tokens_used(reply: Completion | Failure) -> tuple[tuple[int, int] | None, int]:
    """Tokens of prompt and answer that a reply used, or None if unknown.

    And those of the prompt that the server had cached.
    """
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
    finish = redact(reply.finish, searched)
    text = remove_key(reply.text, searched)
    reasoning = remove_key(reply.reasoning, searched)
    calls = tuple(
        ToolCall(remove_key(call.name, searched), remove_key(call.arguments, searched))
        for call in reply.calls
    )
    cleaned = replace(reply, text=text, finish=finish, reasoning=reasoning, calls=calls)
    return truncate_completion(cleaned)


def classify_error(
    error: openai.APIError | httpx2.RequestError | TimeoutError,
    key: str,
    timeout: float,
    sent: dict[str, object],
) -> Failure:
    """The failure that an error of the client means; `sent` are the request's arguments."""
    if isinstance(error, openai.APIStatusError):
        return classify_status(error, key, sent)
    cause = error.__cause__ if isinstance(error, openai.APIError) and error.__cause__ else error
    if isinstance(cause, _BodyRefused):
        return Failure("fail", redact(str(cause), key), used=None)
    if _NO_TLS in str(cause):
        return Failure("stop", "it does not speak TLS; wanted an address that begins with http://")
    if _UNTRUSTED in str(cause):
        mend = (
            "if it is signed by an authority of your own, name the authority's file: "
            "export SSL_CERT_FILE=ca.pem"
        )
        return Failure("stop", redact(f"its certificate is not trusted ({cause}); {mend}", key))
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        return Failure("retry", redact(f"cannot connect ({cause})", key), unreachable=True)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError):
        return Failure("retry", f"no answer within {timeout:g} s (llm.timeout)", used=None)
    return Failure(
        "retry", redact(f"connection lost ({str(cause) or type(cause).__name__})", key), used=None
    )
