"""Function calls, from the server's reply to the store of completions."""

import json
from typing import Any

import pytest
from openai_client import KEY, ask, first, here, model  # noqa: F401 - a fixture
from openai_server import Reply, error, serving

from ifqa.errors import ConfigError, ServiceError, ToolsRefused
from ifqa.llms.cache import CompletionCache, cache_key, format_record
from ifqa.llms.openai import OpenAI
from ifqa.llms.replay import Replay
from ifqa.llms.streaming import streaming
from ifqa.records import Completion, Request, ToolCall, ToolTurn

SEARCH = {"name": "search", "parameters": {"type": "object", "properties": {}}}
TOOLS = json.dumps([{"type": "function", "function": SEARCH}])
CALL = ToolCall("search", '{"query": "mill"}')
TURN = ToolTurn("", (CALL, ToolCall("compute", "{}")), ("A mill.", "no expression"))


def calling(*calls, **more):
    """A reply that calls functions: (name, arguments)."""
    entries = [
        {"id": f"x{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return Reply(message={"content": None, "tool_calls": entries}, finish="tool_calls", **more)


def calls_of(reply, **more):
    with serving(lambda prompt, time, body: reply) as server:
        [completion] = model(server).complete(ask("hello", tools=TOOLS), **more)
    return completion


def sent(request):
    """The body that a server gets."""
    with serving() as server:
        model(server).complete([request])
    return server.bodies[0]


def test_a_request_carries_its_functions():
    [request] = ask("hello", tools=TOOLS)
    assert sent(request)["tools"] == json.loads(TOOLS)


def test_calls_are_sent_back_with_an_id_that_their_results_name():
    [request] = ask("hello", tools=TOOLS, turns=(TURN,))
    _, assistant, *results = sent(request)["messages"]
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert [(result["role"], result["tool_call_id"]) for result in results] == [
        ("tool", call_id) for call_id in ids
    ]
    assert assistant["tool_calls"][0]["function"] == CALL._asdict()


def test_ids_are_nine_letters_or_digits():
    [request] = ask("hello", tools=TOOLS, turns=(TURN, TURN))
    messages = sent(request)["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    assert len(set(ids)) == 4
    assert all(len(call_id) == 9 and call_id.isalnum() for call_id in ids)


def test_a_turn_without_calls_is_a_reply_of_the_user():
    [request] = ask("hello", tools=TOOLS, turns=(ToolTurn("Hm.", (), ("Call one.",)),))
    assert sent(request)["messages"][1:] == [
        {"role": "assistant", "content": "Hm."},
        {"role": "user", "content": "Call one."},
    ]


def test_calls_of_a_reply_are_read_in_order():
    completion = calls_of(calling(("search", '{"query": "a"}'), ("compute", '{"expression": "1"}')))
    assert completion.calls == (
        ToolCall("search", '{"query": "a"}'),
        ToolCall("compute", '{"expression": "1"}'),
    )
    assert completion.text == ""


def test_arguments_that_are_an_object_become_json():
    completion = calls_of(calling(("search", {"query": "a"})))
    assert json.loads(completion.calls[0].arguments) == {"query": "a"}


@pytest.mark.parametrize("entry", [7, {}, {"function": {"name": None}}, {"function": "search"}])
def test_what_is_no_call_has_an_empty_name(entry):
    completion = calls_of(Reply(message={"content": None, "tool_calls": [entry]}))
    assert completion.calls == (ToolCall("", ""),)


def test_a_reply_may_have_a_text_and_no_call():
    completion = calls_of(Reply(text="Answer: 7"))
    assert (completion.text, completion.calls) == ("Answer: 7", ())


def test_calls_without_an_offer_are_still_no_answer():
    with serving(lambda prompt, time, body: calling(("search", "{}"))) as server:
        [completion] = model(server).complete(ask("hello"))
    assert "calls a tool" in completion.error


def test_streamed_calls_are_put_together():
    pieces = [
        {"index": 0, "id": "x", "function": {"name": "search", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"query": '}},
        {"index": 1, "function": {"name": "compute", "arguments": "{}"}},
        {"index": 0, "function": {"arguments": '"mill"}'}},
    ]
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    lines = [f"data: {json.dumps(event)}\n\n".encode() for event in events]
    reply = Reply(pieces=[*lines, b"data: [DONE]\n\n"], body=b"")
    with streaming(lambda text: None):
        completion = calls_of(reply)
    assert completion.calls == (CALL, ToolCall("compute", "{}"))


def test_a_key_in_the_arguments_is_removed():
    completion = calls_of(calling(("search", f'{{"query": "{KEY}"}}')))
    assert "canary" not in repr(completion)


def test_calls_are_stored():
    requests = ask("hello", tools=TOOLS)
    with serving(lambda prompt, time, body: calling(tuple(CALL))) as server:
        asked = model(server).complete(requests)
        again = model(server).complete(requests)
    assert server.requests == 1
    assert again[0].calls == asked[0].calls == (CALL,)
    assert again[0].cached


def test_a_request_without_functions_keeps_its_key():
    [plain] = ask("hello")
    assert cache_key("m", plain) == (
        "6a969f901a1fbdab929d98cc3df12e87a81d168ff7e4669d107a2b2b8eadbf46"
    )


@pytest.mark.parametrize("change", [{"tools": TOOLS}, {"tools": TOOLS, "turns": (TURN,)}])
def test_functions_have_keys_of_their_own(change):
    [plain] = ask("hello")
    [other] = ask("hello", **change)
    assert cache_key("m", plain) != cache_key("m", other)


def test_a_recording_keeps_calls(tmp_path):
    [request] = ask("hello", tools=TOOLS, turns=(TURN,))
    path = tmp_path / "calls.jsonl"
    path.write_text(format_record("m", request, Completion("", 1, 1, "tool_calls", calls=(CALL,))))
    replay = Replay(Replay.Settings(path=str(path)))
    assert replay.takes_tools
    assert replay.complete([request])[0].calls == (CALL,)


def test_a_stored_call_of_another_shape_is_asked_for_again(tmp_path):
    [request] = ask("hello", tools=TOOLS)
    cache = CompletionCache(tmp_path)
    damaged: Any = ("search",)  # without arguments
    cache.put("m", {request: Completion("", 1, 1, "stop", calls=(damaged,))})
    assert cache.missing("m", [request]) == [request]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
        (400, "this model does not support tools"),
        (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser'),
        (500, "tools param requires --jinja flag"),
    ],
)
def test_a_server_without_functions_is_told_from_one_that_fails(status, message):
    with serving(lambda prompt, time, body: error(status, message)) as server:
        llm = model(server)
        assert llm.takes_tools
        with pytest.raises(ToolsRefused):
            llm.complete(ask("hello", tools=TOOLS))
        assert not llm.takes_tools
        again = model(server)
        assert not again.takes_tools  # it is remembered
        with pytest.raises(ToolsRefused):
            again.complete(ask("hello", tools=TOOLS))
    assert server.requests == 1


def test_a_server_that_refuses_functions_midway_stops_the_reading():
    def plan(prompt, time, body):
        return Reply() if prompt == "one" else error(400, "unsupported parameter: tools")

    with serving(plan) as server, pytest.raises(ServiceError, match="has answered 1 request"):
        model(server, concurrency=1).complete(ask("one", "two", tools=TOOLS))


def test_a_completion_model_takes_no_functions():
    settings = OpenAI.Settings(model="m", base_url="http://127.0.0.1:1/v1", form="completion")
    assert not OpenAI(settings).takes_tools


def test_extra_parameters_may_not_name_functions():
    with pytest.raises(ConfigError, match="'tools' is set by ifqa"):
        OpenAI.refuse_settings(OpenAI.Settings(model="m", extra={"tools": []}))


def test_turns_count_as_tokens():
    with serving() as server:
        llm = model(server)
        plain = llm.estimate(ask("hello", tools=TOOLS))
        more = llm.estimate(ask("hello", tools=TOOLS, turns=(TURN,)))
    assert more.prompt_tokens > plain.prompt_tokens > llm.estimate(ask("hello")).prompt_tokens


def test_turns_need_messages():
    with pytest.raises(ValueError, match="turns follow messages"):
        Request(text="hello", turns=(TURN,))


def test_all_requests_are_affordable_without_a_cap():
    with serving() as server:
        assert model(server).affordable([ask("a"), ask("b")]) == (2, "")


def test_only_groups_that_fit_under_the_cap_are_affordable():
    groups = [ask("a" * 100), ask("b" * 100), ask("c" * 100)]
    with serving() as server:
        count, refusal = model(server, max_total_tokens=1500).affordable(groups)
    assert 0 < count < 3
    assert refusal.startswith("not asked")


def test_stored_requests_are_always_affordable():
    with serving() as server:
        model(server).complete(ask("a"))
        assert model(server, max_total_tokens=1).affordable([ask("a")]) == (1, "")
