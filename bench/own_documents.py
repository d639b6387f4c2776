"""What `ifqa ask --docs` takes over a folder of text files, beside an `ask` over an equal corpus that is ready.

    python bench/own_documents.py FOLDER [--files 10000] [--times 3]

Writes the files, of 300 words each from the bundled encyclopedia, into FOLDER/docs, works in FOLDER/work, and prints a line for
each step: seconds, seconds of the processors, and the largest memory of a process. "Equal and ready" is a corpus of format
"passages" with the same passages, built before. The order of the two is turned at each time, and medians are compared.
"""

import argparse
import os
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

from ifqa.corpus.passage_store import PassageStore
from ifqa.storage.resources import find_resource

QUESTION = "If the rope had been cut, who would have hauled the trains?"
WORDS = 300  # of a file


def main() -> None:
    """Measure every step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=3, help="how often the last two steps are measured")
    arguments = parser.parse_args()
    docs, work = arguments.folder / "docs", arguments.folder / "work"
    shutil.rmtree(arguments.folder, ignore_errors=True)
    (work / "indexes").mkdir(parents=True)
    write(docs, arguments.files)
    command = ["ask", QUESTION, "--docs", str(docs.resolve())]
    measure(f"first ask, {arguments.files:,} files", command, work)
    (docs / "00/0.txt").write_text("The ropes were hauled by the porter Alma Reyes.\n")
    measure("one file changed", command, work)
    name = equal(work)
    measure("building the equal corpus", ["index", "equal"], work)
    taken: dict[str, list[tuple[float, float]]] = {}
    both = {"unchanged": command, "equal and ready": ["ask", QUESTION, "--corpus", "equal"]}
    for number in range(arguments.times):
        for step in sorted(both, reverse=bool(number % 2)):
            taken.setdefault(step, []).append(measure(step, both[step], work))
    for place, what in enumerate(("seconds", "seconds of the processors")):
        middle = {step: statistics.median(one[place] for one in several) for step, several in taken.items()}
        ratio = middle["unchanged"] / middle["equal and ready"]
        line = f"{name}: unchanged {middle['unchanged']:.2f}, equal and ready {middle['equal and ready']:.2f} {what}"
        print(f"{line}: {ratio:.2f} times")


def write(docs: Path, count: int) -> None:
    """Write the files, a hundred in a folder: words of the encyclopedia from seeded places, so that no two are equal."""
    source = find_resource("sample/encyclopedia.xml")
    assert source
    words, draw = source.read_text(encoding="utf-8").split(), random.Random(0)
    for number in range(count):
        file = docs / f"{number // 100:02d}/{number % 100}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        start = draw.randrange(len(words) - WORDS)
        file.write_text(f"Note {number}. {' '.join(words[start : start + WORDS])}\n", encoding="utf-8")


def equal(work: Path) -> str:
    """Write a corpus file over a copy of the passages of the folder's corpus; gives the name of that."""
    [made] = work.glob("indexes/docs-*/passages")
    with open(work / "equal.jsonl", "wb") as to:
        for shard in sorted(made.glob("passages-*.jsonl")):
            to.write(shard.read_bytes())
    count = len(PassageStore(made))
    text = '[[passages.sources]]\nformat = "passages"\npath = "equal.jsonl"\n[index.bm25]\nretriever = "bm25"\n'
    (work / "indexes/equal.toml").write_text(text)
    return f"{count:,} passages"


def measure(step: str, command: list[str], work: Path) -> tuple[float, float]:
    """Run a command of ifqa, which must succeed; seconds, and seconds of its processors and of its workers'."""
    started = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), 1), (os.POSIX_SPAWN_DUP2, nothing.fileno(), 2)]
        before = Path.cwd()
        os.chdir(work)
        process = os.posix_spawn(
            sys.executable, [sys.executable, "-m", "ifqa", *command], os.environ, file_actions=actions
        )
        os.chdir(before)
        _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"ifqa {' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    seconds, cpu = time.monotonic() - started, used.ru_utime + used.ru_stime
    print(f"{step}: {seconds:.1f} s, {cpu:.1f} s of the processors, {used.ru_maxrss / 1e6:.2f} GB", flush=True)
    return seconds, cpu


if __name__ == "__main__":
    main()
