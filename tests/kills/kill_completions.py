"""Kill a client that sends many requests at random moments, resume, and count on the server what was asked twice.

    python tests/kills/kill_completions.py [--kills 10] [--requests 1000] [--concurrency 32] [--latency 0.2] [--rounds 3]

First it measures the pace: the time of all requests, store and fsync included, against the time that waiting `latency` for each
would take. Then each round sends all requests, is killed with SIGKILL after a random time, and is run again to its end. Only
requests that were in flight, or being written, at the kill may be asked twice.
"""

import argparse
import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

STAND_INS = Path(__file__).parents[1] / "stand_ins"
sys.path.insert(0, str(STAND_INS))

from openai_client import count_stored  # noqa: E402

ASK = """
import sys, time
from ifqa.records import Request
from ifqa.llms.openai import OpenAI
url, store, count, concurrency = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
model = OpenAI(model="m", base_url=url, store=store, concurrency=concurrency, window=4096)
requests = [Request(messages=(("user", f"question {n}"),)) for n in range(count)]
model.complete(requests[:1])  # imports and connections are not measured
started = time.monotonic()
done = model.complete(requests)
seconds = time.monotonic() - started
assert [one.text for one in done] == [f"to question {n}" for n in range(count)], "wrong answers"
print(seconds, model.spent.calls)
"""


def main() -> int:
    """Measure, kill, compare, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    ideal = arguments.requests / arguments.concurrency * arguments.latency
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        store = Path(name) / "completions"
        ratios = []
        for _ in range(arguments.rounds):
            with server(arguments.latency) as url:
                seconds = float(ask(url, store, arguments).communicate()[0].split()[0])
            shutil.rmtree(store)
            ratios.append(seconds / ideal)
            print(
                f"{arguments.requests} requests in {seconds:.2f} s, {ratios[-1]:.3f} of the ideal {ideal:.2f} s",
                flush=True,
            )
        wrong = landed = 0
        for kill in range(arguments.kills):
            after = random.Random(kill).uniform(0.1, 1.0) * (ideal + 1.5)
            with server(arguments.latency) as url:
                process = ask(url, store, arguments)
                time.sleep(after)
                landed += process.poll() is None
                process.send_signal(signal.SIGKILL)
                process.communicate()
                before = count(url)["requests"]
                kept = count_stored(store)
                rest = ask(url, store, arguments)
                output = rest.communicate()[0]
                counts = count(url)
            twice = sum(times - 1 for times in counts["asked"].values())
            lost = before - kept
            good = rest.returncode == 0 and twice == lost and twice <= 2 * arguments.concurrency
            good = good and len(counts["asked"]) == arguments.requests
            wrong += not good
            print(
                f"kill {kill + 1} after {after:.1f} s: {before} asked, {kept} kept, {lost} in flight; then "
                f"{output.split()[1] if output else 'failed,'} more, {twice} twice: {'good' if good else 'WRONG'}",
                flush=True,
            )
            shutil.rmtree(store)
        print(f"{landed} of {arguments.kills} kills landed, {wrong} wrong; pace {min(ratios):.3f} to {max(ratios):.3f}")
    return int(wrong > 0 or min(ratios) > 1.15)


class server:
    """The scripted server, in a process of its own."""

    def __init__(self, latency: float) -> None:
        command = [sys.executable, str(STAND_INS / "openai_server.py"), "--latency", str(latency)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> str:
        return f"http://127.0.0.1:{self.process.stdout.readline().strip()}"

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


def ask(url: str, store: Path, arguments: argparse.Namespace) -> subprocess.Popen[str]:
    """A process that asks everything."""
    given = [f"{url}/v1", str(store), str(arguments.requests), str(arguments.concurrency)]
    return subprocess.Popen([sys.executable, "-c", ASK, *given], stdout=subprocess.PIPE, text=True)


def count(url: str) -> dict:
    """What the server has counted."""
    with urllib.request.urlopen(f"{url}/count") as response:
        return json.load(response)


if __name__ == "__main__":
    sys.exit(main())
