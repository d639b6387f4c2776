"""Runs a server: takes the address, opens the system, answers until it is told to stop, and lets what runs end."""

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
from ifqa.errors import IfqaError
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.serve import limits as sizes
from ifqa.serve.app import make_app
from ifqa.serve.limits import QUESTIONS, Limits
from ifqa.serve.mcp import serve_stdio
from ifqa.serve.middleware import write_log
from ifqa.serve.security import Guard
from ifqa.serve.service import Service

_GRACE = 5.0  # seconds above the time limit until a stopped server has ended


class Connection(H11Protocol):
    """One connection: who sends no whole head in time, or reads no answer, is cut off.

    `abort` closes it: what is still to be written, its client does not read. uvicorn itself refuses connections beyond a number,
    and closes those that are silent after an answer.
    """

    _deadline: asyncio.TimerHandle | None = None  # of a head that has begun, or of the first one
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._deadline = self.loop.call_later(sizes.SLOW, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take bytes; further ones of a head do not prolong its time."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:  # the head is whole
            self._cancel()
        elif self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(sizes.SLOW, self.transport.abort)

    def on_response_complete(self) -> None:
        """Go on to the next request, which may be there already."""
        self._cancel()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; after the beginning of an answer only the end of the connection can say so."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the times."""
        self._cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read as fast as it is answered: give it a time."""
        super().pause_writing()
        self._unread = self.loop.call_later(sizes.UNREAD, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        if self._unread:
            self._unread.cancel()

    def _cancel(self) -> None:
        if self._deadline:
            self._deadline.cancel()
            self._deadline = None


def configuration(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """Uvicorn's settings for a server of these limits."""
    return uvicorn.Config(
        app, port=0, http=Connection, ws="none", lifespan="on", log_config=None, access_log=False, server_header=False,
        h11_max_incomplete_event_size=sizes.HEADERS, timeout_keep_alive=sizes.KEEP_ALIVE,
        limit_concurrency=sizes.CONNECTIONS, timeout_graceful_shutdown=int(limits.seconds) + 2, proxy_headers=False,
    )  # fmt: skip


def listen(host: str, port: int) -> socket.socket:
    """A socket that has taken the address; port 0 takes any free one. Nothing is accepted yet."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only where it sees TCP named; else the body would wait 40 ms for the head's acknowledgement
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name != "nt":  # there it would let two servers share an address
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise IfqaError(f"cannot listen on {host} port {port}: {error}; choose another --port") from error
    return listening


def serve(experiment: Experiment, host: str, port: int, guard: Guard, limits: Limits, quiet: bool) -> None:
    """Serve an experiment's system until SIGTERM or Ctrl-C; prints the address on stdout once questions are taken."""
    if limits.waiting < QUESTIONS:
        raise IfqaError(f"--queue {limits.waiting}: wanted at least {QUESTIONS}, the questions of one request")
    with closing(listen(host, port)) as listening, open_system(Run(experiment)) as system:
        write_log(quiet)
        service = Service(system, limits)
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
                    signal.signal(stop, signal.SIG_DFL)  # a second one ends the process at once
                # All requests have ended by then; what a thread still computes, nobody waits for
                end = threading.Timer(limits.seconds + _GRACE, os._exit, [0])
                end.daemon = True
                end.start()

        with suppress(KeyboardInterrupt):  # the server has ended its work; the signal is raised once more after it
            Server(configuration(make_app(service, guard), limits)).run(sockets=[listening])


def serve_tools(experiment: Experiment, limits: Limits, quiet: bool) -> None:
    """Serve an experiment's system as MCP tools over stdin and stdout, until stdin ends."""
    with open_system(Run(experiment)) as system, suppress(KeyboardInterrupt):
        write_log(quiet)
        asyncio.run(serve_stdio(Service(system, limits)))
