"""Limits the size of response bodies, so that no server fills the memory."""

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2

LONGEST_BODY = 16_000_000  # bytes; an answer of 100,000 tokens has some hundred thousand
_NEEDED = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
PLAIN = {"Accept-Encoding": "identity"}  # no compression, so that counted bytes are bytes in memory


class BodyRefused(httpx2.RequestError):  # the openai library passes on every error of a connection
    """A body was not read: it is too long, or compressed."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > LONGEST_BODY:
                raise BodyRefused(f"the answer's body has more than {LONGEST_BODY:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: httpx2.Response) -> None:
    """A client's hook for every response of any status, before its body is read: limits the body's length.

    Raises:
        BodyRefused: the body is compressed although that was not requested; few compressed bytes can become many.
    """
    packing = response.headers.get("content-encoding", "identity")
    if packing.lower() != "identity":
        raise BodyRefused(f"the answer's body is compressed ({packing[:40]}), although plain bytes were requested")
    assert isinstance(response.stream, httpx2.AsyncByteStream)  # true of every asynchronous client
    response.stream = _Bounded(response.stream)


def bare(key: str) -> Callable[[httpx2.Request], Awaitable[None]]:
    """A client's hook for every request: no header but the needed ones and the key.

    The openai library adds headers of the environment (OPENAI_CUSTOM_HEADERS), whatever host it asks.
    """

    async def strip(request: httpx2.Request) -> None:
        for name in [name for name in request.headers if name.lower() not in _NEEDED]:
            del request.headers[name]
        request.headers["Authorization"] = f"Bearer {key}"

    return strip
