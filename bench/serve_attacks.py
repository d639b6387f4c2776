"""What a server does under idle connections, beside a model that hangs, on SIGTERM, and in memory over many odd requests.

    python bench/serve_attacks.py [idle] [bodies] [hung] [stop] [steps] [methods]

Prints a line of JSON for each; without names for all. It works in a folder of its own.

- idle: 1,500 connections send nothing; the seconds until a new client has an answer.
- bodies: 700 connections send one byte of a body; the seconds until a new client has an answer.
- hung: a language model hangs for 2 s while sixteen clients ask and leave after 1 s; the seconds until a new client has one. Then
  it hangs while sixteen clients stay; the seconds until all have theirs, and until a new client has its own.
- stop: the seconds from SIGTERM to the end while a model hangs, and from a second SIGTERM.
- steps: the server's memory over 10,000 questions to the retriever `steps`.
- methods: its memory and the size of /metrics over 10,000 methods that HTTP does not know.

The language model has its own defaults: 60 s for a request, six more tries. The server's time limit is 20 s.
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

IDLE, SLOW, MANY, LIMIT = 1500, 700, 10_000, 20
SAMPLE = 'benchmark = "sample"\nsplit = "dev"\ncorpus = "sample"\n'
STEPS = SAMPLE + '[retriever]\nname = "steps"\nk = 5\n'
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
def beside_a_model() -> Iterator[tuple[subprocess.Popen[str], str, threading.Event]]:
    """A server, its address, and the event until which its language model hangs."""
    well = threading.Event()

    def plan(prompt: str, times: int, body: object) -> Reply:
        return Reply(text="Answer: Ada Stone" if well.is_set() else "", latency=0 if well.is_set() else 600)

    with serving(plan) as model, server(SAMPLE + HUNG.format(url=model.url)) as (process, url):
        yield process, url, well


def asked(url: str, question: str, patience: float = 600) -> tuple[str, float]:
    """What comes back to one question, "200", "504" or "left", and the seconds until then."""
    began = time.monotonic()
    try:
        status = str(httpx2.post(f"{url}/v1/ask", json={"question": question}, timeout=patience).status_code)
    except httpx2.TimeoutException:
        status = "left"
    except httpx2.TransportError:
        status = "cut off"
    return status, round(time.monotonic() - began, 2)


def by_many(url: str, patience: float = 600) -> dict[str, object]:
    """What comes back to sixteen clients that ask side by side, and the seconds of the slowest."""
    with ThreadPoolExecutor(16) as threads:
        came = list(threads.map(lambda n: asked(url, f"If {n} had not come, who?", patience), range(16)))
    return {"statuses": dict(Counter(one for one, _ in came)), "slowest": max(seconds for _, seconds in came)}


def idle() -> dict[str, object]:
    """A new client beside connections that send nothing."""
    return beside_connections(IDLE, b"")


def bodies() -> dict[str, object]:
    """A new client beside connections whose bodies do not end."""
    head = b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    return beside_connections(SLOW, head)


def beside_connections(count: int, begin: bytes) -> dict[str, object]:
    """A new client beside so many connections that have sent no more than this."""
    with server(SAMPLE + '[retriever]\nname = "bm25"\nk = 5\n') as (_, url), ExitStack() as stack:
        place = ("127.0.0.1", int(url.rpartition(":")[2]))
        for _ in range(count):
            stack.enter_context(socket.create_connection(place, timeout=60)).sendall(begin)
        began = time.monotonic()
        refused = 0
        while httpx2.post(f"{url}/v1/retrieve", json={"question": "Who?"}, timeout=60).status_code == 503:
            refused += 1
            time.sleep(0.1)
        return {"connections": count, "refused": refused, "seconds": round(time.monotonic() - began, 3)}


def hung() -> dict[str, object]:
    """New clients after and beside a hang."""
    with beside_a_model() as (_, url, well), ThreadPoolExecutor(1) as thread:
        leaving = thread.submit(by_many, url, 1)
        time.sleep(2)
        well.set()
        found: dict[str, object] = {"after_2_s": asked(url, "Who comes next?"), "left": leaving.result()}
    with beside_a_model() as (_, url, well), ThreadPoolExecutor(1) as thread:
        staying = thread.submit(by_many, url)
        time.sleep(1)
        return found | {"beside": asked(url, "Who comes later?"), "stayed": staying.result()}


def stop() -> dict[str, object]:
    """The end of a server whose model hangs."""
    found: dict[str, object] = {}
    for name, pause in (("sigterm_seconds", 600.0), ("second_sigterm_seconds", 1.0)):
        with beside_a_model() as (process, url, _), ThreadPoolExecutor(1) as thread:
            thread.submit(by_many, url)
            time.sleep(3)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(pause)
            except subprocess.TimeoutExpired:
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
            found[name] = [process.wait(600), round(time.monotonic() - began, 2)]
    return found


def steps() -> dict[str, object]:
    """Memory over questions to a retriever of several steps."""
    texts = cycle(question.text for split in ("dev", "hard") for question in ifqa.questions("sample", split))
    sizes = []
    with server(STEPS) as (_, url):
        for _ in range(10):
            for _ in range(MANY // 10 // 50):
                several = {"questions": list(islice(texts, 50))}
                httpx2.post(f"{url}/v1/retrieve", json=several, timeout=60).raise_for_status()
            sizes.append(memory(url))
    return {"questions": MANY, "memory_mb": sizes}


def methods() -> dict[str, object]:
    """Memory over methods that HTTP does not know."""
    sizes = []
    with server(SAMPLE + '[retriever]\nname = "bm25"\nk = 5\n') as (_, url), httpx2.Client(base_url=url) as web:
        for number in range(MANY):
            web.request(f"ODD{number}", "/v1/about")
            if (number + 1) % (MANY // 10) == 0:
                sizes.append(memory(url))
        return {"methods": MANY, "memory_mb": sizes, "metrics_bytes": len(web.get("/metrics", timeout=60).content)}


def main() -> None:
    """Run those named, or all."""
    known = {one.__name__: one for one in (idle, bodies, hung, stop, steps, methods)}
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # the stand-in for a model is ended while it hangs
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in sys.argv[1:] or known:
            print(json.dumps({name: known[name]()}), flush=True)


if __name__ == "__main__":
    main()
