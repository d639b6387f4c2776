"""A real server for tests: `transformers serve`."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest

needs_serving = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn")),
    reason="transformers[serving]",
)


@contextmanager
def serve(folder, home):
    """The URL of a server.

    A request names the model by `folder`; other names are refused. `home` holds the server's files.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "transformers.cli.transformers",
        "serve",
        folder,
        "--device",
        "cpu",
    ]
    offline = {
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    with open(home / "log", "wb") as log:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=os.environ | offline,
            stdout=log,
            stderr=log,
        )
    try:
        _wait(process, f"http://127.0.0.1:{port}/health", home / "log")
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait(process, address, log):
    """Wait until the server answers; it loads the model before it listens."""
    web = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    for _ in range(1200):
        if process.poll() is not None:
            break
        try:
            with web.open(address, timeout=5) as answer:
                assert json.load(answer) == {"status": "ok"}
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text()[-2000:]}")
