"""Connections that send nothing, dawdle or read nothing are closed, and keep another client out for seconds alone."""

import socket
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection

import pytest
from served import on_loopback

from ifqa.serve import limits

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
    short(SLOW=0.1)
    with on_loopback(experiment) as (_, url), connected(url) as silent:
        assert is_closed(silent)


@pytest.mark.parametrize("before", [b"", GET])
def test_a_head_that_does_not_end_is_closed_though_bytes_come(before, experiment, short):
    short(SLOW=0.2)
    with on_loopback(experiment) as (_, url), connected(url) as slow:
        slow.sendall(before + GET[:-2])
        end = time.monotonic() + 20
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                slow.sendall(b"X")
                time.sleep(0.02)


def test_a_body_that_does_not_end_after_its_answer_is_closed(experiment, short):
    short(SLOW=0.2)
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


def test_an_error_after_the_answer_ends_the_connection_alone(experiment, caplog):
    with on_loopback(experiment) as (_, url), connected(url) as one:
        head = GET.replace(b"localhost", b"elsewhere").replace(b"healthz", b"v1/about")
        one.sendall(head.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"))
        assert one.recv(1 << 16).startswith(b"HTTP/1.1 421")
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


def until(what):
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_beyond_the_number_of_connections_requests_are_refused_until_silent_ones_are_closed(experiment, short):
    short(CONNECTIONS=3, SLOW=0.5)
    with on_loopback(experiment) as (_, url), connected(url), connected(url):
        assert status(url, "/v1/about")[0] == 503
        until(lambda: status(url, "/v1/about")[0] == 200)
