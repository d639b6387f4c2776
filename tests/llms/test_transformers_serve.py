"""A real server, `transformers serve` with a tiny chat model, asked by openai's library, our client and experiments."""

import re

import pytest
import tiny_chat
from transformers_server import needs_serving, serve

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.llms.openai import OpenAI
from ifqa.records import Request

pytestmark = needs_serving
QUESTION = (("user", "Question: If Wick had no harbour, where would the boats land?"),)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_chat.save(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
    with serve(folder, tmp_path_factory.mktemp("server")) as address:
        yield address


def test_our_client_gets_the_answers_that_the_model_gives_here(server, folder, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chats = [
        Request(messages=(("user", f"Question {n}: where would the boats land?"),), max_tokens=24) for n in range(12)
    ]
    text = "Question: If Wick had no harbour, where would the boats land?"
    plain = [Request(text=text, max_tokens=99, stop=(stop,)) for stop in ("\n", "a", "e", "ar")]
    local = HF(model=str(folder), precision="float32", device="cpu", store=str(tmp_path / "local"))
    for requests, form in ((chats, "chat"), (plain, "completion")):
        store = {"window": tiny_chat.POSITIONS, "store": str(tmp_path / form)}
        client = OpenAI(model=str(folder), base_url=server, form=form, concurrency=8, **store)
        found, expected = client.complete(requests), local.complete(requests)
        texts = [
            one.text.strip() if form == "chat" else one.text for one in expected
        ]  # the server strips a chat's answer
        assert [(one.text, one.error) for one in found] == [(text, "") for text in texts]
        assert [one.finish for one in found] == [one.finish for one in expected]
        assert client.spent.prompt_tokens == sum(one.prompt_tokens for one in expected)
    with pytest.raises(IfqaError, match=f"Server is pinned to '{re.escape(str(folder))}'; requested 'gpt-4.1'"):
        OpenAI(model="gpt-4.1", base_url=server, **store).complete(chats)
