"""Completions come back as they were stored, from this version's file and from an earlier version's files."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_client import count_stored

from ifqa.errors import IfqaError
from ifqa.llms import cache as module
from ifqa.llms.cache import LONGEST_TEXT, CompletionCache, key_of, record_of
from ifqa.records import Completion, Request

CHAT = Request(messages=(("system", "Be brief."), ("user", "If it rained?")))
DONE = Completion("Wet — nass.", 12, 3, "stop")


def get(cache, request=CHAT, model="m"):
    return cache.get(model, [request]).get(request)


def execute(cache, statement, *values):
    with closing(sqlite3.connect(cache.path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


def earlier(folder, request=CHAT, completion=DONE, model="m"):
    """The file of a completion as earlier versions wrote it."""
    values = {name: value for name, value in asdict(completion).items() if name not in ("error", "cached")}
    record = json.loads(record_of(model, request, completion))
    assert record == {"version": 1, "request": record["request"], "completion": values}
    key = key_of(model, request)
    path = folder / key[:2] / f"{key}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def test_a_stored_completion_comes_back_marked_as_cached(tmp_path):
    cache = CompletionCache(tmp_path)
    assert get(cache) is None
    cache.put("m", {CHAT: DONE})
    assert get(cache) == get(CompletionCache(tmp_path)) == replace(DONE, cached=True)


def test_reading_makes_no_file_and_leaves_none(tmp_path):
    folder = tmp_path / "completions"
    assert get(CompletionCache(folder)) is None
    assert not CompletionCache(folder).has_completions()
    assert not folder.exists()
    CompletionCache(folder).put("m", {CHAT: DONE})
    assert get(CompletionCache(folder))
    assert CompletionCache(folder).has_completions()
    assert [path.name for path in folder.iterdir()] == ["completions.sqlite"]


def test_a_stored_answer_that_is_too_long_is_named_and_cut(tmp_path, capsys):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: Completion("x" * 9_000_000, 12, 3, "stop")})
    assert get(cache) == Completion("x" * LONGEST_TEXT, 12, 3, "length", cached=True)
    told = capsys.readouterr().err
    assert f"{cache.path}: {key_of('m', CHAT)}: an answer of 9,000,000 characters" in " ".join(told.split())
    assert told.count("\n") == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_only_the_owner_can_read_the_files(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    with closing(cache.open()) as connection:
        connection.execute("INSERT INTO claims VALUES ('a', 'b')")
        modes = {path.suffix: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {".sqlite": 0o600, ".sqlite-wal": 0o600, ".sqlite-shm": 0o600}


def test_a_row_has_the_key_and_the_request_as_json(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    ((key, record),) = execute(cache, "SELECT key, record FROM completions")
    assert key == key_of("m", CHAT)
    assert json.loads(record)["request"]["messages"] == [["system", "Be brief."], ["user", "If it rained?"]]
    assert json.loads(record)["completion"] == {
        "text": DONE.text, "prompt_tokens": 12, "completion_tokens": 3, "finish": "stop"
    }  # fmt: skip


def test_a_key_is_the_same_in_every_version():
    assert key_of("m", CHAT)[:12] == "88f518051eda"


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
    assert key_of("m", other) != key_of("m", CHAT)
    assert key_of("n", CHAT) != key_of("m", CHAT)


def test_temperatures_1_and_1_0_are_the_same():
    assert key_of("m", replace(CHAT, temperature=1)) == key_of("m", replace(CHAT, temperature=1.0))


@given(st.text(st.characters()), st.text(st.characters(), min_size=1))
def test_any_text_comes_back_as_it_was(tmp_path_factory, answer, prompt):
    cache = CompletionCache(tmp_path_factory.mktemp("cache"))
    request = Request(text=prompt)
    cache.put("m", {request: Completion(answer)})
    assert get(cache, request) == Completion(answer, cached=True)


def test_a_failure_is_never_stored(tmp_path):
    with pytest.raises(ValueError, match="nothing to keep"):
        CompletionCache(tmp_path).put("m", {CHAT: Completion(error="HTTP 500")})
    assert not list(tmp_path.iterdir())


DAMAGED = ["", '{"version": 1, "requ', "[]", '{"version": 9}', "null"]


@pytest.mark.parametrize("record", [*DAMAGED, b"\xff\xfe"])
def test_a_damaged_record_is_ignored_and_replaced(tmp_path, capsys, record):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    execute(cache, "UPDATE completions SET record = ?", record)
    assert get(cache) is None
    assert "asked for again" in capsys.readouterr().err
    cache.put("m", {CHAT: DONE})
    assert get(cache)


def test_a_completion_of_another_request_is_not_taken(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    other = replace(CHAT, sample=1)
    execute(cache, "UPDATE completions SET key = ?", key_of("m", other))
    assert get(cache, other) is None


def test_files_of_earlier_versions_are_read_and_left_as_they_are(tmp_path):
    cache, other = CompletionCache(tmp_path), replace(CHAT, sample=1)
    path = earlier(tmp_path)
    before = path.read_bytes()
    assert cache.has_completions()
    assert get(cache) == replace(DONE, cached=True)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.parent.name]
    cache.put("m", {other: Completion("new")})
    assert [one.text for one in cache.get("m", [CHAT, other]).values()] == [DONE.text, "new"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("words", DAMAGED)
def test_a_damaged_file_of_an_earlier_version_is_ignored(tmp_path, capsys, words):
    path = earlier(tmp_path)
    path.write_text(words)
    assert get(CompletionCache(tmp_path)) is None
    assert f"{path}: not a completion of its request; it will be asked for again" in capsys.readouterr().err
    CompletionCache(tmp_path).put("m", {CHAT: DONE})
    assert get(CompletionCache(tmp_path))


def broken(path, kind):
    if kind == "no database":
        path.write_bytes(b"these are no completions " * 400)
    else:
        words = bytearray(path.read_bytes())
        words[4096:] = b"\xa5" * (len(words) - 4096)
        path.write_bytes(words)


@pytest.mark.parametrize("kind", ["no database", "torn pages"])
def test_a_damaged_file_is_named_in_one_line_and_left_as_it_is(tmp_path, kind):
    cache = CompletionCache(tmp_path)
    cache.put("m", {replace(CHAT, sample=n): DONE for n in range(50)})
    broken(cache.path, kind)
    before = cache.path.read_bytes()
    for use in (lambda: get(cache), lambda: cache.put("m", {CHAT: DONE}), cache.has_completions):
        with pytest.raises(
            IfqaError, match=r"completions\.sqlite is damaged \(.*\): nothing was .*move it away"
        ) as caught:
            use()
        assert len(str(caught.value).splitlines()) == 1
    assert cache.path.read_bytes() == before


def test_a_file_of_a_later_version_is_refused(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    execute(cache, "PRAGMA user_version = 9")
    for use in (lambda: get(cache), lambda: cache.put("m", {CHAT: DONE})):
        with pytest.raises(IfqaError, match="is of version 9; this ifqa reads 1"):
            use()


def test_a_file_that_was_only_begun_is_filled(tmp_path):
    cache = CompletionCache(tmp_path)
    cache.path.touch()
    assert get(cache) is None
    cache.put("m", {CHAT: DONE})
    assert get(cache)


def test_on_a_network_file_system_there_is_no_log_in_shared_memory(tmp_path, monkeypatch):
    cache = CompletionCache(tmp_path)
    cache.put("m", {CHAT: DONE})
    assert execute(cache, "PRAGMA journal_mode") == [("wal",)]
    monkeypatch.setattr(module, "is_remote", lambda folder: True)
    cache.put("m", {replace(CHAT, sample=1): DONE})
    assert execute(cache, "PRAGMA journal_mode") == [("delete",)]
    assert len(cache.get("m", [CHAT, replace(CHAT, sample=1)])) == 2


MOUNTS = """22 1 0:21 / / rw - ext4 /dev/root rw
30 22 0:40 / /net\\040work rw,relatime shared:1 - nfs4 host:/x rw
31 30 0:41 / /net\\040work/local rw - xfs /dev/b rw
"""


@pytest.mark.parametrize(
    ("folder", "remote"), [("/tmp", False), ("/net work/a", True), ("/net work/local/a", False), ("/network", False)]
)
def test_what_linux_mounts_from_other_machines_is_remote(monkeypatch, folder, remote):
    monkeypatch.setattr(module.Path, "read_text", lambda path: MOUNTS)
    assert module.is_remote(module.Path(folder)) is remote


def test_a_table_that_does_not_name_the_folders_mount_tells_nothing(monkeypatch):
    monkeypatch.setattr(module.Path, "read_text", lambda path: "23 22 0:5 / /proc rw - proc proc rw\n")
    assert not module.is_remote(module.Path("/srv/work"))


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
from ifqa.llms.cache import CompletionCache
from ifqa.records import Completion, Request
cache = CompletionCache(sys.argv[1])
def work(n):
    request = Request(text=f"prompt {n % 50}")
    cache.put("m", {request: Completion(f"answer {n % 50} " * 200)})
    assert cache.get("m", [request])[request].text == f"answer {n % 50} " * 200
with ThreadPoolExecutor(8) as threads:
    list(threads.map(work, range(150)))
"""


def test_processes_and_threads_write_the_same_completions_safely(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stderr=subprocess.PIPE) for _ in range(2)
    ]
    for writer in writers:
        _, err = writer.communicate()
        assert writer.returncode == 0, err.decode()
        assert err == b""
    requests = [Request(text=f"prompt {n}") for n in range(50)]
    done = CompletionCache(tmp_path).get("m", requests)
    assert [done[request].text for request in requests] == [f"answer {n} " * 200 for n in range(50)]
    assert count_stored(tmp_path) == 50
    assert [path.name for path in tmp_path.iterdir()] == ["completions.sqlite"]
