"""The batch API: every request is paid once, whenever the process dies, and a cap holds before the upload."""

import json
import multiprocessing
import os
import signal
from pathlib import Path
from threading import Thread

import pytest
from batch_server import BatchServer
from openai_client import KEY, ask, count_stored, here, model, texts  # noqa: F401
from openai_server import Reply, error, serving

from ifqa.errors import IfqaError
from ifqa.llms import batch_api
from ifqa.llms.openai import OpenAI

PROMPTS = list("abcdef")
PRICED = 'dated = "2026-01-02"\nsource = "there"\n[models]\n"m" = { input = 100, output = 400 }\n'


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(batch_api, "FIRST_POLL", 0.01)
    monkeypatch.setattr(batch_api, "LONGEST_POLL", 0.02)
    monkeypatch.setattr(batch_api, "BACKOFF", 0.002)


def batches(plan=None):
    return serving(plan, kind=BatchServer)


def waiting_files():
    return list(Path("completions/batches").glob("*.json"))


def test_a_batch_has_the_requests_and_completions_that_single_requests_have(capsys):
    with serving() as server:
        single = model(server, store="single").complete(ask(*PROMPTS, max_tokens=9))
        bodies = server.bodies
    with batches() as server:
        steps = []
        llm = model(server, batch=True)
        assert llm.complete(ask(*PROMPTS, "a", max_tokens=9), steps.append) == [*single, single[0]]
        (uploaded,) = (server.files["file-0"],)
    lines = [json.loads(line) for line in uploaded.splitlines()]
    assert sorted((line["body"] for line in lines), key=str) == sorted(bodies, key=str)
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}
    assert (sum(steps), llm.spent.calls, llm.spent.prompt_tokens, count_stored()) == (7, 6, 42, 6)
    assert (llm.account.reserved, waiting_files()) == ((0, 0), [])
    assert "batch batch_0: in_progress" in capsys.readouterr().err
    with batches() as server:
        assert texts(model(server, batch=True).complete(ask("a", "g", max_tokens=9))) == ["to a", "to g"]
        assert server.paid == {"g": 1}


def test_openai_asks_half_the_price_for_a_batch():
    single, batch = (OpenAI(model="gpt-4.1", batch=batch).estimate(ask("a")).cost for batch in (False, True))
    assert batch == pytest.approx(single / 2)


def complete_in_child(url):
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 2)
    batch_api.FIRST_POLL = 0.01
    Path("pid").write_text(str(os.getpid()))
    OpenAI(model="m", base_url=url, window=4096, batch=True).complete(ask(*PROMPTS))


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_process_that_is_killed_at_one_call_after_the_other_pays_nothing_twice(moment):
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["ifqa.llms.batch_api", "ifqa.llms.openai", "test_batch_api"])
    exit_codes, earlier_calls = [], 0
    with batches() as server:

        def kill(number, when):
            """The n-th run is killed at its n-th call."""
            if (number - earlier_calls, when) != (len(exit_codes) + 1, moment):
                return False
            os.kill(int(Path("pid").read_text()), signal.SIGKILL)
            return True

        server.on_call = kill
        while not exit_codes or exit_codes[-1]:
            child = processes.Process(target=complete_in_child, args=(server.url,))
            child.start()
            child.join(30)
            exit_codes.append(child.exitcode)
            earlier_calls = len(server.calls)
    assert set(exit_codes[:-1]) == {-signal.SIGKILL}
    assert len(exit_codes) > 5
    assert (server.paid, count_stored(), waiting_files()) == (dict.fromkeys(PROMPTS, 1), 6, [])


def test_an_answer_that_is_lost_while_a_batch_is_created_creates_no_second():
    with batches() as server:
        server.on_call = lambda number, when: (
            when == "after" and server.calls[number - 1] == "POST /batches" and number < 5
        )
        assert texts(model(server, batch=True).complete(ask("a"))) == ["to a"]
    assert (server.paid, server.calls.count("POST /batches")) == ({"a": 1}, 1)


def test_the_highest_cost_is_reserved_before_the_upload():
    Path("prices.toml").write_text(PRICED)
    with batches() as server:
        llm = model(server, batch=True, max_cost=0.1)
        done = llm.complete(ask(*PROMPTS, max_tokens=60))
    sent = server.files["file-0"].splitlines()
    assert 0 < len(sent) < 6
    assert [bool(completion.error) for completion in done] == [False] * len(sent) + [True] * (6 - len(sent))
    assert "the cap of $0.1" in done[-1].error
    assert llm.spent.cost <= 0.1


def test_a_failed_and_an_expired_request_fail_alone_and_are_sent_again():
    def plan(prompt, time, body):
        replies = {"b": error(400, f"too long, {KEY}", "context_length_exceeded"), "c": None}
        return replies.get(prompt, Reply(text=f"{prompt} {KEY}"))

    with batches(plan) as server:
        server.statuses = ["in_progress", "expired"]
        done = model(server, batch=True).complete(ask("a", "b", "c"))
    assert [completion.error for completion in done] == [
        "",
        "too long, [key]",
        "This request could not be executed before the end.",
    ]
    assert (done[0].text, count_stored(), waiting_files()) == ("a [key]", 1, [])
    with batches() as server:
        assert texts(model(server, batch=True).complete(ask("a", "b", "c"))) == ["a [key]", "to b", "to c"]
        assert server.paid == {"b": 1, "c": 1}


def test_a_batch_beyond_the_servers_queue_is_sent_in_halves(capsys):
    with batches() as server:
        server.refuse = lambda requests: ("token_limit_exceeded", "too many tokens") if len(requests) > 2 else None
        assert texts(model(server, batch=True).complete(ask(*PROMPTS))) == [f"to {prompt}" for prompt in PROMPTS]
    assert server.paid == dict.fromkeys(PROMPTS, 1)
    assert "batches of half the size" in capsys.readouterr().err


def test_many_requests_are_sent_in_files_of_the_size_that_the_server_takes(monkeypatch):
    monkeypatch.setattr(batch_api, "MOST_REQUESTS", 4)
    monkeypatch.setattr(batch_api, "MOST_BYTES", 600)
    with batches() as server:
        model(server, batch=True).complete(ask(*PROMPTS))
    sizes = [
        (content.count(b"\n"), len(content))
        for content in server.files.values()
        if b"custom_id" in content and b"method" in content
    ]
    assert server.paid == dict.fromkeys(PROMPTS, 1)
    assert len(sizes) > 2
    assert all(lines <= 4 and size <= 600 for lines, size in sizes)


@pytest.mark.parametrize(
    ("reply", "message"),
    [(error(404, "Not Found"), "cannot upload a batch"), (error(401, f"bad key {KEY}"), "check OPENAI_API_KEY")],
)
def test_a_server_without_the_api_or_with_another_key_gives_one_line_and_leaves_nothing(reply, message, monkeypatch):
    with batches() as server:
        server.route = lambda *_: reply
        with pytest.raises(IfqaError, match=message) as caught:
            model(server, batch=True).complete(ask("a"))
    assert "\n" not in str(caught.value)
    assert KEY[:9] not in str(caught.value)
    assert waiting_files() == []


def test_a_refused_batch_is_one_line_and_is_sent_again_after_the_fault_is_mended():
    with batches() as server:
        server.refuse = lambda requests: ("invalid", "no such model")
        with pytest.raises(IfqaError, match="the server refused the batch: no such model"):
            model(server, batch=True).complete(ask("a"))
        server.refuse = lambda requests: None
        assert texts(model(server, batch=True).complete(ask("a"))) == ["to a"]


def test_the_answers_of_an_earlier_run_with_other_requests_are_stored():
    with batches() as server:
        server.on_call = lambda number, when: server.calls[number - 1].startswith("GET /batches/")
        with pytest.raises(IfqaError, match=r"cannot fetch the batch of .*json"):
            model(server, batch=True, retries=0).complete(ask("a", "b"))
        assert len(waiting_files()) == 1
        assert waiting_files()[0].parent.stat().st_mode & 0o077 == 0
        server.on_call = lambda *_: False
        assert texts(model(server, batch=True, max_total_tokens=800).complete(ask("c"))) == ["to c"]
    assert (server.paid, count_stored()) == (dict.fromkeys("abc", 1), 3)


def test_the_requests_of_an_earlier_batch_that_failed_are_sent_again_only_if_they_are_needed():
    with batches() as server:
        server.refuse = lambda requests: ("token_limit_exceeded", "too many tokens")
        server.on_call = lambda number, when: server.calls[number - 1].startswith("GET /batches/")
        with pytest.raises(IfqaError):
            model(server, batch=True, retries=0).complete(ask("a", "b"))
        server.on_call = lambda *_: False
        server.refuse = lambda requests: None
        model(server, batch=True).complete(ask("b", "c"))
    assert (server.paid, waiting_files()) == ({"b": 1, "c": 1}, [])


def test_two_runs_of_the_same_requests_share_one_batch(capsys):
    with batches() as server:
        server.statuses = ["in_progress"] * 60 + ["completed"]
        runs = [Thread(target=model(server, batch=True).complete, args=(ask("a", "b"),)) for _ in range(2)]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    assert server.paid == {"a": 1, "b": 1}
    assert "another run waits for a batch" in capsys.readouterr().err


def test_check_says_what_each_server_offers():
    def plan(prompt, time, body):
        return Reply(text='{"answer": "yes"}' if "response_format" in body else "yes", cached=5 * (time > 1))

    with serving() as down:
        pass
    with batches(plan) as full, serving() as bare:
        llm = model(full, base_url=f"{full.url} {bare.url} {down.url}", batch=True)
        full_needs, bare_needs, down_needs = llm.check_servers()
        assert (full.requests, bare.requests) == (3, 3)
        other = OpenAI(model="n", base_url=full.url, window=4096)
        assert "lists not n, but m" in str([*other.check_servers()])
    assert full_needs.name.endswith(": lists m; batch API; JSON schemas; counts cached tokens")
    assert full_needs.present
    assert bare_needs.name.endswith(": no batch API; no JSON schemas; counts no cached tokens")
    assert bare_needs.remedy == "the setting batch needs the batch API; unset it"
    assert down_needs.remedy.startswith("cannot connect")


def test_a_server_whose_tokens_cost_money_gets_no_request_from_check():
    Path("prices.toml").write_text(PRICED)
    with batches() as server:
        (need,) = model(server).check_servers()
    assert server.requests == 0
    assert "not tried, as requests may cost money" in need.name
