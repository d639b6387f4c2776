"""A small system behind the server's application: in a thread on loopback, or called without a
network.
"""

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager

import blocking_reader
import uvicorn
from starlette.testclient import TestClient

from ifqa.config.experiment import parse_experiment
from ifqa.pipeline.run import Run
from ifqa.pipeline.stages import open_system
from ifqa.serve.app import make_app
from ifqa.serve.limits import Limits
from ifqa.serve.security import Guard
from ifqa.serve.server import uvicorn_config
from ifqa.serve.service import Service

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m"
TEXT = f"{HOSTILE} Mill {{}} is old. {blocking_reader.FACT} \U0001f600"
PASSAGES = [
    {"id": f"p/{n}", "title": f"Mill {n} {HOSTILE}", "contents": TEXT.format(n)} for n in range(5)
]
TOKEN = "canary-token-5c1f77e09b"
HELD = {"name": "blocking_reader:BlockingReader", "passages": 2}
FOUND = {"name": "blocking_reader:FixedRetriever", "k": 3}


def small(folder, **tables):
    """An experiment of five passages below a folder, with the reader of `blocking_reader`."""
    blocking_reader.OPEN.set()
    blocking_reader.BATCHES.clear()
    blocking_reader.SEARCHED.clear()
    (folder / "indexes").mkdir(exist_ok=True)
    (folder / "few.jsonl").write_text("".join(json.dumps(passage) + "\n" for passage in PASSAGES))
    (folder / "indexes/few.toml").write_text(
        '[[passages.sources]]\nformat = "passages"\npath = "few.jsonl"\n'
    )
    table = {
        "benchmark": "sample",
        "split": "dev",
        "corpus": "few",
        "retriever": FOUND,
        "reader": HELD,
        **tables,
    }
    return parse_experiment(
        "small", {key: value for key, value in table.items() if value}, "small.toml", folder
    )


@contextmanager
def service(experiment, **limits):
    """The opened system's service."""
    with open_system(Run(experiment)) as system:
        yield Service(system, Limits(**limits))


class ServiceClient(TestClient):
    """A client that knows the service behind the application."""

    service: Service


@contextmanager
def client(experiment, guard=None, host="localhost", **limits):
    """A client of the experiment's application without a network."""
    with (
        service(experiment, **limits) as opened,
        ServiceClient(
            make_app(opened, guard or Guard()), f"http://{host}", raise_server_exceptions=False
        ) as web,
    ):
        web.service = opened
        yield web


class Uvicorn(uvicorn.Server):
    """A server in a thread; `address` once it listens."""

    def __init__(self, app, limits):
        super().__init__(uvicorn_config(app, limits))
        self.up = threading.Event()

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self.up.set()

    @property
    def port(self):
        return self.servers[0].sockets[0].getsockname()[1]


@contextmanager
def serving(app, limits=None):
    """The application on loopback; gives its port."""
    server = Uvicorn(app, limits or Limits())
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    assert server.up.wait(60)
    try:
        yield server.port
    finally:
        blocking_reader.OPEN.set()
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@contextmanager
def on_loopback(experiment, guard=None, **limits):
    """The service of an experiment on loopback; gives the service and the server's address."""
    with (
        service(experiment, **limits) as opened,
        serving(make_app(opened, guard or Guard()), opened.limits) as port,
    ):
        yield opened, f"http://127.0.0.1:{port}"


@contextmanager
def connected(url):
    """A connection to a server on loopback."""
    with socket.create_connection(
        ("127.0.0.1", int(url.rpartition(":")[2])), timeout=60
    ) as connection:
        yield connection


def until(condition):
    """Wait until a function gives something true."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
