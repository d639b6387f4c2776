"""Kill two runs over one cache of completions at seeded moments, and count what is asked twice.

    python bench/completion_kills.py --kills 64

Two processes read the same questions with a scripted server on this machine. At a seeded moment one
of them or both are killed (SIGKILL); then both run again, to the end. No completion that the cache
held after the kill may be requested again; those in flight may be, as nobody has stored them. Both
runs must end with the server's answers to all questions.
"""

import argparse
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests/stand_ins")]

from openai_server import Reply, Server, serving  # noqa: E402

QUESTIONS = 40
CONCURRENCY = 4
EXPERIMENT = """benchmark = "sample"
split = "dev"
limit = {questions}
[reader]
name = "llm"
prompt = "closed-book"
[llm]
model = "m"
window = 4096
concurrency = {concurrency}
base_url = "{url}"
"""


def start(folder: Path, name: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-m", "ifqa", "read", name]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def stored_prompts(folder: Path) -> set[str]:
    """The prompts whose completions the cache holds."""
    path = folder / "completions/completions.sqlite"
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as connection:
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            return set()
        records = [
            json.loads(record) for (record,) in connection.execute("SELECT record FROM completions")
        ]
    return {record["request"]["messages"][-1][1] for record in records}


def kill_once(folder: Path, server: Server, seed: int) -> dict[str, object]:
    """Kill one or both of two runs, and run both again; the counts of this kill."""
    draw = random.Random(seed)
    server.asked = Counter()
    for name in ("first", "second"):
        path = folder / f"experiments/{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            EXPERIMENT.format(questions=QUESTIONS, concurrency=CONCURRENCY, url=server.url)
        )
    at = draw.randint(1, QUESTIONS - 1)
    runs = [start(folder, name) for name in ("first", "second")]
    while server.requests < at and any(run.poll() is None for run in runs):
        time.sleep(0.002)
    time.sleep(draw.random() * 0.03)
    victims = draw.choice([runs[:1], runs[1:], runs])
    for run in victims:
        run.send_signal(signal.SIGKILL)
    for run in victims:
        run.wait()
    stored = stored_prompts(folder)
    asked = Counter(server.asked)
    for run in runs:
        run.wait()
    for name in ("first", "second"):
        run = start(folder, name)
        _, stderr = run.communicate()
        assert run.returncode == 0, stderr.decode()
    again = {prompt for prompt in stored if server.asked[prompt] > asked[prompt]}
    predictions = [
        folder / f"experiments/{name}/read/predictions.jsonl" for name in ("first", "second")
    ]
    answers = [
        [json.loads(line)["answer"] for line in path.read_text().splitlines()]
        for path in predictions
    ]
    return {
        "killed": len(victims),
        "stored at the kill": len(stored),
        "requests": server.requests,
        "stored and asked again": len(again),
        "asked more often than once": sum(count > 1 for count in server.asked.values()),
        "right": all(len(rows) == QUESTIONS and set(rows) == {"so"} for rows in answers),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=64)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    with serving(lambda *_: Reply(text="so", latency=0.03)) as server:
        for seed in range(options.kills):
            with tempfile.TemporaryDirectory() as folder:
                counts = kill_once(Path(folder), server, seed)
            print(seed, counts, flush=True)
            total += Counter(
                {key: int(value) for key, value in counts.items() if isinstance(value, int)}
            )
    print({"kills": options.kills, "questions of each run": QUESTIONS, **total})
    wrong = total["stored and asked again"] or total["right"] < options.kills
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
