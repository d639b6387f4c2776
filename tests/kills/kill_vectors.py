"""Kill encoding and index building at random moments, resume, and compare with an undisturbed build.

    python tests/kills/kill_vectors.py [--kills 10] [--passages 3000]

Each round builds a corpus's dense index with FAISS, is killed with SIGKILL after a random time, and is run again to its
end. Vectors must be the same bytes, and the index must give the same rankings and scores. Prints where each kill fell.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = (
    "river mill bridge town king ship storm cup rail letter harbour play tower coach year of the and in was by".split()
)

# Small pieces and parts, so that a kill can fall between them
IFQA = """
import ifqa.cli.app, ifqa.retrieval.vectors.faiss_index, ifqa.retrieval.vectors.sharded_build
ifqa.retrieval.vectors.sharded_build.PIECE = 256
ifqa.retrieval.vectors.faiss_index.build.__kwdefaults__["part_passages"] = 512
ifqa.cli.app.main()
"""

RANKINGS = """
from pathlib import Path
from ifqa.records import Question
from ifqa.retrieval.dense import Dense
questions = [Question(str(n), text) for n, text in enumerate(("the king of the river town", "a storm in the harbour", "rail"))]
for ranking in Dense(Path("indexes/made/dense")).search(questions, 20):
    print([(hit.passage_id, hit.score) for hit in ranking])
"""


def main() -> int:
    """Build, kill, compare, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--passages", type=int, default=3000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        write_corpus(top, arguments.passages)
        run(top, "passages", "made")
        started = time.monotonic()
        run(top, "index", "made", "--index", "dense")
        seconds = time.monotonic() - started
        whole, answers = vectors_of(top), rankings(top)
        wrong = landed = 0
        for kill in range(arguments.kills):
            shutil.rmtree(top / "indexes/made/dense")
            after = random.Random(kill).uniform(0.25, 1.0) * seconds
            landed += (fell := kill_after(top, after)) != "nothing"
            run(top, "index", "made", "--index", "dense")
            same = vectors_of(top) == whole and rankings(top) == answers
            wrong += not same
            print(
                f"kill {kill + 1} after {after:.1f} of {seconds:.1f} s, in {fell}: {'same' if same else 'DIFFERENT'}",
                flush=True,
            )
        print(f"{landed} of {arguments.kills} kills landed, {wrong} differ")
    return int(wrong > 0)


def write_corpus(top: Path, count: int) -> None:
    """Passages of random words, and a corpus of several pieces and an index in several parts."""
    draw = random.Random(0)
    lines = [f"p{n}\t{' '.join(draw.choices(WORDS, k=draw.randint(20, 60)))}\ttitle {n}\n" for n in range(count)]
    (top / "passages.tsv").write_text("id\ttext\ttitle\n" + "".join(lines))
    (top / "indexes").mkdir()
    (top / "indexes/made.toml").write_text(
        '[[passages.sources]]\nformat = "passages"\npath = "passages.tsv"\n\n'
        '[index.dense]\nretriever = "dense"\nfactory = "IVF16,SQ8"\n'
    )


def run(top: Path, *arguments: str) -> None:
    """`ifqa` to its end, in a folder."""
    subprocess.run([sys.executable, "-c", IFQA, *arguments], cwd=top, check=True, capture_output=True)


def kill_after(top: Path, seconds: float) -> str:
    """Start a build, kill it, and return what it was doing."""
    command = [sys.executable, "-c", IFQA, "index", "made", "--index", "dense"]
    process = subprocess.Popen(
        command, cwd=top, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    else:
        return "nothing"
    partial = top / "indexes/made/.dense.partial"
    if any(partial.glob("faiss-*.index")):
        return "the index"
    done = len(list(partial.glob("vectors-*.npy")))
    return f"the vectors, {done} shards done"


def vectors_of(top: Path) -> dict[str, bytes]:
    """Every file of the index except its manifest, which has the time."""
    return {
        path.name: path.read_bytes() for path in (top / "indexes/made/dense").iterdir() if path.name != "manifest.json"
    }


def rankings(top: Path) -> str:
    """The rankings of the index, as text."""
    found = subprocess.run([sys.executable, "-c", RANKINGS], cwd=top, check=True, capture_output=True, text=True)
    return found.stdout


if __name__ == "__main__":
    sys.exit(main())
