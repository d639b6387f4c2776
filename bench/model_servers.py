"""How servers of language models that misbehave look to a user: requests, tokens booked, answer or
reason.

    python bench/model_servers.py "http://127.0.0.1:8099/{}/v1" nullreason parts html200

A folder of its own is used for each address, so nothing comes from a cache. Each is run twice with
`ifqa run`, and once asked with `ifqa ask`, which streams nothing into a pipe.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EXPERIMENT = """benchmark = "sample"
split = "dev"
limit = 2
[reader]
name = "llm"
prompt = "{prompt}"
[llm]
model = "m"
base_url = "{url}"
"""


def ifqa(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "ifqa", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def measure(url: str, prompt: str, arguments: list[str]) -> tuple[str, ...]:
    """A row: exit codes, requests and tokens of both runs, and the line that tells a user most."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "experiments").mkdir()
        (folder / "experiments/mine.toml").write_text(EXPERIMENT.format(url=url, prompt=prompt))
        runs = [ifqa(folder, "run", "mine", *arguments) for _ in range(2)]
        usage = {"calls": "-", "prompt_tokens": "-", "completion_tokens": "-"}
        answers = []
        for path in folder.glob("experiments/mine*/read/manifest.json"):
            usage = json.loads(path.read_text())["record"]["spent"]
            lines = (path.parent / "predictions.jsonl").read_text().splitlines()
            answers = [json.loads(line) for line in lines]
        read = {answer["answer"] or answer["error"] for answer in answers}
        second = re.search(r"To read: (\d+) requests", runs[1].stdout)
        again = second[1] if second else "-"
        if "read: up to date" in runs[1].stderr:
            again = "up to date"
        errors = [line for line in runs[0].stderr.splitlines() if line.startswith("ifqa: ")]
        told = "; ".join(sorted(read)) or " ".join(errors)
        codes = "/".join(str(run.returncode) for run in runs)
        tokens = f"{usage['prompt_tokens']} + {usage['completion_tokens']}"
        traceback = "TRACEBACK " if any("Traceback" in run.stderr for run in runs) else ""
        return (codes, str(usage["calls"]), tokens, again, traceback + " ".join(told.split()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="with {} for a name")
    parser.add_argument("names", nargs="+")
    parser.add_argument("--prompt", default="closed-book")
    parser.add_argument("--arguments", default="", help="further arguments of ifqa run")
    options = parser.parse_args()
    print(
        "| name | exit codes | requests | tokens booked | second run asks | what the user reads |"
    )
    print("|---|---|---|---|---|---|")
    for name in options.names:
        row = measure(options.address.format(name), options.prompt, options.arguments.split())
        print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
