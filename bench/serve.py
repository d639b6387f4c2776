"""Loads `ifqa serve` and asks the same questions in process: equal answers, throughput, latency, memory, refusals.

    python bench/serve.py [EXPERIMENT] [--questions 1000] [--clients 1 8 64] [--flat 10000]

Prints a line of JSON for each number of clients: questions a second over HTTP and in process, and their ratio; the median and the
99th percentile of a question's seconds; errors; the server's memory before and after. One client is compared with `ask`, one
question after another, several with `answer`, all questions at once. An answer differs if its text, its derivation, its passage
or the passages read are others. If only the later passages stand in another order, it is "reordered": in bfloat16 the last digits
of a score depend on the batch.

Then more ask than a queue of 64 takes: what is not answered must be a clean 503. `--flat N` asks N more questions by 8 clients,
and shows the memory at each tenth of them.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice

import httpx2
import psutil

import ifqa
from ifqa.pipeline.system import System
from ifqa.serve.schemas import AnswerForm, Answers

BEYOND = 200  # clients that ask a queue of 64 at once


@contextmanager
def server(experiment: str, *flags: str) -> Iterator[tuple[str, float]]:
    """The address of a server, and the seconds until it took questions."""
    began = time.monotonic()
    command = [sys.executable, "-m", "ifqa", "serve", experiment, "--port", "0", "--quiet", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        try:
            yield url, time.monotonic() - began
        finally:
            process.terminate()
            assert process.wait(90) == 0


def memory(url: str) -> int:
    """The resident memory in MB of the process that listens at the address."""
    port = int(url.rpartition(":")[2])
    [pid] = {
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.status == "LISTEN" and connection.laddr.port == port
    }
    return round(psutil.Process(pid).memory_info().rss / 1e6)


def load(url: str, questions: Sequence[str], clients: int) -> tuple[list[AnswerForm], list[float], float]:
    """Answers, seconds of each, and seconds of all, asked by as many clients as there are threads."""
    began = time.monotonic()
    with httpx2.Client(base_url=url, trust_env=False, timeout=300) as web, ThreadPoolExecutor(clients) as threads:

        def ask(question: str) -> tuple[AnswerForm, float]:
            began = time.monotonic()
            response = web.post("/v1/ask", json={"question": question, "threshold": 0}).raise_for_status()
            return Answers.model_validate_json(response.content).answers[0], time.monotonic() - began

        replies = list(threads.map(ask, questions))
    return [answer for answer, _ in replies], sorted(seconds for _, seconds in replies), time.monotonic() - began


def in_process(system: System, questions: Sequence[str], clients: int) -> tuple[list[AnswerForm], float]:
    """Answers of an opened system, in the server's form, and seconds."""
    began = time.monotonic()
    each = [[question] for question in questions] if clients == 1 else [questions]
    found = [answer for some in each for answer in system.answer(some, threshold=0)]
    return [AnswerForm.of(answer, 0) for answer in found], time.monotonic() - began


def same(one: AnswerForm, other: AnswerForm) -> bool:
    """Whether two answers say the same from the same passage, and read the same ones."""

    def said(answer: AnswerForm) -> tuple[object, ...]:
        read = sorted(passage.id for passage in answer.evidence)
        return answer.answer, answer.how, answer.factual, answer.evidence[:1], read

    return said(one) == said(other)


def beyond(url: str, questions: Sequence[str]) -> dict[str, object]:
    """How many of many questions that come at once are answered, and how many refused."""
    with httpx2.Client(base_url=url, trust_env=False, timeout=300, limits=httpx2.Limits(max_connections=None)) as web:

        def status(question: str) -> str:
            response = web.post("/v1/ask", json={"question": question})
            later = response.headers.get("retry-after", "")
            return f"{response.status_code}{' with Retry-After' if later.isdecimal() else ''}"

        with ThreadPoolExecutor(BEYOND) as threads:
            return {"clients": BEYOND, "queue": 64, "statuses": dict(Counter(threads.map(status, questions)))}


def main() -> None:
    """Run all loads."""
    parser = argparse.ArgumentParser()
    parser.add_argument("experiment", nargs="?", default="sample")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--flat", type=int, default=0)
    given = parser.parse_args()
    texts = [question.text for split in ("dev", "hard") for question in ifqa.questions("sample", split)]
    questions = list(islice(cycle(texts), given.questions))
    here = {}
    with ifqa.open(given.experiment) as system:
        system.answer(questions[:8])  # the first questions warm the caches
        for clients in given.clients:
            here[clients] = in_process(system, questions, clients)
    with server(given.experiment) as (url, ready):
        print(json.dumps({"experiment": given.experiment, "ready_seconds": round(ready, 2)}), flush=True)
        load(url, questions[:8], 1)
        for clients in given.clients:
            before = memory(url)
            answers, seconds, took = load(url, questions, clients)
            expected, alone = here[clients]
            line = {
                "clients": clients,
                "questions": len(questions),
                "differ": sum(not same(*pair) for pair in zip(answers, expected, strict=True)),
                "reordered": sum(a.evidence != b.evidence for a, b in zip(answers, expected, strict=True)),
                "per_second": round(len(questions) / took, 2),
                "per_second_in_process": round(len(questions) / alone, 2),
                "ratio": round(alone / took, 2),
                "p50": round(seconds[len(seconds) // 2], 3),
                "p99": round(seconds[int(len(seconds) * 0.99)], 3),
                "memory_mb": [before, memory(url)],
            }
            print(json.dumps(line), flush=True)
        sizes = [memory(url)]
        for _ in range(10 if given.flat else 0):
            load(url, list(islice(cycle(texts), given.flat // 10)), 8)
            sizes.append(memory(url))
        if given.flat:
            print(json.dumps({"questions": given.flat, "memory_mb": sizes}), flush=True)
    with server(given.experiment, "--queue", "64") as (url, _):
        print(json.dumps(beyond(url, list(islice(cycle(texts), BEYOND)))), flush=True)


if __name__ == "__main__":
    main()
