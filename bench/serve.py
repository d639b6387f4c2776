"""Loads `ifqa serve` and asks the same questions in process: equal answers, throughput, latency,
memory, refusals.

    python bench/serve.py [EXPERIMENT] [--questions 1000] [--clients 1 8 64] [--flat 10000]

It prints a line of JSON for each number of clients: questions per second over HTTP and in process,
and their ratio; the median and the 99th percentile of a question's seconds; the server's memory
before and after. One client is compared with questions answered one by one, more clients with all
questions at once. An answer differs if its text, derivation, passage or set of read passages
differs. If only the order of the later passages differs, it is "reordered": in bfloat16 the last
digits of a score depend on the batch.

Then more clients ask than a queue of 64 takes: every question must get an answer or a clean 503.
`--flat N` asks N more questions with 8 clients, and prints the memory after each tenth.
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

OVERLOAD = 200  # concurrent clients of a queue of 64


@contextmanager
def server(experiment: str, *flags: str) -> Iterator[tuple[str, float]]:
    """The address of a server, and the seconds until it was ready."""
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


def process_of(url: str) -> psutil.Process:
    """The process that listens at the address."""
    port = int(url.rpartition(":")[2])
    listening = (
        connection for connection in psutil.net_connections("tcp") if connection.status == "LISTEN"
    )
    [pid] = {connection.pid for connection in listening if connection.laddr.port == port}
    return psutil.Process(pid)


def memory(url: str) -> int:
    """The resident memory in MB of the process that listens at the address."""
    return round(process_of(url).memory_info().rss / 1e6)


def sample_questions() -> list[str]:
    return [
        question.text for split in ("dev", "hard") for question in ifqa.questions("sample", split)
    ]


def load(
    url: str, questions: Sequence[str], clients: int
) -> tuple[list[AnswerForm], list[float], float]:
    """The answers to concurrent clients, the sorted seconds of each, and the seconds of all."""
    began = time.monotonic()
    with (
        httpx2.Client(base_url=url, trust_env=False, timeout=300) as web,
        ThreadPoolExecutor(clients) as threads,
    ):

        def ask(question: str) -> tuple[AnswerForm, float]:
            began = time.monotonic()
            response = web.post(
                "/v1/ask", json={"question": question, "threshold": 0}
            ).raise_for_status()
            return Answers.model_validate_json(response.content).answers[
                0
            ], time.monotonic() - began

        replies = list(threads.map(ask, questions))
    return (
        [answer for answer, _ in replies],
        sorted(seconds for _, seconds in replies),
        time.monotonic() - began,
    )


def in_process(
    system: System, questions: Sequence[str], clients: int
) -> tuple[list[AnswerForm], float]:
    """The answers of an opened system, in the server's form, and the seconds."""
    began = time.monotonic()
    batches = [[question] for question in questions] if clients == 1 else [questions]
    answers = [answer for batch in batches for answer in system.answer(batch, threshold=0)]
    return [AnswerForm.of(answer, 0) for answer in answers], time.monotonic() - began


def content(answer: AnswerForm) -> tuple[object, ...]:
    """The fields by which two answers are equal: not the order of the later passages."""
    passage_ids = sorted(passage.id for passage in answer.evidence)
    return answer.answer, answer.how, answer.factual, answer.evidence[:1], passage_ids


def overload(url: str, questions: Sequence[str]) -> dict[str, object]:
    """The statuses of more concurrent questions than the queue takes."""
    with httpx2.Client(
        base_url=url, trust_env=False, timeout=300, limits=httpx2.Limits(max_connections=None)
    ) as web:

        def status(question: str) -> str:
            response = web.post("/v1/ask", json={"question": question})
            retry_after = response.headers.get("retry-after", "")
            return f"{response.status_code}{' with Retry-After' if retry_after.isdecimal() else ''}"

        with ThreadPoolExecutor(OVERLOAD) as threads:
            return {
                "clients": OVERLOAD,
                "queue": 64,
                "statuses": dict(Counter(threads.map(status, questions))),
            }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("experiment", nargs="?", default="sample")
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--flat", type=int, default=0)
    arguments = parser.parse_args()
    texts = sample_questions()
    questions = list(islice(cycle(texts), arguments.questions))
    local = {}
    with ifqa.open(arguments.experiment) as system:
        system.answer(questions[:8])  # the first questions warm the caches
        for clients in arguments.clients:
            local[clients] = in_process(system, questions, clients)
    with server(arguments.experiment) as (url, ready):
        print(
            json.dumps({"experiment": arguments.experiment, "ready_seconds": round(ready, 2)}),
            flush=True,
        )
        load(url, questions[:8], 1)
        for clients in arguments.clients:
            before = memory(url)
            answers, seconds, total = load(url, questions, clients)
            expected, local_total = local[clients]
            pairs = list(zip(answers, expected, strict=True))
            line = {
                "clients": clients,
                "questions": len(questions),
                "differ": sum(content(answer) != content(other) for answer, other in pairs),
                "reordered": sum(answer.evidence != other.evidence for answer, other in pairs),
                "per_second": round(len(questions) / total, 2),
                "per_second_in_process": round(len(questions) / local_total, 2),
                "ratio": round(local_total / total, 2),
                "p50": round(seconds[len(seconds) // 2], 3),
                "p99": round(seconds[int(len(seconds) * 0.99)], 3),
                "memory_mb": [before, memory(url)],
            }
            print(json.dumps(line), flush=True)
        sizes = [memory(url)]
        for _ in range(10 if arguments.flat else 0):
            load(url, list(islice(cycle(texts), arguments.flat // 10)), 8)
            sizes.append(memory(url))
        if arguments.flat:
            print(json.dumps({"questions": arguments.flat, "memory_mb": sizes}), flush=True)
    with server(arguments.experiment, "--queue", "64") as (url, _):
        print(json.dumps(overload(url, list(islice(cycle(texts), OVERLOAD)))), flush=True)


if __name__ == "__main__":
    main()
