"""OpenTelemetry spans of an answer: what they hold, what they leave out, and that they reach a
collector.
"""

import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from openai_client import KEY, ask, here, model  # noqa: F401
from openai_server import error, serving
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from refusals import refused

import ifqa
from ifqa import tracing

QUESTION = "If the rope had been cut, who would have hauled the trains?"


@pytest.fixture
def exporter(monkeypatch):
    """Keeps the spans in memory."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setenv(tracing.ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setattr(tracing, "_tracer", lambda: provider.get_tracer("ifqa"))
    return exporter


def by_name(exporter):
    return {span.name: span for span in exporter.get_finished_spans()}


def test_an_answer_is_traced_with_its_stages(exporter):
    with ifqa.open("sample") as system:
        system.ask(QUESTION)
    spans = by_name(exporter)
    answer = spans["answer sample"]
    search = spans["retrieval sample"]
    assert {spans[name].parent.span_id for name in ("retrieval sample", "read extractive")} == {
        answer.context.span_id
    }
    assert search.attributes["gen_ai.operation.name"] == "retrieval"
    assert search.attributes["gen_ai.data_source.id"] == "sample"
    assert "rope" not in "".join(span.to_json() for span in spans.values())


def test_a_model_call_is_traced_by_the_conventions_without_its_texts(exporter, monkeypatch):
    with serving() as server, tracing.span("read llm", {}):
        model(server).complete(ask("Who hauled it?", max_tokens=9))
        monkeypatch.setenv(tracing.CONTENT, "true")
        model(server, store="others").complete(ask("Who hauled it?"))
    quiet, told, parent = exporter.get_finished_spans()
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.0,
        "server.address": "127.0.0.1",
        "server.port": int(server.url.split(":")[2].split("/")[0]),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.response.finish_reasons": ("stop",),
    }
    assert (quiet.name, dict(quiet.attributes)) == ("chat m", expected)
    assert quiet.parent.span_id == parent.context.span_id
    assert "Who hauled it?" in told.attributes["gen_ai.input.messages"]
    assert "to Who hauled it?" in told.attributes["gen_ai.output.messages"]
    assert KEY not in told.to_json()


def test_an_error_is_traced_by_its_class_alone(exporter):
    with serving(lambda *_: error(400, "no: Who hauled it?")) as server, refused("HTTP 400"):
        model(server).complete(ask("Who hauled it?"))
    with pytest.raises(ValueError, match="secret"), tracing.span("read llm", {}):
        raise ValueError("secret")
    for span, kind in zip(
        exporter.get_finished_spans(), ("no completion", "ValueError"), strict=True
    ):
        assert (span.attributes["error.type"], span.status.status_code) == (kind, StatusCode.ERROR)
        assert "hauled" not in span.to_json()
        assert "secret" not in span.to_json()


def test_spans_reach_a_collector_and_nothing_is_imported_without_an_endpoint():
    bodies = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    code = (
        "import sys; from ifqa.tracing import span\nwith span('retrieval x', {}): "
        "pass\nprint('opentelemetry' in sys.modules)"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Collector) as server:
        Thread(target=server.serve_forever).start()
        for endpoint in ("", f"http://127.0.0.1:{server.server_port}"):
            environment = os.environ | {tracing.ENDPOINT: endpoint, "NO_PROXY": "*"}
            done = subprocess.run(
                [sys.executable, "-c", code],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            assert done.stdout == f"{bool(endpoint)}\n"
        server.shutdown()
    [(path, body)] = bodies
    assert path == "/v1/traces"
    assert b"retrieval x" in body
