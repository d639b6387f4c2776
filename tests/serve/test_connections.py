"""Connections that send nothing, dawdle or read nothing are closed, and never keep another client out."""

import socket
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection

import held_reader
import pytest
from served import on_loopback

from ifqa.serve import limits
from ifqa.serve.connections import allow_files

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
QUESTION = b'{"question": "If so, who?"}'
POST = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


@pytest.fixture
def short(monkeypatch):
    """Makes limits smaller."""

    def set_to(**values):
        for name, value in values.items():
            monkeypatch.setattr(limits, name, value)

    return set_to


@contextmanager
def connected(url, source="127.0.0.1"):
    place = ("127.0.0.1", int(url.rpartition(":")[2]))
    with socket.create_connection(place, timeout=20, source_address=(source, 0)) as one:
        yield one


def is_closed(connection):
    """Whether the server closes the connection within the client's timeout."""
    with suppress(ConnectionResetError):
        while connection.recv(1 << 16):
            pass
    return True


def read(connection, words):
    """Read until the words have come."""
    came = b""
    while words not in came:
        piece = connection.recv(1 << 16)
        assert piece
        came += piece


def status(url, path="/healthz", body=None, source="127.0.0.1"):
    """The status of a new client's request, and its Retry-After."""
    port = int(url.rpartition(":")[2])
    web = HTTPConnection("127.0.0.1", port, timeout=20, source_address=(source, 0))
    web.request("POST" if body else "GET", path, body, {"Content-Type": "application/json"})
    response = web.getresponse()
    web.close()
    return response.status, response.headers["Retry-After"]


def test_a_connection_that_sends_nothing_is_closed(experiment, short):
    short(FIRST_BYTE=0.1)
    with on_loopback(experiment) as (_, url), connected(url) as silent:
        assert is_closed(silent)


@pytest.mark.parametrize("before", [b"", GET])
def test_a_head_that_does_not_end_is_closed_though_bytes_come(before, experiment, short):
    short(HEAD=0.2)
    with on_loopback(experiment) as (_, url), connected(url) as slow:
        slow.sendall(before + GET[:-2])
        end = time.monotonic() + 20
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                slow.sendall(b"X")
                time.sleep(0.02)


def test_a_body_that_does_not_end_after_its_answer_is_closed(experiment, short):
    short(HEAD=0.2)
    with on_loopback(experiment) as (_, url), connected(url) as slow:
        slow.sendall(GET.replace(b"\r\n\r\n", b"\r\nContent-Length: 100000\r\n\r\n"))
        slow.recv(1 << 16)
        end = time.monotonic() + 20
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                slow.sendall(b"X")
                time.sleep(0.02)


def test_a_connection_without_a_next_request_is_closed(experiment, short):
    short(KEEP_ALIVE=0.1)
    with on_loopback(experiment) as (_, url), connected(url) as kept:
        kept.sendall(GET)
        assert is_closed(kept)


def test_a_client_that_reads_no_answer_is_cut_off(experiment, short):
    short(UNREAD=0.1)
    with on_loopback(experiment) as (_, url), connected(url) as deaf:
        deaf.sendall(GET.replace(b"healthz", b"openapi.json") * 1000)
        end = time.monotonic() + 60
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                deaf.sendall(b"X")
                time.sleep(0.02)


def test_the_longest_silent_connection_makes_room(experiment, short):
    short(CONNECTIONS=3)
    with on_loopback(experiment) as (_, url), ExitStack() as stack:
        first, *others = [stack.enter_context(connected(url)) for _ in range(3)]
        assert status(url) == (200, None)
        assert is_closed(first)
        for one in others:
            one.sendall(GET)
            assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("answered", [b"", GET])
def test_a_body_that_dawdles_makes_room(answered, experiment, short):
    short(CONNECTIONS=3)
    with on_loopback(experiment) as (_, url), ExitStack() as stack:
        slow = [stack.enter_context(connected(url)) for _ in range(3)]
        for one in slow:
            one.sendall(answered + POST % (1000, b"{"))
            if answered:
                read(one, b"ok\n")
        for one in slow:  # bytes that came last do not spare the first
            one.sendall(b"{")
            time.sleep(0.05)
        assert status(url, "/v1/ask", QUESTION) == (200, None)
        assert is_closed(slow[0])
        slow[2].sendall(b" " * 998)
        read(slow[2], b"HTTP/1.1 4")


def test_an_answer_that_is_not_read_makes_room(experiment, short):
    short(CONNECTIONS=2)
    with on_loopback(experiment) as (service, url), ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(connected(url)).sendall(GET.replace(b"healthz", b"openapi.json") * 1000)
        answers = [-2.0, -1.0]
        while answers[-1] > answers[-2]:  # until neither client's buffers take more
            time.sleep(0.5)
            answers.append(
                sum(one.value for one in service.metrics.requests.collect()[0].samples if "total" in one.name)
            )
        assert status(url, "/v1/about") == (200, None)


def test_an_error_after_the_answer_ends_the_connection_alone(experiment, caplog):
    with on_loopback(experiment) as (_, url), connected(url) as one:
        one.sendall(GET.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"))
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 200")
        one.sendall(b"not a chunk\r\n")
        assert is_closed(one)
        assert status(url) == (200, None)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    "header", [b"X: %s" % (b"a" * limits.HEADERS), b"Content-Length: 2\r\nTransfer-Encoding: chunked"]
)
def test_a_head_that_comes_at_once_is_checked_like_one_in_pieces(header, experiment):
    with on_loopback(experiment) as (_, url), connected(url) as one:
        one.sendall(GET.replace(b"\r\n\r\n", b"\r\n%s\r\n\r\n0\r\n\r\n" % header))
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 400")
        assert is_closed(one)


def test_many_silent_connections_keep_nobody_out(experiment):
    with on_loopback(experiment) as (_, url), ExitStack() as stack:
        for _ in range(limits.CONNECTIONS + 100):
            stack.enter_context(connected(url))
        assert status(url, "/v1/ask", QUESTION) == (200, None)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_server_may_open_a_file_for_each_connection():
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        allow_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 2 * limits.CONNECTIONS
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@contextmanager
def busy(url, count):
    """So many connections whose questions wait for the reader."""
    held_reader.OPEN.clear()
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(connected(url)).sendall(POST % (len(QUESTION), QUESTION))
        yield
    held_reader.OPEN.set()


def until(what):
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_client_is_told_when_to_come_back_if_all_connections_are_busy(experiment, short):
    short(CONNECTIONS=2)
    with on_loopback(experiment) as (service, url), busy(url, 2):
        until(lambda: service.asking.busy + len(service.asking) == 2)
        assert status(url, "/v1/about") == (503, "5")
        assert status(url) == (200, None)  # a probe
    assert held_reader.BATCHES


def test_a_limit_for_an_address_leaves_others_alone(experiment):
    with on_loopback(experiment, per_address=2) as (service, url):
        with connected(url) as first, connected(url), connected(url, "127.0.0.2") as other:
            assert status(url, "/v1/about") == (200, None)
            assert is_closed(first)
            other.sendall(GET)
            assert other.recv(1 << 16).startswith(b"HTTP/1.1 200")
        with busy(url, 2):
            until(lambda: service.asking.busy + len(service.asking) == 2)
            assert status(url, "/v1/about") == (503, "5")
            assert status(url, "/v1/about", source="127.0.0.2") == (200, None)
