"""Caps on tokens and money, and estimates."""

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openai_client import ask, count_stored, here, model, texts  # noqa: F401
from openai_server import Reply, error, serving

from ifqa.errors import IfqaError
from ifqa.llms.budget import Budget
from ifqa.llms.openai import OpenAI

PRICED = 'dated = "2026-01-02"\nsource = "there"\n[models]\n"m" = { input = 100, output = 400 }\n'


def use(prompt, time, body):
    """Usage as a server may count it: up to a token per byte for the prompt, and up to max_tokens
    for the answer.
    """
    draw = random.Random(f"{prompt} {time}")
    return draw.randint(1, len(prompt) + 20), draw.randint(1, body["max_tokens"])


def rough(prompt, time, body):
    """An unreliable server, which bills the requests that it worked on."""
    tokens = use(prompt, time, body)
    trouble = random.Random(f"trouble {prompt} {time}").random()
    if trouble < 0.1:
        return error(429, "slow", None, {"retry-after": "0"})
    if trouble < 0.2:
        return Reply(cut="before", usage=tokens)
    return Reply(usage=tokens, latency=0.005)


@pytest.mark.parametrize("trouble", [False, True])
def test_the_servers_count_never_exceeds_a_cap_on_tokens_or_money(trouble):
    Path("prices.toml").write_text(PRICED)
    prompts = [f"{n} " + "word " * (n % 90) for n in range(300)]
    plan = rough if trouble else lambda *request: Reply(usage=use(*request), latency=0.005)
    with serving(plan) as server:
        llm = model(server, concurrency=32, max_total_tokens=20_000, retries=6)
        done = llm.complete(ask(*prompts, max_tokens=60))
    assert sum(server.tokens) <= llm.spent.prompt_tokens + llm.spent.completion_tokens <= 20_000
    # And the cap is used up, except the room of one request
    assert trouble or sum(server.tokens) > 19_000
    refused = [completion.error for completion in done if completion.error]
    assert all("the cap of 20,000 tokens" in error for error in refused)
    assert 0 < len(refused) == 300 - count_stored()
    with serving(plan) as server:
        llm = model(server, concurrency=32, max_cost=1.5, store="other")
        llm.complete(ask(*map(str, range(300)), max_tokens=60))
    bill = llm.price.cost(*server.tokens)
    assert bill <= llm.spent.cost + 1e-9 <= 1.5 + 1e-9
    assert trouble or bill > 1.4


def test_the_next_run_sends_what_a_cap_refused():
    with serving() as server:
        llm = model(server, max_total_tokens=575)  # room for one request and 26 tokens
        done = llm.complete(ask(*"abcdef"))
        assert sum(bool(completion.error) for completion in done) == 3
        assert texts(model(server).complete(ask(*"abcdef"))) == [
            f"to {letter}" for letter in "abcdef"
        ]
        assert server.requests == 6


THERE: dict[str, Any] = {"model": "gpt-4.1-mini", "base_url": "https://api.example.com/v1"}


def test_a_cap_on_cost_needs_a_price():
    for settings, culprit in (
        ({"model": "mystery"}, "'mystery'"),
        (THERE, r"'gpt-4\.1-mini' at api\.example\.com"),
    ):
        with pytest.raises(
            IfqaError, match=rf"price of {culprit} is unknown: add it to a prices\.toml"
        ):
            OpenAI(OpenAI.Settings(**settings, max_cost=1.0))
        assert OpenAI(OpenAI.Settings(**settings, window=9)).price is None
        assert OpenAI(OpenAI.Settings(**settings, window=9)).estimate(ask("a")).cost is None


def test_a_cap_on_cost_at_another_host_takes_a_users_price():
    Path("prices.toml").write_text(PRICED)
    assert OpenAI(OpenAI.Settings(**THERE | {"model": "m"}, max_cost=1.0)).price


@pytest.fixture
def estimated():
    """A server, and what a model estimates of four requests, of which one is stored."""
    Path("prices.toml").write_text(PRICED)
    with serving() as server:
        llm = model(server)
        llm.complete(ask("a"))
        yield server, llm.estimate([*ask("a", "b", "c", "c", max_tokens=256)])


def test_an_estimate_counts_missing_completions(estimated):
    _, (calls, prompt, answers, cost) = estimated
    assert calls == 2
    assert answers == 512
    assert prompt > 2
    assert cost == pytest.approx((prompt * 100 + 512 * 400) / 1e6)


def test_an_estimate_sends_nothing(estimated):
    server, _ = estimated
    assert server.requests == 1


@pytest.mark.parametrize("shared", [True, False])
def test_models_share_the_cap_of_a_shared_budget(shared):
    Path("prices.toml").write_text(PRICED)
    more = {"budget": Budget()} if shared else {}
    with (
        serving(lambda *request: Reply(usage=use(*request), latency=0.005)) as server,
        ThreadPoolExecutor(3) as threads,
    ):
        models = [model(server, max_cost=0.6, **more) for _ in range(3)]
        prompts = [ask(*(f"{n} {m}" for m in range(100)), max_tokens=60) for n in range(3)]
        list(threads.map(lambda llm, requests: llm.complete(requests), models, prompts))
    cap = 0.6 if shared else 1.8
    bill = models[0].price.cost(*server.tokens)
    assert bill <= sum(llm.spent.cost for llm in models) + 1e-9 <= cap + 2e-9
    assert bill > cap - 0.3
