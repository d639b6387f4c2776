"""Interrupts: no answer is lost, and none is requested twice."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from openai_client import ask, count_stored, here, model, texts  # noqa: F401
from openai_server import Reply, serving

from ifqa.llms import request_scheduler


@contextmanager
def interrupting(server, requests):
    """Interrupts this process when the server has so many requests."""

    def interrupt():
        while server.requests < requests:
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    yield
    thread.join()


def test_an_interrupt_in_a_running_loop_is_raised_too():
    async def cell(llm):
        llm.complete(ask(*map(str, range(1000))))

    with (
        serving(latency=0.05) as server,
        closing(asyncio.new_event_loop()) as loop,
        interrupting(server, 8),
    ):
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(cell(model(server, concurrency=2)))
        assert count_stored() == server.requests


def test_a_model_can_be_used_again_after_an_interrupt(monkeypatch):
    monkeypatch.setattr(request_scheduler, "GRACE", 0.05)
    with serving(lambda prompt, time, _: Reply(latency=5 if time == 1 else 0.001)) as server:
        llm = model(server, max_total_tokens=10**6)
        with interrupting(server, 2), pytest.raises(KeyboardInterrupt):
            llm.complete(ask("a", "b"))
        assert (llm.account.in_flight, llm.account.reserved) == (0, (0, 0))
        assert texts(llm.complete(ask("a", "b"))) == ["answer"] * 2


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_time_to_store_what_is_in_flight(tmp_path, sent):
    with serving(lambda *_: Reply(text="so", latency=0.3)) as server:
        Path("experiments").mkdir()
        Path("experiments/mine.toml").write_text(
            'benchmark = "sample"\nsplit = "dev"\n[reader]\nname = "llm"\nprompt = "closed-book"\n'
            f'[llm]\nmodel = "m"\nbase_url = "{server.url}"\nwindow = 4096\nconcurrency = 8\n'
        )
        command = [sys.executable, "-m", "ifqa", "run", "mine"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while server.requests < 8 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(sent)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, "s for requests in flight" in err) == (130, True), err
    assert count_stored(tmp_path / "completions") == server.requests == 8
