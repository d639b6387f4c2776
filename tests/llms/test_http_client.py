"""Response bodies that never end, or that are compressed."""

import gzip
import json

import pytest
from openai_client import ask, here, model, texts  # noqa: F401
from openai_server import Reply, serving

from ifqa.llms import http_client

ANSWER = {"choices": [{"message": {"content": "packed"}, "finish_reason": "stop"}]}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(http_client, "LONGEST_BODY", 200_000)


@pytest.mark.parametrize("status", [200, 400, 404, 500])
def test_an_endless_body_is_cut_off_and_other_requests_continue(status):
    endless = Reply(status, b" " * 50_000, forever=0.0, usage=None)
    with serving(lambda prompt, *_: endless if prompt == "bad" else Reply()) as server:
        done = model(server, concurrency=1, timeout=20.0).complete(ask("bad", "good"))
        assert server.sent < 20_000_000  # with the bytes in the sockets' buffers
    assert [completion.error for completion in done] == ["the answer's body has more than 200,000 bytes", ""]
    assert server.asked == {"bad": 1, "good": 1}


def test_a_body_of_exactly_the_limit_is_read_and_a_trickling_body_times_out(monkeypatch):
    body = json.dumps(ANSWER).encode()
    monkeypatch.setattr(http_client, "LONGEST_BODY", len(body))
    with serving(lambda *_: Reply(200, body)) as server:
        assert texts(model(server).complete(ask("a"))) == ["packed"]
    monkeypatch.setattr(http_client, "LONGEST_BODY", 200_000)
    with serving(lambda *_: Reply(200, b" ", forever=0.02, usage=None)) as server:
        (done,) = model(server, timeout=0.3, retries=0).complete(ask("b"))
    assert "no answer within 0.3 s" in done.error


def test_a_compressed_body_is_refused_by_its_header():
    packed = gzip.compress(json.dumps(ANSWER).encode())
    with serving(lambda *_: Reply(200, packed, {"content-encoding": "gzip"})) as server:
        (done,) = model(server).complete(ask("a"))
        assert server.headers["accept-encoding"] == "identity"
    assert done.error == "the answer's body is compressed (gzip), although plain bytes were requested"
