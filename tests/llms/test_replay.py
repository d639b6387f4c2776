"""Recorded completions are replayed unchanged, and other requests fail."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.llms.cache import format_record
from ifqa.llms.replay import Replay
from ifqa.records import Completion, Estimate, Request, TokenUsage

CHAT = Request(
    messages=(("system", "Be brief."), ("user", "If Wick had no harbour?")),
    stop=("\n",),
    max_tokens=9,
)
TEXT = Request(text="If Wick had no harbour,", temperature=0.7, sample=2)
ANSWER = Completion("Lybster, – é", 12, 3, "stop")


def record(path, model, completions):
    return write(path, *(json.loads(format_record(model, *both)) for both in completions.items()))


def write(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_completions_are_replayed(tmp_path):
    completions = {CHAT: ANSWER, TEXT: Completion("they would\nland", 5, 4, "length")}
    model = Replay(
        Replay.Settings(path=str(record(tmp_path / "two.jsonl", "tiny@1234", completions)))
    )
    steps: list[float] = []
    replayed = model.complete([TEXT, CHAT, CHAT], steps.append)
    assert [completion.text for completion in replayed] == [
        "they would\nland",
        ANSWER.text,
        ANSWER.text,
    ]
    assert replayed[1] == replace(ANSWER, cached=True)
    assert (model.name, model.chat, sum(steps)) == ("tiny@1234", True, 3)
    assert model.spent == TokenUsage(cached=3, cost=0.0)
    assert model.estimate([CHAT, TEXT, CHAT]) == Estimate(0, 0, 0, 0.0)


def test_a_request_that_was_not_recorded_gets_an_error(tmp_path):
    path = write(
        tmp_path / "a.jsonl", {"request": {"text": "Wick"}, "completion": {"text": "harbour"}}
    )
    model = Replay(Replay.Settings(path=str(path), window=2048))
    completions = model.complete(
        [Request(text="Wick"), Request(text="Wick", temperature=0.5), Request(text="Wick ")]
    )
    missing = "not recorded in a.jsonl"
    assert [completion.error for completion in completions] == ["", missing, missing]
    assert (completions[0].text, model.name, model.chat, model.window) == (
        "harbour",
        "replay",
        False,
        2048,
    )
    assert model.spent.cached == 1
    assert model.complete([]) == []
    assert model.count("Wick was dug from 1803 to 1811") >= 8


texts = st.text(st.characters(), min_size=1, max_size=20)  # with lone surrogates
requests = st.builds(
    Request,
    messages=st.lists(
        st.tuples(st.sampled_from(["system", "user"]), texts), min_size=1, max_size=3
    ).map(tuple),
    max_tokens=st.integers(1, 500),
    temperature=st.floats(0, 2),
    stop=st.lists(texts, max_size=2).map(tuple),
    sample=st.integers(0, 9),
) | st.builds(Request, text=texts)


@given(
    st.dictionaries(
        requests, st.builds(Completion, texts, st.integers(0, 99), st.integers(0, 99)), max_size=5
    )
)
def test_any_recording_is_replayed_as_it_was(tmp_path_factory, recorded):
    folder = tmp_path_factory.mktemp("recording")
    completions = Replay(
        Replay.Settings(path=str(record(folder / "a.jsonl", "m", recorded)))
    ).complete(list(recorded))
    assert [replace(completion, cached=False) for completion in completions] == list(
        recorded.values()
    )


def test_a_shipped_recording_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    path = write(
        tmp_path / "recordings" / "mine.jsonl",
        {"request": {"text": "a"}, "completion": {"text": "b"}},
    )
    assert Replay(Replay.Settings(path="mine")).complete([Request(text="a")])[0].text == "b"
    fingerprint = Replay.fingerprint(Replay.Settings(path=str(path)), Path())
    assert Replay.fingerprint(Replay.Settings(path="mine", window=3), Path()) == fingerprint
    with pytest.raises(IfqaError, match="unknown recording 'mina'; did you mean 'mine'"):
        Replay(Replay.Settings(path="mina"))
    with pytest.raises(IfqaError, match=r"recording not found: no/such\.jsonl does not exist"):
        Replay(Replay.Settings(path="no/such.jsonl"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"completion": {}}, "a.jsonl:2: key 'request' is missing"),
        ({"request": {"text": "b"}}, "a.jsonl:2: key 'completion' is missing"),
        (
            {"request": {"text": "b", "max_token": 3}, "completion": {}},
            "a.jsonl:2: request: unknown key 'max_token'",
        ),
        (
            {"request": {"text": "b", "max_tokens": "3"}, "completion": {}},
            "a.jsonl:2: request: key 'max_tokens': wanted",
        ),
        (
            {"request": {"text": "b", "max_tokens": 0}, "completion": {}},
            "a.jsonl:2: max_tokens is 0",
        ),
        ({"request": {}, "completion": {}}, "a.jsonl:2: a request has either messages or a text"),
        ({"request": {"messages": [["user"]]}, "completion": {}}, "a.jsonl:2: not enough values"),
        (
            {"request": {"text": "a"}, "completion": {"text": "other"}},
            "a.jsonl:2: the same request has a different",
        ),
        (
            {"version": 9, "request": {"text": "b"}, "completion": {}},
            "a.jsonl:2: the recording has version 9",
        ),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(tmp_path, line, message):
    path = write(
        tmp_path / "a.jsonl", {"request": {"text": "a"}, "completion": {"text": "b"}}, line
    )
    with pytest.raises(IfqaError, match=message):
        Replay(Replay.Settings(path=str(path)))


def test_a_stored_failure_is_replayed_as_one(tmp_path):
    failure = Completion(error="the response has no text", permanent=True, prompt_tokens=12)
    model = Replay(Replay.Settings(path=str(record(tmp_path / "a.jsonl", "m", {CHAT: failure}))))
    assert model.complete([CHAT]) == [replace(failure, cached=True)]


def test_thoughts_are_replayed_apart_from_the_text(tmp_path):
    thought = replace(ANSWER, reasoning="It had none.")
    model = Replay(Replay.Settings(path=str(record(tmp_path / "a.jsonl", "m", {CHAT: thought}))))
    assert model.complete([CHAT]) == [replace(thought, cached=True)]
