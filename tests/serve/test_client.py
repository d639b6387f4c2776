"""A client of a server that is none of ours, broken or hostile: one line, and never another error."""

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import ifqa
from ifqa.serve.schemas import QUESTION_EXAMPLE

LIMITS = {"question_characters": 9, "questions": 9, "k": 9, "body_bytes": 9, "seconds": 9, "waiting": 9}
ABOUT = {
    "name": "", "about": "", "version": "", "corpus": None, "retriever": None, "reader": None, "passages_read": 0, "k": 0,
    "examples": [], "limits": LIMITS,
}  # fmt: skip
ANSWER = {
    "id": "", "question": "", "supposed": None, "outcome": "answered", "answer": "a", "confidence": None, "candidate": "",
    "factual": "", "error": "", "how": None, "evidence": [], "seconds": 0,
}  # fmt: skip


@contextmanager
def server(status=200, body=b"", about=ABOUT, **headers):
    """Answers /v1/about with `about`, and all else with the body; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            known = self.path == "/v1/about"
            self.send_response(200 if known else status)
            for name, value in {} if known else headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(json.dumps(about).encode() if known else body)

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as one:
        threading.Thread(target=one.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{one.server_port}"
        finally:
            one.shutdown()


TERM = {"text": "1", "value": "1", "source": "passage", "start": 0, "end": 1}
NONSENSE = {"result": "3", "rule": "plus", "terms": [TERM] * 3, "line": ""}  # two signs are wanted
HOW = {"passage_id": "", "sentence": [0, 1], "span": [0, 1], "pieces": [], "calculation": NONSENSE}


@pytest.mark.parametrize("answers", [[], [ANSWER] * 2, [{}], [{**ANSWER, "how": HOW}]])
def test_answers_to_other_questions_are_refused(answers):
    with (
        server(body=json.dumps({"answers": answers}).encode()) as url,
        ifqa.Client(url) as client,
        pytest.raises(ifqa.IfqaError, match="not as ifqa serve does"),
    ):
        client.ask(QUESTION_EXAMPLE)


@pytest.mark.parametrize("streams", [False, True])
def test_a_body_that_cannot_be_unpacked_is_refused(streams):
    with (
        server(body=b"no gzip", Content_Encoding="gzip") as url,
        ifqa.Client(url) as client,
        pytest.raises(ifqa.IfqaError, match="decompressing"),
    ):
        client.ask(QUESTION_EXAMPLE, on_text=print if streams else None)


@pytest.mark.parametrize("event", ["text", "answer", "problem"])
@pytest.mark.parametrize("value", ["{", "3", "{}", '{"at": "x", "text": 1}', '{"at": -1, "text": ""}'])
def test_events_of_another_form_are_refused(event, value):
    with (
        server(body=f"event: {event}\ndata: {value}\n\n".encode()) as url,
        ifqa.Client(url) as client,
        pytest.raises(ifqa.IfqaError, match="not as ifqa serve does"),
    ):
        client.ask(QUESTION_EXAMPLE, on_text=print)


@pytest.mark.parametrize("later", ["9" * 5000, "-1", "soon", "0"])
def test_a_retry_after_without_sense_ends_in_a_refusal(later):
    with (
        server(503, b"{}", Retry_After=later) as url,
        ifqa.Client(url, patience=0.5) as client,
        pytest.raises(ifqa.IfqaError, match="HTTP 503"),
    ):
        client.ask(QUESTION_EXAMPLE)


@pytest.mark.parametrize("limit", [{"questions": 0}, {"questions": -1}, {"seconds": -1}, {"seconds": 1e300}])
def test_limits_that_nobody_could_keep_are_refused(limit):
    with server(about={**ABOUT, "limits": LIMITS | limit}) as url, pytest.raises(ifqa.IfqaError, match="not as ifqa"):
        ifqa.Client(url)


@pytest.mark.parametrize("url", ["http://[", "http://localhost:x", "http://\0", "http://a\nb"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ifqa.IfqaError, match="wanted an address"):
        ifqa.Client(url)


def test_what_no_request_can_hold_is_not_sent():
    with server() as url:
        with pytest.raises(ifqa.IfqaError, match="no header can hold"):
            ifqa.Client(url, token="\xe9" * 20)
        with ifqa.Client(url) as client:
            assert client.passage("\ud800") is None
            for heard in (None, print):
                with pytest.raises(ifqa.IfqaError, match="threshold: wanted a confidence"):
                    client.ask(QUESTION_EXAMPLE, threshold=float("nan"), on_text=heard)


def test_the_client_and_the_flags_need_no_web_framework():
    """So without the extra `ifqa serve` says what to install."""
    code = "import sys, ifqa.serve.client, ifqa.serve.server; print({'fastapi', 'starlette', 'mcp'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
