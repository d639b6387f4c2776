"""A streamed completion is the same as one without streaming."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_client import KEY, ask, first, here, model, texts  # noqa: F401
from openai_server import Reply, error, serving, streamed

from ifqa.llms.response_parsing import StreamedAnswer, parse_response
from ifqa.llms.streaming import streaming
from ifqa.records import Request


def stream(llm, requests):
    updates: list[str] = []
    with streaming(updates.append):
        completion = llm.complete(requests)
    return updates, completion


def test_text_is_streamed_before_it_is_stored():
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
        updates, (completion,) = stream(
            model(server, form="completion"), [Request(text="once upon")]
        )
        assert (updates, completion.text) == (
            ["", "to ", "to once ", "to once upon"],
            "to once upon",
        )
    whole = {"choices": [{"message": {"content": "all at once"}, "finish_reason": "stop"}]}
    with serving(lambda *_: Reply(body=whole)) as server:  # one that does not stream
        updates, (completion,) = stream(model(server), ask("c"))
        assert (updates, completion.text) == ([], "all at once")


BROKEN = {
    "cut within": lambda: Reply(text="half an answer", cut="within"),
    "no JSON": lambda: Reply(pieces=[b"data: {\n\n"]),
    "no end": lambda: Reply(pieces=list(streamed(Reply(text="half an"), True))[:2]),
    "an error within": lambda: Reply(pieces=[b'data: {"error": {"message": "overloaded"}}\n\n']),
    "other JSON": lambda: Reply(
        pieces=[b"data: [1]\n\n", b'data: {"choices": [7]}\n\n', b"data: [DONE]\n\n"]
    ),
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
        updates: list[str] = []
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
    whole = {
        "choices": [updates | {"finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    responses = [json.dumps(response).encode() for response in (pieces.to_response(), whole)]
    assert parse_response(responses[0], chat) == parse_response(responses[1], chat)


@settings(max_examples=20)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda parts: (
            st.lists(parts)
            | st.dictionaries(
                st.sampled_from(["choices", "delta", "content", "usage", "index", "refusal"]), parts
            )
        ),
        max_leaves=12,
    )
)
def test_malformed_chunks_are_ignored(piece):
    pieces = StreamedAnswer(True, lambda text: None)
    pieces.add(piece)
    pieces.add({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})
    parse_response(json.dumps(pieces.to_response()).encode(), True)


DONE = b"data: [DONE]\n\n"


def events(*pieces):
    """Pieces of a stream of a chat, each an event."""
    return [b"data: " + json.dumps(piece).encode() + b"\n\n" for piece in pieces]


def delta(**message):
    return {"choices": [{"index": 0, "delta": message, "finish_reason": None}]}


def test_a_stream_that_says_done_is_complete_without_a_finish_reason():
    whole = Reply(pieces=[*events(delta(content="Bel"), delta(content="grade")), DONE])
    with serving(lambda *_: whole) as server:
        _, (done,) = stream(model(server), ask("a"))
        assert (done.text, done.error, server.requests) == ("Belgrade", "", 1)


def test_what_a_gateway_adds_to_a_stream_is_ignored():
    pieces = [
        b": PROCESSING\n\n",
        b"event: ping\ndata: {}\n\n",
        *events(delta(content="Belgrade")),
        DONE,
    ]
    with serving(lambda *_: Reply(pieces=pieces)) as server:
        _, (done,) = stream(model(server), ask("a"))
    assert done.text == "Belgrade"
    assert done.error == ""


def test_thoughts_are_streamed_apart_from_the_text():
    thoughts = [
        delta(reasoning_content="think "),
        delta(reasoning="hm"),
        delta(content=None, reasoning_content="x"),
    ]
    with serving(
        lambda *_: Reply(pieces=[*events(*thoughts, delta(content="Belgrade")), DONE])
    ) as server:
        updates, (done,) = stream(model(server), ask("a"))
        assert updates == ["", "Belgrade"]
        assert (done.text, done.reasoning) == ("Belgrade", "think hmx")
        assert model(server).complete(ask("a"))[0].reasoning == "think hmx", "it is stored, too"


def test_a_server_that_always_streams_is_read():
    with serving(
        lambda *_: Reply(pieces=[*events(delta(content="Bel"), delta(content="grade")), DONE])
    ) as server:
        (done,) = model(server).complete(ask("a"))
    assert (done.text, done.error) == ("Belgrade", "")


def test_an_error_before_the_first_text_of_a_stream_books_no_tokens():
    broken = events({"error": {"message": "upstream died", "code": 502}})
    with serving(lambda *_: Reply(pieces=list(broken), usage=None)) as server:
        llm = model(server, retries=1)
        _, (done,) = stream(llm, ask("a"))
    assert (
        done.error
        == "the answer broke off: the server reports an error: upstream died (after 2 tries)"
    )
    assert llm.spent.prompt_tokens == 0


def test_a_stream_is_not_cut_at_line_breaks_that_json_may_hold():
    text = "Bel\u2028gr\u0085ade"
    raw = json.dumps(
        {"choices": [{"index": 0, "delta": {"content": text}}]}, ensure_ascii=False
    ).encode()
    with serving(
        lambda *_: Reply(pieces=[b"data: " + raw[:40], raw[40:] + b"\r\n\r\n", DONE])
    ) as server:
        _, (streamed_answer,) = stream(model(server), ask("a"))
        (unasked,) = model(server).complete(ask("b"))
    assert streamed_answer.text == unasked.text == text


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"object": "error", "message": "engine died", "code": 500}, "engine died"),
        ({"choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}, "ends with an error"),
    ],
)
def test_an_error_within_a_stream_is_no_answer(event, message):
    with serving(lambda *_: Reply(pieces=[*events(delta(content="Bel"), event), DONE])) as server:
        _, (done,) = stream(model(server, retries=0), ask("a"))
    assert (done.text, message in done.error) == ("", True)


def test_a_stream_of_something_other_than_json_is_paid_twice_at_most():
    with serving(lambda *_: Reply(pieces=[b"data: {\n\n"])) as server:
        _, (done,) = stream(model(server, retries=6), ask("a"))
        assert (server.requests, done.permanent) == (2, True)
