"""A language model's quote, change and abstention in the JSON API and in the tools for
assistants.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import blocking_reader
import pytest
import quoted_answers as model
from mcp import Client
from openai_server import Reply
from openai_server import serving as language_model
from serving_system import HOSTILE, client, service, small

from ifqa.serve.mcp import make_tools
from ifqa.serve.schemas import AnswerForm

QUESTION = "If Ada Stone had not come, when would it have been finished?"
INVENTED = f"It was paid for by the king. {HOSTILE}"


def form(answer) -> dict[str, Any]:
    """An answer as JSON has it."""
    return json.loads(AnswerForm.of(answer, 0).model_dump_json())


def test_a_quote_has_its_outcome():
    told = {kind: form(make())["quote"] for kind, make in model.KINDS.items()}
    outcomes = {kind: quote and quote["outcome"] for kind, quote in told.items()}
    assert outcomes == {
        "exact": "exact",
        "other_passage": "other passage",
        "stitched": "stitched",
        "stitched_in_one_passage": "stitched",
        "missing": "missing",
        "empty": "missing",
        "found_afterwards": "missing",
        "not_said": None,
        "not_said_without_a_guess": None,
        "uncalibrated": "exact",
        "hostile": "missing",
    }


def test_a_quote_has_its_places_with_their_text():
    places = form(model.stitched())["quote"]["places"]
    assert [(place["passage_id"], place["text"]) for place in places] == [
        (model.MILL.id, "Its saw was driven by a wheel of oak"),
        (model.ENGINE.id, "An engine of six horses stood behind the mill"),
    ]


def test_each_part_of_a_stitched_quote_is_marked():
    marked = [passage["pieces"][1::2] for passage in form(model.stitched())["evidence"]]
    assert marked == [
        ["Its saw was driven by a wheel of oak"],
        ["An engine of six horses stood behind the mill"],
    ]


def test_a_missing_quote_has_no_place():
    answer = form(model.missing())
    assert answer["quote"]["places"] == []
    assert answer["quote"]["verdict"] == "not in these passages"
    assert answer["how"] is None


@pytest.mark.parametrize(
    ("kind", "origin"), [("exact", "quoted"), ("found_afterwards", "found afterwards")]
)
def test_a_sentence_has_its_origin(kind, origin):
    assert form(model.KINDS[kind]())["how"]["origin"] == origin


@pytest.mark.parametrize("kind", ["not_said", "not_said_without_a_guess"])
def test_a_model_that_says_that_it_does_not_know_abstains(kind):
    answer = form(model.KINDS[kind]())
    assert answer["outcome"] == "abstained"
    assert answer["abstention"] == model.NOT_SAID
    assert answer["error"] == ""


def test_an_answer_that_was_not_calibrated_says_so():
    answer = form(model.uncalibrated())
    assert answer["confidence"] is None
    assert answer["uncalibrated"] == model.UNCALIBRATED


@dataclass
class Script:
    """What the model replies; `text` may be set by a test."""

    text: str = ""


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The experiment of a model that is asked for quotes, and its replies."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-3f9c1e77a0b2")
    replies = Script()
    with language_model(lambda *_: Reply(text=replies.text)) as server:
        llm = {"name": "openai", "model": "m", "base_url": server.url, "window": 4096}
        reader = {"name": "llm", "prompt": "grounded", "passages": 2}
        yield replies, small(tmp_path, reader=reader, llm=llm)


def reply(quote: str, answer: str = "1849", number: int = 1) -> str:
    """A completion in the prompt's form."""
    return f"Quote: {quote}\nPassage: {number}\nChange: nothing\nAnswer: {answer}"


def asked(script, text: str, **headers) -> dict[str, Any]:
    """The server's answer if the model replies with a text."""
    replies, experiment = script
    replies.text = text
    with client(experiment) as web:
        response = web.post("/v1/ask", json={"question": QUESTION}, headers=headers)
    assert response.status_code == 200
    if headers:
        last = response.text.strip().split("\n\n")[-1]
        return json.loads(last.partition("data: ")[2])
    return response.json()["answers"][0]


def test_the_server_looks_a_quote_up(script):
    answer = asked(script, reply(blocking_reader.FACT))
    assert answer["quote"]["outcome"] == "exact"
    assert answer["change"] == ""
    assert "".join(answer["how"]["pieces"]).startswith(blocking_reader.FACT)


def test_the_last_event_of_a_stream_has_the_quote(script):
    answer = asked(script, reply(blocking_reader.FACT), accept="text/event-stream")
    assert answer["quote"]["outcome"] == "exact"


def test_the_server_finds_the_sentence_of_an_answer_without_a_quote(script):
    answer = asked(script, reply(INVENTED))
    assert answer["quote"]["outcome"] == "missing"
    assert answer["how"]["origin"] == "found afterwards"


def test_the_server_says_which_model_was_not_calibrated(script):
    answer = asked(script, reply(blocking_reader.FACT))
    assert answer["confidence"] is None
    assert answer["uncalibrated"].startswith("not calibrated for m")


def test_the_server_says_why_a_model_abstains(script):
    answer = asked(script, reply("", "not said: 1850"))
    assert answer["outcome"] == "abstained"
    assert answer["candidate"] == "1850"
    assert answer["abstention"] == model.NOT_SAID


def test_a_hostile_quote_is_text_in_json(script):
    replies, experiment = script
    replies.text = reply(HOSTILE)
    with client(experiment) as web:
        response = web.post("/v1/ask", json={"question": QUESTION})
    assert response.headers["content-type"] == "application/json"
    assert "\x1b" not in response.text  # it is escaped
    assert response.json()["answers"][0]["quote"]["text"].startswith("<script>")


def by_tool(script, text: str) -> tuple[str, dict[str, Any]]:
    """The instructions of the tools, and their answer if the model replies with a text."""
    replies, experiment = script
    replies.text = text

    async def scenario():
        with service(experiment) as opened:
            opened.open()
            try:
                tools = make_tools(opened)
                async with Client(tools) as user:
                    answer = await user.call_tool("ask", {"question": QUESTION})
            finally:
                await opened.close()
        assert not answer.is_error
        return tools.instructions or "", answer.structured_content

    return asyncio.run(scenario())


def test_an_assistant_is_told_that_a_quote_is_missing(script):
    instructions, answer = by_tool(script, reply(INVENTED))
    assert 'one that is "missing" is not in them' in instructions
    assert answer["quote"]["outcome"] == "missing"
    assert answer["quote"]["verdict"] == "not in these passages"


def test_an_assistant_is_told_why_a_model_abstains(script):
    _, answer = by_tool(script, reply("", "not said"))
    assert answer["abstention"] == model.NOT_SAID
