import asyncio
import base64
import email.utils
import sys
import time
import traceback
from dataclasses import replace

import pytest
from openai_client import KEY, ask, count_stored, first, here, model, texts  # noqa: F401
from openai_server import Reply, error, serving

from ifqa.errors import IfqaError
from ifqa.llms.cache import LONGEST_TEXT
from ifqa.llms.credentials import OPENAI, redact
from ifqa.llms.hf import HF
from ifqa.llms.openai import OpenAI
from ifqa.llms.response_parsing import retry_after
from ifqa.records import Completion, Request


def test_completions_come_in_the_order_of_their_requests():
    def plan(prompt, time, asked):
        return Reply(text=f"to {prompt}", latency=0.03 if int(prompt) % 2 else 0.001)

    with serving(plan) as server:
        done = model(server, concurrency=4).complete(ask(*map(str, range(12))))
    assert texts(done) == [f"to {n}" for n in range(12)]
    assert done[0] == Completion("to 0", 7, 3, "stop")
    assert 1 < server.most_at_once <= 4


def test_stored_completions_are_not_asked_for_again():
    with serving() as server:
        model(server).complete(ask("a", "b"))
        again = model(server)
        done = again.complete(ask("b", "a", "c"))
    assert texts(done) == ["to b", "to a", "to c"]
    assert [one.cached for one in done] == [True, True, False]
    assert server.asked == {"a": 1, "b": 1, "c": 1}
    assert (again.spent.calls, again.spent.cached, again.spent.prompt_tokens) == (1, 2, 7)


def test_equal_requests_are_asked_once_and_all_are_counted():
    steps = []
    with serving() as server:
        done = model(server).complete([*ask("a", "b", "a"), *ask("a", sample=1)], steps.append)
        model(server).complete(ask("a", "a"), steps.append)
    assert texts(done) == ["to a", "to b", "to a", "to a"]
    assert server.asked == {"a": 2, "b": 1}
    assert sum(steps) == 6


def test_no_requests_send_nothing():
    asked = OpenAI(model="m", base_url="http://127.0.0.1:9/v1", window=9)
    assert asked.complete([]) == []
    assert asked.spent.calls == 0


def test_a_request_is_sent_with_its_form_and_parameters():
    with serving() as server:
        plain = model(server, form="completion")
        assert not plain.chat
        plain.complete([Request(text="go on", max_tokens=9, temperature=0.5, stop=("\n",))])
    assert server.bodies == [
        {
            "model": "m",
            "prompt": "go on",
            "max_tokens": 9,
            "temperature": 0.5,
            "stop": ["\n"],
        }
    ]
    with serving() as server:
        thinking = model(server, effort="low")
        thinking.complete(ask("a", max_tokens=9))
    assert server.bodies[0]["reasoning_effort"] == "low"
    assert (server.bodies[0]["max_tokens"], server.bodies[0]["temperature"]) == (9, 0.0)
    assert model(server).estimate(ask("a", max_tokens=9)).calls == 1  # completions are stored per effort


def test_openai_gets_the_parameters_its_reasoning_models_take():
    ours = OpenAI(model="gpt-5-mini")
    (request,) = ask("a", max_tokens=9, temperature=1.0)
    assert ours.arguments(request).keys() == {"model", "messages", "max_completion_tokens"}
    assert ours.arguments(replace(request, temperature=0.0))["temperature"] == 0
    assert ours.url == OPENAI
    assert ours.chat
    assert ours.window == 272_000
    assert not OpenAI(model="gpt-3.5-turbo-instruct").chat


def late():
    return email.utils.format_datetime(email.utils.localtime(), usegmt=False)


PASSING = {
    "429 with seconds": lambda: error(429, "slow down", "rate_limit_exceeded", {"retry-after": "0.01"}),
    "429 with milliseconds": lambda: error(429, "slow down", None, {"retry-after-ms": "5"}),
    "429 with a date": lambda: error(429, "slow down", None, {"retry-after": late()}),
    "429 with nothing": lambda: error(429, "slow down"),
    "408": lambda: error(408, "too slow"),
    "409": lambda: error(409, "locked"),
    "500": lambda: error(500, "oops"),
    "502 in HTML": lambda: Reply(502, b"<html>Bad gateway</html>", usage=None),
    "503": lambda: error(503, "overloaded", None, {"retry-after": "0"}),
    "no answer in time": lambda: Reply(latency=1.5),
    "cut before the answer": lambda: Reply(cut="before"),
    "cut within the answer": lambda: Reply(cut="within"),
    "malformed JSON": lambda: Reply(body=b'{"choices": [{"mess'),
    "JSON of another kind": lambda: Reply(body=[1, 2]),
    "no choices": lambda: Reply(body={"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}}),
    "no text": lambda: Reply(text=None),
}


PATIENCE = {"no answer in time": 0.6}  # seconds


@pytest.mark.parametrize("name", PASSING)
def test_a_passing_failure_is_tried_again(name):
    with serving(first(PASSING[name], PASSING[name])) as server:
        asked = model(server, timeout=PATIENCE.get(name, 30.0))
        (done,) = asked.complete(ask("a"))
    assert (done.text, done.error) == ("answer", "")
    assert server.asked == {"a": 3}
    assert asked.spent.calls == 3


@pytest.mark.parametrize("name", PASSING)
def test_a_lasting_failure_is_its_requests_own_and_is_not_stored(name, capsys):
    def plan(prompt, time, asked):
        return PASSING[name]() if prompt == "bad" else Reply()

    with serving(plan) as server:
        asked = model(server, timeout=PATIENCE.get(name, 30.0), retries=1)
        done = asked.complete(ask("bad", "good"))
    assert texts(done) == ["", "answer"]
    assert "after 2 tries" in done[0].error
    assert count_stored() == 1
    assert capsys.readouterr().err.count("tried again") == 1
    with serving() as server:
        assert texts(model(server).complete(ask("bad", "good"))) == ["to bad", "answer"]
        assert server.asked == {"bad": 1}


ALONE = {
    "a context too long": lambda: error(400, "too long", "context_length_exceeded"),
    "a context too long for vLLM": lambda: Reply(
        400,
        {"object": "error", "message": "This model's maximum context length is 16 tokens.", "code": 400},
        usage=None,
    ),
    "a filtered prompt": lambda: error(400, "no", "content_filter"),
    "a payload too large": lambda: error(413, "too large"),
    "a filtered answer": lambda: Reply(text=None, finish="content_filter"),
    "an answer of nothing but reasoning": lambda: Reply(text="", finish="length"),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_wrong_request_stops_no_other(name):
    def plan(prompt, time, asked):
        return ALONE[name]() if prompt == "bad" else Reply()

    with serving(plan) as server:
        done = model(server, concurrency=1).complete(ask("bad", "good"))
    assert [bool(one.error) for one in done] == [True, False]
    assert server.asked == {"bad": 1, "good": 1}


def test_an_empty_answer_is_an_answer():
    with serving(lambda prompt, time, asked: Reply(text="")) as server:
        assert model(server).complete(ask("a")) == [Completion("", 7, 3, "stop")]
        assert model(server).complete(ask("a"))[0].cached


@pytest.mark.parametrize("usage", [(10**400, 3), (7, 10**400)])
def test_an_impossible_count_of_tokens_is_ignored(usage):
    with serving(lambda prompt, time, asked: Reply(usage=usage)) as server:
        asked = model(server)
        assert texts(asked.complete(ask("a"))) == ["answer"]
    assert asked.spent.prompt_tokens < 10**9


STOPPING = {
    "401": (lambda: error(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"), "check OPENAI_API_KEY"),
    "401 in stars": (lambda: error(401, "Incorrect API key: sk-cana*******0b2"), "Incorrect API key"),
    "403": (lambda: error(403, "not for you"), "not for you"),
    "404": (lambda: error(404, "The model `m` does not exist", "model_not_found"), "`m` does not exist"),
    "404 of FastAPI": (lambda: Reply(404, {"detail": "Not Found"}, usage=None), "check the model and base_url"),
    "400": (lambda: error(400, "what is this?"), "what is this"),
    "402": (lambda: error(402, "pay first"), "pay first"),
    "422": (lambda: error(422, "no such field"), "no such field"),
    "a parameter the model refuses": (
        lambda: error(400, "Unsupported value: 0", "unsupported_value", param="temperature"),
        "refuses the parameter temperature",
    ),
    "quota": (lambda: error(429, "You exceeded your current quota", "insufficient_quota"), "exceeded your current"),
    "a wait of an hour": (lambda: error(429, "daily limit", None, {"retry-after": "3600"}), "wait 3,600 s"),
}


@pytest.mark.parametrize("name", STOPPING)
def test_a_fatal_refusal_stops_all_and_stores_what_is_in_flight(name):
    reply, words = STOPPING[name]

    def plan(prompt, time, asked):
        return reply() if prompt == "0" else Reply(latency=0.1)

    with serving(plan) as server:
        with pytest.raises(IfqaError, match=words) as caught:
            model(server, concurrency=4).complete(ask(*map(str, range(50))))
        assert server.requests == 4
    assert len(str(caught.value).splitlines()) == 1
    assert count_stored() == 3


def test_a_server_that_is_down_is_reported_after_the_tries():
    with pytest.raises(IfqaError, match=r"cannot connect.*after 2 tries; is the server up"):
        OpenAI(model="m", base_url="http://127.0.0.1:9/v1", window=9, retries=1).complete(ask("a", "b"))


def test_a_pause_that_the_server_asks_for_holds_for_all():
    times = []

    def plan(prompt, number, asked):
        times.append(time.monotonic())
        return error(429, "slow", None, {"retry-after": "0.5"}) if len(times) == 1 else Reply(latency=0.25)

    with serving(plan) as server:
        done = model(server, concurrency=2).complete(ask("a", "b", "c", "d"))
    assert texts(done) == ["answer"] * 4
    assert (
        len([one for one in times if one < times[0] + 0.5]) <= 2
    )  # requests in flight when the server asked for the pause


def test_the_pace_is_kept():
    with serving() as server:
        asked = model(server, requests_per_minute=1200, concurrency=8)
        began = time.monotonic()
        asked.complete(ask(*"abcdefgh"))
        assert time.monotonic() - began >= 7 * 0.05


def test_it_works_inside_a_running_loop():
    async def cell(server):
        return model(server).complete(ask("a"))

    with serving() as server:
        assert texts(asyncio.run(cell(server))) == ["to a"]


def test_a_local_server_is_asked_without_the_environments_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serving() as server:
        assert texts(model(server).complete(ask("a"))) == ["to a"]


def test_only_a_local_server_needs_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(IfqaError, match=r"OPENAI_API_KEY is not set; api\.openai\.com asks for a key"):
        OpenAI(model="gpt-4.1").complete(ask("a"))
    with serving() as server:
        assert texts(model(server).complete(ask("a"))) == ["to a"]
    assert server.keys == {"Bearer none"}
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY} …")
    with pytest.raises(IfqaError, match="copy it again") as caught:
        OpenAI(model="gpt-4.1").complete(ask("a"))
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("name", [*PASSING, *ALONE, *STOPPING])
def test_the_key_is_in_no_file_no_line_and_no_traceback(name, capfd, tmp_path):
    table = {**PASSING, **ALONE, **{one: reply for one, (reply, _) in STOPPING.items()}}

    def plan(prompt, time, asked):
        reply = table[name]()
        if isinstance(reply.body, dict) and "error" in reply.body:
            reply.body["error"]["message"] += f" (you sent Bearer {KEY}, {KEY[:9]}***)"
        return reply

    shown = ""
    with serving(plan) as server:
        asked = model(server, retries=1, timeout=PATIENCE.get(name, 30.0))
        try:
            shown += str(asked.complete(ask("a", "b")))
        except IfqaError:
            shown += traceback.format_exc()
        assert server.keys == {f"Bearer {KEY}"}
    out, err = capfd.readouterr()
    shown += out + err + repr(asked) + str(vars(asked)) + str(asked.spent)
    shown += "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    assert "canary" not in shown
    assert KEY[:9] not in shown


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"concurrency": 0}, "'concurrency': wanted a whole number from 1, found 0"),
        ({"max_cost": -1.0}, "'max_cost': wanted a number from 0, found -1"),
        ({"max_cost": float("nan")}, "'max_cost': wanted a number from 0, found nan"),
        ({"timeout": 0.0}, "'timeout': wanted a number from 0.001"),
        ({"form": "text"}, "'form': unknown value 'text'; known: auto, chat"),
        ({"model": " "}, "'model': wanted its name at the server"),
        ({"base_url": "localhost:8000"}, "base_url must begin with http"),
        ({"base_url": "http://me:sk-secret@host/v1"}, "put the key into OPENAI_API_KEY"),
        ({"base_url": "http://[::1"}, "base_url is no address"),
    ],
)
def test_arguments_out_of_range_are_refused_by_name(settings, words):
    with pytest.raises(IfqaError, match=words) as caught:
        OpenAI(**{"model": "m", **settings})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("missing", ["openai", "tiktoken"])
def test_a_library_that_is_not_installed_is_named(missing, monkeypatch):
    monkeypatch.setattr(sys.modules["ifqa.llms.openai"], "find_spec", lambda name: None if name == missing else name)
    with pytest.raises(IfqaError, match=f"needs {missing}; install it with: pip install {missing}"):
        OpenAI(model="m")


def test_an_unknown_window_is_reported(capsys):
    assert OpenAI(model="llama").window == 4096
    assert "window is unknown, 4096" in capsys.readouterr().err
    assert OpenAI(model="llama", window=8192).window == 8192
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.05"}, 0.05),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_the_wait_a_server_asks_for(headers, seconds):
    assert retry_after(headers) == seconds


def test_a_future_date_gives_the_seconds_until_then():
    then = email.utils.formatdate(time.time() + 60, usegmt=True)
    assert 57 < retry_after({"retry-after": then}) <= 60


def test_keys_and_line_breaks_are_redacted_from_a_message():
    assert redact("a\nkey abc is\twrong", "abc") == "a key [key] is wrong"
    assert redact("Authorization: Bearer xyz123 sk-proj-12_ab-9.", "") == "Authorization: Bearer [key] [key]"
    assert "***" not in redact("Incorrect API key provided: abcd****wxyz. See", "")
    assert len(redact("x" * 1000, "")) == 301
    assert redact("it is ****wxyz and ab*cd****", "") == "it is [key] and [key]"
    assert redact("it is YWJjZGVmZ2g=", "abcdefgh") == "it is [key]="
    words = "task-specific and risk-free; disk-full, ask-me, sk-learn"
    assert redact(words, "") == words


@pytest.mark.parametrize("piece", ["a-", "a-*", "a**", "sk-", "Bearer ", "\x00 ", " "])
def test_words_of_any_length_are_redacted_at_once(monkeypatch, piece):
    def seconds(times):
        begun = time.process_time()
        assert len(redact(piece * times, "abc")) <= 301
        return time.process_time() - begun

    monkeypatch.setattr("ifqa.llms.credentials._LOOKED_AT", 10**6)  # so that the patterns themselves are measured
    once = min(seconds(1000) for _ in range(3))
    assert min(seconds(8000) for _ in range(3)) < 25 * max(once, 0.001)


def test_a_key_is_taken_out_before_the_words_are_cut():
    assert "abc" not in redact(" " * 9_998 + "abcdef", "abcdef")


def test_a_redirect_to_another_server_is_refused_and_not_followed():
    with (
        serving() as other,
        serving(lambda *asked: Reply(307, b"", {"location": f"{other.url}/chat/completions"})) as server,
    ):
        with pytest.raises(IfqaError, match=rf"a redirect to 127.0.0.1:{other.port}, which is not followed"):
            model(server).complete(ask("a secret"))
        assert (other.requests, server.requests) == (0, 1)
    assert count_stored() == 0


def test_base_url_comes_before_the_environment_and_the_host_is_said(monkeypatch, capsys):
    with serving() as server, serving() as named:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        OpenAI(model="m", window=4096).complete(ask("one"))
        model(named).complete(ask("two"))
        assert (server.requests, named.requests) == (1, 1)
        assert f"asking m at 127.0.0.1:{server.port}" in capsys.readouterr().err
        monkeypatch.setenv("OPENAI_BASE_URL", "ftp://x")
        with pytest.raises(IfqaError, match="OPENAI_BASE_URL of the environment must begin with http"):
            OpenAI(model="m")


@pytest.mark.parametrize("store", ["../elsewhere", "a/../../elsewhere", "/tmp/elsewhere"])
@pytest.mark.parametrize("plugin", [OpenAI, HF])
def test_a_store_outside_of_the_working_directory_is_refused(plugin, store):
    with pytest.raises(IfqaError, match="outside of the working directory"):
        plugin.refuse(store=store)
    plugin.refuse(store="kept/completions")


def test_completions_are_stored_by_host_except_those_of_openai(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example.org/v1")
    assert OpenAI(model="gpt-4.1").name == "gpt-4.1 at gateway.example.org"
    assert OpenAI(model="gpt-4.1", base_url="http://127.0.0.1:8000/v1").name == "gpt-4.1 at localhost"
    monkeypatch.delenv("OPENAI_BASE_URL")
    ours = OpenAI(model="gpt-4.1", effort="low")
    assert (ours.name, ours.server) == ("gpt-4.1 effort low", "https://api.openai.com")


def test_a_key_that_the_server_repeats_is_not_in_the_completion(tmp_path):
    encoded = base64.b64encode(KEY.encode()).decode().rstrip("=")
    said = f"You sent {KEY}, {encoded} and none."
    with serving(lambda prompt, time, asked: Reply(text=said, finish=f"stop {KEY} {encoded}\n")) as server:
        (done,) = model(server).complete(ask("a"))
    assert (done.text, done.finish) == ("You sent [key], [key] and none.", "stop [key] [key]")
    kept = "".join(path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file())
    assert KEY not in kept
    assert encoded not in kept


def test_an_endless_answer_is_cut_before_it_is_stored(tmp_path):
    with serving(lambda prompt, time, asked: Reply(text="\0" * 2_000_000, finish="x" * 500_000)) as server:
        asked = model(server)
        (done,) = asked.complete(ask("a"))
        assert asked.complete(ask("a"))[0].text == done.text
    assert done == Completion("\0" * LONGEST_TEXT, 7, 3, "length")
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.sqlite*")) < 8 * LONGEST_TEXT


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("where", ["message", "type", "code", "param"])
def test_an_error_of_a_server_is_short_and_without_the_key(status, where, capsys):
    body = {"error": {"message": "no", where: f"{KEY} " + "y" * 3_000_000}}
    with serving(lambda prompt, time, asked: Reply(status, body, usage=None)) as server:
        try:
            words = model(server, retries=0).complete(ask("a"))[0].error
        except IfqaError as error:
            words = str(error)
    assert len(words + capsys.readouterr().err) < 1_000
    assert KEY not in words


def test_only_own_servers_get_headers_of_the_environment(monkeypatch):
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "private")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: mine\nAuthorization: Bearer private")
    with serving() as server:
        model(server).complete(ask("one"))
        assert server.headers["x-gateway"] == "mine"
        assert not [name for name in server.headers if name.startswith("openai-")]
        for module in ("credentials", "http_client", "openai"):
            monkeypatch.setattr(f"ifqa.llms.{module}.is_local", lambda url: False)
        with pytest.raises(IfqaError, match="OPENAI_API_KEY is not sent there"):
            model(server).complete(ask("two"))
        assert server.requests == 1
        monkeypatch.setenv("IFQA_KEYS", f"127.0.0.1:{server.port}")
        model(server).complete(ask("two"))
    assert server.headers["authorization"] == "Bearer none"
    assert "private" not in str(server.headers)
    assert "x-gateway" not in server.headers
