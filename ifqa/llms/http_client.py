"""Sends one request by OpenAI's client, once. The size of bodies is limited, so that no server fills the memory."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import openai

from ifqa.llms.credentials import NO_KEY, is_local, is_openai, is_own, redact
from ifqa.llms.response_parsing import Failure, StreamedAnswer, admitted, key_in_answers, of_status, read_answer
from ifqa.llms.streaming import TextCallback
from ifqa.records import Completion

CONNECT = 10.0  # seconds to connect; after that the server counts as down
LONGEST_BODY = 16_000_000  # bytes; an answer of 100,000 tokens has some hundred thousand
_NEEDED = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
_PLAIN = {"Accept-Encoding": "identity"}  # no compression, so that counted bytes are bytes in memory


class _BodyRefused(httpx2.RequestError):  # the library passes on every error of a connection
    """A body was not read: it is too long, or compressed."""


class _Bounded(httpx2.AsyncByteStream):
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


async def _bound(response: httpx2.Response) -> None:
    """Limit the length of a response's body, whatever its status. A compressed one is refused: few bytes can become many."""
    packing = response.headers.get("content-encoding", "identity")
    if packing.lower() != "identity":
        raise _BodyRefused(f"the answer's body is compressed ({packing[:40]}), although plain bytes were requested")
    response.stream = _Bounded(response)


def _bare(key: str) -> Callable[[httpx2.Request], Awaitable[None]]:
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
        event_hooks={"response": [_bound], "request": [] if is_own(url) else [_bare(key)]},
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
                body = await _streamed(
                    client, path, arguments, lambda: StreamedAnswer(chat, on_text, key_in_answers(key))
                )
            else:
                body = (await client.post(path, body=arguments, cast_to=httpx2.Response)).content
        reply = read_answer(body, chat, stop if isinstance(stop, list) else ())
    except (openai.APIError, TimeoutError) as error:
        reply = _failure(error, key, timeout)
    return admitted(reply, key)


async def _streamed(
    client: openai.AsyncOpenAI, path: str, arguments: dict[str, object], begin: Callable[[], StreamedAnswer]
) -> bytes:
    """The body that the server would have sent in one piece."""
    options = arguments | {"stream": True, "stream_options": {"include_usage": True}}
    stream = await client.post(path, body=options, cast_to=object, stream=True, stream_cls=openai.AsyncStream[object])
    if "text/event-stream" not in stream.response.headers.get("content-type", ""):
        return await stream.response.aread()  # a server that sends its answers whole
    answer = begin()
    try:
        async for piece in stream:
            answer.add(piece)
    except ValueError:  # a piece that is no JSON
        return b""
    return json.dumps(answer.whole()).encode()


def _failure(error: openai.APIError | TimeoutError, key: str, timeout: float) -> Failure:
    if isinstance(error, openai.APIStatusError):
        return of_status(error, key)
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
