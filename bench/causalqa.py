"""Builds the corpus of causal questions from synthetic PAQ files: seconds and peak memory.

    python bench/causalqa.py --rows 1000000 2000000

Rows have the layout of PAQ.metadata.jsonl with passages of psgs_w100.tsv; about 1.2% are causal, as in the paper. Each build,
`ifqa data causalqa --from FOLDER`, is its own process, timed from its start, with the hashing of its input. The peak is the
process's resident memory, which should not grow with the rows. CPU seconds say more than the wall clock on a busy machine.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PASSAGES = 100_000
WORDS = 30_000


def write_rows(folder: Path, rows: int) -> None:
    """Write questions of 9 words, and 100,000 passages of 100 words."""
    chance = random.Random(0)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(WORDS)]
    folder.mkdir(parents=True)
    with (folder / "PAQ.metadata.jsonl").open("w") as out:
        for _ in range(rows):
            first = "why does" if chance.random() < 0.012 else "who saw"
            question, text = f"{first} {' '.join(chance.choices(words, k=7))}", " ".join(chance.choices(words, k=3))
            answer = {"passage_id": str(chance.randint(1, PASSAGES)), "offset": 7, "text": text, "extractor": "L"}
            scores = {"subsets": ["L1", "L4"], "answer": text, "passage_score": -1.25}
            out.write(json.dumps({"question": question, **scores, "answers": [answer]}) + "\n")
    with (folder / "psgs_w100.tsv").open("w") as out:
        out.write("id\ttext\ttitle\n")
        for number in range(1, PASSAGES + 1):
            out.write(f"{number}\t{' '.join(chance.choices(words, k=100))}\tTitle {number}\n")


def build(folder: Path) -> tuple[float, float, float, str]:
    """Seconds, CPU seconds, peak MB, and the command's line on PAQ."""
    command = [sys.executable, "-m", "ifqa", "data", "causalqa", "--from", "publishers"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    started = time.monotonic()
    with (folder / "out.txt").open("w") as out:
        child = subprocess.Popen(command, cwd=folder, stdout=out, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, "the build failed"
    line = (folder / "out.txt").read_text().splitlines()[0]
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 2_000_000])
    arguments = parser.parse_args()
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_rows(folder / "publishers/paq", rows)
            megabytes = sum(path.stat().st_size for path in (folder / "publishers/paq").iterdir()) / 1e6
            seconds, cpu, peak, line = build(folder)
            cost = f"{seconds:.1f} s, CPU {cpu:.1f} s, peak {peak:.0f} MB"
            print(f"{rows:,} rows, {megabytes:,.0f} MB: {cost}; {line}", flush=True)


if __name__ == "__main__":
    main()
