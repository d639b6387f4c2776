"""Milvus Lite's own server, in a process of its own."""

import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager


@contextmanager
def milvus_server(folder):
    """Start the server on a free port; yields its address and its process once it listens."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "milvus_lite",
        "server",
        "--data-dir",
        str(folder),
        "--host",
        "127.0.0.1",
    ]
    process = subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()
