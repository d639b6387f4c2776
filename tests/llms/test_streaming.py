"""A streamed completion is the same as one without streaming."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_client import KEY, ask, first, here, model, texts  # noqa: F401
from openai_server import Reply, error, serving, streamed

from ifqa.llms.http_client import StreamedAnswer, parse_response
from ifqa.llms.streaming import streaming
from ifqa.records import Request


def stream(llm, requests):
    updates = []
    with streaming(updates.append):
        completion = llm.complete(requests)
    return updates, completion


def test_text_is_streamed_and_then_stored():
    with serving(lambda *_: Reply(text="the stationary engines")) as server:
        llm = model(server)
        updates, (completion,) = stream(llm, ask("a"))
        unheard = model(server, store="elsewhere").complete(ask("a"))
        assert updates == ["", "the ", "the stationary ", "the stationary engines"]
        assert [completion] == unheard
        assert llm.spent == model(server).spent.__class__(1, 0, 7, 3, 0.0)
        assert [body.get("stream", False) for body in server.bodies] == [True, False]
        assert stream(llm, ask("a"))[0] == []  # it is stored


def test_the_first_request_is_streamed_in_both_forms():
    with serving() as server:
        updates, completions = stream(model(server), ask("a", "b"))
        assert sorted(body.get("stream", False) for body in server.bodies) == [False, True]
        assert (updates[-1], texts(completions)) == ("to a", ["to a", "to b"])
        updates, (completion,) = stream(model(server, form="completion"), [Request(text="once upon")])
        assert (updates, completion.text) == (["", "to ", "to once ", "to once upon"], "to once upon")
    whole = {"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}]}
    with serving(lambda *_: Reply(body=whole)) as server:  # one that does not stream
        updates, (completion,) = stream(model(server), ask("c"))
        assert (updates, completion.text) == ([], "all at once")


BROKEN = {
    "cut within": lambda: Reply(text="half an answer", cut="within"),
    "no JSON": lambda: Reply(pieces=[b"data: {\n\n"]),
    "no end": lambda: Reply(pieces=list(streamed(Reply(text="half an"), True))[:2]),
    "an error within": lambda: Reply(pieces=[b'data: {"error": {"message": "overloaded"}}\n\n']),
    "other JSON": lambda: Reply(pieces=[b"data: [1]\n\n", b'data: {"choices": [7]}\n\n', b"data: [DONE]\n\n"]),
    "503": lambda: error(503, "overloaded", None, {"retry-after": "0"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_stream_is_retried(name):
    with serving(first(BROKEN[name], then=lambda: Reply(text="whole answer"))) as server:
        updates, (done,) = stream(model(server), ask("a"))
    assert (done.text, done.error) == ("whole answer", "")
    assert updates[-3:] == ["", "whole ", "whole answer"]


@pytest.mark.parametrize("secret", [KEY, base64.b64encode(KEY.encode()).decode().rstrip("=")])
def test_no_part_of_the_key_is_streamed(secret):
    for cut in range(1, len(KEY)):
        updates = []
        pieces = StreamedAnswer(True, updates.append, KEY)
        for text in ("I was sent ", secret[:cut], secret[cut:], " as key"):
            pieces.add({"choices": [{"delta": {"content": text}}]})
        assert not [message for message in updates if secret[:4] in message]
        assert updates[-1] == "I was sent [key] as key"


@settings(max_examples=20)
@given(st.text(max_size=20), st.booleans(), st.sampled_from(["stop", "length"]))
def test_streamed_chunks_make_the_same_response(text, chat, finish):
    pieces = StreamedAnswer(chat, lambda text: None)
    pieces.add({"choices": [{"delta": {"content": ""}} if chat else {"text": ""}]})
    for chunk in streamed(Reply(text=text, finish=finish), chat):
        if chunk != b"data: [DONE]\n\n":
            pieces.add(json.loads(chunk.removeprefix(b"data: ")))
    updates = {"message": {"content": text}} if chat else {"text": text}
    whole = {"choices": [updates | {"finish_reason": finish}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    responses = [json.dumps(response).encode() for response in (pieces.to_response(), whole)]
    assert parse_response(responses[0], chat) == parse_response(responses[1], chat)


@settings(max_examples=20)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda parts: st.lists(parts) | st.dictionaries(
    st.sampled_from(["choices", "delta", "content", "usage", "index", "refusal"]), parts), max_leaves=12))  # fmt: skip
def test_malformed_chunks_are_ignored(piece):
    pieces = StreamedAnswer(True, lambda text: None)
    pieces.add(piece)
    pieces.add({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})
    parse_response(json.dumps(pieces.to_response()).encode(), True)
