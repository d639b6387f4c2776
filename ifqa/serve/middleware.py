"""The middleware: request ids, access control, limits on bodies, response headers, the log.

Errors are problem details (RFC 9457) of one line, never a traceback. The log on stderr has a JSON
object per line, in ASCII, with the request's id. Questions and tokens are not logged.
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
from types import MappingProxyType

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
from ifqa.serve.service import Busy, Metrics, NotFound

logger = logging.getLogger("ifqa.serve")

_request_id: ContextVar[str] = ContextVar("request_id", default="")  # of the current request
_REQUEST_ID = re.compile(r"[\w-]{1,64}", re.ASCII)

_CLOSE = {"Connection": "close"}
_CLIENT_CLOSED = 499  # the client closed the connection; only the log and /metrics show this status
_LONGEST_PATH = 200  # characters of a path in the log
_LONGEST_DETAIL = 300  # characters of a validation error's location, and of its message
#: Any other error is a bug.
EXPECTED = (
    QueueFull,
    Busy,
    NotFound,
    TimeoutError,
    IfqaError,
    HTTPException,
    RequestValidationError,
)


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON, with control characters escaped.

    `extra={"fields": {...}}` and a traceback add keys.
    """

    def format(self, record: logging.LogRecord) -> str:
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


def configure_logging(quiet: bool) -> None:
    """Log to stderr: warnings of the server and its libraries, and every request unless `quiet`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logger.addHandler(handler)
    # The package's other messages are plain lines
    logger.propagate = logging.getLogger("ifqa").propagate = False
    logger.setLevel(logging.WARNING if quiet else logging.INFO)


def problem_response(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    parts: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    """A response with problem details; `parts` are those of an `IfqaError`."""
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        request_id=_request_id.get(),
        **parts,
    )
    content = problem.model_dump_json(exclude_none=True)
    return Response(content, status, headers, media_type="application/problem+json")


def error_response(error: BaseException) -> Response:
    """The problem details of an error."""
    match error:
        case QueueFull():
            return problem_response(503, str(error), {"Retry-After": str(error.seconds)})
        case Busy():
            return problem_response(503, str(error), {"Retry-After": "5"})
        case NotFound():
            return problem_response(404, str(error))
        case TimeoutError():
            return problem_response(
                504, "no answer within the time limit; ask fewer questions at once, or later"
            )
        case IfqaError():
            return problem_response(503, str(error), {"Retry-After": "30"}, error.parts())
        case HTTPException():
            return problem_response(error.status_code, str(error.detail), error.headers)
        case RequestValidationError():
            first = error.errors()[0]
            location = (
                ".".join(str(part) for part in first["loc"][1:] if part not in (TEXT, OBJECT))
                or "body"
            )
            message = first["msg"].removeprefix("Value error, ")
            if first["type"] == "json_invalid":
                location, message = (
                    "body",
                    f"not JSON ({first['ctx']['error']} at {location}); wanted an object",
                )
            return problem_response(
                422, f"{location[:_LONGEST_DETAIL]}: {message[:_LONGEST_DETAIL]}"
            )
        case _:
            return problem_response(
                500, "a bug in ifqa; find it in the server's log by this request's id"
            )


def client_address(scope: Scope) -> str:
    """The address that a request comes from; behind a proxy, the proxy's."""
    client = scope.get("client")
    return client[0] if client else ""


class Middleware:
    """An ASGI application that wraps another one."""

    def __init__(self, app: ASGIApp, guard: Guard, limits: Limits, metrics: Metrics) -> None:
        self._app = app
        self._guard = guard
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the lifespan passes through."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        started = time.monotonic()
        status = _CLIENT_CLOSED
        client_id = headers.get("x-request-id", "")
        request_id = client_id if _REQUEST_ID.fullmatch(client_id) else secrets.token_hex(8)
        _request_id.set(request_id)

        # Uvicorn sends no body to HEAD
        passed = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                response = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in HEADERS.items():
                    response.setdefault(name, value)  # the application's own headers stay
                response["X-Request-Id"] = request_id
            await send(message)

        try:
            if refusal := self._refusal(scope, headers):
                await refusal(scope, receive, send_with_headers)
            else:
                await self._pass_on(passed, headers, receive, send_with_headers)
        finally:
            self._log({**passed, "method": scope["method"]}, status, time.monotonic() - started)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        path = scope["path"]
        method = scope["method"]
        if (
            len(scope["raw_path"]) + sum(len(name) + len(value) for name, value in headers.raw)
            > sizes.MAX_HEADERS
        ):
            return problem_response(400, "the request's head is too large", _CLOSE)
        # A proxy may disagree about the body's end
        if "content-length" in headers and "transfer-encoding" in headers:
            return problem_response(
                400, "wanted either Content-Length or Transfer-Encoding", _CLOSE
            )
        if not self._guard.calls_us(headers, path):
            return problem_response(
                421, "unknown name in the Host header; start the server with --allow-host NAME"
            )
        if self._guard.is_foreign(headers):
            return problem_response(403, "requests from pages of another origin are refused")
        address = client_address(scope)
        if seconds := self._guard.seconds_to_wait(headers, path, address):
            return problem_response(
                429, "too many wrong tokens from this address", {"Retry-After": str(seconds)}
            )
        if not self._guard.admits(headers, path, address):
            # A browser: the page asks for the token
            if path == "/results" or "text/html" in headers.get("accept", ""):
                return Response(None, 303, {"Location": "/"})
            challenge = {"WWW-Authenticate": 'Bearer realm="ifqa"'}
            return problem_response(
                401, "wanted the server's token: Authorization: Bearer TOKEN", challenge
            )
        if (
            method == "POST"
            and headers.get("content-type", "").partition(";")[0].strip().lower()
            != "application/json"
        ):
            return problem_response(415, "wanted Content-Type: application/json")
        return None

    async def _pass_on(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """Read the body, within its limit, and pass the request on.

        Cancel it if the client leaves.
        """
        limit = sizes.MAX_SESSION_BODY if scope["path"] == SESSION else sizes.MAX_BODY
        try:
            async with asyncio.timeout(min(self._limits.seconds, sizes.REQUEST_TIMEOUT)):
                body = await _read_body(receive, headers, limit)
        except ClientDisconnect:
            return
        except TimeoutError:
            body = problem_response(408, "the request's body did not arrive in time", _CLOSE)
        if isinstance(body, Response):
            await body(scope, receive, send)
            return
        messages: list[Message] = [{"type": "http.request", "body": body}]

        async def replay() -> Message:
            if not messages:
                await asyncio.get_running_loop().create_future()  # waits until it is cancelled
            return messages.pop()

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        answering = asyncio.ensure_future(self._app(scope, replay, send))
        leaving = asyncio.ensure_future(watch())
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
        # Unbounded labels would fill memory
        pattern = str(vars(route).get("path", "")) if route else ""
        method = scope["method"] if scope["method"] in HTTPMethod.__members__ else "other"
        self._metrics.requests.labels(method if pattern else "", pattern, status).inc()
        request = {
            "method": scope["method"][:20],
            "path": scope["path"][:_LONGEST_PATH],
            "status": status,
        }
        client = (scope.get("client") or ("",))[0]
        logger.info(
            "request",
            extra={"fields": request | {"ms": round(seconds * 1000, 1), "client": client}},
        )


async def _read_body(receive: Receive, headers: Headers, limit: int) -> bytes | Response:
    """A request's body, or the error response if it is larger than `limit` bytes.

    A larger body is read up to MAX_DISCARDED, so that its client reads the error. Raises
    ClientDisconnect if the client leaves.
    """
    declared = headers.get("content-length", "")
    large = declared.isdecimal() and int(declared[:20]) > limit
    pieces: list[bytes] = []
    size, more = 0, True
    while more and size <= sizes.MAX_DISCARDED:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(piece)
        large = large or size > limit
        pieces = [] if large else [*pieces, piece]
    return (
        problem_response(413, "the body is too large; send fewer questions", _CLOSE)
        if large
        else b"".join(pieces)
    )
