"""Builds the corpus of causal questions from synthetic PAQ files: seconds and peak memory.

    python bench/causalqa.py --rows 1000000 2000000 [--plain]

Rows have the layout of PAQ.metadata.jsonl with passages of psgs_w100.tsv (--plain: PAQ.jsonl, without passages); about 1.2% of
them are causal, as in the paper. Each build is a process of its own, `ifqa data causalqa --from FOLDER`, timed from its start,
with the hashing of its input. The peak is the largest resident set of the process. Memory is flat if it does not grow with the
rows. CPU seconds are those of the process: on a busy machine the wall clock says less.
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


def write_rows(folder: Path, rows: int, plain: bool, seed: int = 0) -> None:
    """Write questions of 9 words, and 100,000 passages of 100 words."""
    chance = random.Random(seed)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(2, 9))) for _ in range(WORDS)]
    folder.mkdir(parents=True)
    with (folder / ("PAQ.jsonl" if plain else "PAQ.metadata.jsonl")).open("w") as out:
        for _ in range(rows):
            first = "why does" if chance.random() < 0.012 else "who saw"
            record: dict[str, object] = {"question": f"{first} {' '.join(chance.choices(words, k=7))}"}
            answer = " ".join(chance.choices(words, k=3))
            if plain:
                record["answer"] = [answer]
            else:
                place = {"passage_id": str(chance.randint(1, PASSAGES)), "offset": 7, "text": answer, "extractor": "L"}
                record |= {"subsets": ["L1", "L4"], "answer": answer, "passage_score": -1.25, "answers": [place]}
            out.write(json.dumps(record) + "\n")
    if not plain:
        with (folder / "psgs_w100.tsv").open("w") as out:
            out.write("id\ttext\ttitle\n")
            for number in range(1, PASSAGES + 1):
                out.write(f"{number}\t{' '.join(chance.choices(words, k=100))}\tTitle {number}\n")


def build(folder: Path) -> tuple[float, float, float, str]:
    """Seconds by the clock and of the CPU, peak MB, and what the command printed of PAQ."""
    command = [sys.executable, "-m", "ifqa", "data", "causalqa", "--from", "publishers"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    started = time.monotonic()
    with (folder / "out.txt").open("w") as out:
        child = subprocess.Popen(command, cwd=folder, stdout=out, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
    assert status == 0, "the build failed"
    told = (folder / "out.txt").read_text().splitlines()[0]
    return time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 2_000_000])
    parser.add_argument("--plain", action="store_true", help="PAQ.jsonl, without passages")
    arguments = parser.parse_args()
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_rows(folder / "publishers/paq", rows, arguments.plain)
            megabytes = sum(path.stat().st_size for path in (folder / "publishers/paq").iterdir()) / 1e6
            seconds, cpu, peak, told = build(folder)
            print(
                f"{rows:,} rows, {megabytes:,.0f} MB: {seconds:.1f} s, CPU {cpu:.1f} s, peak {peak:.0f} MB; {told}",
                flush=True,
            )


if __name__ == "__main__":
    main()
