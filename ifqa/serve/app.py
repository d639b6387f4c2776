"""The application: the routes of the page, the JSON API, the probes and the MCP tools."""

import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from ifqa.errors import IfqaError
from ifqa.report.html_page import COLOURS
from ifqa.serve import page
from ifqa.serve.desk import Full, Progress
from ifqa.serve.events import events
from ifqa.serve.forms import About, Answers, AskForm, PassageForm, Problem, Rankings, RetrieveForm, TokenForm
from ifqa.serve.gate import Gate
from ifqa.serve.limits import BODY, ID
from ifqa.serve.problems import MEDIA, of_error, of_faults, problem, response
from ifqa.serve.results import Results
from ifqa.serve.safety import COOKIE, Guard
from ifqa.serve.service import Absent, Service
from ifqa.serve.tools import tools
from ifqa.version import __version__

_RESULTS_POLICY = "frame-ancestors 'none'"  # the page has a stricter policy of its own, with its script's hash
_FAULTS: dict[int | str, dict[str, Any]] = {
    status: {"description": what, "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
    for status, what in {
        400: "the body is no JSON in UTF-8",
        401: "no token, or a wrong one",
        413: "the body is too large",
        415: "the body is not JSON",
        422: "the request is not as wanted",
        503: "too many questions wait; Retry-After says when to come back",
        504: "no answer within the time limit",
    }.items()
}
_STREAMED = {
    "description": "The answers; with Accept: text/event-stream the events waiting, reading, text, and answer or problem.",
    "content": {"text/event-stream": {"schema": {"type": "string"}}},
}


def make_app(service: Service, guard: Guard) -> ASGIApp:
    """The application of a service, behind its gate; its lifespan opens and closes the service."""
    served = tools(service)
    # The gate checks Host and Origin for every route; without sessions nothing is kept of a client
    mcp = served.streamable_http_app(
        stateless_http=True,
        json_response=True,
        max_request_body_size=BODY,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.open()
        async with served.session_manager.run():
            yield
        await service.close()

    app = FastAPI(
        title="ifqa", version=__version__, summary="Answers with evidence from a collection of documents.",
        lifespan=lifespan, docs_url=None, redoc_url=None, redirect_slashes=False,
    )  # fmt: skip
    _add_api(app, service)
    _add_operation(app, service, guard)
    _add_page(app, Results(service.system.experiment.root))
    [served_there] = [one for one in mcp.routes if isinstance(one, Route)]
    # Without sessions there is nothing to listen to: GET would hold a stream open that says nothing
    app.router.routes.append(Route(served_there.path, served_there.endpoint, methods=["POST"]))
    _add_problems(app)
    return Gate(app, guard, service.limits, service.metrics)


def _add_api(app: FastAPI, service: Service) -> None:
    @app.post("/v1/ask", response_model=Answers, responses={**_FAULTS, 200: _STREAMED})
    async def ask(form: AskForm, request: Request) -> Response:
        """Answer one question or several."""
        if "text/event-stream" not in request.headers.get("accept", ""):
            return _json(Answers(answers=await service.answers(service.ask(form.asked, form.threshold))))
        if form.question is None:
            raise HTTPException(422, 'a stream answers one question; send "question"')
        progress = Progress()
        tickets = service.ask(form.asked, form.threshold, progress)
        stream = events(service, tickets, progress)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    @app.post("/v1/retrieve", response_model=Rankings, responses=_FAULTS)
    async def retrieve(form: RetrieveForm) -> Response:
        """Rank the passages for one question or several."""
        return _json(Rankings(rankings=await service.rankings(service.retrieve(form.asked, form.k))))

    @app.get("/v1/passages/{passage_id:path}", response_model=PassageForm, responses={404: _problem("no such passage")})
    async def passage(passage_id: str) -> Response:
        """One passage by its id."""
        if len(passage_id) > ID:
            raise Absent(f"no passage has an id of {len(passage_id):,} characters")
        return _json(await service.passage(passage_id))

    @app.get("/v1/about", response_model=About)
    async def about() -> Response:
        """What is searched, who answers, and what the server takes at most."""
        return _json(service.about)


def _add_operation(app: FastAPI, service: Service, guard: Guard) -> None:
    @app.get("/healthz", response_class=Response)
    async def healthz() -> Response:
        """Whether the process answers."""
        return Response("ok\n", media_type="text/plain")

    @app.get("/readyz", response_class=Response, responses={503: _problem("no questions are taken")})
    async def readyz() -> Response:
        """Whether questions are taken."""
        if not service.alive:
            return response(problem(503, "no questions are taken"))
        return Response("ok\n", media_type="text/plain")

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counts in Prometheus's text format."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")

    @app.post("/v1/session", status_code=204, responses={one: _FAULTS[one] for one in (400, 401, 413, 415, 422)})
    async def sign_in(form: TokenForm, request: Request) -> Response:
        """Show the token once; the browser then has a cookie."""
        if not guard.is_token(form.token):
            return response(problem(401, "this is not the server's token"))
        found = Response(None, 204)
        secure = request.headers.get("origin", "").startswith("https://")
        found.set_cookie(COOKIE, guard.session, httponly=True, samesite="strict", secure=secure)
        return found

    @app.delete("/v1/session", status_code=204)
    async def sign_out() -> Response:
        """Drop the cookie."""
        found = Response(None, 204)
        found.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return found


def _add_page(app: FastAPI, results: Results) -> None:
    own = [one for one in Path(page.__path__[0]).iterdir() if one.suffix not in (".py", "")]
    files = {one.name: one.read_bytes() for one in (*own, COLOURS)}

    def file(name: str, request: Request) -> Response:
        if name not in files:
            raise Absent("no such file of the page")
        tag = f'"{sha256(files[name]).hexdigest()[:16]}"'
        headers = {"Cache-Control": "no-cache", "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(None, 304, headers)
        return Response(files[name], headers=headers, media_type=mimetypes.guess_type(name)[0])

    @app.get("/", include_in_schema=False)
    async def index(request: Request) -> Response:
        return file("index.html", request)

    @app.get("/static/{name}", include_in_schema=False)
    async def static(name: str, request: Request) -> Response:
        return file(name, request)

    @app.get("/favicon.ico", include_in_schema=False)  # browsers ask for it on /results, whose page names no icon
    async def icon(request: Request) -> Response:
        return file("icon.svg", request)

    @app.get("/results", include_in_schema=False)
    async def shown() -> Response:
        text = await results.page()
        return Response(text, headers={"Content-Security-Policy": _RESULTS_POLICY}, media_type="text/html")


def _add_problems(app: FastAPI) -> None:
    async def known(request: Request, error: Exception) -> Response:
        found = of_error(error)
        assert found  # each of the kinds below has one
        return response(*found)

    for kind in (Full, Absent, TimeoutError, IfqaError):
        app.add_exception_handler(kind, known)

    @app.exception_handler(HTTPException)
    async def by_status(request: Request, error: HTTPException) -> Response:
        return response(problem(error.status_code, str(error.detail)), error.headers)

    @app.exception_handler(RequestValidationError)
    async def not_as_wanted(request: Request, error: RequestValidationError) -> Response:
        return response(of_faults(error.errors()))

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> Response:
        return response(problem(500, "a bug; the server's log has it under this request's id"))

    plain = app.openapi

    def with_problem() -> dict[str, Any]:
        schema = plain()
        schema["components"]["schemas"]["Problem"] = Problem.model_json_schema(
            ref_template="#/components/schemas/{model}"
        )
        schema["components"]["schemas"].update(schema["components"]["schemas"]["Problem"].pop("$defs", {}))
        return schema

    app.openapi = with_problem  # type: ignore[method-assign]


def _problem(what: str) -> dict[str, Any]:
    return {"description": what, "content": {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _json(found: BaseModel) -> Response:
    return Response(found.model_dump_json(), media_type="application/json")
