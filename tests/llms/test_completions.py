import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ifqa.llms.completions import LONGEST_TEXT, Store
from ifqa.records import Completion, Request

CHAT = Request(messages=(("system", "Be brief."), ("user", "If it rained?")))
DONE = Completion("Wet — nass.", 12, 3, "stop")


def test_a_stored_completion_comes_back_marked_as_cached(tmp_path):
    store = Store(tmp_path)
    assert store.get("m", CHAT) is None
    store.put("m", CHAT, DONE)
    assert store.get("m", CHAT) == replace(DONE, cached=True)
    assert Store(tmp_path).get("m", CHAT) == replace(DONE, cached=True)


def test_a_stored_answer_that_is_too_long_is_named_and_cut(tmp_path, capsys):
    store = Store(tmp_path)
    store.put("m", CHAT, Completion("x" * 9_000_000, 12, 3, "stop"))
    assert store.get("m", CHAT) == Completion("x" * LONGEST_TEXT, 12, 3, "length", cached=True)
    told = capsys.readouterr().err
    assert f"{store.path('m', CHAT)}: an answer of 9,000,000 characters" in " ".join(told.split())
    assert told.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_the_owner_can_read_a_file(tmp_path):
    store = Store(tmp_path)
    store.put("m", CHAT, DONE)
    assert store.path("m", CHAT).stat().st_mode & 0o777 == 0o600


def test_a_file_is_named_by_its_key_and_is_plain_json(tmp_path):
    store = Store(tmp_path)
    store.put("m", CHAT, DONE)
    (path,) = tmp_path.rglob("*.json")
    assert path == store.path("m", CHAT)
    assert path.parent.name == path.stem[:2]
    assert len(path.stem) == 64
    record = json.loads(path.read_text())
    assert record["request"]["messages"] == [["system", "Be brief."], ["user", "If it rained?"]]
    assert record["completion"] == {"text": DONE.text, "prompt_tokens": 12, "completion_tokens": 3, "finish": "stop"}


def test_a_key_is_the_same_in_every_version():
    assert Store().path("m", CHAT).stem[:12] == "88f518051eda"


@pytest.mark.parametrize(
    "other",
    [
        replace(CHAT, sample=1),
        replace(CHAT, temperature=0.7),
        replace(CHAT, max_tokens=10),
        replace(CHAT, stop=("\n",)),
        replace(CHAT, messages=CHAT.messages[1:]),
        Request(text="If it rained?"),
    ],
)
def test_any_difference_makes_another_key(other):
    assert Store().path("m", other) != Store().path("m", CHAT)
    assert Store().path("n", CHAT) != Store().path("m", CHAT)


def test_temperatures_1_and_1_0_are_the_same():
    assert Store().path("m", replace(CHAT, temperature=1)) == Store().path("m", replace(CHAT, temperature=1.0))


@given(st.text(st.characters()), st.text(st.characters(), min_size=1))
def test_any_text_comes_back_as_it_was(tmp_path_factory, answer, prompt):
    store = Store(tmp_path_factory.mktemp("store"))
    request = Request(text=prompt)
    store.put("m", request, Completion(answer))
    assert store.get("m", request) == Completion(answer, cached=True)


def test_a_failure_is_never_stored(tmp_path):
    with pytest.raises(ValueError, match="nothing to keep"):
        Store(tmp_path).put("m", CHAT, Completion(error="HTTP 500"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [b"", b'{"version": 1, "requ', b"[]", b"\xff\xfe", b'{"version": 9}', b"null"])
def test_a_damaged_or_foreign_file_is_ignored_and_replaced(tmp_path, capsys, words):
    store = Store(tmp_path)
    store.put("m", CHAT, DONE)
    store.path("m", CHAT).write_bytes(words)
    assert store.get("m", CHAT) is None
    assert "asked for again" in capsys.readouterr().err
    store.put("m", CHAT, DONE)
    assert store.get("m", CHAT)


def test_a_completion_of_another_request_is_not_taken(tmp_path):
    store = Store(tmp_path)
    store.put("m", CHAT, DONE)
    other = replace(CHAT, sample=1)
    store.path("m", other).parent.mkdir(exist_ok=True)
    store.path("m", CHAT).rename(store.path("m", other))
    assert store.get("m", other) is None


def test_a_request_is_messages_or_text():
    with pytest.raises(ValueError, match="either messages or a text"):
        Request()
    with pytest.raises(ValueError, match="either messages or a text"):
        Request(messages=CHAT.messages, text="and")
    with pytest.raises(ValueError, match="room for one token"):
        Request(text="a", max_tokens=0)


WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from ifqa.llms.completions import Store
from ifqa.records import Completion, Request
store = Store(sys.argv[1])
def work(n):
    request = Request(text=f"prompt {n % 50}")
    store.put("m", request, Completion(f"answer {n % 50} " * 200))
    assert store.get("m", request).text == f"answer {n % 50} " * 200
with ThreadPoolExecutor(8) as threads:
    list(threads.map(work, range(300)))
"""


def test_processes_and_threads_write_the_same_completions_safely(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(2)
    ]
    for writer in writers:
        _, err = writer.communicate()
        assert writer.returncode == 0, err.decode()
        assert err == b""
    store = Store(tmp_path)
    assert [store.get("m", Request(text=f"prompt {n}")).text for n in range(50)] == [
        f"answer {n} " * 200 for n in range(50)
    ]
    assert sorted(path.suffix for path in tmp_path.rglob("*") if path.is_file()) == [".json"] * 50
