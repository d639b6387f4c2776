"""Completions come back as they were stored."""

import json
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from ifqa.errors import IfqaError
from ifqa.llms.cache import LONGEST_TEXT, CompletionCache, cache_key, format_record
from ifqa.records import Completion, Request

CHAT = Request(messages=(("system", "Be brief."), ("user", "If it rained?")))
DONE = Completion("Wet — nass.", 12, 3, "stop")


def get(cache, request=CHAT, model="m"):
    return cache.get(model, [request]).get(request)


def execute(cache, statement, *values):
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def test_reading_makes_no_file(tmp_path):
    folder = tmp_path / "completions"
    cache = CompletionCache(folder)
    assert get(cache) is None
    assert not cache.has_completions()
    assert not folder.exists()


def test_a_stored_completion_comes_back(tmp_path):
    folder = tmp_path / "completions"
    cache = CompletionCache(folder)
    folder.mkdir()
    cache.path.touch()  # as if another process were about to fill it
    assert get(cache) is None
    cache.put("m", {CHAT: DONE})
    assert get(cache) == get(CompletionCache(folder)) == replace(DONE, cached=True)
    assert CompletionCache(folder).has_completions()
    assert [path.name for path in folder.iterdir()] == ["completions.sqlite"]


def test_a_stored_answer_that_is_too_long_is_cut(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: Completion("x" * 9_000_000, 12, 3, "stop")})
    assert get(cache) == Completion("x" * LONGEST_TEXT, 12, 3, "length", cached=True)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_the_owner_can_read_the_files(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    with closing(cache.open()) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO claims VALUES ('a', 'b')")
        modes = {path.suffix: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {".sqlite": 0o600, ".sqlite-journal": 0o600}


def test_threads_that_create_the_file_at_once_wait_for_each_other(tmp_path):
    together = threading.Barrier(4)

    def open_cache(folder):
        together.wait(30)
        CompletionCache(folder).open().close()

    with ThreadPoolExecutor(4) as threads:  # each opens the file for itself, as processes do
        for folder in (tmp_path / str(number) for number in range(100)):
            list(threads.map(open_cache, [folder] * 4))


@pytest.fixture
def row(tmp_path):
    """The key and the record of a stored completion."""
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    (stored,) = execute(cache, "SELECT key, record FROM completions")
    return stored


def test_a_row_has_the_key_of_every_version(row):
    key, _ = row
    assert key == cache_key("m", CHAT)
    assert key.startswith("88f518051eda")


def test_a_row_has_the_record_as_json(row):
    record = json.loads(row[1])
    assert record["request"]["messages"] == [["system", "Be brief."], ["user", "If it rained?"]]
    completion = {"text": DONE.text, "prompt_tokens": 12, "completion_tokens": 3, "finish": "stop"}
    assert record == {"version": 1, "request": record["request"], "completion": completion}


def test_any_difference_makes_another_key():
    changes = (
        {"sample": 1},
        {"temperature": 0.7},
        {"max_tokens": 10},
        {"stop": ("\n",)},
        {"messages": CHAT.messages[1:]},
    )
    others = [*(replace(CHAT, **change) for change in changes), Request(text="If it rained?")]
    assert (
        len({cache_key("n", CHAT), *(cache_key("m", request) for request in [CHAT, *others])}) == 8
    )
    assert cache_key("m", replace(CHAT, temperature=1)) == cache_key(
        "m", replace(CHAT, temperature=1.0)
    )


def test_a_failure_that_may_pass_is_never_stored(tmp_path):
    with pytest.raises(ValueError, match="nothing to store"):
        CompletionCache(tmp_path).put("m", {CHAT: Completion(error="HTTP 500")})
    assert not list(tmp_path.iterdir())


RECORDS = ["", '{"version": 1, "requ', "[]", '{"version": 9}', "null", b"\xff\xfe", "another's"]


@pytest.fixture(params=RECORDS)
def damaged(tmp_path, request):
    """A cache with a damaged record."""
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    record = request.param
    if record == "another's":
        record = format_record("m", replace(CHAT, sample=1), DONE)
    execute(cache, "UPDATE completions SET record = ?", record)
    return cache


def test_a_damaged_record_is_ignored(damaged, capsys):
    assert get(damaged) is None
    assert "requested again" in capsys.readouterr().err


def test_a_damaged_record_is_replaced(damaged):
    assert get(damaged) is None
    damaged.put("m", {CHAT: DONE})
    assert get(damaged)


def test_a_damaged_or_later_file_is_named_in_one_line_without_a_change(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.put("m", {replace(CHAT, sample=n): DONE for n in range(50)})
    whole = cache.path.read_bytes()
    torn = whole[:4096] + b"\xa5" * (len(whole) - 4096)
    execute(cache, "PRAGMA user_version = 9")
    later = cache.path.read_bytes()
    damaged = r"completions\.sqlite is damaged .*: nothing was .*move it away"
    version = "has version 9; this ifqa reads version 1"
    for content, message in (
        (later, version),
        (b"no completions " * 400, damaged),
        (torn, damaged),
    ):
        cache.path.write_bytes(content)
        for use in (
            lambda: get(cache),
            lambda: cache.put("m", {CHAT: DONE}),
            cache.has_completions,
        ):
            with pytest.raises(IfqaError, match=message) as caught:
                use()
            assert "\n" not in str(caught.value)
        assert cache.path.read_bytes() == content
