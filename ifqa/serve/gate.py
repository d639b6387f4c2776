"""What every request passes first: its id, the checks of `safety`, the limit on its body, and the headers of every response."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from http import HTTPMethod
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ifqa.serve import limits as sizes
from ifqa.serve.limits import Limits
from ifqa.serve.log import begin_request, log
from ifqa.serve.metrics import Metrics
from ifqa.serve.problems import problem, response
from ifqa.serve.safety import HEADERS, PROBES, SESSION, Guard, TooLarge, read_body

_CHANGING = ("POST", "PUT", "PATCH", "DELETE")
_GONE = 499  # the client has left: nobody reads a response, but the log and /metrics show it
_LEAVING = 0.05  # seconds until the request of a connection that made room has ended
_LONGEST_PATH = 200  # characters of a path in the log


class Gate:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, guard: Guard, limits: Limits, metrics: Metrics) -> None:
        self._app, self._guard, self._limits, self._metrics = app, guard, limits, metrics
        self._answering: Counter[str] = Counter()  # whole requests by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the lifespan passes through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, began, status = Headers(scope=scope), time.monotonic(), _GONE
        own, client = begin_request(headers.get("x-request-id", "")), (scope.get("client") or ("",))[0]

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add(MutableHeaders(raw=message.setdefault("headers", [])), headers, own)
            await send(message)

        try:
            if refusal := await self._crowded(scope["path"], client) or self._refusal(scope, headers):
                await refusal(scope, receive, sending)
            else:
                await self._pass_on(scope, headers, receive, sending)
        finally:
            self._note(scope, client, status, time.monotonic() - began)

    async def _crowded(self, path: str, client: str) -> Response | None:
        if path in PROBES or self._has_room(client):
            return None
        await asyncio.sleep(_LEAVING)
        if self._has_room(client):
            return None
        return response(problem(503, "too many connections are busy"), {"Retry-After": "5", "Connection": "close"})

    def _has_room(self, client: str) -> bool:
        most = self._limits.per_address
        return self._answering.total() < sizes.CONNECTIONS and (not most or self._answering[client] < most)

    @contextmanager
    def _counted(self, client: str) -> Iterator[None]:
        """Count a request among those that are answered; one whose body still comes may have to make room."""
        self._answering[client] += 1
        try:
            yield
        finally:
            self._answering -= Counter([client])  # an address without requests is forgotten

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        path, method = scope["path"], scope["method"]
        if len(scope["raw_path"]) + sum(len(name) + len(value) for name, value in headers.raw) > sizes.HEADERS:
            return response(problem(400, "the request's head is too large"), {"Connection": "close"})
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may see another end of the body
            return response(problem(400, "wanted either Content-Length or Transfer-Encoding"), {"Connection": "close"})
        if not self._guard.calls_us(headers, path):
            return response(
                problem(421, "this server is not called by the name in Host; start it with --allow-host NAME")
            )
        if self._guard.is_foreign(headers):
            return response(
                problem(403, "pages of another origin may not ask; start the server with --allow-origin ORIGIN")
            )
        if method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers:
            return Response(None, 204, {"Access-Control-Max-Age": "600"})
        if not self._guard.admits(headers, path):
            if path == "/results":
                return Response(None, 303, {"Location": "/"})
            shown = {"WWW-Authenticate": 'Bearer realm="ifqa"'}
            return response(problem(401, "wanted the server's token: Authorization: Bearer TOKEN"), shown)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if method == "POST" and kind != "application/json":
            return response(problem(415, "wanted Content-Type: application/json"))
        return None

    async def _pass_on(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Give the request to the application, its body read and bounded."""
        client, most = (scope.get("client") or ("",))[0], sizes.SESSION if scope["path"] == SESSION else sizes.BODY
        if scope["method"] not in _CHANGING:
            with self._counted(client):
                await self._app(scope, receive, send)
            return
        try:
            messages = await read_body(receive, headers, self._limits.seconds, most)
        except TooLarge:
            await response(problem(413, "the body is too large; send fewer questions"), {"Connection": "close"})(
                scope, receive, send
            )
            return
        except TimeoutError:
            await response(problem(408, "the body did not come in time"), {"Connection": "close"})(scope, receive, send)
            return
        with self._counted(client):
            await self._answer(scope, messages, receive, send)

    async def _answer(self, scope: Scope, messages: list[Message], receive: Receive, send: Send) -> None:
        """Let the application answer while the client is there."""
        messages.reverse()
        left = asyncio.Event()

        async def again() -> Message:
            if messages:
                return messages.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def leave() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            left.set()

        answering, leaving = asyncio.ensure_future(self._app(scope, again, send)), asyncio.ensure_future(leave())
        try:
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            leaving.cancel()
            answering.cancel()
            await asyncio.wait([answering])

    def _add(self, found: MutableHeaders, asked: Headers, own: str) -> None:
        """Add the headers of every response; those that the application has set stay."""
        for name, value in HEADERS.items():
            found.setdefault(name, value)
        found["X-Request-Id"] = own
        if self._guard.origins:
            found.add_vary_header("Origin")
        if (origin := asked.get("origin")) in self._guard.origins:
            found["Access-Control-Allow-Origin"] = origin or ""
            found["Access-Control-Allow-Headers"] = "Authorization, Content-Type, X-Request-Id"
            found["Access-Control-Allow-Methods"] = "GET, POST, DELETE"
            found["Access-Control-Expose-Headers"] = "Retry-After, X-Request-Id"
            found["Cross-Origin-Resource-Policy"] = "cross-origin"

    def _note(self, scope: MutableMapping[str, Any], client: str, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "")  # the route's pattern: paths from outside would be endless
        known = scope["method"] if scope["method"] in HTTPMethod.__members__ else "other"
        self._metrics.requests.labels(known if route else "", route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        fields = {
            "method": scope["method"][:20],
            "path": scope["path"][:_LONGEST_PATH],
            "status": status,
            "ms": round(seconds * 1000, 1),
            "client": client,
        }
        log.info("request", extra={"fields": fields})
