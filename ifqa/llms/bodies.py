"""Bodies of answers that come to an end: no server fills the memory."""

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2

LONGEST_BODY = 16_000_000  # bytes; an answer of 100,000 tokens has some hundred thousand
_NEEDED = {"host", "accept", "accept-encoding", "connection", "content-length", "content-type", "user-agent"}
PLAIN = {"Accept-Encoding": "identity"}  # so that what is counted is what is kept


class BodyRefused(httpx2.RequestError):  # which the openai library hands on as it does every error of a connection
    """What is wrong with a body, whatever it says."""


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
    """A client's hook for every response, before its body is read: the body ends, of whatever status it is.

    Raises:
        BodyRefused: it is packed, which was not asked for; a few packed bytes can be any number.
    """
    packing = response.headers.get("content-encoding", "identity")
    if packing.lower() != "identity":
        raise BodyRefused(f"the answer's body is packed ({packing[:40]}), though it was asked for as it is")
    assert isinstance(response.stream, httpx2.AsyncByteStream)  # as every response of an asynchronous client
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
