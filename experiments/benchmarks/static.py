"""Builds a static index, and prints its speed, its size, and its gold recall, alone and fused with BM25.

    python experiments/benchmarks/static.py CORPUS [--questions 600] [--folder FOLDER]

CORPUS has an index "bm25", which is asked the question and its names once more. FOLDER gets the static index (default: a
temporary folder). Seconds are of the processor, on one core. "fused W": the static ranking has the weight W, BM25's has 1.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

import torch
from retrieval import control_markdown, controlled, judged, markdown, scored

from ifqa.corpus.store import PassageStore
from ifqa.plugins import load, open_benchmark
from ifqa.retrieval.fusion import best, by_score
from ifqa.retrieval.queries import rewrite
from ifqa.retrieval.static import Static

K, WEIGHTS = 100, (0.1, 0.25, 0.5, 1.0)


def main() -> None:
    """Build, search, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--split", default="full-train")
    parser.add_argument("--questions", type=int, default=600, help="drawn with seed 0")
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    corpus = Path("indexes") / arguments.corpus
    store = PassageStore(corpus / "passages")
    folder = arguments.folder or Path(tempfile.mkdtemp())
    seconds = [_build(corpus / "passages", folder), 0.0]
    for path in folder.glob("vectors*"):  # the table stays, so a second build makes the vectors alone
        path.unlink()
    seconds[1] = _build(corpus / "passages", folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(
        f"{len(store):,} passages: {seconds[0] - seconds[1]:.0f} s for the table, then {len(store) / seconds[1]:,.0f} a second"
    )
    print(f"{size / 1e6:.1f} MB")
    questions = open_benchmark("ifqa").questions(arguments.split)
    drawn = random.Random(0).sample(range(len(questions)), min(arguments.questions, len(questions)))
    questions = [questions[number] for number in sorted(drawn)]
    bm25 = load("retriever", "bm25")(corpus / "bm25").search(rewrite(questions, "names"), K)
    started = time.process_time()
    static = Static(folder).search(questions, K)
    print(f"{1000 * (time.process_time() - started) / len(questions):.1f} ms a question, all asked at once")
    rows = {"bm25 names": bm25, "static": static}
    for weight in WEIGHTS:
        both = zip(bm25, static, strict=True)
        rows[f"fused {weight}"] = [best(by_score(pair, [1.0, weight], [K, K]), K) for pair in both]
    own = judged(rows, questions, store)
    print(markdown(scored(rows, own)))
    print(control_markdown(controlled(rows, own)))


def _build(passages: Path, folder: Path) -> float:
    started = time.process_time()
    Static.build(passages, folder)
    return time.process_time() - started


if __name__ == "__main__":
    main()
