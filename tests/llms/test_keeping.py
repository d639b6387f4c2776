"""Concurrent runs and full disks: every prompt is paid for once, and every paid completion is stored."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from openai_client import ask, here, model, texts  # noqa: F401
from openai_server import Reply, serving

from ifqa.errors import IfqaError
from ifqa.llms.completions import Store
from ifqa.llms.keeping import Keeper
from ifqa.records import Completion

ASK = """
import sys
from ifqa.errors import IfqaError
from ifqa.llms.openai import OpenAI
from ifqa.records import Request
url, store, count, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
model = OpenAI(model="m", base_url=url, store=store, concurrency=concurrency, window=4096)
try:
    done = model.complete([Request(messages=(("user", str(n)),), max_tokens=16) for n in range(count)])
except IfqaError as error:
    sys.exit(str(error))
assert [one.text for one in done] == [f"to {n}" for n in range(count)]
print(sum(one.cached for one in done))
"""
HIDDEN = shutil.which("unshare") and ["unshare", "--map-root-user", "--mount", "sh", "-ec"]


def asking(server, count=16, concurrency=8):
    command = [sys.executable, "-c", ASK, server.url, "completions", str(count), str(concurrency)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kept():
    return len(list(Path("completions").glob("*/*.json")))


def test_processes_with_the_same_prompts_ask_each_once():
    count = 200
    with serving(latency=0.05) as server:
        several = [asking(server, count) for _ in range(2)]
        ends = [(*process.communicate(timeout=60), process.returncode) for process in several]
        assert [code for *_, code in ends] == [0, 0], ends
        assert server.asked == {str(n): 1 for n in range(count)}
    assert sum(int(out) for out, *_ in ends) == count
    assert [path.name for path in Path("completions").iterdir() if path.is_file()] == [".claims"]
    assert Path("completions/.claims").stat().st_size == 0


def test_a_waiting_process_takes_over_from_a_killed_process():
    with serving(lambda prompt, time, asked: Reply(text=f"to {prompt}", latency=30 if time == 1 else 0.01)) as server:
        first = asking(server, count=4)
        while server.requests < 4:
            time.sleep(0.01)
        second = asking(server, count=4)
        for line in second.stderr:
            if "waiting for its answers" in line:
                break
        assert server.requests == 4
        first.send_signal(signal.SIGKILL)
        assert second.wait(timeout=20) == 0
        assert server.asked == {str(n): 2 for n in range(4)}
        first.communicate()
        second.communicate()


def test_threads_ask_each_prompt_once_and_do_not_wait_for_others():
    sent = {}

    def plan(prompt, number, asked):
        sent[prompt] = time.monotonic()
        return Reply(text=f"to {prompt}", latency=1.0 if prompt == "slow" else 0.01)

    prompts = ["slow", *map(str, range(20))]
    with serving(plan) as server, ThreadPoolExecutor(4) as threads:
        several = [model(server, concurrency=2) for _ in range(4)]
        for done in threads.map(lambda one: one.complete(ask(*prompts)), several):
            assert texts(done) == [f"to {prompt}" for prompt in prompts]
        assert server.asked == dict.fromkeys(prompts, 1)
    assert max(sent.values()) < sent["slow"] + 0.9
    assert sum(one.spent.calls for one in several) == 21
    assert sum(one.spent.cached for one in several) == 3 * 21


def test_a_failure_releases_its_claim():
    with serving(lambda *asked: Reply(400, {"error": {"code": "content_filter", "message": "no"}})) as server:
        for _ in range(2):
            assert model(server).complete(ask("a"))[0].error
        assert server.asked == {"a": 2}


def test_on_a_full_disk_asking_stops_and_the_reserve_is_used(monkeypatch):
    """The disk has space for six completions beside the reserve; a seventh needs space from the reserve."""
    free, put, give = [6], Store.put, Keeper._give

    def put_(self, *what):
        if not free[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        free[0] -= 1
        put(self, *what)

    def give_(self, size):
        free[0] += (given := give(self, size))
        return given

    monkeypatch.setattr(Store, "put", put_)
    monkeypatch.setattr(Keeper, "_give", give_)
    with serving(latency=0.02) as server:
        with pytest.raises(IfqaError, match=r"No space left.*what was answered is kept; make room and run") as caught:
            model(server, concurrency=3).complete(ask(*map(str, range(40))))
        assert len(str(caught.value).splitlines()) == 1
        assert 7 <= server.requests <= 12
        assert kept() == server.requests
        free[0] = 100
        assert texts(model(server).complete(ask(*map(str, range(40))))) == [f"to {n}" for n in range(40)]
        assert set(server.asked.values()) == {1}


def test_a_failing_disk_stops_asking_at_once(monkeypatch):
    def put(self, *what):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Store, "put", put)
    with serving(latency=0.02) as server:
        with pytest.raises(IfqaError, match=r"Input/output error.*an answer is lost; mend that and run the same"):
            model(server, concurrency=3).complete(ask(*map(str, range(40))))
        assert server.requests <= 6


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_nothing_is_asked_if_no_space_can_be_reserved(monkeypatch, number):
    def fsync(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    with (
        serving() as server,
        pytest.raises(IfqaError, match=r"cannot write completions into completions .* nothing was"),
    ):
        model(server).complete(ask("a"))
    assert server.requests == 0


def test_the_reserve_takes_real_blocks_for_all_requests_in_flight(tmp_path):
    requests = ask(*map(str, range(50)), max_tokens=1000)
    with Keeper(Store(tmp_path), "m", requests, 4) as keeper:
        stat = os.fstat(keeper._file.fileno())
        assert stat.st_blocks * 512 >= stat.st_size > 4 * 32_000
        assert stat.st_nlink == 0  # the file has no name, so nothing is left of it however the process ends
        assert keeper.keep(requests[0], Completion("a")) == ""


def test_a_failed_write_leaves_no_temporary_file(tmp_path, monkeypatch):
    def write(handle, data):
        handle.write(data[:5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ifqa.llms.completions.write", write)
    with pytest.raises(OSError, match="No space left"):
        Store(tmp_path).put("m", ask("a")[0], Completion("a"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def can_mount():
    return HIDDEN and subprocess.run([*HIDDEN, "mount -t tmpfs none /mnt"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_mount(), reason="no file system can be mounted here")
def test_a_real_full_disk_loses_nothing(tmp_path):
    """192 of 256 KB are reserved for eight requests in flight and eight being written; 16 completions fill the rest."""
    Path("completions").mkdir()
    again = f'"{sys.executable}" -c "$0" "$1" completions 60 8'
    count = "ls -A completions/*/ | grep -c json$; find completions -name '*.tmp' | wc -l"
    steps = (
        f"mount -t tmpfs -o size=256k none completions; {again} || echo $?; {count}; "
        f"mount -o remount,size=4m completions; {again}"
    )
    with serving(latency=0.02) as server:
        run = subprocess.run([*HIDDEN, steps, ASK, server.url], capture_output=True, text=True, timeout=60)
        assert set(server.asked.values()) == {1}, run.stderr
    code, first, torn, cached = map(int, run.stdout.split())
    assert (code, torn) == (1, 0)
    assert 16 <= first == cached < 40
    assert "No space left on device): asking has stopped, what was answered is kept; make room" in run.stderr
