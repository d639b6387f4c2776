"""Parameters that a server refuses are learnt once; what is sent decides what is one reading."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from openai_client import ask, here, model, texts  # noqa: F401
from openai_server import Reply, error, serving

from ifqa.errors import IfqaError
from ifqa.llms.request_form import RequestForm
from ifqa.records import Completion, Request

NO_TEMPERATURE = (
    "'temperature' does not support 0 with this model. Only the default (1) value is supported."
)
NO_MAX_TOKENS = (
    "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
)


def refusing(parameter, message, status=400, named=True):
    """A plan that refuses requests with a parameter."""

    def plan(prompt, time, body):
        if parameter not in body:
            return Reply(text=f"to {prompt}")
        return error(status, message, "unsupported_value", param=parameter if named else None)

    return plan


@pytest.mark.parametrize(
    ("parameter", "message", "named"),
    [
        ("temperature", NO_TEMPERATURE, True),
        ("temperature", NO_TEMPERATURE, False),
        ("max_tokens", NO_MAX_TOKENS, True),
        ("max_tokens", NO_MAX_TOKENS, False),
    ],
)
def test_a_refused_parameter_is_left_out_of_all_further_requests(parameter, message, named):
    with serving(refusing(parameter, message, named=named)) as server:
        done = model(server, concurrency=1).complete(ask(*"abc"))
        assert texts(done) == ["to a", "to b", "to c"]
        assert server.requests == 4
        assert parameter not in server.bodies[-1]


def test_the_next_run_knows_what_the_server_refuses():
    with serving(refusing("temperature", NO_TEMPERATURE)) as server:
        model(server).complete(ask("a"))
        before = server.requests
        again = model(server)
        assert texts(again.complete(ask("a", "b"))) == ["to a", "to b"]
        assert server.requests == before + 1
        assert "without temperature" in again.name
        assert again.sent == "max_tokens, messages, model"


def test_another_name_of_the_limit_leaves_the_models_name():
    with serving(refusing("max_tokens", NO_MAX_TOKENS)) as server:
        llm = model(server)
        name = llm.name
        llm.complete(ask("a", max_tokens=9))
        assert llm.name == name
        assert server.bodies[-1]["max_completion_tokens"] == 9


def test_a_stream_is_asked_without_options_that_the_server_refuses():
    from ifqa.llms.streaming import streaming

    with (
        serving(refusing("stream_options", "Unknown parameter: 'stream_options'")) as server,
        streaming(lambda text: None),
    ):
        (done,) = model(server).complete(ask("a"))
    assert done.text == "to a"


def test_answers_to_different_requests_are_not_one_reading():
    def plan(prompt, time, body):
        return (
            Reply(text="x")
            if prompt == "a"
            else refusing("temperature", NO_TEMPERATURE)(prompt, time, body)
        )

    stops = pytest.raises(
        IfqaError, match=r"has answered 1 requests with it.*run the same command again"
    )
    with serving(plan) as server, stops:
        model(server, concurrency=1).complete(ask("a", "b"))


def test_the_same_command_then_asks_all_of_them_in_the_other_form():
    def plan(prompt, time, body):
        return (
            Reply(text="x")
            if prompt == "a"
            else refusing("temperature", NO_TEMPERATURE)(prompt, time, body)
        )

    with serving(plan) as server:
        with pytest.raises(IfqaError, match="different requests do not make one reading"):
            model(server, concurrency=1).complete(ask("a", "b"))
        assert texts(model(server).complete(ask("a", "b"))) == ["x", "to b"]


def test_completions_that_are_stored_do_not_stop_a_reading_in_another_form():
    with serving(refusing("temperature", NO_TEMPERATURE)) as server:
        llm = model(server)
        llm._cache.put(llm.name, {ask("a")[0]: Completion("with temperature")})
        assert texts(llm.complete(ask("a", "b"))) == ["to a", "to b"]


def test_a_refused_option_of_streams_stops_nothing():
    from ifqa.llms.streaming import streaming

    with (
        serving(refusing("stream_options", "Unknown parameter: 'stream_options'")) as server,
        streaming(lambda text: None),
    ):
        done = model(server).complete(ask("a", "b", "c"))
    assert texts(done) == ["to a", "to b", "to c"]


def test_a_position_of_a_switch_that_is_refused_leaves_the_others():
    def plan(prompt, time, body):
        refused = body.get("reasoning_effort") == "none"
        return (
            error(400, "'reasoning_effort' does not support 'none'") if refused else Reply(text="x")
        )

    with serving(plan) as server:
        model(server, thinking="off").complete(ask("a"))
        model(server, thinking="high").complete(ask("a"))
    assert server.bodies[-1]["reasoning_effort"] == "high"


def test_threads_that_learn_at_once_store_each_answer_under_what_was_sent():
    with (
        serving(refusing("temperature", NO_TEMPERATURE), latency=0.005) as server,
        ThreadPoolExecutor(6) as threads,
    ):
        llm = model(server, concurrency=2)
        batches = [ask(*(f"{n} {m}" for m in range(6))) for n in range(6)]
        list(threads.map(llm.complete, batches))
        requests = [request for batch in batches for request in batch]
        assert len(llm._cache.get(llm.name, requests)) == len(requests)
        assert llm._cache.get(f"m at localhost:{server.port}", requests) == {}


def test_a_value_that_is_too_large_is_no_refused_parameter():
    message = "max_tokens is too large: 5000. This model supports at most 4096 completion tokens"
    with serving(lambda *_: error(400, message, "invalid_value", param="max_tokens")) as server:
        with pytest.raises(IfqaError, match="too large: 5000"):
            model(server).complete(ask("a"))
        assert server.requests == 1


def test_a_parameter_of_the_settings_is_not_left_out():
    stops = pytest.raises(IfqaError, match="Unsupported parameter: 'top_k'")
    with serving(refusing("top_k", "Unsupported parameter: 'top_k'")) as server, stops:
        model(server, extra={"top_k": 20}).complete(ask("a"))


def test_thinking_is_switched_in_both_ways_until_the_server_refuses_one():
    with serving(
        refusing("chat_template_kwargs", "property 'chat_template_kwargs' is unsupported")
    ) as server:
        llm = model(server, thinking="off")
        assert texts(llm.complete(ask("a"))) == ["to a"]
    assert server.bodies[0]["chat_template_kwargs"] == {"enable_thinking": False}
    assert server.bodies[0]["reasoning_effort"] == server.bodies[1]["reasoning_effort"] == "none"


def test_a_server_that_takes_no_switch_of_thinking_stops_the_run():
    def plan(prompt, time, body):
        switches = [name for name in ("reasoning_effort", "chat_template_kwargs") if name in body]
        return error(400, f"unknown parameter {switches[0]}") if switches else Reply()

    with serving(plan) as server, pytest.raises(IfqaError, match="unknown parameter"):
        model(server, thinking="low").complete(ask("a"))


FURTHER = {"extra": {"top_k": 20, "chat_template_kwargs": {"a": 1}}, "thinking": "off"}


def test_further_parameters_are_sent():
    with serving() as server:
        model(server, **FURTHER).complete(ask("a"))
    assert server.bodies[0]["top_k"] == 20
    assert server.bodies[0]["chat_template_kwargs"] == {"enable_thinking": False, "a": 1}


def test_a_request_without_further_parameters_is_another_one():
    with serving() as server:
        model(server, **FURTHER).complete(ask("a"))
        assert model(server, thinking="off").estimate(ask("a")).calls == 1


@pytest.mark.parametrize("name", ["messages", "max_tokens", "stream"])
def test_a_parameter_that_ifqa_sets_is_refused_in_extra(name):
    from ifqa.llms.openai import OpenAI

    with pytest.raises(IfqaError, match=f"llm.extra: '{name}' is set by ifqa"):
        OpenAI.refuse_settings(OpenAI.Settings(model="m", extra={name: 1}))


def test_thoughts_have_room_beside_the_answer():
    with serving() as server:
        assert model(server, thinking="low").completion_tokens(32) == 32 + 1024
        assert (
            model(server, thinking="high", thinking_tokens=5, max_tokens=7).completion_tokens(32)
            == 12
        )
        assert model(server, thinking="off").completion_tokens(32) == 32


def test_openai_has_one_switch_of_thinking_only():
    form = RequestForm("m", True, thinking="low")
    assert form.without("reasoning_effort") is None
    assert "chat_template_kwargs" not in form.arguments(Request(messages=(("user", "a"),)))


def test_what_was_learnt_survives_a_completion_that_is_stored_beside_it():
    with serving() as server:
        llm = model(server)
        llm._cache.remember_server("m", {"window": 7})
        llm._cache.put("m", {ask("a")[0]: Completion("x")})
        assert llm._cache.server_facts("m") == {"window": 7}
        assert llm._cache.server_facts("another") == {}
