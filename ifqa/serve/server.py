"""Runs a server: takes the address, opens the system, answers until it is told to stop, and lets what runs end."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from importlib.util import find_spec
from types import FrameType

from ifqa.config.experiment import Experiment
from ifqa.config.overrides import override
from ifqa.errors import IfqaError
from ifqa.progress import say
from ifqa.serve.limits import QUESTIONS, Limits
from ifqa.serve.security import Guard

DOLLARS = 1.0  # the cap on a language model's cost where nobody sets one
_NEEDED = ("fastapi", "uvicorn", "mcp")
_GRACE = 5.0  # seconds above the time limit until a stopped server has ended


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


def cap_cost(experiment: Experiment, flags: Sequence[str] = ()) -> Experiment:
    """The experiment with a cap on what its language model may cost, if it asks one and nobody has set a cap.

    Args:
        experiment: what is served.
        flags: the settings that flags name; a cap of 0 among them is meant.
    """
    caps = ("max_cost", "max_total_tokens")
    llm: Mapping[str, object] = experiment.llm or {}
    asks = experiment.asks_llm("reader") or experiment.asks_llm("retriever")
    if not asks or not all(cap in llm for cap in caps) or any(llm[cap] or f"llm.{cap}" in flags for cap in caps):
        return experiment
    say(f"the language model may cost ${DOLLARS:g} until this server ends; --max-cost sets another cap, 0 none")
    return override(experiment, {"llm.max_cost": DOLLARS})


def require_extra() -> None:
    """Check that the extra is installed."""
    for package in _NEEDED:
        if find_spec(package) is None:
            raise IfqaError(f"the server needs {package}; install it with: pip install 'ifqa[serve]'")


def serve(experiment: Experiment, host: str, port: int, guard: Guard, limits: Limits, quiet: bool) -> None:
    """Serve an experiment's system until SIGTERM or Ctrl-C; prints the address on stdout once questions are taken."""
    if limits.waiting < QUESTIONS:
        raise IfqaError(f"--queue {limits.waiting}: wanted at least {QUESTIONS}, the questions of one request")
    require_extra()
    import uvicorn

    from ifqa.pipeline.run import Run
    from ifqa.pipeline.stages import open_system
    from ifqa.serve.app import make_app
    from ifqa.serve.connections import configuration
    from ifqa.serve.service import Service
    from ifqa.serve.telemetry import write_log

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
    require_extra()
    from ifqa.pipeline.run import Run
    from ifqa.pipeline.stages import open_system
    from ifqa.serve.mcp import serve_stdio
    from ifqa.serve.service import Service
    from ifqa.serve.telemetry import write_log

    with open_system(Run(experiment)) as system, suppress(KeyboardInterrupt):
        write_log(quiet)
        asyncio.run(serve_stdio(Service(system, limits)))
