import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.llms import token_counts
from ifqa.llms.budget import Account, Price, Reservation, find_price
from ifqa.llms.token_counts import (
    bound_prompt_tokens,
    count_prompt_tokens,
    estimate_tokens,
    find_window,
)
from ifqa.records import Request
from ifqa.storage.files import read_toml
from ifqa.storage.resources import find_resource

TABLE = 'dated = "2026-01-02"\nsource = "there"\n[models]\n"big" = { input = 3, output = 12.5 }\n'


def price_file(tmp_path, text=TABLE):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return tmp_path


DATED = TABLE + '"big-2026-03-01" = { input = 9, output = 9 }\n'


def known_price(*arguments, **settings):
    """A price that is known."""
    price = find_price(*arguments, **settings)
    assert price is not None
    return price


def test_a_price_is_per_million_tokens(tmp_path):
    price = known_price("big", root=price_file(tmp_path, DATED))
    assert price.input == 3.0
    assert price.output == 12.5
    assert price.cost(2_000_000, 100_000) == pytest.approx(7.25)


def test_a_dated_name_has_its_models_price_unless_it_is_listed(tmp_path):
    root = price_file(tmp_path, DATED)
    assert find_price("big-2025-12-31", root=root) == find_price("big", root=root)
    assert known_price("big-2026-03-01", root=root).input == 9


def test_an_unknown_price_is_none(tmp_path):
    root = price_file(tmp_path, DATED)
    assert [find_price(name, root=root) for name in ("small", "bigger", "big-1231")] == [None] * 3
    assert Account(None).cost is None


OPENAI = "https://api.openai.com/v1"
LOCAL = "http://localhost:4000/v1"
OTHER = "https://api.example.com/v1"


def test_our_prices_are_openais():
    assert known_price("gpt-4.1-mini", OPENAI).output == 1.60
    assert known_price("gpt-4.1-mini", LOCAL).output == 1.60
    assert find_price("gpt-4.1-mini", OTHER) is None
    assert find_price("gpt-4.1-mini", "https://api.openai.com.example.com/v1") is None


def test_our_prices_are_plausible():
    path = find_resource("prices.toml")
    assert path is not None
    prices = [known_price(model) for model in read_toml(path)["models"]]
    assert all(0 < price.input <= price.output for price in prices)


def test_a_model_on_this_machine_is_free():
    assert known_price("any", LOCAL).cost(10**6, 10**6) == 0
    assert find_price("any", "http://10.0.0.7:8000/v1") is None


def test_a_users_prices_are_of_all_hosts(tmp_path, monkeypatch):
    price_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert [known_price("big", url).input for url in (OPENAI, LOCAL, OTHER)] == [3, 3, 3]
    assert find_price("gpt-4.1-mini") is None
    assert find_price("any", "http://10.0.0.7:8000/v1") is None


def test_a_wrong_price_file_is_refused_by_key(tmp_path):
    for text, words in {
        "[models": "not TOML",
        'dated = ""\nsource = ""\n': "'models' is missing",
        TABLE.replace(
            "12.5", '"12.5"'
        ): "'output': wanted US dollars per million tokens, found '12.5'",
        TABLE.replace("12.5", "nan"): "found nan",
        TABLE.replace("12.5", "-1"): "found -1",
        TABLE.replace("output", "out"): "unknown key 'out'; did you mean 'output'",
    }.items():
        with pytest.raises(IfqaError, match="prices.toml.*" + words):
            find_price("big", root=price_file(tmp_path, text))


@given(st.integers(0, 10**6), st.floats(0.0001, 5), st.integers(1, 3000))
def test_the_tokens_that_a_budget_lets_through_never_exceed_a_cap(seed, max_cost, max_tokens):
    draw = random.Random(seed)
    price = Price(input=draw.uniform(0, 30), output=draw.uniform(0, 60))
    budget = Account(price, max_cost, max_tokens)
    billed = [0, 0]
    reservations: list[Reservation] = []
    for _ in range(100):
        if reservations and draw.random() < 0.4:
            reservation = reservations.pop(draw.randrange(len(reservations)))
            used = (draw.randint(0, reservation.prompt), draw.randint(0, reservation.completion))
            budget.settle(reservation, used if draw.random() < 0.8 else None)
            billed = [total + more for total, more in zip(billed, used, strict=True)]
        elif granted := budget.reserve(draw.randint(1, 200), draw.randint(1, 100)):
            reservations.append(granted)
        assert price.cost(*billed) <= max_cost + 1e-12
        assert sum(billed) <= max_tokens
        assert budget.in_flight == len(reservations)


def test_tokens_are_reserved_until_they_are_settled():
    budget = Account(Price(input=1, output=1), 0, 30)
    reservation = budget.reserve(10, 10)
    assert reservation is not None
    assert budget.reserve(10, 10) is None
    budget.settle(reservation, (5, 5))
    assert budget.reserve(10, 10), "what fits exactly is let through"
    assert "30 tokens" in budget.refusal


def test_an_unknown_use_counts_all_that_was_reserved():
    budget = Account(Price(input=1_000_000, output=2_000_000))
    reservation = budget.reserve(10, 5)
    assert reservation is not None
    budget.settle(reservation, None)
    assert budget.spent == (10, 5)
    assert budget.cost == 20


def test_a_reservation_is_raised_to_the_servers_count():
    budget = Account(None)
    for reservation in [budget.reserve(10, 5) for _ in range(3)]:
        assert reservation is not None
        budget.settle(reservation, (17, 1))
    raised = budget.reserve(10, 5)
    assert raised is not None
    assert raised.prompt == 17
    assert budget.extra == 7


def test_a_models_window_by_name():
    windows = {
        "gpt-4o-mini": 128_000,
        "gpt-4.1-nano-2025-04-14": 1_047_576,
        "gpt-4": 8_192,
        "gpt-3.5-turbo-instruct": 4_096,
        "gpt-3.5-turbo-0125": 16_385,
        "gpt-5.2": 272_000,
        "ft:gpt-4o-mini:me": 128_000,
        "llama-3": 0,
    }
    assert {model: find_window(model) for model in windows} == windows


@given(st.text(st.characters()))
def test_the_estimate_is_at_most_a_token_per_byte(text):
    size = len(text.encode("utf-8", "surrogatepass"))
    assert 0 <= estimate_tokens(text) <= size
    assert (estimate_tokens(text) > 0) == (size > 0)


@given(st.text(st.characters()), st.text(st.characters()))
def test_the_estimate_adds_up(text, second):
    both = estimate_tokens(text + second)
    apart = estimate_tokens(text) + estimate_tokens(second)
    assert both <= apart <= both + 1


def test_the_estimate_is_never_below_known_counts():
    # of cl100k_base, published or evident from its splitting pattern
    known = {
        "hello world": 2,
        "tiktoken is great!": 6,
        "antidisestablishmentarianism": 6,
        "2 + 2 = 4": 7,
        "お誕生日おめでとう": 9,
    }
    assert all(estimate_tokens(text) >= count for text, count in known.items())


def test_no_vocabulary_is_ever_downloaded(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("tiktoken.load.read_file", None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    token_counts.token_counter.cache_clear()
    count = token_counts.token_counter("gpt-4o")
    assert (count("a river"), token_counts.token_counter("gpt-4o")("")) == (
        estimate_tokens("a river"),
        0,
    )
    assert capsys.readouterr().err.count("exact counts") == 1
    token_counts.token_counter.cache_clear()


def test_a_prompts_bound_is_no_less_than_its_count():
    chat = Request(messages=(("system", "Be brief."), ("user", "Where would it be?")))
    for request in (chat, Request(text="Ω≈ç√ 12345 words")):
        assert bound_prompt_tokens(request, estimate_tokens) >= count_prompt_tokens(
            request, estimate_tokens
        )
        assert bound_prompt_tokens(request, len) >= count_prompt_tokens(request, len) > 15
