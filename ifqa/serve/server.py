"""Runs a server: binds the address, opens the system, serves until a signal, and finishes requests
in flight.
"""

import asyncio
import os
import signal
import socket
import threading
from contextlib import closing, suppress
from types import FrameType

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ifqa.config.experiment import Experiment
from ifqa.errors import ConfigError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.progress import hide_progress
from ifqa.serve import limits as sizes
from ifqa.serve.app import make_app
from ifqa.serve.limits import MAX_QUESTIONS, Limits
from ifqa.serve.mcp import serve_stdio
from ifqa.serve.middleware import configure_logging
from ifqa.serve.security import Guard
from ifqa.serve.service import Service

_GRACE = 5.0  # seconds that a stopped server may take beyond the time limit


class Connection(H11Protocol):
    """A connection that is aborted if the client sends no complete head in time, or reads no
    response.

    `abort` drops unsent bytes, which the client would not read. uvicorn itself limits connections
    and idle time.
    """

    _deadline: asyncio.TimerHandle | None = None  # of the first head, or of a head that has begun
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(sizes.REQUEST_TIMEOUT, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Receive bytes; a head's later bytes do not extend its time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:  # the head is complete
            self._cancel()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(sizes.REQUEST_TIMEOUT, self.transport.abort)

    def on_response_complete(self) -> None:
        """Continue with the next request, which may have arrived already."""
        self._cancel()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP.

        Once a response has started, close the connection instead.
        """
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads too slowly: start its timer."""
        super().pause_writing()
        self._unread = self.loop.call_later(sizes.WRITE_TIMEOUT, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has caught up: stop its timer."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()

    def _cancel(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None


def uvicorn_config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        port=0,
        http=Connection,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=sizes.MAX_HEADERS,
        timeout_keep_alive=sizes.KEEP_ALIVE,
        limit_concurrency=sizes.MAX_CONNECTIONS,
        timeout_graceful_shutdown=int(limits.seconds) + 2,
        proxy_headers=False,
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address, not yet accepting; port 0 takes any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if TCP is named; without it the body waits 40 ms for the head's
    # acknowledgement
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name != "nt":  # on Windows it would let two servers share an address
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error}; choose another --port"
        ) from error
    return listening


def serve(
    experiment: Experiment, host: str, port: int, guard: Guard, limits: Limits, quiet: bool
) -> None:
    """Serve an experiment's system until SIGTERM or Ctrl-C.

    Print the address on stdout when ready.
    """
    if limits.waiting < MAX_QUESTIONS:
        raise ConfigError(
            f"--queue {limits.waiting}: wanted at least {MAX_QUESTIONS}, "
            "the questions of one request"
        )
    with closing(listen(host, port)) as listening:
        system = open_system(Run(experiment))
        configure_logging(quiet)
        service = Service(system, limits)
        del system  # the service may replace it
        hide_progress()  # of builds while the server runs
        host, port = listening.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host

        class Server(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                if self.started:
                    print(f"http://{shown}:{port}", flush=True)

            def handle_exit(self, sig: int, frame: FrameType | None) -> None:
                super().handle_exit(sig, frame)
                for stop in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(stop, signal.SIG_DFL)  # a second signal ends the process at once
                # All requests have ended by then; threads that still compute are not awaited
                end = threading.Timer(limits.seconds + _GRACE, os._exit, [0])
                end.daemon = True
                end.start()

        with suppress(KeyboardInterrupt):  # uvicorn raises the signal again after it has stopped
            Server(uvicorn_config(make_app(service, guard), limits)).run(sockets=[listening])


def serve_tools(experiment: Experiment, limits: Limits, quiet: bool) -> None:
    """Serve an experiment's system as MCP tools over stdin and stdout, until stdin ends, SIGTERM or
    Ctrl-C.
    """
    system = open_system(Run(experiment))
    configure_logging(quiet)
    for stop in (signal.SIGINT, signal.SIGTERM):
        # A thread of the SDK reads stdin and cannot be interrupted
        signal.signal(stop, lambda *_: os._exit(0))
    asyncio.run(serve_stdio(Service(system, limits)))
