"""Measures a server under idle connections, a hanging model, SIGTERM, and its memory over unusual
requests.

    python bench/serve_attacks.py [idle] [bodies] [hung] [stop] [steps] [methods]

It prints a line of JSON for each attack; by default for all. It works in a temporary folder.

- idle: 1,500 connections send nothing; the seconds until a new client has an answer.
- bodies: 700 connections send one byte of a body; the seconds until a new client has an answer.
- hung: a language model hangs for 2 s while sixteen clients ask and leave after 1 s; the seconds
  until a new client has an answer. Then it hangs while sixteen clients wait; the seconds until all
  of them and a new client have answers.
- stop: the seconds from SIGTERM to the exit while a model hangs, and from a second SIGTERM.
- steps: the server's memory over 10,000 questions to the retriever `steps`.
- methods: its memory and the size of /metrics over 10,000 unknown HTTP methods.

The language model has its defaults: 60 s for a request, six retries. The server's time limit is 20
s.
"""

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path

import httpx2
from serve import memory

import ifqa

sys.path.append(str(Path(__file__).parents[1] / "tests/stand_ins"))
from openai_server import Reply, serving

IDLE = 1500
SLOW = 700
MANY = 10_000
LIMIT = 20
SAMPLE = 'benchmark = "sample"\nsplit = "dev"\ncorpus = "sample"\n'
BM25, STEPS = (f'{SAMPLE}[retriever]\nname = "{name}"\nk = 5\n' for name in ("bm25", "steps"))
HUNG = """
retriever = {{ name = "bm25", k = 5 }}
reader = {{ name = "llm", passages = 5 }}
llm = {{ name = "openai", model = "m", base_url = "{url}", window = 4096 }}
"""


@contextmanager
def server(text: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of an experiment, and its address; it is killed at the end."""
    Path("experiments").mkdir(exist_ok=True)
    Path("experiments/attacked.toml").write_text(text, encoding="utf-8")
    flags = ["attacked", "--port", "0", "--quiet", "--timeout", str(LIMIT)]
    command = [sys.executable, "-m", "ifqa", "serve", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def hanging_model() -> Iterator[tuple[subprocess.Popen[str], str, threading.Event]]:
    """A server, its address, and the event that ends its language model's hang."""
    recovered = threading.Event()

    def plan(prompt: str, times: int, body: object) -> Reply:
        return (
            Reply(text="Answer: Ada Stone") if recovered.is_set() else Reply(text="", latency=600)
        )

    with serving(plan) as model, server(SAMPLE + HUNG.format(url=model.url)) as (process, url):
        yield process, url, recovered


def ask(url: str, question: str, patience: float = 600) -> tuple[str, float]:
    """The status of a question ("200", "504", "left", "cut off") and its seconds."""
    began = time.monotonic()
    try:
        status = str(
            httpx2.post(f"{url}/v1/ask", json={"question": question}, timeout=patience).status_code
        )
    except httpx2.TimeoutException:
        status = "left"
    except httpx2.TransportError:
        status = "cut off"
    return status, round(time.monotonic() - began, 2)


def ask_in_parallel(url: str, patience: float = 600) -> dict[str, object]:
    """The statuses of sixteen concurrent clients, and the seconds of the slowest."""
    with ThreadPoolExecutor(16) as threads:
        replies = list(
            threads.map(lambda n: ask(url, f"If {n} had not come, who?", patience), range(16))
        )
    statuses = Counter(status for status, _ in replies)
    return {"statuses": dict(statuses), "slowest": max(seconds for _, seconds in replies)}


def idle() -> dict[str, object]:
    return time_new_client(IDLE, b"")


def bodies() -> dict[str, object]:
    head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    return time_new_client(SLOW, head)


def time_new_client(count: int, begin: bytes) -> dict[str, object]:
    """A new client's time next to `count` connections that have sent only `begin`."""
    with server(BM25) as (_, url), ExitStack() as stack:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(count):
            stack.enter_context(socket.create_connection(address, timeout=60)).sendall(begin)
        began = time.monotonic()
        refused = 0
        while (
            httpx2.post(f"{url}/v1/retrieve", json={"question": "Who?"}, timeout=60).status_code
            == 503
        ):
            refused += 1
            time.sleep(0.1)
        return {
            "connections": count,
            "refused": refused,
            "seconds": round(time.monotonic() - began, 3),
        }


def hung() -> dict[str, object]:
    with hanging_model() as (_, url, recovered), ThreadPoolExecutor(1) as thread:
        leaving = thread.submit(ask_in_parallel, url, 1)
        time.sleep(2)
        recovered.set()
        report: dict[str, object] = {
            "after_2_s": ask(url, "Who comes next?"),
            "left": leaving.result(),
        }
    with hanging_model() as (_, url, _), ThreadPoolExecutor(1) as thread:
        staying = thread.submit(ask_in_parallel, url)
        time.sleep(1)
        return report | {"beside": ask(url, "Who comes later?"), "stayed": staying.result()}


def stop() -> dict[str, object]:
    report: dict[str, object] = {}
    for name, pause in (("sigterm_seconds", 600.0), ("second_sigterm_seconds", 1.0)):
        with hanging_model() as (process, url, _), ThreadPoolExecutor(1) as thread:
            thread.submit(ask_in_parallel, url)
            time.sleep(3)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(pause)
            except subprocess.TimeoutExpired:
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
            report[name] = [process.wait(600), round(time.monotonic() - began, 2)]
    return report


def steps() -> dict[str, object]:
    texts = cycle(
        question.text for split in ("dev", "hard") for question in ifqa.questions("sample", split)
    )
    sizes = []
    with server(STEPS) as (_, url):
        for _ in range(10):
            for _ in range(MANY // 10 // 50):
                body = {"questions": list(islice(texts, 50))}
                httpx2.post(f"{url}/v1/retrieve", json=body, timeout=60).raise_for_status()
            sizes.append(memory(url))
    return {"questions": MANY, "memory_mb": sizes}


def methods() -> dict[str, object]:
    sizes = []
    with server(BM25) as (_, url), httpx2.Client(base_url=url) as web:
        for number in range(MANY):
            web.request(f"ODD{number}", "/v1/about")
            if (number + 1) % (MANY // 10) == 0:
                sizes.append(memory(url))
        return {
            "methods": MANY,
            "memory_mb": sizes,
            "metrics_bytes": len(web.get("/metrics", timeout=60).content),
        }


def main() -> None:
    attacks = {attack.__name__: attack for attack in (idle, bodies, hung, stop, steps, methods)}
    # The stand-in model is stopped while it hangs
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in sys.argv[1:] or attacks:
            print(json.dumps({name: attacks[name]()}), flush=True)


if __name__ == "__main__":
    main()
