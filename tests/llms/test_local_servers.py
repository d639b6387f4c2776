"""A server on this machine: its window, its slots, its pace, and which server an answer belongs
to.
"""

import datetime
import http.server
import json
import ssl
import threading
from contextlib import contextmanager

import pytest
from openai_client import ask, here, model, texts  # noqa: F401
from openai_server import Reply, Server, serving

from ifqa.errors import IfqaError
from ifqa.llms import server_facts
from ifqa.llms.openai import OpenAI
from ifqa.records import Completion


def telling(**pages):
    """A kind of server that has these pages besides completions.

    A function answers a posted body.
    """

    class Telling(Server):
        async def respond(self, method, path, headers, body):
            name = path.removeprefix("/v1").strip("/").replace("/", "_")
            if name in pages:
                return Reply(body=pages[name], usage=None)
            return await super().respond(method, path, headers, body)

    return Telling


def listed(**entry):
    return {"object": "list", "data": [{"id": "m", "object": "model", **entry}]}


LLAMA_CPP = {
    "models": listed(meta={"n_ctx_train": 32768}),
    "props": {"total_slots": 3, "default_generation_settings": {"n_ctx": 2048}},
}
OLLAMA = {"models": listed(), "api_ps": {"models": []}}
SHOWN = {"parameters": "stop x", "model_info": {"qwen3.context_length": 40960}}


@pytest.mark.parametrize(
    ("pages", "window"),
    [
        ({"models": listed(max_model_len=16384)}, 16384),  # vLLM, SGLang
        (LLAMA_CPP, 2048),
        ({"models": listed(meta={"n_ctx_train": 32768})}, 32768),
        (OLLAMA | {"api_show": SHOWN}, 4096),
        (
            OLLAMA | {"api_show": SHOWN | {"parameters": "num_ctx                        8192"}},
            8192,
        ),
        (
            OLLAMA
            | {"api_show": SHOWN, "api_ps": {"models": [{"name": "m", "context_length": 20480}]}},
            20480,
        ),
        ({}, 4096),
    ],
)
def test_the_context_window_is_what_the_server_says(pages, window):
    with serving(kind=telling(**pages)) as server:
        assert model(server, window=0).window == window


@pytest.mark.parametrize(
    "parameters", ["num_ctx " + "9" * 5000, "num_ctx 99999999999999", "num_ctx x"]
)
def test_an_impossible_window_is_ignored(parameters):
    with serving(kind=telling(**OLLAMA, api_show=SHOWN | {"parameters": parameters})) as server:
        assert model(server, window=0).window == 4096


@pytest.mark.parametrize(
    "listing", [[], {"data": [7, {"id": None}, {"id": "m"}]}, {"data": "m"}, "m"]
)
def test_check_survives_any_list_of_models(listing):
    with serving(kind=telling(models=listing)) as server:
        (need,) = model(server).check_servers()
    assert need.present


def test_a_trickling_answer_about_the_model_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(server_facts, "TIMEOUT", 0.2)

    class Trickling(Server):
        async def respond(self, method, path, headers, body):
            return Reply(200, b" ", forever=0.05, usage=None)

    with serving(kind=Trickling) as server:
        assert model(server, window=0).window == 4096


def test_the_servers_word_counts_more_than_a_table_of_names():
    with serving(kind=telling(models=listed(max_model_len=8192))) as server:
        assert model(server, model="gpt-oss-20b", window=0).window == 8192


def test_a_window_is_remembered_while_the_server_is_down():
    with serving(kind=telling(models=listed(max_model_len=8192))) as server:
        llm = model(server, window=0)
        assert llm.window == 8192
        llm.complete(ask("a"))
    assert model(server, window=0).window == 8192


def test_the_slots_of_a_local_server_bound_the_requests_in_flight():
    with serving(latency=0.05, kind=telling(**LLAMA_CPP)) as server:
        model(server, concurrency=32).complete(ask(*map(str, range(20))))
        assert server.most_at_once == 3


def test_a_local_server_that_does_not_tell_its_slots_gets_two_requests_at_once():
    with serving(latency=0.05) as server:
        model(server).complete(ask(*map(str, range(8))))
        assert server.most_at_once == 2


def test_a_setting_is_obeyed_where_the_server_does_not_tell_its_slots():
    with serving(latency=0.05) as server:
        model(server, concurrency=5).complete(ask(*map(str, range(20))))
        assert server.most_at_once == 5


def test_a_slow_local_server_is_waited_for_instead_of_asked_again(capsys):
    with serving(latency=0.6) as server:
        llm = model(server, timeout=0.1)
        assert texts(llm.complete(ask("a"))) == ["to a"]
        assert server.requests == 1
    assert "no answer within 0.1 s (llm.timeout); waiting on" in capsys.readouterr().err


def test_two_servers_of_one_model_name_share_no_completion():
    with (
        serving(lambda *_: Reply(text="one")) as first,
        serving(lambda *_: Reply(text="two")) as second,
    ):
        assert texts(model(first).complete(ask("a"))) == ["one"]
        assert texts(model(second).complete(ask("a"))) == ["two"]


def test_a_served_name_stands_for_the_address():
    with serving() as first, serving() as second:
        model(first, served_as="qwen3-8b-awq").complete(ask("a"))
        assert model(second, served_as="qwen3-8b-awq").complete(ask("a"))[0].cached
        assert not model(second, served_as="another").complete(ask("a"))[0].cached


def ask_beside_localhost(server):
    """The texts of a model for which an earlier version stored a completion at localhost."""
    llm = model(server)
    llm._cache.put("m at localhost", {ask("a")[0]: Completion("another's")})
    return texts(llm.complete(ask("a", "b")))


def test_completions_stored_at_localhost_are_not_used():
    with serving() as server:
        assert ask_beside_localhost(server) == ["to a", "to b"]


def test_completions_that_are_not_used_are_told_in_one_line(capsys):
    with serving() as server:
        ask_beside_localhost(server)
    line = "1 completion that an earlier version has stored as 'm at localhost' is not used"
    assert " ".join(capsys.readouterr().err.split()).count(line) == 1


def test_completions_of_openai_keep_their_name():
    assert OpenAI(OpenAI.Settings(model="gpt-4.1")).name == "gpt-4.1"


def test_completions_of_an_https_host_keep_their_name():
    assert (
        OpenAI(OpenAI.Settings(model="m", base_url="https://api.groq.com/openai/v1", window=9)).name
        == "m at api.groq.com"
    )


@pytest.fixture
def certificate(tmp_path):
    """The files of a certificate for localhost that nobody trusts, and of its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = tmp_path / "c.pem", tmp_path / "k.pem"
    files[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())
    )
    return files


@contextmanager
def serving_tls(certificate):
    """A server behind TLS on this machine.

    Yields its address and the number of connections that were tried.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_error(404)

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            body = json.dumps(
                {"choices": [{"message": {"content": "sealed"}, "finish_reason": "stop"}]}
            ).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    class Counting(http.server.ThreadingHTTPServer):
        tried = 0
        url = ""

        def get_request(self):
            self.tried += 1
            return super().get_request()

        def handle_error(self, *_):
            pass

    server = Counting(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        server.url = f"https://localhost:{server.server_address[1]}/v1"
        yield server
    finally:
        server.shutdown()
        server.server_close()


def ask_untrusted(server):
    with pytest.raises(IfqaError) as caught:
        model(server, concurrency=1).complete(ask("a", "b", "c"))
    return caught


def test_a_certificate_that_is_not_trusted_is_named(certificate):
    with serving_tls(certificate) as server:
        caught = ask_untrusted(server)
    assert caught.match(r"certificate is not trusted.*export SSL_CERT_FILE=ca\.pem")


def test_a_certificate_that_is_not_trusted_is_tried_once(certificate):
    with serving_tls(certificate) as server:
        ask_untrusted(server)
        assert server.tried == 2  # the question for its slots, and one request


def test_an_authority_of_ones_own_is_trusted_on_this_machine_too(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with serving_tls(certificate) as server:
        assert texts(model(server).complete(ask("a"))) == ["sealed"]


def test_a_file_of_authorities_that_is_none_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "ca.pem").write_text("no certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with (
        serving() as server,
        pytest.raises(IfqaError, match=r"SSL_CERT_FILE.*wanted certificates in PEM format"),
    ):
        model(server).complete(ask("a"))


def test_https_to_a_server_without_tls_is_one_line():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with pytest.raises(
            IfqaError, match=r"does not speak TLS; wanted an address that begins with http://"
        ):
            OpenAI(
                OpenAI.Settings(
                    model="m", base_url=f"https://127.0.0.1:{server.server_address[1]}/v1", window=9
                )
            ).complete(ask("a"))
    finally:
        server.shutdown()
        server.server_close()
