"""While a language model hangs, other clients are answered, and a stop ends the server in time."""

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from urllib.request import urlopen

import httpx2
import pytest
from openai_server import Reply
from openai_server import serving as language_model
from serving_system import on_loopback, small, until

pytestmark = pytest.mark.slow

READER = {"name": "llm", "prompt": "closed-book"}
LLM = {"name": "openai", "model": "m", "window": 4096}


def reply(prompt, times, body):
    return Reply(latency=600) if "hang?" in prompt else Reply(text="Ada Stone")


@contextmanager
def hanging_model():
    """A model that hangs for questions that end so; yields the sections that use it."""
    with language_model(reply) as model:
        yield {"reader": READER, "llm": LLM | {"base_url": model.url}}


@contextmanager
def asks_a_model(folder, **limits):
    """A server whose reader uses that model; yields its service and address."""
    with (
        hanging_model() as sections,
        on_loopback(small(folder, **sections), **limits) as (service, url),
    ):
        yield service, url


def ask(url, question):
    return httpx2.post(f"{url}/v1/ask", json={"question": question}, timeout=60)


def hang(url):
    """The status of each of eight questions that hang, sent in parallel."""
    with ThreadPoolExecutor(8) as threads:
        return [
            response.status_code
            for response in threads.map(lambda n: ask(url, f"Does {n} hang?"), range(8))
        ]


def test_a_question_that_took_too_long_frees_its_slot(tmp_path):
    with asks_a_model(tmp_path, seconds=1) as (service, url):
        assert hang(url) == [504] * 8
        until(lambda: not service.asking.busy)
        assert ask(url, "Who left?").json()["answers"][0]["answer"] == "Ada Stone"


ASKED = {"question": "Does it hang?"}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "ask", "arguments": ASKED},
}


@pytest.mark.parametrize(
    ("path", "body", "accept"),
    [
        ("v1/ask", ASKED, "*/*"),
        ("v1/ask", ASKED, "text/event-stream"),
        ("mcp", CALL, "application/json, text/event-stream"),
    ],
)
def test_a_client_that_leaves_frees_its_slot(path, body, accept, tmp_path):
    with asks_a_model(tmp_path) as (service, url):
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{url}/{path}", json=body, headers={"accept": accept}, timeout=1)
        until(lambda: not service.asking.busy)


@contextmanager
def process(folder, *flags):
    """`ifqa serve` beside a model that hangs, which has eight questions.

    Yields the process and the questions' statuses.
    """
    (folder / "experiments").mkdir()
    with hanging_model() as sections, ThreadPoolExecutor(1) as thread:
        lines = [
            f"{name}.{key} = {json.dumps(value)}\n"
            for name, section in sections.items()
            for key, value in section.items()
        ]
        (folder / "experiments/hung.toml").write_text(
            'benchmark = "sample"\nsplit = "dev"\n' + "".join(lines)
        )
        command = [sys.executable, "-m", "ifqa", "serve", "hung", "--port", "0", "--quiet", *flags]
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            statuses = thread.submit(hang, url)
            until(lambda: b'ifqa_working{queue="ask"} 8.0' in urlopen(f"{url}/metrics").read())
            try:
                yield server, statuses
            finally:
                server.kill()


def test_a_stop_ends_in_the_promised_time(tmp_path):
    with process(tmp_path, "--timeout", "2") as (server, statuses):
        server.send_signal(signal.SIGTERM)
        assert server.wait(2 + 5 + 10) == 0, server.stderr.read()  # ten more for a busy machine
        assert statuses.result() == [504] * 8


def test_a_second_stop_ends_at_once(tmp_path):
    with process(tmp_path) as (server, statuses):
        server.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        assert server.poll() is None
        server.send_signal(signal.SIGTERM)
        assert server.wait(5) == -signal.SIGTERM
        statuses.exception()  # the clients are cut off
