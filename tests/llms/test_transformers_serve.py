"""A real server, `transformers serve` with a tiny chat model, asked by openai's library, our client and experiments."""

import json
import re

import openai
import pytest
import tiny_chat
from command_line import ifqa_here
from transformers_server import needs_serving, serve

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.llms.openai import OpenAI
from ifqa.records import Request

pytestmark = needs_serving
QUESTION = (("user", "Question: If Wick had no harbour, where would the boats land?"),)
CHAT = [{"role": role, "content": content} for role, content in QUESTION]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_chat.save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with serve(folder, tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture
def plain(server):
    with openai.OpenAI(
        base_url=server, api_key="none", max_retries=2, http_client=openai.DefaultHttpxClient(trust_env=False)
    ) as client:
        yield client


@pytest.fixture
def ours(server, folder, tmp_path, monkeypatch):
    """Opens our client with a store of the test's own."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    base = {
        "model": str(folder),
        "base_url": server,
        "window": tiny_chat.POSITIONS,
        "store": str(tmp_path / "completions"),
    }
    return lambda **settings: OpenAI(**base | settings)


@pytest.fixture
def local(folder, tmp_path):
    """The same model in this process."""
    return HF(model=str(folder), precision="float32", device="cpu", store=str(tmp_path / "local"))


def test_the_server_answers_as_the_model_does_here(plain, folder, local):
    made = plain.chat.completions.create(model=str(folder), messages=CHAT, max_tokens=24, temperature=0)
    [here] = local.complete([Request(messages=QUESTION, max_tokens=24)])
    assert made.choices[0].message.content == here.text.strip()  # the server strips a chat's answer
    assert (made.usage.prompt_tokens, made.usage.completion_tokens) == (here.prompt_tokens, here.completion_tokens)
    assert made.choices[0].finish_reason == here.finish == "length"


def test_our_client_asks_equal_requests_once(ours, local):
    request = Request(messages=QUESTION, max_tokens=24)
    other = Request(messages=(*QUESTION, ("assistant", "In Lybster."), ("user", "Why?")), max_tokens=24)
    client = ours()
    found = client.complete([request, request, other])
    here = local.complete([request, request, other])
    assert [(one.text, one.finish, one.error) for one in found] == [(one.text.strip(), one.finish, "") for one in here]
    assert found[0] == found[1]
    assert (client.spent.calls, client.spent.cached, client.spent.cost) == (2, 1, 0.0)
    assert client.spent.prompt_tokens == here[0].prompt_tokens + here[2].prompt_tokens

    again = ours()
    assert [one.text for one in again.complete([other, request])] == [found[2].text, found[0].text]
    assert (again.spent.calls, again.spent.cached) == (0, 2)


def test_our_client_asks_in_completion_form(ours, local):
    request = Request(text="Question: If Wick had no harbour,", max_tokens=24)
    [found], [here] = ours(form="completion").complete([request]), local.complete([request])
    assert (found.text, found.prompt_tokens, found.finish) == (here.text, here.prompt_tokens, here.finish)


def test_many_requests_in_parallel_get_their_own_answers(ours, local):
    requests = [Request(messages=(("user", f"Question {n}?"),), max_tokens=6) for n in range(24)]
    found, here = ours(concurrency=8).complete(requests), local.complete(requests)
    assert [one.text for one in found] == [one.text.strip() for one in here]


def test_the_server_stops_at_a_newline_and_keeps_it(plain, folder, local):
    request = Request(text=QUESTION[0][1], max_tokens=200, stop=("\n",))
    raw = plain.completions.create(model=str(folder), prompt=request.text, max_tokens=200, temperature=0, stop=["\n"])
    [here] = local.complete([request])
    assert (raw.choices[0].text, raw.choices[0].finish_reason) == (f"{here.text}\n", here.finish)
    assert here.finish == "stop"


def test_our_clients_answers_end_before_the_stop(ours, local):
    requests = [Request(text=QUESTION[0][1], max_tokens=99, stop=(stop,)) for stop in ("\n", "a", "e", "ar")]
    found, here = ours(form="completion").complete(requests), local.complete(requests)
    assert [(one.text, one.finish) for one in found] == [(one.text, one.finish) for one in here]


def test_the_server_accepts_a_prompt_beyond_the_models_window(plain, folder, local):
    """The server does not refuse, so our own bound has to hold before a request is sent."""
    long = [{"role": "user", "content": "Where would the boats land? " * 200}]
    made = plain.chat.completions.create(model=str(folder), messages=long, max_tokens=4, temperature=0)
    assert made.usage.prompt_tokens > tiny_chat.POSITIONS
    [here] = local.complete([Request(messages=(("user", long[0]["content"]),), max_tokens=4)])
    assert "do not fit into the model's window" in here.error


def test_the_server_draws_only_if_the_models_folder_says_so(plain, folder):
    """A temperature alone leaves the server greedy: all samples are equal, which matters to self-consistency."""

    def made(**settings):
        return plain.chat.completions.create(model=str(folder), messages=CHAT, max_tokens=12, **settings)

    greedy = made(temperature=0).choices[0].message.content
    assert {made(temperature=1.5, seed=n).choices[0].message.content for n in range(3)} == {greedy}
    assert len(made(temperature=1, n=3).choices) == 1
    drawing = json.dumps({"do_sample": True, "max_new_tokens": 12, "pad_token_id": 0})
    drawn = [made(temperature=1.5, seed=n, extra_body={"generation_config": drawing}) for n in (1, 2, 1)]
    first, second, third = [one.choices[0].message.content for one in drawn]
    assert first == third != second


def test_what_the_server_refuses(plain, folder):
    for api, settings, status in [
        (plain.chat.completions, {"messages": CHAT, "model": "gpt-4.1"}, 400),
        (plain.chat.completions, {"messages": CHAT, "extra_body": {"top_k": 1}}, 422),
        (plain.completions, {"prompt": ["a", "b"]}, 400),
    ]:
        with pytest.raises(openai.APIStatusError) as raised:
            api.create(**{"model": str(folder)} | settings)
        assert raised.value.status_code == status


def test_our_client_reports_a_missing_model_in_the_servers_words(ours, folder):
    with pytest.raises(IfqaError, match=f"Server is pinned to '{re.escape(str(folder))}'; requested 'gpt-4.1'"):
        ours(model="gpt-4.1").complete([Request(messages=QUESTION)])


@pytest.mark.parametrize("prompt", ["closed-book", "closed-book-cot", "open-book", "counterfactual", "genread-read"])
def test_every_way_of_asking_runs_over_the_sample(server, folder, tmp_path, monkeypatch, prompt):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    retriever = "genread" if prompt == "genread-read" else "gold"
    flags = ["--prompt", prompt, "--model", str(folder), "--set", f"llm.base_url={server}", "--set", "llm.window=8192"]
    flags += ["--retriever", retriever, "--reader", "llm", "--limit", "3"]
    done = ifqa_here("run", "sample", *flags, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "To read: 3 requests" in done.stdout
    assert ("To retrieve: 3 requests" in done.stdout) == (retriever == "genread")
    (path,) = tmp_path.glob("experiments/*/read/predictions.jsonl")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert all(line["answer"] or line["error"].startswith("unparsed") for line in lines)
    assert all(line["completion"] for line in lines)
