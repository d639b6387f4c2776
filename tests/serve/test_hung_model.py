"""Beside a language model that hangs, others are answered, and a stop ends the server in time."""

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
from served import on_loopback, small

PROMPT = """
about = "Short."
source = "here"
reads_passages = false
max_tokens = 9
stop = ["\\n"]
user = "{question}"
assistant = "{answer}"
parse = { rule = "first line", answer = "" }
"""
EXPERIMENT = """
benchmark = "sample"
split = "dev"
reader = { name = "llm", prompt = "short" }
llm = { name = "openai", model = "m", base_url = "URL", window = 4096 }
"""
TOOL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


def reply(prompt, times, body):
    return Reply(latency=600) if "hang" in prompt else Reply(text="Ada Stone")


@contextmanager
def asks_a_model(folder, **limits):
    """A server whose reader asks a model that hangs for questions with "hang"; gives the server's service and address."""
    (folder / "prompts").mkdir()
    (folder / "prompts/short.toml").write_text(PROMPT)
    with language_model(reply) as model:
        llm = {"name": "openai", "model": "m", "base_url": model.url, "window": 4096}
        experiment = small(folder, reader={"name": "llm", "prompt": "short"}, llm=llm)
        with on_loopback(experiment, **limits) as (service, url):
            yield service, url


def ask(url, question, timeout=60):
    return httpx2.post(f"{url}/v1/ask", json={"question": question}, timeout=timeout)


def many(url, count, timeout=60):
    """The status of each of so many questions that hang, sent side by side; 0 if the client left after `timeout` seconds."""

    def status(number):
        try:
            return ask(url, f"Does {number} hang?", timeout).status_code
        except httpx2.TimeoutException:
            return 0

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(status, range(count)))


def until(what):
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_question_that_took_too_long_frees_its_slot(tmp_path):
    with asks_a_model(tmp_path, seconds=1) as (service, url):
        assert many(url, 8) == [504] * 8
        until(lambda: not service.asking.busy)
        assert ask(url, "Who?").json()["answers"][0]["answer"] == "Ada Stone"


@pytest.mark.parametrize(("path", "accept"), [("ask", "*/*"), ("ask", "text/event-stream"), ("mcp", "*/*")])
def test_a_client_that_leaves_frees_its_slot(path, accept, tmp_path):
    with asks_a_model(tmp_path) as (service, url):
        body, target = {"question": "Does it hang?"}, f"{url}/v1/ask"
        if path == "mcp":
            body, target = TOOL | {"params": {"name": "ask", "arguments": body}}, f"{url}/mcp"
            accept = "application/json, text/event-stream"
        with pytest.raises(httpx2.ReadTimeout), httpx2.stream(
            "POST", target, json=body, headers={"accept": accept}, timeout=1
        ) as response:  # fmt: skip
            response.read()
        until(lambda: not service.asking.busy)


@contextmanager
def process(folder, *flags):
    """`ifqa serve` beside a model that hangs, with eight questions at it; gives the process and its address."""
    (folder / "prompts").mkdir()
    (folder / "prompts/short.toml").write_text(PROMPT)
    (folder / "experiments").mkdir()
    with language_model(reply) as model, ThreadPoolExecutor(1) as thread:
        (folder / "experiments/hung.toml").write_text(EXPERIMENT.replace("URL", model.url))
        command = [sys.executable, "-m", "ifqa", "serve", "hung", "--port", "0", "--quiet", *flags]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            url = server.stdout.readline().strip()
            statuses = thread.submit(many, url, 8)
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
