"""Log probabilities and JSON schemas at servers, which may refuse either."""

import json

import pytest
from openai_client import ask, count_stored, here, model, texts  # noqa: F401 - a fixture
from openai_server import Reply, error, serving

from ifqa.errors import SchemaRefused
from ifqa.llms.response_parsing import StreamedAnswer
from ifqa.records import Completion, Request

SCHEMA = json.dumps({"type": "object", "properties": {}})


def with_logprobs(prompt, time, body):
    """A completion in two tokens, with log probabilities if the request wants them."""
    content = [{"token": "by ", "logprob": -0.5}, {"token": "rail", "logprob": -1.5}]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "by rail"},
        "finish_reason": "stop",
    }
    if body.get("logprobs"):
        choice["logprobs"] = {"content": content}
    return Reply(body={"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})


def refusing(parameter):
    """A plan that refuses a parameter, and answers without it."""

    def plan(prompt, time, body):
        if parameter in body:
            return error(400, f"Unsupported parameter: '{parameter}' is not supported.")
        return Reply(text="by rail")

    return plan


def test_log_probabilities_come_with_the_completion():
    with serving(with_logprobs) as server:
        (done,) = model(server).complete(ask("a", logprobs=True))
    assert done.logprobs == ((3, -0.5), (7, -1.5))


def test_log_probabilities_are_asked_for_only_where_they_are_wanted():
    with serving(with_logprobs) as server:
        (done,) = model(server).complete(ask("a"))
    assert "logprobs" not in server.bodies[0]
    assert done.logprobs == ()


def test_the_older_api_is_asked_for_a_number_of_alternatives():
    with serving() as server:
        model(server, form="completion").complete([Request(text="go on", logprobs=True)])
    assert server.bodies[0]["logprobs"] == 1


def test_log_probabilities_are_stored():
    with serving(with_logprobs) as server:
        model(server).complete(ask("a", logprobs=True))
        (stored,) = model(server).complete(ask("a", logprobs=True))
    assert server.requests == 1
    assert stored.logprobs == ((3, -0.5), (7, -1.5))


def test_a_completion_that_was_stored_without_them_is_not_paid_again():
    with serving(with_logprobs) as server:
        model(server).complete(ask("a"))
        (stored,) = model(server).complete(ask("a", logprobs=True))
    assert server.requests == 1
    assert stored.logprobs == ()


def test_a_server_that_refuses_them_is_asked_without():
    with serving(refusing("logprobs")) as server:
        done = model(server, concurrency=1).complete(ask("a", "b", logprobs=True))
        again = model(server).complete(ask("c", logprobs=True))
    assert texts([*done, *again]) == ["by rail"] * 3
    assert sum("logprobs" in body for body in server.bodies) == 1


def test_log_probabilities_are_not_part_of_the_form_of_a_reading():
    with serving(with_logprobs) as server:
        llm = model(server)
        before = llm.sent
        llm.complete(ask("a", logprobs=True))
    assert llm.sent == before


@pytest.fixture
def schema_refused():
    """A model whose server refuses a schema, after it was asked with one."""
    with serving(refusing("response_format")) as server:
        llm = model(server)
        with pytest.raises(SchemaRefused, match="takes no JSON schema"):
            llm.complete(ask("a", schema=SCHEMA))
        yield llm, server


def test_a_refused_schema_leaves_nothing_stored(schema_refused):
    assert count_stored() == 0


def test_a_refused_schema_is_remembered(schema_refused):
    llm, server = schema_refused
    assert not llm.takes_schema
    assert not model(server).takes_schema


def test_readings_with_or_without_a_schema_have_different_forms(schema_refused):
    llm, _ = schema_refused
    assert llm.sent.endswith("no JSON schema")


def test_a_streamed_answer_has_its_log_probabilities():
    answer = StreamedAnswer(True, lambda text: None)
    for word, logprob in (("by ", -0.5), ("rail", -1.5)):
        choice = {
            "delta": {"content": word},
            "logprobs": {"content": [{"token": word, "logprob": logprob}]},
        }
        answer.add({"choices": [choice]})
    answer.add({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    reply = answer.reply((), "")
    assert isinstance(reply, Completion)
    assert reply.logprobs == ((3, -0.5), (7, -1.5))
