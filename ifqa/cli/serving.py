"""`ifqa serve` and `ifqa mcp`: one opened system for many who ask."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ifqa.cli.options import ExperimentName, searching
from ifqa.progress import is_quiet

if TYPE_CHECKING:
    from ifqa.pipeline.run import Run

_Timeout = Annotated[float, typer.Option("--timeout", min=1, max=3600, help="Seconds that an answer may take.")]


@searching(ExperimentName)
def serve(
    run: "Run",
    changed: list[str],
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: any free one.")] = 8017,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="File with the token; else IFQA_TOKEN of the environment.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="A name by which others call this machine. Repeatable.")
    ] = None,
    queue: Annotated[int, typer.Option("--queue", help="Questions that may wait; further ones get 503.")] = 256,
    timeout: _Timeout = 60.0,
) -> None:
    """Serve a page to ask on, the results, a JSON API and MCP tools, on this machine alone."""
    from ifqa.serve.limits import Limits
    from ifqa.serve.security import make_guard
    from ifqa.serve.server import cap_cost
    from ifqa.serve.server import serve as serve_all

    guard = make_guard(host, token_file, allow_host or ())
    serve_all(cap_cost(run.experiment, changed), host, port, guard, Limits(queue, timeout), is_quiet())


@searching(ExperimentName)
def mcp(run: "Run", changed: list[str], timeout: _Timeout = 60.0) -> None:
    """Serve the MCP tools ask, retrieve and get_passage over stdin and stdout, for an assistant that starts this command."""
    from ifqa.serve.limits import Limits
    from ifqa.serve.server import cap_cost, serve_tools

    serve_tools(cap_cost(run.experiment, changed), Limits(seconds=timeout), is_quiet())
