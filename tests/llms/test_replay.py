"""Recorded completions come back as they were, and nothing else does."""

import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.errors import IfqaError
from ifqa.llms.cache import CompletionCache, record_of
from ifqa.llms.replay import Replay
from ifqa.plugins import load
from ifqa.records import Completion, Estimate, Request, Spent
from ifqa.settings import check_settings

CHAT = Request(messages=(("system", "Be brief."), ("user", "If Wick had no harbour?")), stop=("\n",), max_tokens=9)
TEXT = Request(text="If Wick had no harbour,", temperature=0.7, sample=2)
SAID = Completion("Lybster, – é", 12, 3, "stop")


def recorded(path, model, completions):
    path.write_text("".join(record_of(model, *both) + "\n" for both in completions.items()))
    return path


def written(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_completions_are_replayed(tmp_path):
    completions = {CHAT: SAID, TEXT: Completion("they would\nland", 5, 4, "length")}
    path = recorded(tmp_path / "two.jsonl", "tiny@1234", completions)
    model, heard = Replay(path=str(path)), []
    found = model.complete([TEXT, CHAT, CHAT], heard.append)
    assert [one.text for one in found] == ["they would\nland", SAID.text, SAID.text]
    assert found[1] == Completion("Lybster, – é", 12, 3, "stop", cached=True)
    assert (model.name, model.chat, sum(heard)) == ("tiny@1234", True, 3)
    assert model.spent == Spent(cached=3, cost=0.0)
    assert model.estimate([CHAT, TEXT, CHAT]) == Estimate(0, 0, 0, 0.0)


def test_a_request_that_was_not_recorded_gets_an_error(tmp_path):
    path = written(tmp_path / "a.jsonl", {"request": {"text": "Wick"}, "completion": {"text": "harbour"}})
    model = Replay(path=str(path))
    found = model.complete([Request(text="Wick"), Request(text="Wick", temperature=0.5), Request(text="Wick ")])
    assert [one.error for one in found] == ["", "not recorded in a.jsonl", "not recorded in a.jsonl"]
    assert found[0].text == "harbour"
    assert (model.name, model.chat) == ("replay", False)
    assert model.spent.cached == 1
    assert model.complete([]) == []


def test_the_records_of_a_cache_are_a_recording(tmp_path):
    cache = CompletionCache(tmp_path / "completions")
    cache.put("gpt-4.1", {CHAT: SAID, TEXT: SAID})
    with closing(sqlite3.connect(cache.path)) as connection:
        records = [json.loads(record) for (record,) in connection.execute("SELECT record FROM completions")]
    path = written(tmp_path / "all.jsonl", *records)
    assert [one.text for one in Replay(path=str(path)).complete([CHAT, TEXT])] == [SAID.text] * 2


texts = st.text(st.characters(), min_size=1, max_size=20)  # with lone surrogates
requests = st.builds(
    Request, messages=st.lists(st.tuples(st.sampled_from(["system", "user"]), texts), min_size=1, max_size=3).map(tuple),
    max_tokens=st.integers(1, 500), temperature=st.floats(0, 2), stop=st.lists(texts, max_size=2).map(tuple),
    sample=st.integers(0, 9),
) | st.builds(Request, text=texts)  # fmt: skip


@given(st.dictionaries(requests, st.builds(Completion, texts, st.integers(0, 99), st.integers(0, 99)), max_size=5))
def test_any_recording_is_replayed_as_it_was(tmp_path_factory, kept):
    folder = tmp_path_factory.mktemp("recording")
    found = Replay(path=str(recorded(folder / "a.jsonl", "m", kept))).complete(list(kept))
    assert [(one.text, one.prompt_tokens, one.completion_tokens, one.error) for one in found] == [
        (one.text, one.prompt_tokens, one.completion_tokens, "") for one in kept.values()
    ]


def test_a_shipped_recording_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recordings").mkdir()
    path = written(tmp_path / "recordings" / "mine.jsonl", {"request": {"text": "a"}, "completion": {"text": "b"}})
    assert Replay(path="mine").complete([Request(text="a")])[0].text == "b"
    assert Replay.fingerprint(path="mine", window=3) == Replay.fingerprint(path=str(path))
    with pytest.raises(IfqaError, match="unknown recording 'mina'; did you mean 'mine'"):
        Replay(path="mina")
    with pytest.raises(IfqaError, match=r"recording not found: no/such\.jsonl does not exist"):
        Replay(path="no/such.jsonl")


def test_it_is_a_plugin_whose_settings_are_checked(tmp_path):
    assert load("llm", "replay") is Replay
    check_settings("setting of llm 'replay'", Replay.__init__, {"path": "x", "window": 2048})
    path = str(written(tmp_path / "a.jsonl"))
    assert Replay(path=path, window=2048).window == 2048
    assert Replay(path=path).count("Wick was dug from 1803 to 1811") >= 8
    with pytest.raises(IfqaError, match="'window': wanted a whole number from 0, found"):
        Replay(path=path, window=-1)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"completion": {}}, "a.jsonl:2: key 'request' is missing"),
        ({"request": {"text": "b"}}, "a.jsonl:2: key 'completion' is missing"),
        ({"request": {"text": "b", "max_token": 3}, "completion": {}}, "a.jsonl:2: request: unknown key 'max_token'"),
        ({"request": {"text": "b"}, "completion": {"error": "x"}}, "a.jsonl:2: completion: unknown key 'error'"),
        ({"request": {"text": "b", "max_tokens": "3"}, "completion": {}}, "a.jsonl:2: request: key 'max_tokens': wanted"),
        ({"request": {"text": "b", "sample": True}, "completion": {}}, "a.jsonl:2: request: key 'sample': wanted"),
        ({"request": {"text": "b", "max_tokens": 0}, "completion": {}}, "a.jsonl:2: max_tokens is 0"),
        ({"request": {}, "completion": {}}, "a.jsonl:2: a request has either messages or a text"),
        ({"request": {"messages": [["user"]]}, "completion": {}}, "a.jsonl:2: request: key 'messages': wanted a list of messages"),
        ({"request": {"messages": [{"role": "user"}]}, "completion": {}}, "a.jsonl:2: request: key 'messages': wanted a list of messages"),
        ({"request": {"text": "b", "stop": [1]}, "completion": {}}, "a.jsonl:2: request: key 'stop': wanted a list of texts"),
        ({"request": {"text": "a"}, "completion": {"text": "other"}}, "a.jsonl:2: the same request has another"),
        ({"version": 9, "request": {"text": "b"}, "completion": {}}, "a.jsonl:2: a recording of version 9"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_refused_with_its_number(tmp_path, line, said):
    path = written(tmp_path / "a.jsonl", {"request": {"text": "a"}, "completion": {"text": "b"}}, line)
    with pytest.raises(IfqaError, match=said):
        Replay(path=str(path))
