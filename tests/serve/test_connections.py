"""Clients that leave, are slow or send invalid requests over a real connection.

And a server that is stopped.
"""

import json
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

import blocking_reader
import httpx2
import pytest
from serving_system import connected, on_loopback, small, until

from ifqa.serve import limits

pytestmark = pytest.mark.slow

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CHUNKED = (
    b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
    b"application/json\r\nConnection: close\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def request(question="If so, who?", **headers):
    body = json.dumps({"question": question}).encode()
    lines = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": len(body),
        **headers,
    }
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"POST /v1/ask HTTP/1.1\r\n{head}\r\n".encode() + body


def get_with(header):
    return GET.replace(b"\r\n\r\n", b"\r\n%s\r\n\r\n" % header)


def asked(url, question="If next, who?"):
    body = httpx2.post(f"{url}/v1/ask", json={"question": question}, timeout=60).json()
    return body["answers"][0]["answer"] if "answers" in body else body["detail"]


def until_closed(connection):
    """Receive until the server closes the connection."""
    received = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            received += piece
    return received


def reply(connection):
    """Status and body; status 0 if the connection was reset."""
    head, _, body = until_closed(connection).partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


@pytest.mark.parametrize(
    ("limit", "sent"), [({"REQUEST_TIMEOUT": 0.1}, b""), ({"KEEP_ALIVE": 0.1}, GET)]
)
def test_a_connection_that_sends_nothing_is_closed(limit, sent, experiment, monkeypatch):
    monkeypatch.setattr(limits, *limit.popitem())
    with on_loopback(experiment) as (_, url), connected(url) as silent:
        silent.sendall(sent)
        until_closed(silent)


@pytest.mark.parametrize(
    ("limit", "sent"),
    [
        ({"REQUEST_TIMEOUT": 0.2}, GET[:-2]),
        ({"REQUEST_TIMEOUT": 0.2}, GET + GET[:-2]),
        ({"REQUEST_TIMEOUT": 0.2}, get_with(b"Content-Length: 100000")),
        ({"WRITE_TIMEOUT": 0.1}, GET.replace(b"healthz", b"openapi.json") * 1000),
    ],
    ids=["head", "second head", "body", "unread answer"],
)
def test_a_client_that_sends_without_end_or_reads_no_answer_is_disconnected(
    limit, sent, experiment, monkeypatch
):
    monkeypatch.setattr(limits, *limit.popitem())
    with on_loopback(experiment) as (_, url), connected(url) as slow:
        slow.sendall(sent)
        with pytest.raises(ConnectionError):
            until(lambda: slow.sendall(b"X"))


def test_an_error_after_the_answer_ends_the_connection_alone(experiment, caplog):
    with on_loopback(experiment) as (_, url), connected(url) as connection:
        head = get_with(b"Transfer-Encoding: chunked")
        connection.sendall(
            head.replace(b"localhost", b"elsewhere").replace(b"healthz", b"v1/about")
        )
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 421")
        connection.sendall(b"not a chunk\r\n")
        until_closed(connection)
        assert asked(url) == "Ada Stone"
    assert not [record for record in caplog.records if record.exc_info]


def test_beyond_the_number_of_connections_requests_are_refused_until_silent_ones_are_closed(
    experiment, monkeypatch
):
    monkeypatch.setattr(limits, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(limits, "REQUEST_TIMEOUT", 0.5)
    with on_loopback(experiment) as (_, url), connected(url), connected(url):
        assert httpx2.get(f"{url}/v1/about").status_code == 503
        until(lambda: httpx2.get(f"{url}/v1/about").status_code == 200)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_questions_of_disconnected_clients_are_not_computed(accept, experiment):
    with on_loopback(experiment) as (service, url):
        blocking_reader.OPEN.clear()
        with connected(url) as first:
            first.sendall(request("If first, who?", Connection="close"))
            until(lambda: blocking_reader.BATCHES)
            with connected(url) as gone:
                gone.sendall(request("If gone, who?", Accept=accept))
                until(lambda: len(service.asking) == 1)
            until(lambda: len(service.asking) == 0)
            blocking_reader.OPEN.set()
            assert reply(first)[0] == 200
        assert asked(url) == "Ada Stone"
    assert blocking_reader.BATCHES == [["If first, who?"], ["If next, who?"]]


def test_a_slow_sender_times_out(experiment):
    with on_loopback(experiment, seconds=0.2) as (_, url), connected(url) as slow:
        slow.sendall(request()[:-5])
        status, body = reply(slow)
    assert status == 408
    assert json.loads(body)["title"] == "Request Timeout"


def test_a_slow_reader_blocks_nobody(experiment):
    with on_loopback(experiment, seconds=0.2) as (_, url), connected(url) as deaf:
        deaf.sendall(request() * 40)  # and reads nothing
        assert asked(url) == "Ada Stone"


RUBBISH = {
    "20 MB": (lambda: request("x" * 20_000_000, Connection="close"), 413),
    "100,000 headers": (lambda: get_with(b"X-A: b\r\n" * 100_000), 0),
    "a long header": (lambda: get_with(b"X: %s" % (b"a" * limits.MAX_HEADERS)), 400),
    "a length and chunks": (
        lambda: get_with(b"Content-Length: 2\r\nTransfer-Encoding: chunked") + b"0\r\n\r\n",
        400,
    ),
    "invalid UTF-8": (lambda: request("?", Connection="close").replace(b"?", b"\xff"), 400),
    "no HTTP": (lambda: b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
    "two lengths": (lambda: request(Content_Length="3\r\nContent-Length: 9"), 400),
    "no host": (lambda: b"GET / HTTP/1.0\r\n\r\n", 421),
    "a large body in chunks": (
        lambda: CHUNKED + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 21 + b"0\r\n\r\n",
        413,
    ),
}


def test_the_server_refuses_invalid_requests_without_being_stopped(experiment):
    with on_loopback(experiment) as (_, url):
        for name, (rubbish, wanted) in RUBBISH.items():
            with connected(url) as connection, ThreadPoolExecutor(1) as thread:
                sending = thread.submit(connection.sendall, rubbish())
                status, _ = reply(connection)
                assert status == wanted or (status, wanted) == (400, 0), name
                if wanted == 413:
                    sending.result()  # the sender is not cut off
        assert asked(url) == "Ada Stone"


SLOW = """
import pathlib, sys, threading, time
sys.path.insert(0, {stand_ins!r})
import blocking_reader
def hold():
    while not pathlib.Path("open").exists():
        time.sleep(0.01)
    blocking_reader.OPEN.set()
threading.Thread(target=hold, daemon=True).start()
sys.argv = ["ifqa", "serve", "few", "--port", "0", "--quiet"]
from ifqa.cli.app import main
main()
"""
EXPERIMENT = """
benchmark = "sample"
split = "dev"
corpus = "few"
retriever = { name = "blocking_reader:FixedRetriever", k = 3 }
reader = { name = "blocking_reader:BlockingReader", passages = 2 }
"""


@contextmanager
def held(folder):
    """`ifqa serve` with a reader that waits until the file "open" is there.

    Yields the process and its address.
    """
    small(folder)
    (folder / "experiments").mkdir()
    (folder / "experiments/few.toml").write_text(EXPERIMENT)
    script = SLOW.format(stand_ins=str(Path(blocking_reader.__file__).parent))
    with subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        url = server.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), server.stderr.read()
        try:
            yield server, url
        finally:
            server.kill()


def test_a_stop_finishes_twenty_questions_in_flight(tmp_path):
    def in_flight():
        with urlopen(f"{url}/metrics") as reply:
            lines = reply.read().decode().splitlines()
        return sum(
            float(line.split()[1])
            for line in lines
            if line.startswith(("ifqa_waiting{", "ifqa_working{"))
        )

    with held(tmp_path) as (server, url), ThreadPoolExecutor(20) as threads:
        twenty = [threads.submit(asked, url, f"If {n}, who?") for n in range(20)]
        until(lambda: in_flight() == 20)
        server.send_signal(signal.SIGTERM)
        (tmp_path / "open").touch()
        assert [answer.result() for answer in twenty] == ["Ada Stone"] * 20
        assert server.wait(60) == 0, server.stderr.read()
