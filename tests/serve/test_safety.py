"""Access: foreign hosts, foreign pages, a missing and a wrong token are refused.

No secret is logged.
"""

import json
import logging
import socket
import subprocess
import sys
import time

import pytest
from blocking_reader import BATCHES
from serving_system import HOSTILE, TOKEN, client, small

from ifqa.errors import IfqaError
from ifqa.serve import security
from ifqa.serve.limits import cap_cost
from ifqa.serve.middleware import JsonFormatter
from ifqa.serve.security import POLICY, Guard, check_token, make_guard
from ifqa.serve.server import listen

QUESTION = {"question": "If Ada had not come, who?"}


@pytest.fixture
def guarded(experiment):
    """A client of an application that wants a token and is called mill.example.org."""
    guard = Guard(hosts={"mill.example.org"}, token=TOKEN)
    with client(experiment, guard, "mill.example.org") as web:
        yield web


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_a_foreign_host_is_refused(web):
    foreign = "evil.example|localhost.evil.example||127.0.0.1.evil.example|[::1|x@y|evil@localhost|localhost/x|localhost:80,evil"
    for host in foreign.split("|"):
        assert web.post("/v1/ask", json=QUESTION, headers={"host": host}).status_code == 421, host
        assert web.get("/", headers={"host": host}).status_code == 421
        assert web.get("/healthz", headers={"host": host}).status_code == 200
    assert BATCHES == []


def test_loopback_is_known_by_its_names(web):
    for host in ("localhost:8017", "LOCALHOST", "127.0.0.1:80", "[::1]:8017", "localhost."):
        assert web.post("/v1/ask", json=QUESTION, headers={"host": host}).status_code == 200, host


def test_a_foreign_page_is_refused(web):
    for origin in (
        "https://evil.example",
        "null",
        "http://localhost:9999",
        "http://localhost.evil",
        "http://[",
        "x",
    ):
        refused = web.post("/v1/ask", json=QUESTION, headers={"origin": origin})
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers
        assert web.post("/mcp", json={}, headers={"origin": origin}).status_code == 403
    assert BATCHES == []


def test_the_servers_own_page_is_admitted(web):
    for origin in ("http://localhost", "https://localhost"):  # a proxy may speak https
        assert web.post("/v1/ask", json=QUESTION, headers={"origin": origin}).status_code == 200


@pytest.mark.parametrize("token", [None, "", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\xff" * 9])
def test_a_request_without_the_right_token_is_refused(token, guarded):
    headers = {} if token is None else {"authorization": f"Bearer {token}".encode("latin-1")}
    for path in (
        "v1/ask",
        "v1/retrieve",
        "mcp",
        "v1/passages/p%2F1",
        "v1/about",
        "metrics",
        "openapi.json",
        "nothing",
    ):
        posted = path in ("v1/ask", "v1/retrieve", "mcp")
        send, body = (guarded.post, {"json": QUESTION}) if posted else (guarded.get, {})
        refused = send(f"/{path}", headers=headers, **body)
        assert refused.status_code == 401, path
        assert refused.headers["www-authenticate"].startswith("Bearer")
    assert (
        guarded.get("/results", headers=headers, follow_redirects=False).headers["location"] == "/"
    )
    assert guarded.get("/").status_code == guarded.get("/healthz").status_code == 200
    assert BATCHES == []


def test_a_wrong_token_gives_the_page_no_cookie(guarded):
    for wrong, status in ((TOKEN[:-1], 401), ("x" * 1000, 401), ("x" * 9000, 413)):
        assert guarded.post("/v1/session", json={"token": wrong}).status_code == status


def test_a_cookie_stands_for_the_token_that_the_page_showed(guarded):
    shown = guarded.post(
        "/v1/session", json={"token": TOKEN}, headers={"origin": "https://mill.example.org"}
    )
    cookie = shown.headers["set-cookie"].lower()
    assert shown.status_code == 204
    assert all(flag in cookie for flag in ("httponly", "samesite=strict", "secure"))
    assert TOKEN not in cookie
    value = shown.headers["set-cookie"].partition(";")[0]
    assert guarded.post("/v1/ask", json=QUESTION, headers={"cookie": value}).status_code == 200
    assert (
        guarded.post("/v1/ask", json=QUESTION, headers={"cookie": value + "x"}).status_code == 401
    )


def sign_in(web, token):
    return web.post("/v1/session", json={"token": token})


def test_a_cookie_ends_after_twelve_hours(guarded, monkeypatch):
    shown = sign_in(guarded, TOKEN)
    assert "max-age=43200" in shown.headers["set-cookie"].lower()
    cookie = {"cookie": shown.headers["set-cookie"].partition(";")[0]}
    now = time.time()
    monkeypatch.setattr(security.time, "time", lambda: now + 43_199)
    assert guarded.get("/v1/about", headers=cookie).status_code == 200
    monkeypatch.setattr(security.time, "time", lambda: now + 43_201)
    assert guarded.get("/v1/about", headers=cookie).status_code == 401


@pytest.mark.parametrize(
    "forged", ["", "9999999999", "9999999999.", "x.y", "-1.x", "9" * 40 + ".x"]
)
def test_a_forged_cookie_is_refused(guarded, forged):
    assert guarded.get("/v1/about", headers={"cookie": f"ifqa-session={forged}"}).status_code == 401


def test_after_ten_wrong_tokens_even_the_right_one_is_not_looked_at(guarded):
    statuses = [sign_in(guarded, f"wrong token {n}").status_code for n in range(11)]
    assert statuses == [401] * 10 + [429]
    refused = sign_in(guarded, TOKEN)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert guarded.get("/v1/about", headers=bearer(TOKEN)).status_code == 429


def test_wrong_tokens_in_a_header_count_too(guarded):
    statuses = [
        guarded.get("/v1/about", headers=bearer(f"wrong-{n}")).status_code for n in range(11)
    ]
    assert statuses == [401] * 10 + [429]


def test_tokens_are_looked_at_again_after_a_minute(guarded, monkeypatch):
    for number in range(10):
        sign_in(guarded, f"wrong token {number}")
    later = time.monotonic() + 61
    monkeypatch.setattr(security.time, "monotonic", lambda: later)
    assert sign_in(guarded, TOKEN).status_code == 204


def test_a_client_with_an_outdated_token_locks_nobody_out(guarded):
    assert {sign_in(guarded, "an outdated token").status_code for _ in range(30)} == {401}
    assert sign_in(guarded, TOKEN).status_code == 204


def test_a_signed_in_page_goes_on_while_somebody_tries_tokens(guarded):
    cookie = {"cookie": sign_in(guarded, TOKEN).headers["set-cookie"].partition(";")[0]}
    for number in range(12):
        sign_in(guarded, f"wrong token {number}")
    assert guarded.get("/v1/about", headers=cookie).status_code == 200


def test_addresses_of_one_ipv6_network_count_together():
    wrong = security.WrongTokens()
    for number in range(10):
        wrong.add(f"2001:db8::{number}", str(number))
    assert wrong.seconds_to_wait("2001:db8::ffff") > 0
    assert wrong.seconds_to_wait("2001:db8:0:1::1") == 0


def test_every_response_has_the_headers_of_safety(guarded):
    for response in (
        guarded.get("/"),
        guarded.get("/v1/about"),
        guarded.get("/x", headers={"host": "evil.example"}),
    ):
        headers = [
            response.headers[name] for name in ("content-security-policy", "x-content-type-options")
        ]
        assert (headers, bool(response.headers["x-request-id"])) == ([POLICY, "nosniff"], True)
    assert "no-store" in guarded.get("/v1/about", headers=bearer(TOKEN)).headers["cache-control"]


@pytest.fixture
def logged(guarded, caplog):
    """The lines that the log has of three requests."""
    caplog.set_level(logging.INFO, "ifqa.serve")
    question = {"question": f"If the canary had sung, who? {HOSTILE}"}
    guarded.post("/v1/ask", json=question, headers=bearer(TOKEN) | {"x-request-id": "mine\x1b[31m"})
    guarded.post("/v1/session", json={"token": TOKEN})
    guarded.get(
        "/v1/passages/%1b%5b31m%0a%7f%c2%9b", headers=bearer(TOKEN), params={"q": "the canary"}
    )
    lines = [
        JsonFormatter().format(record) for record in caplog.records if record.name == "ifqa.serve"
    ]
    assert len(lines) == 3
    return lines


def test_the_log_has_each_request(logged):
    entries = [json.loads(line) for line in logged]
    assert [(entry["method"], entry["status"]) for entry in entries] == [
        ("POST", 200),
        ("POST", 204),
        ("GET", 404),
    ]


def test_the_log_has_no_question(logged):
    assert not [line for line in logged if "canary" in line]


def test_the_log_has_no_token(logged):
    assert not [line for line in logged if TOKEN in line]
    assert TOKEN not in repr(Guard(token=TOKEN))


def test_the_log_has_nothing_raw(logged):
    assert all(line.isascii() and line.isprintable() for line in logged)


def test_another_address_than_loopback_wants_a_token(monkeypatch, tmp_path):
    monkeypatch.delenv("IFQA_TOKEN", raising=False)
    for host in ("localhost", "127.0.0.1", "127.8.8.8", "::1"):
        assert make_guard(host).token == ""
    for host in ("192.168.1.5", "0.0.0.0", "::", "localhost.evil", "mill.example.org"):
        with pytest.raises(
            IfqaError, match="can be reached from other machines, so requests need a token"
        ):
            make_guard(host)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    guard = make_guard("192.168.1.5", token_file=tmp_path / "token")
    assert (guard.hosts, guard.is_token(TOKEN, "10.0.0.1")) == ({"192.168.1.5"}, True)
    monkeypatch.setenv("IFQA_TOKEN", TOKEN)
    with pytest.raises(IfqaError, match="--allow-host NAME"):
        make_guard("0.0.0.0")
    assert make_guard("0.0.0.0", allow_hosts=["Mill.example.org"]).hosts == {"mill.example.org"}
    with pytest.raises(IfqaError, match="host name 'http://mill': wanted only a name"):
        make_guard("127.0.0.1", allow_hosts=["http://mill"])
    # It came from --host
    with pytest.raises(IfqaError, match=r"^host name 'a/b': wanted only a name"):
        make_guard("a/b")


@pytest.mark.parametrize("token", ["short", "with blanks in it, many", "\xe9" * 20, "\x00" * 20])
def test_an_invalid_token_is_refused_without_quoting_it(token):
    with pytest.raises(IfqaError, match="wanted a token of at least 16") as refused:
        check_token(token, "IFQA_TOKEN")
    assert token not in str(refused.value)


def test_a_taken_address_is_refused_in_one_line():
    with listen("127.0.0.1", 0) as taken:
        # Asyncio sends at once only where a socket names TCP
        assert taken.proto == socket.IPPROTO_TCP
        taken.listen()
        with pytest.raises(IfqaError, match="cannot listen on"):
            listen("127.0.0.1", taken.getsockname()[1])


def test_a_paid_model_has_a_default_cap(tmp_path, capsys):
    def cap(flags=(), **settings):
        llm = {"name": "openai", "model": "m", **settings}
        return cap_cost(small(tmp_path, reader={"name": "llm"}, llm=llm), flags).llm_setting(
            "max_cost"
        )

    assert (cap(), cap(max_cost=5.0), cap(max_total_tokens=9), cap(["llm.max_cost"])) == (
        1.0,
        5.0,
        0.0,
        0.0,
    )
    assert "this server may spend $1 on the language model" in capsys.readouterr().err
    assert cap_cost(small(tmp_path)).llm is None


def test_the_flags_need_no_web_framework():
    """So `ifqa serve` refuses a wrong flag at once."""
    code = (
        "import sys, ifqa.serve.limits, ifqa.serve.security; print({'fastapi', 'starlette', "
        "'mcp'} & set(sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "set()\n"
    )
