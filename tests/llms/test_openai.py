import asyncio
import base64
import email.utils
import gzip
import json
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from openai_client import KEY, ask, count_stored, first, here, model, texts  # noqa: F401
from openai_server import Reply, error, serving

from ifqa.errors import IfqaError
from ifqa.llms import http_client, request_scheduler
from ifqa.llms.cache import LONGEST_TEXT
from ifqa.llms.credentials import OPENAI, redact
from ifqa.llms.hf import HF
from ifqa.llms.openai import OpenAI
from ifqa.llms.response_parsing import retry_after
from ifqa.records import Completion, Request
from ifqa.settings import parse_settings


def files(folder):
    return "".join(
        path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()
    )


def test_completions_come_in_the_order_of_their_requests():
    with serving(
        lambda prompt, *_: Reply(text=f"to {prompt}", latency=0.03 * (int(prompt) % 2))
    ) as server:
        done = model(server, concurrency=4).complete(ask(*map(str, range(12))))
    assert texts(done) == [f"to {n}" for n in range(12)]
    assert done[0] == Completion("to 0", 7, 3, "stop")
    assert 1 < server.most_at_once <= 4


@pytest.fixture
def asked_twice():
    """What two models with one store answer to equal requests."""
    steps: list[float] = []
    with serving() as server:
        done = model(server).complete([*ask("a", "b", "a"), *ask("a", sample=1)], steps.append)
        again = model(server)
        stored = again.complete(ask("b", "a", "a", "c"), steps.append)
    return SimpleNamespace(
        done=done, stored=stored, asked=server.asked, steps=steps, spent=again.spent
    )


def test_equal_requests_are_asked_once(asked_twice):
    assert texts(asked_twice.done) == ["to a", "to b", "to a", "to a"]
    assert asked_twice.asked == {"a": 2, "b": 1, "c": 1}


def test_a_stored_completion_is_used(asked_twice):
    assert texts(asked_twice.stored) == ["to b", "to a", "to a", "to c"]
    assert [completion.cached for completion in asked_twice.stored] == [True, True, True, False]


def test_all_requests_are_counted(asked_twice):
    assert sum(asked_twice.steps) == 8
    assert asked_twice.spent.calls == 1
    assert asked_twice.spent.cached == 3
    assert asked_twice.spent.prompt_tokens == 7


def test_no_request_needs_no_server():
    unreachable = OpenAI(OpenAI.Settings(model="m", base_url="http://127.0.0.1:9/v1", window=9))
    assert unreachable.complete([]) == []
    assert unreachable.spent.calls == 0


def test_a_text_is_sent_with_its_parameters():
    with serving() as server:
        plain = model(server, form="completion")
        plain.complete([Request(text="go on", max_tokens=9, temperature=0.5, stop=("\n",))])
        assert server.keys == {f"Bearer {KEY}"}
    assert not plain.chat
    assert server.bodies == [
        {"model": "m", "prompt": "go on", "max_tokens": 9, "temperature": 0.5, "stop": ["\n"]}
    ]


def test_a_schema_is_sent_as_the_form_of_the_response():
    with serving() as server:
        schema = {"type": "object", "properties": {}}
        model(server).complete(ask("a", schema=json.dumps(schema)))
    wanted = {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }
    assert server.bodies[0]["response_format"] == wanted


def test_openai_gets_the_parameters_its_reasoning_models_take(monkeypatch, capsys):
    openai = OpenAI(OpenAI.Settings(model="gpt-5-mini", thinking="low"))
    (request,) = ask("a", max_tokens=9, temperature=1.0)
    parameters = {"model", "messages", "max_completion_tokens", "reasoning_effort"}
    assert openai.form.arguments(request).keys() == parameters
    assert openai.form.arguments(replace(request, temperature=0.0))["temperature"] == 0
    assert (openai.url, openai.server, openai.chat, openai.window) == (
        OPENAI,
        "https://api.openai.com",
        True,
        272_000,
    )
    assert openai.name == "gpt-5-mini effort low", (
        "the name of version 0.2, whose completions were paid"
    )
    assert not OpenAI(OpenAI.Settings(model="gpt-3.5-turbo-instruct")).chat
    assert capsys.readouterr().err == ""
    assert OpenAI(OpenAI.Settings(model="llama")).window == 4096
    assert "context window is unknown; assuming 4096" in capsys.readouterr().err
    assert OpenAI(OpenAI.Settings(model="llama", window=8192)).window == 8192
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example.org/v1")
    assert OpenAI(OpenAI.Settings(model="gpt-4.1")).name == "gpt-4.1 at gateway.example.org", (
        "completions are stored by host"
    )
    assert (
        OpenAI(OpenAI.Settings(model="gpt-4.1", base_url="http://127.0.0.1:8000/v1")).name
        == "gpt-4.1 at localhost:8000"
    )


VLLM = "This model's maximum context length is 16 tokens."


def reply_with(body):
    """An answer with status 200 and a copy of this body."""
    return Reply(body=json.loads(json.dumps(body)), usage=None)


PASSING: dict[str, Callable[[], Reply]] = {
    "429 with seconds": lambda: error(
        429, "slow down", "rate_limit_exceeded", {"retry-after": "0.01"}
    ),
    "429 with nothing": lambda: error(429, "slow down"),
    **{str(status): partial(error, status, "oops") for status in (408, 409, 500)},
    "502 in HTML": lambda: Reply(502, b"<html>Bad gateway</html>", usage=None),
    "no answer in time": lambda: Reply(latency=4.0),
    "cut before the answer": lambda: Reply(cut="before"),
    "cut within the answer": lambda: Reply(cut="within"),
    "an error with status 200": lambda: Reply(
        body={"error": {"message": "model overloaded", "code": 502}}, usage=None
    ),
    "an error without choices": lambda: Reply(
        body={"object": "error", "message": "CUDA out of memory", "code": 50000, "choices": None},
        usage=None,
    ),
}
BESIDE_CHOICES = {
    "in the choice": {
        "choices": [
            {
                "finish_reason": "error",
                "error": {"code": 502, "message": "no"},
                "message": {"content": ""},
            }
        ]
    },
    "beside a part": {
        "error": {"code": 502, "message": "no"},
        "choices": [{"message": {"content": "Bel"}}],
    },
}
PASSING |= {
    f"an error {where}": partial(reply_with, body) for where, body in BESIDE_CHOICES.items()
}
UNUSABLE = {
    "malformed JSON": lambda: Reply(body=b'{"choices": [{"mess'),
    "no choices": lambda: Reply(
        body={"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 0}}
    ),
    "no text": lambda: Reply(text=None),
    "thoughts alone": lambda: Reply(
        message={"content": None, "reasoning_content": "The passage says Belgrade."}
    ),
    "a tool call alone": lambda: Reply(
        message={"content": None, "tool_calls": [{"id": "1"}]}, finish="tool_calls"
    ),
}
ALONE = {
    "a context too long": lambda: error(400, "too long", "context_length_exceeded"),
    "a context too long for vLLM": lambda: Reply(
        400, {"object": "error", "message": VLLM, "code": 400}, usage=None
    ),
    "a filtered prompt": lambda: error(400, "no", "content_filter"),
    "a context too long, told with status 200": lambda: Reply(
        body={"error": {"message": "too long", "code": "context_length_exceeded"}}, usage=None
    ),
    "a policy that names a parameter": lambda: error(
        400, "not allowed in the messages", "content_policy_violation"
    ),
    "a payload too large": lambda: error(413, "too large"),
    "a filtered answer": lambda: Reply(text=None, finish="content_filter"),
    "an answer of nothing but reasoning": lambda: Reply(text="", finish="length"),
}
STOPPING: dict[str, tuple[Callable[[], Reply], str]] = {
    "401": (
        lambda: error(401, f"Incorrect API key provided: {KEY}", "invalid_api_key"),
        "check OPENAI_API_KEY",
    ),
    "404": (
        lambda: error(404, "The model `m` does not exist", "model_not_found"),
        "`m` does not exist",
    ),
    "404 of FastAPI": (
        lambda: Reply(404, {"detail": "Not Found"}, usage=None),
        "check the model and base_url",
    ),
    **{
        str(status): (partial(error, status, "what is it"), "what is it")
        for status in (400, 403, 422)
    },
    "a login page": (
        lambda: Reply(
            body=b"<html><body>Please log in to the Wi-Fi</body></html>",
            headers={"content-type": "text/html"},
        ),
        "it answers with a web page: Please log in to the Wi-Fi; wanted JSON",
    ),
    "a bad model with status 200": (
        lambda: Reply(body={"error": {"message": "no such model", "code": 404}}, usage=None),
        "no such model",
    ),
    "a bad key with status 200": (
        lambda: Reply(
            body={"error": {"message": "what key is it", "code": "invalid_api_key"}}, usage=None
        ),
        "what key is it",
    ),
    "quota": (
        lambda: error(429, "You exceeded your current quota", "insufficient_quota"),
        "exceeded your current",
    ),
    "a wait of an hour": (
        lambda: error(429, "daily limit", None, {"retry-after": "3600"}),
        "wait 3,600 s",
    ),
}


def plan_of(reply):
    """A plan in which the prompt "bad" fails always and "once" the first time, with the key in the
    server's words.
    """

    def plan(prompt, time, _):
        failed = reply() if prompt == "bad" or (prompt, time) == ("once", 1) else Reply(latency=0.1)
        if isinstance(failed.body, dict) and "error" in failed.body:
            failed.body["error"]["message"] += f" (you sent Bearer {KEY}, {KEY[:9]}***)"
        return failed

    return plan


@pytest.fixture(scope="module")
def outcomes():
    """What came of a kind of failure, kept for all tests that look at it."""
    return {}


def fail_for_a_while(name, capfd, tmp_path, monkeypatch):
    if name == "no answer in time":
        monkeypatch.setattr(request_scheduler, "is_local", lambda url: False)
    with serving(plan_of(PASSING[name])) as server:
        llm = model(
            server, served_as="m", retries=1, timeout=1.5 if name == "no answer in time" else 30.0
        )
        done = llm.complete(ask("bad", "once", "good"))
    stored = count_stored()
    out, err = capfd.readouterr()
    shown = f"{done} {out} {err} {llm!r} {vars(llm)} {llm.spent} {files(tmp_path)}"
    with serving() as later:
        again = texts(model(later, served_as="m").complete(ask("bad", "good")))
    return SimpleNamespace(
        done=done,
        asked=server.asked,
        calls=llm.spent.calls,
        stored=stored,
        err=err,
        shown=shown,
        again=again,
    )


@pytest.fixture(params=PASSING)
def temporary_failure(request, outcomes, capfd, tmp_path, monkeypatch):
    if request.param not in outcomes:
        outcomes[request.param] = fail_for_a_while(request.param, capfd, tmp_path, monkeypatch)
    return outcomes[request.param]


def test_a_temporary_failure_is_retried(temporary_failure):
    assert texts(temporary_failure.done) == ["", "answer", "answer"]
    assert "after 2 tries" in temporary_failure.done[0].error
    assert temporary_failure.asked == {"bad": 2, "once": 2, "good": 1}
    assert temporary_failure.calls == 5
    assert "retried" in temporary_failure.err


def test_a_temporary_failure_is_not_stored(temporary_failure):
    assert temporary_failure.stored == 2
    assert temporary_failure.again == ["to bad", "answer"]


def test_a_temporary_failure_shows_no_key(temporary_failure):
    assert KEY[:9] not in temporary_failure.shown


@pytest.mark.parametrize("name", UNUSABLE)
def test_an_answer_without_usable_text_is_paid_twice_in_all_runs(name):
    with serving(plan_of(UNUSABLE[name])) as server:
        for _ in range(3):
            done = model(server, retries=6).complete(ask("bad", "once", "good"))
            assert texts(done) == ["", "answer", "answer"]
            assert done[0].permanent
    assert server.asked == {"bad": 2, "once": 2, "good": 1}


def test_completions_of_openai_that_an_earlier_version_stored_are_used():
    llm = OpenAI(OpenAI.Settings(model="gpt-4.1"))
    llm._cache.put("gpt-4.1", {ask("a")[0]: Completion("paid before")})
    (done,) = llm.complete(ask("a"))  # nothing could be sent from here
    assert (done.text, done.cached) == ("paid before", True)


def test_a_list_of_problems_is_told_in_words():
    problems = [
        {"loc": ["body", "stop"], "msg": "extra fields not permitted", "type": "value_error.extra"}
    ]
    stops = pytest.raises(IfqaError, match="HTTP 422: stop: extra fields not permitted")
    with serving(lambda *_: Reply(422, {"detail": problems}, usage=None)) as server, stops:
        model(server).complete(ask("a"))


def test_only_retry_failed_asks_a_stored_failure_again():
    with serving(plan_of(UNUSABLE["no text"])) as server:
        model(server).complete(ask("bad"))
        again = model(server, retry_failed=True)
        for _ in range(2):  # a failure of this run counts
            assert again.complete(ask("bad"))[0].permanent
    assert server.asked == {"bad": 4}
    with serving() as repaired:
        llm = model(repaired, served_as="m")
        llm._cache.put(llm.name, {ask("bad")[0]: Completion(error="no text", permanent=True)})
        assert texts(model(repaired, served_as="m").complete(ask("bad"))) == [""]
        assert texts(model(repaired, served_as="m", retry_failed=True).complete(ask("bad"))) == [
            "to bad"
        ]
        assert texts(model(repaired, served_as="m").complete(ask("bad"))) == ["to bad"]


@pytest.fixture
def error_without_choices():
    """A model whose server reports an error with status 200, and what it completes."""
    with serving(lambda *_: PASSING["an error without choices"]()) as server:
        llm = model(server, retries=1)
        (done,) = llm.complete(ask("a"))
    return SimpleNamespace(spent=llm.spent, error=done.error)


def test_an_error_with_status_200_shows_the_servers_words(error_without_choices):
    wanted = "the server reports an error: CUDA out of memory (after 2 tries)"
    assert error_without_choices.error == wanted


def test_an_error_with_status_200_books_no_tokens(error_without_choices):
    assert error_without_choices.spent.prompt_tokens == 0
    assert error_without_choices.spent.completion_tokens == 0


def fail_alone(name, capfd, tmp_path):
    with serving(plan_of(ALONE[name])) as server:
        done = model(server, concurrency=1).complete(ask("bad", "good"))
    shown = f"{done} {capfd.readouterr()} {files(tmp_path)}"
    return SimpleNamespace(done=done, asked=server.asked, shown=shown)


@pytest.fixture(params=ALONE)
def failed_request(request, outcomes, capfd, tmp_path):
    if request.param not in outcomes:
        outcomes[request.param] = fail_alone(request.param, capfd, tmp_path)
    return outcomes[request.param]


def test_a_failed_request_stops_no_other(failed_request):
    assert [bool(completion.error) for completion in failed_request.done] == [True, False]
    assert failed_request.asked == {"bad": 1, "good": 1}


def test_a_failed_request_shows_no_key(failed_request):
    assert KEY[:9] not in failed_request.shown


def refuse_fatally(name, capfd, tmp_path):
    reply, words = STOPPING[name]
    with serving(plan_of(reply)) as server:
        with pytest.raises(IfqaError) as caught:
            model(server, concurrency=4).complete(ask("bad", *map(str, range(49))))
        requests = server.requests
    stored = count_stored()
    trace = "".join(traceback.format_exception(caught.value))
    shown = f"{trace} {capfd.readouterr()} {files(tmp_path)}"
    return SimpleNamespace(
        caught=caught, words=words, requests=requests, stored=stored, shown=shown
    )


@pytest.fixture(params=STOPPING)
def fatal_refusal(request, outcomes, capfd, tmp_path):
    if request.param not in outcomes:
        outcomes[request.param] = refuse_fatally(request.param, capfd, tmp_path)
    return outcomes[request.param]


def test_a_fatal_refusal_stops_all(fatal_refusal):
    assert fatal_refusal.requests == 4


def test_a_fatal_refusal_is_told_in_one_line(fatal_refusal):
    assert fatal_refusal.caught.match(fatal_refusal.words)
    assert len(str(fatal_refusal.caught.value).splitlines()) == 1


def test_a_fatal_refusal_stores_requests_in_flight(fatal_refusal):
    assert fatal_refusal.stored == 3


def test_a_fatal_refusal_shows_no_key(fatal_refusal):
    assert KEY[:9] not in fatal_refusal.shown


def test_an_empty_answer_is_an_answer():
    with serving(lambda *_: Reply(text="", usage=(7, 3))) as server:
        llm = model(server)
        assert llm.complete(ask("a")) == [Completion("", 7, 3, "stop")]
        assert llm.complete(ask("a"))[0].cached


def test_an_impossible_count_of_tokens_is_ignored():
    usages = {"a": (7, 3), "b": (10**400, 3), "c": (7, 10**400)}
    with serving(lambda prompt, *_: Reply(text="", usage=usages[prompt])) as server:
        llm = model(server)
        llm.complete(ask("a"))
        assert [completion.error for completion in llm.complete(ask("b", "c"))] == ["", ""]
    assert llm.spent.prompt_tokens < 10**9


def test_a_wait_that_the_server_asks_for_delays_all():
    times = []

    def plan(*_):
        times.append(time.monotonic())
        return (
            error(429, "slow", None, {"retry-after": "0.5"})
            if len(times) == 1
            else Reply(latency=0.25)
        )

    with serving(plan) as server:
        assert (
            texts(model(server, concurrency=2).complete(ask("a", "b", "c", "d"))) == ["answer"] * 4
        )
    # Those in flight when the server asked
    assert sum(moment < times[0] + 0.5 for moment in times) <= 2


def test_the_rate_limit_holds():
    with serving() as server:
        llm = model(server, requests_per_minute=1200, concurrency=8)
        began = time.monotonic()
        llm.complete(ask(*"efghijkl"))
        assert time.monotonic() - began >= 7 * 0.05


def test_a_local_server_is_asked_in_a_running_loop_without_the_environments_proxy(monkeypatch):
    async def cell(server):
        return model(server).complete(ask("a"))

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with serving() as server:
        assert texts(asyncio.run(cell(server))) == ["to a"]


def test_only_a_local_server_needs_no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with serving() as server:
        assert texts(model(server).complete(ask("a"))) == ["to a"]
    assert server.keys == {"Bearer none"}
    with pytest.raises(IfqaError, match=r"OPENAI_API_KEY is not set; api\.openai\.com needs a key"):
        OpenAI(OpenAI.Settings(model="gpt-4.1")).complete(ask("a"))
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY} …")
    with pytest.raises(IfqaError, match="copy it again") as caught:
        OpenAI(OpenAI.Settings(model="gpt-4.1")).complete(ask("a"))
    assert "canary" not in str(caught.value)


def test_arguments_out_of_range_are_refused_by_name():
    cases: list[tuple[dict[str, Any], str]] = [
        ({"concurrency": 0}, "'concurrency': wanted a whole number from 1, found 0"),
        ({"max_cost": float("nan")}, "'max_cost': wanted a number from 0, found nan"),
        ({"model": " "}, "'model': wanted its name at the server"),
        ({"base_url": "http://me:sk-secret@host/v1"}, "put the key into OPENAI_API_KEY"),
    ]
    for settings, words in cases:
        with pytest.raises(IfqaError, match=words) as caught:
            OpenAI(parse_settings(OpenAI.Settings, {"model": "m"} | settings, "setting"))
        assert "secret" not in str(caught.value)


def test_the_wait_a_server_asks_for():
    waits = {"2": 2.0, "0.05": 0.05, "-3": 0.0, "soon": None, "nan": 0.0, "inf": float("inf")}
    waits |= {"Wed, 21 Oct 2015 07:28:00 GMT": 0.0}
    assert {words: retry_after({"retry-after": words}) for words in waits} == waits
    assert retry_after({}) is None
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    date = email.utils.formatdate(time.time() + 60, usegmt=True)
    wait = retry_after({"retry-after": date})
    assert wait is not None
    assert 57 < wait <= 60


def test_a_message_is_redacted_into_one_line():
    assert redact("a\nkey abc is\twrong", "abc") == "a key [key] is wrong"


def test_a_key_is_redacted_from_a_message():
    assert (
        redact("Authorization: Bearer xyz123 sk-proj-12_ab-9.", "")
        == "Authorization: Bearer [key] [key]"
    )
    assert "***" not in redact("Incorrect API key provided: abcd****wxyz. See", "")
    assert redact("it is ****wxyz and ab*cd****", "") == "it is [key] and [key]"
    assert redact("it is YWJjZGVmZ2g=", "abcdefgh") == "it is [key]="
    assert "abc" not in redact(" " * 9_998 + "abcdef", "abcdef"), (
        "taken out before the words are cut"
    )


def test_words_that_resemble_a_key_stay():
    words = "task-specific and risk-free; disk-full, ask-me, sk-learn"
    assert redact(words, "") == words


def test_a_long_message_is_redacted_at_once():
    # minutes, were a pattern quadratic
    for piece in ("x", "a-", "a-*", "a**", "sk-", "Bearer ", "\x00 "):
        assert len(redact(piece * 10**6, "abc")) <= 301


def test_a_redirect_to_another_server_is_not_followed():
    with serving() as other:
        moved = Reply(307, b"", {"location": f"{other.url}/chat/completions"})
        with serving(lambda *_: moved) as server:
            with pytest.raises(
                IfqaError, match=rf"a redirect to 127.0.0.1:{other.port}, which is not followed"
            ):
                model(server).complete(ask("a secret"))
            assert other.requests == 0
            assert server.requests == 1
            assert count_stored() == 0


def test_a_server_that_is_down_is_reported():
    with serving() as server:
        pass
    with pytest.raises(IfqaError, match=r"cannot connect.*after 2 tries; is the server up"):
        model(server, retries=1).complete(ask("a", "b"))


def test_tokens_that_the_server_has_cached_cost_what_prices_toml_says():
    Path("prices.toml").write_text(
        'dated = "2026-01-02"\nsource = "there"\n[models]\n"m" = { input = 100, output = 0, '
        "cached = 10 }\n"
    )
    with serving(lambda *_: Reply(usage=(1000, 1), cached=600)) as server:
        llm = model(server)
        llm.complete(ask("a", "b"))
    assert (llm.spent.prompt_tokens, llm.spent.cached_prompt_tokens) == (2000, 1200)
    assert llm.spent.cost == pytest.approx((800 * 100 + 1200 * 10) / 1e6)


@pytest.mark.parametrize("plugin", [OpenAI, HF])
def test_a_store_outside_of_the_working_directory_is_refused(plugin):
    for store in ("../elsewhere", "a/../../elsewhere", "/tmp/elsewhere"):
        with pytest.raises(IfqaError, match="outside of the working directory"):
            plugin.refuse_settings(plugin.Settings(model="m", store=store))
    plugin.refuse_settings(plugin.Settings(model="m", store="kept/completions"))


def test_a_key_that_the_server_repeats_is_not_in_the_completion(tmp_path):
    encoded = base64.b64encode(KEY.encode()).decode().rstrip("=")
    repeated = Reply(text=f"You sent {KEY}, {encoded} and none.", finish=f"stop {KEY} {encoded}\n")
    with serving(lambda *_: repeated) as server:
        (done,) = model(server).complete(ask("a"))
    assert (done.text, done.finish) == ("You sent [key], [key] and none.", "stop [key] [key]")
    assert not [secret for secret in (KEY, encoded) if secret in files(tmp_path)]


def test_an_endless_answer_is_cut_before_it_is_stored(tmp_path):
    with serving(lambda prompt, *_: Reply(text="\0" * 2_000_000, finish="x" * 500_000)) as server:
        llm = model(server)
        (done,) = llm.complete(ask("a"))
        assert llm.complete(ask("a"))[0].text == done.text
    assert done == Completion("\0" * LONGEST_TEXT, 7, 3, "length")
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.sqlite*")) < 8 * LONGEST_TEXT


def test_only_own_servers_get_headers_of_the_environment(monkeypatch):
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "private")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: mine\nAuthorization: Bearer private")
    with serving() as server:
        model(server).complete(ask("one"))
        assert server.headers["x-gateway"] == "mine"
        assert not [name for name in server.headers if name.startswith("openai-")]
        for module in ("credentials", "http_client", "openai", "request_scheduler"):
            monkeypatch.setattr(f"ifqa.llms.{module}.is_local", lambda url: False)
        with pytest.raises(IfqaError, match="OPENAI_API_KEY is not sent there"):
            model(server).complete(ask("two"))
        assert server.requests == 1
        monkeypatch.setenv("IFQA_KEYS", f"127.0.0.1:{server.port}")
        model(server).complete(ask("two"))
    assert server.headers["authorization"] == "Bearer none"
    assert not [part for part in ("private", "x-gateway") if part in str(server.headers)]


ANSWER = {"choices": [{"message": {"content": "packed"}, "finish_reason": "stop"}]}


@pytest.fixture
def small_bodies(monkeypatch):
    monkeypatch.setattr(http_client, "LONGEST_BODY", 200_000)


def send_endlessly(status):
    endless = Reply(status, b" " * 50_000, forever=0.0, usage=None)
    with serving(lambda prompt, *_: endless if prompt == "bad" else Reply()) as server:
        done = model(server, concurrency=1, timeout=20.0).complete(ask("bad", "good"))
        sent = server.sent
    errors = [completion.error for completion in done]
    return SimpleNamespace(errors=errors, sent=sent, asked=server.asked)


@pytest.fixture(params=[200, 400, 404, 500])
def endless_body(request, outcomes, small_bodies):
    if request.param not in outcomes:
        outcomes[request.param] = send_endlessly(request.param)
    return outcomes[request.param]


def test_an_endless_body_is_cut_off(endless_body):
    assert endless_body.sent < 20_000_000  # with the bytes in the sockets' buffers
    assert endless_body.errors[0] == "the answer's body has more than 200,000 bytes"


def test_an_endless_body_stops_no_other_request(endless_body):
    assert endless_body.errors[1:] == [""]
    assert endless_body.asked == {"bad": 1, "good": 1}


def test_a_body_of_exactly_the_limit_is_read(monkeypatch):
    monkeypatch.setattr(request_scheduler, "is_local", lambda url: False)
    body = json.dumps(ANSWER).encode()
    monkeypatch.setattr(http_client, "LONGEST_BODY", len(body))
    with serving(lambda *_: Reply(200, body)) as server:
        assert texts(model(server).complete(ask("a"))) == ["packed"]


@pytest.mark.usefixtures("small_bodies")
def test_a_trickling_body_times_out(monkeypatch):
    monkeypatch.setattr(request_scheduler, "is_local", lambda url: False)
    with serving(lambda *_: Reply(200, b" ", forever=0.02, usage=None)) as server:
        (done,) = model(server, timeout=0.3, retries=0).complete(ask("b"))
    assert "no answer within 0.3 s (llm.timeout)" in done.error


def test_a_compressed_body_is_refused_by_its_header():
    packed = gzip.compress(json.dumps(ANSWER).encode())
    with serving(lambda *_: Reply(200, packed, {"content-encoding": "gzip"})) as server:
        (done,) = model(server).complete(ask("a"))
        assert server.headers["accept-encoding"] == "identity"
    assert (
        done.error == "the answer's body is compressed (gzip), although plain bytes were requested"
    )


def test_thoughts_that_only_the_total_counts_are_counted():
    usage = {"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 2055}
    message = {"role": "assistant", "content": "so"}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage}
    with serving(lambda *_: Reply(body=body)) as server:
        [completion] = model(server).complete(ask("q"))
    assert (completion.prompt_tokens, completion.completion_tokens) == (50, 2005)
