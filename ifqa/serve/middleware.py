"""What every request passes first: its id, the checks of `security`, the limit on its body, its response's headers, the log.

Errors are problem details (RFC 9457): one plain line each, and never a traceback. The log is a JSON object a line on stderr, in
ASCII, with the request's id. Questions and tokens are not logged.
"""

import asyncio
import json
import logging
import re
import secrets
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from http import HTTPMethod, HTTPStatus

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ifqa.errors import IfqaError
from ifqa.serve import limits as sizes
from ifqa.serve.batch_queue import QueueFull
from ifqa.serve.limits import Limits
from ifqa.serve.schemas import OBJECT, TEXT, Problem
from ifqa.serve.security import HEADERS, SESSION, Guard
from ifqa.serve.service import Metrics, NotFound

log = logging.getLogger("ifqa.serve")

_request_id: ContextVar[str] = ContextVar("request_id", default="")  # of the request that is being answered
_WORD = re.compile(r"[\w-]{1,64}", re.ASCII)

_CLOSE = {"Connection": "close"}
_GONE = 499  # the client has left: nobody reads a response, but the log and /metrics show it
_LONGEST_PATH = 200  # characters of a path in the log
_LONGEST_FAULT = 300  # characters of what is wrong with a request
EXPECTED = (QueueFull, NotFound, TimeoutError, IfqaError, HTTPException, RequestValidationError)  # any other is a bug


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; `extra={"fields": {...}}` adds keys, and a traceback is one of them."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; whatever would steer a terminal or begin a new line is escaped."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
        }
        line |= {"request_id": _request_id.get()} if _request_id.get() else {}
        line |= vars(record).get("fields", {})
        line |= {"traceback": self.formatException(record.exc_info)} if record.exc_info else {}
        return json.dumps(line, ensure_ascii=True, default=str).replace("\x7f", "\\u007f")


def write_log(quiet: bool) -> None:
    """Send the log of the server and of its libraries to stderr: warnings of all, and every request unless `quiet`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    log.addHandler(handler)
    log.propagate = logging.getLogger("ifqa").propagate = False  # the package's other messages are plain lines
    log.setLevel(logging.WARNING if quiet else logging.INFO)


def refusal(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """A problem with the title of its status, as a response."""
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, request_id=_request_id.get())
    return Response(problem.model_dump_json(), status, headers, media_type="application/problem+json")


def refusal_of(error: BaseException) -> Response:
    """The response that an error means."""
    match error:
        case QueueFull():
            return refusal(503, str(error), {"Retry-After": str(error.seconds)})
        case NotFound():
            return refusal(404, str(error))
        case TimeoutError():
            return refusal(504, "no answer within the time limit; ask fewer questions at once, or later")
        case IfqaError():
            return refusal(503, str(error), {"Retry-After": "30"})
        case HTTPException():
            return refusal(error.status_code, str(error.detail), error.headers)
        case RequestValidationError():
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"][1:] if part not in (TEXT, OBJECT)) or "body"
            what = first["msg"].removeprefix("Value error, ")
            return refusal(422, f"{place[:_LONGEST_FAULT]}: {what[:_LONGEST_FAULT]}")
        case _:
            return refusal(500, "a bug; the server's log has it under this request's id")


class Middleware:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, guard: Guard, limits: Limits, metrics: Metrics) -> None:
        self._app, self._guard, self._limits, self._metrics = app, guard, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the lifespan passes through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, began, status = Headers(scope=scope), time.monotonic(), _GONE
        client_id = headers.get("x-request-id", "")
        request_id = client_id if _WORD.fullmatch(client_id) else secrets.token_hex(8)
        _request_id.set(request_id)

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                response = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    response.setdefault(name, value)  # those that the application has set stay
                response["X-Request-Id"] = request_id
            await send(message)

        try:
            if refused := self._refused(scope, headers):
                await refused(scope, receive, send_with_headers)
            else:
                await self._pass_on(scope, headers, receive, send_with_headers)
        finally:
            self._log(scope, status, time.monotonic() - began)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        path, method = scope["path"], scope["method"]
        if len(scope["raw_path"]) + sum(len(name) + len(value) for name, value in headers.raw) > sizes.HEADERS:
            return refusal(400, "the request's head is too large", _CLOSE)
        if "content-length" in headers and "transfer-encoding" in headers:  # a proxy may see another end of the body
            return refusal(400, "wanted either Content-Length or Transfer-Encoding", _CLOSE)
        if not self._guard.calls_us(headers, path):
            return refusal(421, "this server is not called by the name in Host; start it with --allow-host NAME")
        if self._guard.is_foreign(headers):
            return refusal(403, "pages of another origin may not ask")
        if not self._guard.admits(headers, path):
            if path == "/results":
                return Response(None, 303, {"Location": "/"})
            challenge = {"WWW-Authenticate": 'Bearer realm="ifqa"'}
            return refusal(401, "wanted the server's token: Authorization: Bearer TOKEN", challenge)
        if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return refusal(415, "wanted Content-Type: application/json")
        return None

    async def _pass_on(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Give the request to the application, its body read and bounded, while the client is there."""
        try:
            async with asyncio.timeout(min(self._limits.seconds, sizes.SLOW)):
                body = await _read_body(receive, headers, sizes.SESSION if scope["path"] == SESSION else sizes.BODY)
        except ClientDisconnect:
            return
        except TimeoutError:
            body = refusal(408, "the body did not come in time", _CLOSE)
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def replay() -> Message:
            if not messages:
                await asyncio.get_running_loop().create_future()  # until it is cancelled
            return messages.pop()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        answering, leaving = asyncio.ensure_future(self._app(scope, replay, send)), asyncio.ensure_future(watch())
        try:
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            leaving.cancel()
            answering.cancel()
            await asyncio.wait([answering])

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        route = scope.get("route")
        pattern = str(vars(route).get("path", "")) if route else ""  # paths from outside would be endless
        method = scope["method"] if scope["method"] in HTTPMethod.__members__ else "other"
        self._metrics.requests[method if pattern else "", pattern, status] += 1
        fields = {
            "method": scope["method"][:20],
            "path": scope["path"][:_LONGEST_PATH],
            "status": status,
            "ms": round(seconds * 1000, 1),
            "client": (scope.get("client") or ("",))[0],
        }
        log.info("request", extra={"fields": fields})


async def _read_body(receive: Receive, headers: Headers, most: int) -> bytes | Response:
    """A request's body, of at most so many bytes.

    A larger one is refused after it was read to its end, within reason, so that its sender reads the refusal.

    Raises:
        ClientDisconnect: the client has left.
    """
    declared = headers.get("content-length", "")
    large = declared.isdecimal() and int(declared[:20]) > most
    pieces: list[bytes] = []
    size, more = 0, True
    while more and size <= sizes.DISCARDED:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        large = large or size > most
        pieces = [] if large else [*pieces, piece]
    return refusal(413, "the body is too large; send fewer questions", _CLOSE) if large else b"".join(pieces)
