"""The time and memory of `ifqa ask --docs` over a folder of text files, next to `ask` over an equal
built corpus.

    python bench/own_documents.py FOLDER [--files 10000] [--times 3]

It writes the files, of 300 words each from the bundled encyclopedia, into FOLDER/docs, works in
FOLDER/work, and prints for each step seconds, CPU seconds, and the peak memory of a process. "Equal
and ready" is a corpus of format "passages" with the same passages, built before. The order of the
two alternates, and medians are compared.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

from ifqa.corpus.passage_store import PassageStore
from ifqa.storage.resources import find_resource

QUESTION = "If the rope had been cut, who would have hauled the trains?"
WORDS = 300  # of a file


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument(
        "--times", type=int, default=3, help="how often the last two steps are measured"
    )
    arguments = parser.parse_args()
    docs = arguments.folder / "docs"
    work = arguments.folder / "work"
    shutil.rmtree(arguments.folder, ignore_errors=True)
    (work / "indexes").mkdir(parents=True)
    write(docs, arguments.files)
    command = ["ask", QUESTION, "--docs", str(docs.resolve())]
    measure(f"first ask, {arguments.files:,} files", command, work)
    (docs / "00/0.txt").write_text("The ropes were hauled by the porter Alma Reyes.\n")
    measure("one file changed", command, work)
    count = copy_corpus(work)
    measure("building the equal corpus", ["index", "equal"], work)
    commands = {"unchanged": command, "equal and ready": ["ask", QUESTION, "--corpus", "equal"]}
    times: dict[str, list[tuple[float, float]]] = {step: [] for step in commands}
    for number in range(arguments.times):
        for step in sorted(commands, reverse=bool(number % 2)):
            times[step].append(measure(step, commands[step], work))
    for place, unit in enumerate(("seconds", "CPU seconds")):
        unchanged, ready = (
            statistics.median(pair[place] for pair in times[step]) for step in commands
        )
        medians = f"unchanged {unchanged:.2f}, equal and ready {ready:.2f} {unit}"
        print(f"{count:,} passages: {medians}: {unchanged / ready:.2f} times")


def write(docs: Path, count: int) -> None:
    """Write the files, a hundred in a folder: words of the encyclopedia from random places, so that
    no two are equal.
    """
    source = find_resource("sample/encyclopedia.xml")
    assert source
    words = source.read_text(encoding="utf-8").split()
    draw = random.Random(0)
    for number in range(count):
        file = docs / f"{number // 100:02d}/{number % 100}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        start = draw.randrange(len(words) - WORDS)
        file.write_text(
            f"Note {number}. {' '.join(words[start : start + WORDS])}\n", encoding="utf-8"
        )


def copy_corpus(work: Path) -> int:
    """Write the corpus `equal` with the passages of the folder's corpus; returns their number."""
    [passages] = work.glob("indexes/docs-*/passages")
    shards = sorted(passages.glob("passages-*.jsonl"))
    (work / "equal.jsonl").write_bytes(b"".join(shard.read_bytes() for shard in shards))
    text = (
        '[[passages.sources]]\nformat = "passages"\npath = '
        '"equal.jsonl"\n[index.bm25]\nretriever = "bm25"\n'
    )
    (work / "indexes/equal.toml").write_text(text)
    return len(PassageStore(passages))


def measure(step: str, command: list[str], work: Path) -> tuple[float, float]:
    """Run a command of ifqa, which must succeed; seconds, and CPU seconds with its workers'."""
    started = time.monotonic()
    null = subprocess.DEVNULL
    child = subprocess.Popen(
        [sys.executable, "-m", "ifqa", *command], cwd=work, stdout=null, stderr=null
    )
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"ifqa {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    seconds = time.monotonic() - started
    cpu = usage.ru_utime + usage.ru_stime
    print(f"{step}: {seconds:.1f} s, {cpu:.1f} CPU s, {usage.ru_maxrss / 1e6:.2f} GB", flush=True)
    return seconds, cpu


if __name__ == "__main__":
    main()
