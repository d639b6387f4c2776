"""The application: the routes of the page, the JSON API, the probes and the MCP tools."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from os.path import commonprefix
from pathlib import Path
from typing import Annotated, BinaryIO
from urllib.parse import quote

from fastapi import FastAPI, Query, Request
from mcp.server.transport_security import TransportSecuritySettings
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ifqa.errors import MissingInput
from ifqa.formatting import printable_line
from ifqa.records import Answer
from ifqa.report.html_page import COLOURS
from ifqa.serve import html, schemas
from ifqa.serve.batch_queue import Pending
from ifqa.serve.limits import MAX_BODY
from ifqa.serve.mcp import make_tools
from ifqa.serve.middleware import (
    EXPECTED,
    Middleware,
    client_address,
    error_response,
    logger,
    problem_response,
)
from ifqa.serve.security import COOKIE, SESSION_SECONDS, Guard
from ifqa.serve.service import Service
from ifqa.version import __version__

# The page itself has a stricter policy, with its script's hash
_RESULTS_POLICY = "frame-ancestors 'none'"
_PAGE = Path(__file__).parent / "page"
_KEPT = 86_400  # seconds that a browser keeps the picture of a page
_PING = 10.0  # seconds between a stream's comments, so that no proxy closes the connection

_PROBLEM = {
    "model": schemas.Problem,
    "description": "A problem (RFC 9457): its status and one line in `detail`.",
}
_RESPONSES: dict[int | str, dict[str, object]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}
_STREAMED: dict[str, object] = {
    "description": (
        "The answers; with Accept: text/event-stream the events waiting, reading, text, and "
        "answer or problem."
    ),
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}


Offset = Annotated[int, Query(ge=0, description="Characters from the start of the passage.")]
FileHash = Annotated[str, Query(pattern=f"^[0-9a-f]{{{schemas.DIGITS}}}$")]


def make_app(service: Service, guard: Guard) -> ASGIApp:
    """The application with its middleware; its lifespan opens and closes the service."""
    tools = make_tools(service)
    # The middleware checks Host and Origin for every route. Without sessions no client state is
    # kept.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    mcp = tools.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=MAX_BODY,
        transport_security=security,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.open()
        async with tools.session_manager.run():
            yield
        await service.close()

    app = FastAPI(
        title="ifqa",
        version=__version__,
        summary="Answers with evidence from a collection of documents.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_api(app, service)
    _add_documents(app, service)
    _add_operation(app, service, guard)
    _add_page(app, service.system.experiment.root)
    [route] = [route for route in mcp.routes if isinstance(route, Route)]
    # POST only: without sessions GET would hold an empty stream open
    app.router.routes.append(Route(route.path, route.endpoint, methods=["POST"]))

    async def refuse(request: Request, error: Exception) -> Response:
        refusal = error_response(error)
        if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
            return refusal
        if refusal.status_code not in html.SHOWN:  # a browser follows a link
            return refusal
        detail = json.loads(bytes(refusal.body))["detail"]
        return _html(html.problem_page(refusal.status_code, detail), refusal.status_code)

    for kind in (*EXPECTED, Exception):
        app.add_exception_handler(kind, refuse)
    return Middleware(app, guard, service.limits, service.metrics)


def _add_api(app: FastAPI, service: Service) -> None:
    @app.post("/v1/ask", response_model=schemas.Answers, responses={**_RESPONSES, 200: _STREAMED})
    async def ask(form: schemas.AskForm, request: Request) -> Response:
        """Answer one or more questions."""
        if "text/event-stream" not in request.headers.get("accept", ""):
            return _json(
                schemas.Answers(
                    answers=await service.answers(service.ask(form.records, form.threshold))
                )
            )
        if form.question is None:
            raise HTTPException(422, 'a stream answers one question; send "question"')
        stream = _events(service, service.ask(form.records, form.threshold, watched=True))
        return StreamingResponse(
            stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    @app.post("/v1/why", response_model=schemas.Whys, responses=_RESPONSES)
    async def why(form: schemas.AskForm) -> Response:
        """What the answers become without each passage, and without each sentence of the supporting
        passage.
        """
        return _json(
            schemas.Whys(answers=await service.reasons(service.why(form.records, form.threshold)))
        )

    @app.post("/v1/retrieve", response_model=schemas.Rankings, responses=_RESPONSES)
    async def retrieve(form: schemas.RetrieveForm) -> Response:
        """Rank the passages for one or more questions."""
        return _json(
            schemas.Rankings(
                rankings=await service.rankings(service.retrieve(form.records, form.k))
            )
        )

    @app.get(
        "/v1/passages/{passage_id:path}", response_model=schemas.PassageForm, responses=_RESPONSES
    )
    async def passage(passage_id: str) -> Response:
        """One passage by its id."""
        return _json(await service.passage(passage_id))

    @app.get("/v1/about", response_model=schemas.About)
    async def about() -> Response:
        """The corpus, the reader and the server's limits."""
        await service.look()
        return _json(service.about)


def _add_documents(app: FastAPI, service: Service) -> None:
    @app.get("/v1/documents", response_model=schemas.FolderForm, responses=_RESPONSES)
    async def documents() -> Response:
        """The folder of documents that is searched, and the files left out, with the reason and
        what would help.
        """
        await service.look()
        return _json(await asyncio.to_thread(lambda: service.folder))

    @app.get("/documents/{passage_id:path}/original", response_class=Response, responses=_RESPONSES)
    async def original(passage_id: str) -> Response:
        """The file of a passage, as it was indexed: a PDF to open, any other as a download."""
        file = await asyncio.to_thread(service.file, passage_id, service.system)
        try:
            handle = await asyncio.to_thread(file.open)
        except MissingInput as error:
            raise HTTPException(409, str(error)) from error
        is_pdf = file.name.lower().endswith(".pdf")
        name = quote(printable_line(Path(file.name).name))
        shown = "inline" if is_pdf else "attachment"
        headers = {
            "Content-Length": str(file.record.bytes),
            "Content-Disposition": f"{shown}; filename*=UTF-8''{name}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        }
        kind = "application/pdf" if is_pdf else "application/octet-stream"
        return _OpenFile(handle, file.record.bytes, headers, kind)

    @app.get(
        "/documents/{passage_id:path}/pages/{page:int}.png",
        response_class=Response,
        responses=_RESPONSES | {200: {"content": {"image/png": {}}}},
    )
    async def picture(
        passage_id: str, page: int, start: Offset, end: Offset, of: FileHash
    ) -> Response:
        """A page of a PDF as it was indexed, with the passage's characters from `start` to `end`
        marked where they stand on it.

        `of` begins the file's SHA-256, so that a browser may keep the picture.
        """
        try:
            content = await service.picture(passage_id, page, (start, end), of)
        except MissingInput as error:
            raise HTTPException(409, str(error)) from error
        headers = {
            "Cache-Control": f"private, max-age={_KEPT}, immutable",
            "ETag": f'"{of}-{page}-{start}-{end}"',
            "Content-Security-Policy": "sandbox; default-src 'none'",
        }
        return Response(content, headers=headers, media_type="image/png")

    @app.get("/documents/{passage_id:path}", response_class=HTMLResponse, responses=_RESPONSES)
    async def document(passage_id: str) -> Response:
        """The text of a passage's file, as a page without a script.

        The passage has the anchor `here`.
        """
        system = service.system  # kept until the end: the files of its index leave with it
        return _html(
            await asyncio.to_thread(
                lambda: html.document_page(service.file(passage_id, system), passage_id)
            )
        )


class _OpenFile(StreamingResponse):
    """Sends an open file, and closes it, also if the client leaves before the first byte."""

    def __init__(
        self, file: BinaryIO, size: int, headers: Mapping[str, str], media_type: str
    ) -> None:
        super().__init__(_pieces(file, size), headers=headers, media_type=media_type)
        self.file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.file:
            await super().__call__(scope, receive, send)


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a file, which may grow meanwhile."""
    while piece := file.read(min(size, 1 << 16)):
        size -= len(piece)
        yield piece


def _html(text: str, status: int = 200) -> Response:
    content = text.encode("utf-8", "replace")  # a text may have lone surrogates
    headers = {"Content-Security-Policy": html.POLICY, "Vary": "Accept"}
    return HTMLResponse(content, status, headers=headers)


def _json(form: BaseModel) -> Response:
    return Response(form.model_dump_json(), media_type="application/json")


async def _events(service: Service, batch: list[Pending[Answer]]) -> AsyncIterator[bytes]:
    """A question's server-sent events: its progress, the text so far, and the answer or a problem.

    Only the newest state is sent, so a slow client fills no buffer. Cancelling the task withdraws
    the question.
    """
    [pending] = batch
    answering = asyncio.ensure_future(service.answers(batch))
    ahead: int | None = -1  # unlike any state
    sent = ""
    try:
        while not answering.done():
            changed = asyncio.ensure_future(pending.changed.wait())
            done, _ = await asyncio.wait(
                [answering, changed], timeout=_PING, return_when=asyncio.FIRST_COMPLETED
            )
            changed.cancel()
            pending.changed.clear()
            if not done:
                yield b": waiting\n\n"
            if ahead is not None and pending.ahead != ahead:
                ahead = pending.ahead
                yield (
                    _event("reading", "{}")
                    if ahead is None
                    else _event("waiting", json.dumps({"ahead": ahead}))
                )
            if pending.text != sent:
                at = len(commonprefix([sent, pending.text]))  # noqa: RUF071 - characters are meant
                sent = pending.text
                yield _event("text", schemas.TextEvent(at=at, text=sent[at:]).model_dump_json())
        error = answering.exception()
        if error is None:
            yield _event("answer", answering.result()[0].model_dump_json())
            return
        if not isinstance(error, EXPECTED):
            logger.error("a bug", exc_info=error)
        yield _event("problem", bytes(error_response(error).body).decode())
    finally:
        answering.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([answering])


def _event(name: str, json_line: str) -> bytes:
    return f"event: {name}\ndata: {json_line}\n\n".encode()


def _add_operation(app: FastAPI, service: Service, guard: Guard) -> None:
    @app.get("/healthz", response_class=Response)
    async def healthz() -> Response:
        """Whether the process answers."""
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz", response_class=Response)
    async def readyz() -> Response:
        """Whether the server takes questions."""
        if not service.alive:
            return problem_response(503, "the server is not taking questions")
        return Response("ok\n", media_type="text/plain")

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counts in Prometheus's text format."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE_LATEST)

    @app.post("/v1/session", status_code=204, responses=_RESPONSES)
    async def sign_in(form: schemas.TokenForm, request: Request) -> Response:
        """Exchange the token for a session cookie, which lasts 12 hours."""
        if not guard.is_token(form.token, client_address(request.scope)):
            return problem_response(401, "this is not the server's token")
        response = Response(None, 204)
        secure = request.headers.get("origin", "").startswith("https://")
        response.set_cookie(
            COOKIE,
            guard.new_session(),
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )
        return response


def _add_page(app: FastAPI, root: Path) -> None:
    # modification times of the inputs -> the page
    lock = asyncio.Lock()
    cache = dict[tuple[object, ...], str]()

    def render() -> str:
        """The page of the results below `root`, rendered again after an experiment is scored."""
        from ifqa.report.html_page import render_results

        folder = root / "experiments"
        paths = sorted([*folder.glob("*/score/manifest.json"), *folder.glob("RESULTS.jsonl")])
        state = tuple((str(path), path.stat().st_mtime_ns) for path in paths)
        if state not in cache:
            cache.clear()
            cache[state] = render_results(root, served=True)
        return cache[state]

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return FileResponse(_PAGE / "index.html")

    @app.get("/favicon.ico", include_in_schema=False)  # browsers request it for /results
    async def icon() -> Response:
        return FileResponse(_PAGE / "icon.svg")

    @app.get(f"/static/{COLOURS.name}", include_in_schema=False)
    async def colours() -> Response:
        return FileResponse(COLOURS)

    app.mount("/static", StaticFiles(directory=_PAGE))

    @app.get("/results", include_in_schema=False)
    async def results() -> Response:
        async with lock:  # rendered only once for simultaneous requests
            text = await asyncio.to_thread(render)
        return Response(
            text, headers={"Content-Security-Policy": _RESULTS_POLICY}, media_type="text/html"
        )
