"""A real server, `transformers serve` with a tiny chat model, asked by our client."""

import re
from typing import Any

import pytest
import tiny_chat
from transformers_server import needs_serving, serve

from ifqa.errors import IfqaError
from ifqa.llms.hf import HF
from ifqa.llms.openai import OpenAI
from ifqa.records import Request

pytestmark = pytest.mark.slow

TEXT = "Question: If Wick had no harbour, where would the boats land?"


@needs_serving
def test_our_client_gets_the_answers_that_the_model_gives_here(
    tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    folder = tiny_chat.save(tmp_path / "tiny")
    chats = [
        Request(messages=(("user", f"Question {n}: where would the boats land?"),), max_tokens=24)
        for n in range(12)
    ]
    plain = [Request(text=TEXT, max_tokens=99, stop=(stop,)) for stop in ("\n", "a", "e", "ar")]
    local = HF(
        HF.Settings(
            model=str(folder), precision="float32", device="cpu", store=str(tmp_path / "local")
        )
    )
    with serve(folder, tmp_path_factory.mktemp("server")) as address:
        store = str(tmp_path / "served")
        settings: dict[str, Any] = {
            "base_url": address,
            "window": tiny_chat.POSITIONS,
            "store": store,
            "concurrency": 8,
        }
        for requests, form in ((chats, "chat"), (plain, "completion")):
            client = OpenAI(OpenAI.Settings(model=str(folder), **settings | {"form": form}))
            completions = client.complete(requests)
            expected = local.complete(requests)
            # The server strips chats
            stripped = [completion.text.strip() for completion in expected]
            assert [completion.text.strip() for completion in completions] == stripped
            ends = [(completion.finish, completion.error) for completion in completions]
            assert ends == [(completion.finish, "") for completion in expected]
            assert client.spent.prompt_tokens == sum(
                completion.prompt_tokens for completion in expected
            )
        with pytest.raises(
            IfqaError, match=f"Server is pinned to '{re.escape(str(folder))}'; requested 'gpt-4.1'"
        ):
            OpenAI(OpenAI.Settings(model="gpt-4.1", **settings)).complete(chats)
