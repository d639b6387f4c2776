import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.llms import token_counts
from ifqa.llms.budget import Account, Price, price_of
from ifqa.llms.credentials import is_local
from ifqa.llms.token_counts import at_most, most_prompt_tokens, prompt_tokens, window_of
from ifqa.records import Request
from ifqa.storage.files import read_json, read_toml
from ifqa.storage.resources import find_resource

TABLE = 'dated = "2026-01-02"\nsource = "there"\n[models]\n"big" = { input = 3, output = 12.5 }\n'


def table(tmp_path, text):
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return path


def test_a_price_is_per_million_tokens(tmp_path):
    price = price_of("big", root=table(tmp_path, TABLE).parent)
    assert price == Price(3.0, 12.5, "2026-01-02", "there")
    assert price.of(2_000_000, 100_000) == pytest.approx(7.25)


def test_an_unknown_price_is_none_and_never_zero(tmp_path):
    assert price_of("small", root=table(tmp_path, TABLE).parent) is None
    assert price_of("bigger", root=table(tmp_path, TABLE).parent) is None
    assert Account(None).cost is None


def test_a_dated_name_has_its_models_price_unless_it_is_listed(tmp_path):
    path = table(tmp_path, TABLE + '"big-2026-03-01" = { input = 9, output = 9 }\n').parent
    assert price_of("big-2025-12-31", root=path).input == 3
    assert price_of("big-2026-03-01", root=path).input == 9
    assert price_of("big-1231", root=path) is None


def test_a_price_file_in_the_working_directory_replaces_ours(tmp_path, monkeypatch):
    assert price_of("gpt-4.1-mini").output == 1.60
    table(tmp_path, TABLE)
    monkeypatch.chdir(tmp_path)
    assert price_of("gpt-4.1-mini") is None
    assert price_of("big").input == 3


@pytest.mark.parametrize(
    ("url", "known"),
    [
        ("https://api.openai.com/v1", True),
        ("http://localhost:4000/v1", True),
        ("https://api.example.com/v1", False),
        ("https://api.openai.com.example.com/v1", False),
    ],
)
def test_our_table_is_of_openai_and_of_no_other_host(tmp_path, monkeypatch, url, known):
    assert (price_of("gpt-4.1-mini", url) is not None) == known
    table(tmp_path, TABLE.replace("big", "gpt-4.1-mini"))
    assert price_of("gpt-4.1-mini", url, tmp_path).input == 3, "a table of the user's is of all hosts"


def test_every_model_of_our_table_has_a_positive_price():
    for model in read_toml(find_resource("prices.toml"))["models"]:
        price = price_of(model)
        assert 0 < price.input <= price.output
        assert price.dated
        assert price.source


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[models", "not TOML"),
        ('dated = ""\nsource = ""\n', "'models' is missing"),
        (TABLE.replace("12.5", '"12.5"'), "'output': wanted US dollars per million tokens, found '12.5'"),
        (TABLE.replace("12.5", "-1"), "found -1"),
        (TABLE.replace("12.5", "nan"), "found nan"),
        (TABLE.replace("output", "out"), "unknown key 'out'; did you mean 'output'"),
        (TABLE.replace('dated = "2026-01-02"', ""), "'dated' is missing"),
    ],
)
def test_a_wrong_price_file_is_refused_by_key(tmp_path, text, words):
    with pytest.raises(IfqaError, match="prices.toml.*" + words):
        price_of("big", root=table(tmp_path, text).parent)


def test_a_local_server_is_free_unless_its_model_has_a_price(tmp_path):
    path = table(tmp_path, TABLE).parent
    assert price_of("any", "http://localhost:8000/v1", path).of(10**6, 10**6) == 0
    assert price_of("big", "http://localhost:8000/v1", path).input == 3
    assert price_of("any", "http://10.0.0.7:8000/v1", path) is None


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://LOCALHOST", True),
        ("https://api.openai.com/v1", False),
        ("http://localhost.example.com", False),
        ("http://127.example.com", False),
        ("", False),
    ],
)
def test_which_server_is_this_machine(url, local):
    assert is_local(url) is local


@given(st.integers(0, 10**6), st.floats(0.0001, 5), st.integers(1, 3000))
def test_tokens_spent_and_set_aside_never_exceed_a_cap(seed, max_cost, max_tokens):
    draw = random.Random(seed)
    price = Price(draw.uniform(0, 30), draw.uniform(0, 60))
    budget = Account(price, max_cost, max_tokens)
    billed, rooms = [0, 0], []
    for _ in range(100):
        if rooms and draw.random() < 0.4:
            room = rooms.pop(draw.randrange(len(rooms)))
            used = (draw.randint(0, room.prompt), draw.randint(0, room.completion))
            budget.settle(room, used if draw.random() < 0.8 else None)
            billed = [one + more for one, more in zip(billed, used, strict=True)]
        elif room := budget.reserve(draw.randint(1, 200), draw.randint(1, 100)):
            rooms.append(room)
        assert price.of(*billed) <= max_cost + 1e-12
        assert sum(billed) <= max_tokens
        assert budget.open == len(rooms)


def test_a_request_that_fits_exactly_is_let_through():
    budget = Account(Price(1, 1), 0, 30)
    room = budget.reserve(10, 10)
    assert budget.reserve(10, 10) is None
    budget.settle(room, (5, 5))
    assert budget.reserve(10, 10)
    assert "30 tokens" in budget.refusal


def test_an_unknown_use_counts_all_that_was_set_aside():
    budget = Account(Price(1_000_000, 2_000_000))
    budget.settle(budget.reserve(10, 5), None)
    assert budget.spent == (10, 5)
    assert budget.cost == 20


def test_a_server_that_counts_more_raises_the_later_bounds():
    budget = Account(None)
    rooms = [budget.reserve(10, 5) for _ in range(3)]
    for room in rooms:
        budget.settle(room, (17, 1))
    assert budget.reserve(10, 5).prompt == 17
    assert budget.extra == 7


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o-mini", 128_000),
        ("gpt-4.1-nano-2025-04-14", 1_047_576),
        ("gpt-4", 8_192),
        ("gpt-3.5-turbo-instruct", 4_096),
        ("gpt-3.5-turbo-0125", 16_385),
        ("gpt-5.2", 272_000),
        ("ft:gpt-4o-mini:me", 128_000),
        ("llama-3", 0),
    ],
)
def test_a_models_window_by_name(model, window):
    assert window_of(model) == window


@given(st.text(st.characters()))
def test_the_estimate_is_between_zero_and_a_token_per_byte(text):
    size = len(text.encode("utf-8", "surrogatepass"))
    assert 0 <= at_most(text) <= size
    assert (at_most(text) > 0) == (text.strip(" ") != "" or size > 0)


@given(st.text(st.characters()), st.text(st.characters()))
def test_joining_two_texts_does_not_raise_the_estimate(first, second):
    assert at_most(first + second) <= at_most(first) + at_most(second) <= at_most(first + second) + 1


@pytest.mark.parametrize(
    ("text", "real"),  # token counts of cl100k_base, published or evident from its splitting pattern
    [
        ("hello world", 2),
        ("tiktoken is great!", 6),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("お誕生日おめでとう", 9),
    ],
)
def test_the_estimate_is_never_below_known_counts(text, real):
    assert at_most(text) >= real


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_the_estimate_is_above_the_real_count_if_the_vocabulary_is_here(name):
    if not token_counts._is_here(name):
        pytest.skip("its vocabulary is not on this machine")
    import tiktoken

    encoding = tiktoken.get_encoding(name)
    records = read_json(find_resource("sample/dev.json"))
    text = "\n".join(f"{record['question']} {record['context']}" for record in records)
    for part in range(0, len(text), 1000):
        assert at_most(text[part : part + 1000]) >= len(encoding.encode(text[part : part + 1000]))


def test_no_vocabulary_is_ever_downloaded(monkeypatch, tmp_path, capsys):
    import tiktoken.load

    def fetch(url):
        raise AssertionError(f"fetched {url}")

    monkeypatch.setattr(tiktoken.load, "read_file", fetch)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    token_counts.counter.cache_clear()
    count = token_counts.counter("gpt-4o")
    assert count("a river") == at_most("a river")
    assert token_counts.counter("gpt-4o")("") == 0
    assert capsys.readouterr().err.count("exact counts") == 1
    (tmp_path / "fb374d419588a4632f3f557e76b4b70aebbca790").write_bytes(b"torn")  # o200k's place
    token_counts.counter.cache_clear()
    assert token_counts.counter("gpt-4o") is at_most
    token_counts.counter.cache_clear()


def test_a_prompts_bound_is_no_less_than_its_count():
    for request in (
        Request(messages=(("system", "Be brief."), ("user", "Where would it be?"))),
        Request(text="Ω≈ç√ 12345 words"),
    ):
        assert most_prompt_tokens(request, at_most) >= prompt_tokens(request, at_most)
        assert (
            most_prompt_tokens(request, len) >= prompt_tokens(request, len) > sum(map(len, ("Where would it be?",))) - 3
        )
