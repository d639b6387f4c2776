"""Clients that leave, dawdle or send rubbish over a real connection; and a server that is told to stop."""

import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import held_reader
import httpx2
import pytest
from served import on_loopback, small

STAND_INS = Path(__file__).parents[1] / "stand_ins"


def request(question="If so, who?", path="/v1/ask", **headers):
    body = json.dumps({"question": question}).encode()
    lines = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": len(body), **headers}
    return f"POST {path} HTTP/1.1\r\n".encode() + _lines(lines) + b"\r\n" + body


def _lines(headers):
    return b"".join(f"{name.replace('_', '-')}: {value}\r\n".encode() for name, value in headers.items())


@contextmanager
def connected(url):
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=60) as one:
        yield one


def asked(url, question="If next, who?"):
    body = httpx2.post(f"{url}/v1/ask", json={"question": question}, timeout=60).json()
    return body["answers"][0]["answer"] if "answers" in body else body["detail"]


def reply(connection):
    """Status and body of what comes back; status 0 if the connection was reset."""
    data = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


def wait_for(what):
    end = time.monotonic() + 60
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_what_nobody_waits_for_is_not_computed(accept, experiment):
    with on_loopback(experiment) as (service, url):
        held_reader.OPEN.clear()
        with connected(url) as first:
            first.sendall(request("If first, who?", Connection="close"))
            wait_for(lambda: held_reader.BATCHES)
            with connected(url) as gone:
                gone.sendall(request("If gone, who?", Accept=accept))
                wait_for(lambda: len(service.asking) == 1)
            wait_for(lambda: len(service.asking) == 0)
            held_reader.OPEN.set()
            assert reply(first)[0] == 200
        assert asked(url) == "Ada Stone"
    assert held_reader.BATCHES == [["If first, who?"], ["If next, who?"]]


def test_a_slow_reader_holds_up_nobody(experiment):
    with on_loopback(experiment) as (_, url), connected(url) as slow:
        slow.sendall(request() * 40)  # and reads nothing
        assert asked(url) == "Ada Stone"


def test_a_slow_sender_is_given_up(experiment):
    with on_loopback(experiment, seconds=0.2) as (_, url), connected(url) as slow:
        slow.sendall(request()[:-5])
        status, body = reply(slow)
    assert (status, json.loads(body)["title"]) == (408, "Request Timeout")


RUBBISH = {
    "20 MB": (lambda: request("x" * 20_000_000, Connection="close"), 413),
    "100,000 headers": (lambda: b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-A: b\r\n" * 100_000 + b"\r\n", 0),
    "invalid UTF-8": (lambda: request("?", Connection="close").replace(b"?", b"\xff"), 400),
    "no HTTP": (lambda: b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    "two lengths": (lambda: request(Content_Length="3\r\nContent-Length: 9"), 400),
    "no host": (lambda: b"GET / HTTP/1.0\r\n\r\n", 421),
    "a large chunk": (
        lambda: b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b"x" * 65536 + b"\r\n"
        + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 20 + b"0\r\n\r\n",
        413,
    ),
}  # fmt: skip


def test_rubbish_is_refused_and_the_server_goes_on(experiment):
    with on_loopback(experiment) as (_, url):
        for name, (rubbish, wanted) in RUBBISH.items():
            with connected(url) as one, ThreadPoolExecutor(1) as thread:
                sending = thread.submit(one.sendall, rubbish())
                status, _ = reply(one)
                assert status == wanted or (status, wanted) == (400, 0), name
                if wanted == 413:
                    sending.result()  # the sender is not cut off
        assert asked(url) == "Ada Stone"


SLOW = """
import pathlib, sys, threading, time
sys.path.insert(0, {stand_ins!r})
import held_reader
def hold():
    while not pathlib.Path("open").exists():
        time.sleep(0.01)
    held_reader.OPEN.set()
threading.Thread(target=hold, daemon=True).start()
sys.argv = ["ifqa", "serve", "few", "--port", "0", "--quiet", "--timeout", "{timeout}"]
from ifqa.cli.app import main
main()
"""
EXPERIMENT = """
benchmark = "sample"
split = "dev"
corpus = "few"
retriever = { name = "held_reader:Found", k = 3 }
reader = { name = "held_reader:Held", passages = 2 }
"""


@contextmanager
def held(folder, timeout):
    """`ifqa serve` with a reader that waits until the file "open" is there; gives the process and its address."""
    small(folder)
    (folder / "experiments").mkdir()
    (folder / "experiments/few.toml").write_text(EXPERIMENT)
    script = SLOW.format(stand_ins=str(STAND_INS), timeout=timeout)
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        url = server.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), server.stderr.read()
        try:
            yield server, url
        finally:
            server.kill()


def test_a_stop_ends_what_still_computes(tmp_path):
    with held(tmp_path, timeout=1) as (server, url):
        assert "no answer within the time limit" in asked(url, "If so, who?")
        server.send_signal(signal.SIGTERM)
        assert server.wait(1 + 5 + 5) == 0, server.stderr.read()


def test_a_stop_lets_twenty_questions_end(tmp_path):
    with held(tmp_path, timeout=60) as (server, url), ThreadPoolExecutor(20) as threads:
        twenty = [threads.submit(asked, url, f"If {n}, who?") for n in range(20)]
        wait_for(lambda: in_flight(url) == 20)
        server.send_signal(signal.SIGTERM)
        (tmp_path / "open").touch()
        assert [one.result() for one in twenty] == ["Ada Stone"] * 20
        assert server.wait(60) == 0, server.stderr.read()


def in_flight(url):
    lines = urlopen(f"{url}/metrics").read().decode().splitlines()
    return sum(float(one.split()[1]) for one in lines if one.startswith(("ifqa_waiting{", "ifqa_working{")))
