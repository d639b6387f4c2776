"""The application: the routes of the page, the JSON API, the probes and the MCP tools."""

import asyncio
import json
import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from os.path import commonprefix
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from ifqa.records import Answer
from ifqa.report.html_page import COLOURS
from ifqa.serve.batch_queue import Pending
from ifqa.serve.errors import EXPECTED, MEDIA, NotFound, refusal, refusal_of
from ifqa.serve.limits import BODY
from ifqa.serve.mcp import make_tools
from ifqa.serve.middleware import Middleware
from ifqa.serve.schemas import About, Answers, AskForm, PassageForm, Problem, Rankings, RetrieveForm, TokenForm, Written
from ifqa.serve.security import COOKIE, Guard
from ifqa.serve.service import Service
from ifqa.serve.telemetry import log
from ifqa.version import __version__

_RESULTS_POLICY = "frame-ancestors 'none'"  # the page has a stricter policy of its own, with its script's hash
_PAGE = Path(__file__).parent / "page"  # served as it is, with the colours of ifqa/report
_PING = 10.0  # seconds between signs of life of a stream, so that nothing between closes the connection


def _problem(description: str) -> dict[str, Any]:
    return {"description": description, "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: _problem("the body is no JSON in UTF-8"),
    401: _problem("no token, or a wrong one"),
    413: _problem("the body is too large"),
    415: _problem("the body is not JSON"),
    422: _problem("the request is not as wanted"),
    503: _problem("too many questions wait; Retry-After says when to come back"),
    504: _problem("no answer within the time limit"),
}
_STREAMED = {
    "description": "The answers; with Accept: text/event-stream the events waiting, reading, text, and answer or problem.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}


def make_app(service: Service, guard: Guard) -> ASGIApp:
    """The application of a service, behind its middleware; its lifespan opens and closes the service."""
    tools = make_tools(service)
    # The middleware checks Host and Origin for every route; without sessions nothing is kept of a client
    mcp = tools.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=BODY,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.open()
        async with tools.session_manager.run():
            yield
        await service.close()

    app = FastAPI(
        title="ifqa", version=__version__, summary="Answers with evidence from a collection of documents.",
        lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False,
    )  # fmt: skip
    _add_api(app, service)
    _add_operation(app, service, guard)
    _add_page(app, service.system.experiment.root)
    [route] = [route for route in mcp.routes if isinstance(route, Route)]
    # Without sessions there is nothing to listen to: GET would hold a stream open that says nothing
    app.router.routes.append(Route(route.path, route.endpoint, methods=["POST"]))
    _add_problems(app)
    return Middleware(app, guard, service.limits, service.metrics)


def _add_api(app: FastAPI, service: Service) -> None:
    @app.post("/v1/ask", response_model=Answers, responses={**_PROBLEMS, 200: _STREAMED})
    async def ask(form: AskForm, request: Request) -> Response:
        """Answer one question or several."""
        if "text/event-stream" not in request.headers.get("accept", ""):
            return _json(Answers(answers=await service.answers(service.ask(form.records, form.threshold))))
        if form.question is None:
            raise HTTPException(422, 'a stream answers one question; send "question"')
        stream = _events(service, service.ask(form.records, form.threshold, watched=True))
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @app.post("/v1/retrieve", response_model=Rankings, responses=_PROBLEMS)
    async def retrieve(form: RetrieveForm) -> Response:
        """Rank the passages for one question or several."""
        return _json(Rankings(rankings=await service.rankings(service.retrieve(form.records, form.k))))

    @app.get("/v1/passages/{passage_id:path}", response_model=PassageForm, responses={404: _problem("no such passage")})
    async def passage(passage_id: str) -> Response:
        """One passage by its id."""
        return _json(await service.passage(passage_id))

    @app.get("/v1/about", response_model=About)
    async def about() -> Response:
        """What is searched, who answers, and what the server takes at most."""
        return _json(service.about)


def _json(form: BaseModel) -> Response:
    return Response(form.model_dump_json(), media_type="application/json")


async def _events(service: Service, batch: list[Pending[Answer]]) -> AsyncIterator[bytes]:
    """One question's server-sent events: how far it is, the text while it is written, and the answer or a problem.

    Only the newest state is sent, so a slow client keeps nothing in memory. If the task is cancelled, the question is withdrawn.
    """
    [pending] = batch
    answering = asyncio.ensure_future(service.answers(batch))
    ahead: int | None = -1  # nothing was sent
    sent = ""
    try:
        while not answering.done():
            changed = asyncio.ensure_future(pending.changed.wait())
            done, _ = await asyncio.wait([answering, changed], timeout=_PING, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            pending.changed.clear()
            if not done:
                yield b": waiting\n\n"
            if ahead is not None and pending.ahead != ahead:
                ahead = pending.ahead
                yield _event("reading", "{}") if ahead is None else _event("waiting", json.dumps({"ahead": ahead}))
            if pending.text != sent:
                at, sent = len(commonprefix([sent, pending.text])), pending.text  # noqa: RUF071 - characters are meant
                yield _event("text", Written(at=at, text=sent[at:]).model_dump_json())
        error = answering.exception()
        if error is None:
            yield _event("answer", answering.result()[0].model_dump_json())
            return
        if not isinstance(error, EXPECTED):
            log.error("a bug", exc_info=error)
        yield _event("problem", bytes(refusal_of(error).body).decode())
    finally:
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([answering])


def _event(name: str, line: str) -> bytes:
    """An event with a line of JSON."""
    return f"event: {name}\ndata: {line}\n\n".encode()


def _add_operation(app: FastAPI, service: Service, guard: Guard) -> None:
    @app.get("/healthz", response_class=Response)
    async def healthz() -> Response:
        """Whether the process answers."""
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz", response_class=Response, responses={503: _problem("no questions are taken")})
    async def readyz() -> Response:
        """Whether questions are taken."""
        return Response("ok\n", media_type="text/plain") if service.alive else refusal(503, "no questions are taken")

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counts in Prometheus's text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.post("/v1/session", status_code=204, responses={code: _PROBLEMS[code] for code in (400, 401, 413, 415, 422)})
    async def sign_in(form: TokenForm, request: Request) -> Response:
        """Show the token once; the browser then has a cookie."""
        if not guard.is_token(form.token):
            return refusal(401, "this is not the server's token")
        response = Response(None, 204)
        secure = request.headers.get("origin", "").startswith("https://")
        response.set_cookie(COOKIE, guard.session, httponly=True, samesite="strict", secure=secure)
        return response

    @app.delete("/v1/session", status_code=204)
    async def sign_out() -> Response:
        """Drop the cookie."""
        response = Response(None, 204)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response


def _add_page(app: FastAPI, root: Path) -> None:
    files = {path.name: path.read_bytes() for path in (*filter(Path.is_file, _PAGE.iterdir()), COLOURS)}
    results = _ResultsCache(root)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        if name not in files:
            raise NotFound("no such file of the page")
        tag = f'"{sha256(files[name]).hexdigest()[:16]}"'
        headers = {"Cache-Control": "no-cache", "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(None, 304, headers)
        return Response(files[name], headers=headers, media_type=mimetypes.guess_type(name)[0])

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return await static("index.html", request)

    @app.get("/favicon.ico", include_in_schema=False)  # browsers ask for it on /results, whose page names no icon
    async def icon(request: Request) -> Response:
        return await static("icon.svg", request)

    @app.get("/results", include_in_schema=False)
    async def show_results() -> Response:
        text = await results.page()
        return Response(text, headers={"Content-Security-Policy": _RESULTS_POLICY}, media_type="text/html")


class _ResultsCache:
    """The page of the results below `root`, written again when an experiment has been scored since."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock, self._text = root, asyncio.Lock(), ""
        self._state: object = None

    async def page(self) -> str:
        """The page's HTML; one call at a time writes it, in a thread."""
        from ifqa.report.overview import results_page

        async with self._lock:
            state = await asyncio.to_thread(self._scores)
            if state != self._state:
                self._text = await asyncio.to_thread(results_page, self._root, served=True)
                self._state = state
        return self._text

    def _scores(self) -> object:
        """What the page depends on: each finished experiment and the records of others, and when they changed."""
        folder = self._root / "experiments"
        paths = sorted([*folder.glob("*/score/manifest.json"), *folder.glob("RESULTS.jsonl")])
        return [(str(path), path.stat().st_mtime_ns) for path in paths]


def _add_problems(app: FastAPI) -> None:
    async def refuse(request: Request, error: Exception) -> Response:
        return refusal_of(error)

    for kind in (*EXPECTED, Exception):
        app.add_exception_handler(kind, refuse)

    plain = app.openapi

    def with_problem() -> dict[str, Any]:
        schema = plain()
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schema["components"]["schemas"] |= {"Problem": problem, **problem.pop("$defs", {})}
        return schema

    app.openapi = with_problem  # type: ignore[method-assign]
