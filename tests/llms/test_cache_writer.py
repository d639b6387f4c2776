"""Concurrent runs and full disks: every prompt is paid for once, and every paid completion is
stored.
"""

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from openai_client import ask, count_stored, here, model, texts  # noqa: F401
from openai_server import Reply, serving

from ifqa.errors import IfqaError
from ifqa.llms import cache
from ifqa.llms.cache import CacheWriter, CompletionCache
from ifqa.records import Completion

pytestmark = pytest.mark.slow

ASK = """
import sys
from ifqa.errors import IfqaError
from ifqa.llms.openai import OpenAI
from ifqa.progress import show_messages
from ifqa.records import Request
show_messages()
url, store, count, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
settings = {"base_url": url, "store": store, "concurrency": concurrency, "window": 4096}
model = OpenAI(OpenAI.Settings(model="m", **settings))
try:
    done = model.complete([Request(messages=(("user", str(n)),), max_tokens=16) for n in range(count)])
except IfqaError as error:
    sys.exit(str(error))
assert [completion.text for completion in done] == [f"to {n}" for n in range(count)]
print(sum(completion.cached for completion in done))
"""
UNSHARE = ["unshare", "--map-root-user", "--mount", "sh", "-ec"]
HIDDEN = UNSHARE if shutil.which("unshare") else []


def start_run(server, count, concurrency=8):
    command = [sys.executable, "-c", ASK, server.url, "completions", str(count), str(concurrency)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_processes_with_the_same_prompts_send_each_once():
    count = 200
    with serving(latency=0.05) as server:
        processes = [start_run(server, count) for _ in range(2)]
        ends = [(*process.communicate(timeout=60), process.returncode) for process in processes]
        assert [code for *_, code in ends] == [0, 0], ends
        assert server.asked == {str(n): 1 for n in range(count)}
    assert sum(int(out) for out, *_ in ends) == count
    assert [path.name for path in Path("completions").iterdir()] == ["completions.sqlite"]
    with closing(sqlite3.connect("completions/completions.sqlite")) as connection:
        assert connection.execute("SELECT * FROM claims").fetchall() == []


def test_a_waiting_process_takes_over_from_a_killed_process():
    with serving(
        lambda prompt, time, body: Reply(text=f"to {prompt}", latency=30 if time == 1 else 0.01)
    ) as server:
        first = start_run(server, count=4)
        while server.requests < 4:
            time.sleep(0.01)
        second = start_run(server, count=4)
        assert any("waiting for its answers" in line for line in second.stderr)
        assert server.requests == 4
        first.send_signal(signal.SIGKILL)
        assert second.wait(timeout=20) == 0
        assert server.asked == {str(n): 2 for n in range(4)}
        first.communicate()
        second.communicate()


def test_threads_send_each_prompt_once():
    prompts = ["slow", *map(str, range(20))]
    with serving(
        lambda prompt, *_: Reply(text=f"to {prompt}", latency=0.3 * (prompt == "slow"))
    ) as server:
        models = [model(server, concurrency=2) for _ in range(4)]
        with ThreadPoolExecutor(4) as threads:
            for done in threads.map(lambda llm: llm.complete(ask(*prompts)), models):
                assert texts(done) == [f"to {prompt}" for prompt in prompts]
        assert server.asked == dict.fromkeys(prompts, 1)
    assert [sum(getattr(llm.spent, kind) for llm in models) for kind in ("calls", "cached")] == [
        21,
        3 * 21,
    ]


def fill_disk(code, free, monkeypatch):
    """A disk with space for `free` completions beside the reserve.

    Each later one needs space from the reserve.
    """
    store = cache.store_rows
    give = CacheWriter._shrink_reserve
    space = [free]

    def store_rows(connection, rows):
        if space[0] < len(rows):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = code
            raise error
        store(connection, rows)
        space[0] -= len(rows)

    def give_(self, size):
        space[0] += (freed := give(self, size)) and free > 0
        return freed

    monkeypatch.setattr(cache, "store_rows", store_rows)
    monkeypatch.setattr(CacheWriter, "_shrink_reserve", give_)
    return space


def fill_up(server):
    """Ask for more than the disk holds."""
    message = (
        r"No space left.*received answers are stored; free some space or fix the cause, and run"
    )
    with pytest.raises(IfqaError, match=message) as caught:
        model(server, concurrency=3).complete(ask(*map(str, range(40))))
    assert "\n" not in str(caught.value)


def test_requests_stop_on_a_full_disk(monkeypatch):
    fill_disk(sqlite3.SQLITE_FULL, 6, monkeypatch)
    with serving(latency=0.02) as server:
        fill_up(server)
        assert 7 <= server.requests <= 12


def test_received_answers_are_stored_in_the_reserve(monkeypatch):
    space = fill_disk(sqlite3.SQLITE_FULL, 6, monkeypatch)
    with serving(latency=0.02) as server:
        fill_up(server)
        assert count_stored() == server.requests
        space[0] = 100
        assert texts(model(server).complete(ask(*map(str, range(40))))) == [
            f"to {n}" for n in range(40)
        ]
        assert set(server.asked.values()) == {1}


def test_requests_stop_on_a_failing_disk(monkeypatch):
    fill_disk(sqlite3.SQLITE_IOERR_WRITE, 0, monkeypatch)
    with serving(latency=0.02) as server:
        with pytest.raises(
            IfqaError,
            match=r"disk I/O error.*an answer is lost; free some space or fix the cause, and run",
        ):
            model(server, concurrency=3).complete(ask(*map(str, range(40))))
        assert server.requests <= 6


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_nothing_is_asked_on_a_disk_without_room_for_the_reserve(monkeypatch, number):
    def fsync(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with serving() as server:
        with pytest.raises(
            IfqaError, match=r"cannot write completions into completions .* nothing was"
        ):
            model(server).complete(ask(*map(str, range(40))))
        assert server.requests == 0


LONG_REQUESTS = ask(*(f"{n} " * n for n in range(1, 200)), max_tokens=1000)


def test_the_reserve_takes_real_blocks(tmp_path):
    with CacheWriter(CompletionCache(tmp_path), "m", LONG_REQUESTS, 4) as writer:
        stat = os.fstat(writer._ballast.fileno())
        assert stat.st_blocks * 512 >= stat.st_size > 4 * 32_000
        # The file has no name, so nothing is left of it however the process ends
        assert stat.st_nlink == 0


def test_the_files_grow_by_less_than_was_reserved(tmp_path, monkeypatch):
    sizes = [0]
    store_rows = cache.store_rows

    def measure(connection, rows):
        store_rows(connection, rows)
        sizes.append((tmp_path / "completions.sqlite-journal").stat().st_size)

    monkeypatch.setattr(cache, "store_rows", measure)
    with CacheWriter(CompletionCache(tmp_path), "m", LONG_REQUESTS, 4) as writer:
        file = tmp_path / "completions.sqlite"
        for request in LONG_REQUESTS:
            before = file.stat().st_size
            assert writer.store(request, Completion("\N{PILE OF POO}" * 2000)) is None
            assert 0 < sizes[-1] + file.stat().st_size - before <= cache._max_bytes("m", request)


def test_an_answer_waits_for_a_program_that_reads_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cache, "BUSY", 0.1)
    store = CompletionCache(tmp_path)
    [request] = ask("a")
    with CacheWriter(store, "m", [request], 1) as writer, closing(store._connect("ro")) as other:
        rows = other.execute("SELECT 1 FROM sqlite_schema UNION ALL SELECT 2")
        next(rows)
        threading.Timer(0.4, rows.close).start()
        assert writer.store(request, Completion("a")) is None
    assert "another program is using it; an answer waits to be stored" in capsys.readouterr().err


CLAIM = """
import os, sys
from ifqa.llms.cache import CacheWriter, CompletionCache
from ifqa.records import Request
requests = [Request(messages=(("user", "a"),), max_tokens=16)]
with CacheWriter(CompletionCache(sys.argv[1]), "m", requests, 1) as writer:
    assert writer.claim(requests, 1) == (requests, {})
    os._exit(0)
"""


def test_claims_of_a_dead_process_lapse(tmp_path):
    requests = ask("a", "b")
    subprocess.run([sys.executable, "-c", CLAIM, str(tmp_path)], check=True)
    with CacheWriter(CompletionCache(tmp_path), "m", requests, 1) as writer:
        assert writer.claim(requests, 1) == (requests[:1], {})
    assert [path.name for path in tmp_path.iterdir()] == ["completions.sqlite"]


def test_a_claim_holds_until_it_is_answered(tmp_path):
    requests = ask("a", "b")
    store = CompletionCache(tmp_path)
    with (
        CacheWriter(store, "m", requests, 1) as first,
        CacheWriter(store, "m", requests, 1) as second,
    ):
        assert first.claim(requests, 1) == (requests[:1], {})
        assert second.claim(requests, 9) == (requests[1:], {})
        assert first.claim(requests, 9) == ([], {})
        store.put("m", {requests[0]: Completion("a")})
        assert second.claim(requests[:1], 9) == ([], {requests[0]: Completion("a", cached=True)})
    assert [path.name for path in tmp_path.iterdir()] == ["completions.sqlite"]


def test_a_failure_releases_its_claim():
    with serving(lambda *_: Reply(500, {"error": {"message": "no"}})) as server:
        for _ in range(2):
            assert model(server, retries=0).complete(ask("a"))[0].error
        assert server.asked == {"a": 2}


@pytest.mark.skipif(
    not (
        HIDDEN
        and subprocess.run([*HIDDEN, "mount -t tmpfs none /mnt"], capture_output=True).returncode
        == 0
    ),
    reason="no file system can be mounted here",
)
def test_a_real_full_disk_loses_nothing(tmp_path):
    """Of a disk with 640 kB, most is reserved for eight requests in flight.

    Some dozen completions fill the rest.
    """
    Path("completions").mkdir()
    again = f'"{sys.executable}" -c "$0" "$1" completions 120 8'
    count = f'"{sys.executable}" -c "from openai_client import count_stored; print(count_stored())"'
    steps = (
        f"mount -t tmpfs -o size=640k none completions; {again} || echo $?; {count}; "
        f"mount -o remount,size=4m completions; {again}"
    )
    paths = os.pathsep.join(
        [str(Path(__file__).parents[1] / "stand_ins"), os.environ.get("PYTHONPATH", "")]
    )
    with serving(latency=0.02) as server:
        command = [*HIDDEN, steps, ASK, server.url]
        environment = {**os.environ, "PYTHONPATH": paths}
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert set(server.asked.values()) == {1}, run.stderr
    code, first, cached = map(int, run.stdout.split())
    assert code == 1
    assert 16 <= first == cached < 100
    assert (
        "No space left on device): requests have stopped, received answers are stored; "
        "free some space"
    ) in run.stderr
