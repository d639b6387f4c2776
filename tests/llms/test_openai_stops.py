"""Interrupts: no answer is lost, and none is asked for twice."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from openai_client import ask, count_stored, here, model, texts  # noqa: F401
from openai_server import Reply, serving

from ifqa.llms import request_scheduler
from ifqa.llms.cache import CompletionCache

INTERRUPTED = """
import sys, threading
from ifqa.records import Request
from ifqa.llms.openai import OpenAI
model = OpenAI(model="m", base_url=sys.argv[1], concurrency=4, window=9)
try:
    model.complete([Request(messages=(("user", str(n)),)) for n in range(1000)], lambda done: print(done, flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_loses_nothing_and_is_raised(tmp_path):
    with serving(latency=0.05) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(10):
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 0, err
        assert out.splitlines()[-1] == "interrupted"
        assert "keeping what is in flight" in err
        assert 10 <= server.requests < 100
        kept = CompletionCache(tmp_path / "completions").get("m at localhost", ask(*map(str, range(1000))))
        assert len(kept) == server.requests


def test_an_interrupt_in_a_running_loop_is_raised_too():
    async def cell(asked):
        threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
        asked.complete(ask(*map(str, range(1000))))

    with serving(latency=0.05) as server:
        loop = asyncio.new_event_loop()
        try:
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(cell(model(server, concurrency=2)))
        finally:
            loop.close()
        assert count_stored() == server.requests


def test_a_model_can_be_asked_again_after_an_interrupt(monkeypatch):
    monkeypatch.setattr(request_scheduler, "GRACE", 0.05)
    with serving(lambda prompt, time, asked: Reply(latency=0.5 if time == 1 else 0.001)) as server:
        asked = model(server, max_total_tokens=10**6)
        timer = threading.Timer(0.15, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            asked.complete(ask("a", "b"))
        timer.join()
        assert asked.account.open == 0
        assert asked.account.aside == (0, 0)
        assert texts(asked.complete(ask("a", "b"))) == ["answer"] * 2


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_time_to_store_what_is_in_flight(tmp_path, sent):
    with serving(lambda *asked: Reply(text="so", latency=0.3)) as server:
        Path("experiments").mkdir()
        Path("experiments/mine.toml").write_text(
            'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "llm"\nprompt = "closed-book"\n'
            f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\nwindow = 4096\nconcurrency = 8\n'
        )
        command = [sys.executable, "-m", "ifqa", "run", "mine"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while server.requests < 8 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(sent)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "keeping what is in flight" in err) == (130, True), err
    assert count_stored(tmp_path / "completions") == server.requests == 8
