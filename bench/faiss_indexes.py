"""Measures recall, size and memory of FAISS indexes, and checks the estimates of `ifqa check`.

    python bench/faiss_indexes.py recall CORPUS [--index dense] [--split full-dev] [--factories ...]
    python bench/faiss_indexes.py memory [--vectors 1000000] [--dimension 384] [--factories ...]

`recall` builds each index over the vectors of a built dense index, searches it for the split's
questions, and prints gold recall, the difference from exact search with its p, and the size.
`memory` builds each index over random vectors and searches 100 queries, each step in its own
process. It prints the peak of resident memory above that after the imports, and the estimate of
`ifqa.retrieval.vectors.vector_index` (twice a part; the whole). Linux only.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import open_benchmark
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.vectors.vector_index import (
    PART_VECTORS,
    FaissIndex,
    FlatIndex,
    build_index,
    estimate_bytes,
)
from ifqa.retrieval.vectors.vector_store import Shards, ShardWriter
from ifqa.scoring.per_question import score_ranking
from ifqa.scoring.statistics import paired_randomization

CUTOFFS = (1, 5, 20)
FACTORIES = ["Flat", "SQfp16", "SQ8", "HNSW32", "IVF256,SQ8", "IVF256,PQ48", "OPQ96,IVF256,PQ96"]
STEP = """
import json, re, sys
import faiss, numpy as np
from pathlib import Path
from ifqa.retrieval.vectors.vector_index import FaissIndex, build_index
from ifqa.retrieval.vectors.vector_store import Shards
def peak():  # ru_maxrss would start at the parent's peak
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
step, folder, factory = sys.argv[1], Path(sys.argv[3]), sys.argv[4]
shards, before = Shards(Path(sys.argv[2])), peak()
dimension = shards.dimension()
if step == "build":
    build_index(shards, folder, factory)
else:
    queries = np.random.default_rng(1).standard_normal((100, dimension)).astype("float32")
    FaissIndex(folder, (len(shards), dimension)).search(queries, 100)
print(json.dumps({"peak": peak() - before}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["recall", "memory"])
    parser.add_argument("corpus", nargs="?")
    parser.add_argument("--index", default="dense")
    parser.add_argument("--split", default="full-dev")
    parser.add_argument("--factories", nargs="+", default=FACTORIES)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=384)
    arguments = parser.parse_args()
    (recall if arguments.what == "recall" else memory)(arguments)


def recall(arguments: argparse.Namespace) -> None:
    corpus = Path("indexes") / arguments.corpus
    folder = corpus / arguments.index
    store = PassageStore(corpus / "passages")
    vectors = Shards(folder)
    shape = (len(vectors), vectors.dimension())
    questions = open_benchmark("ifqa").questions(arguments.split)
    encoder = Dense(Dense.Settings(), index=folder).encoder
    queries = encoder.encode_queries([question.text for question in questions])

    def measure(searcher: Any) -> tuple[dict[int, list[float]], float, np.ndarray[Any, Any]]:
        started = time.perf_counter()
        _, rows = searcher.search(queries, max(CUTOFFS))
        seconds = time.perf_counter() - started
        values: dict[int, list[float]] = {k: [] for k in CUTOFFS}
        for question, ranking in zip(questions, rows.tolist(), strict=True):
            texts = [
                passage.text
                for passage in store.get(vectors.ids([row for row in ranking if row >= 0]))
            ]
            scores = score_ranking(question, texts, CUTOFFS)
            for k in CUTOFFS:
                values[k].append(scores[f"gold_any@{k}"])
        return values, seconds, rows

    exact, seconds, exact_rows = measure(FlatIndex(vectors))
    share = {k: 100 * sum(values) / len(questions) for k, values in exact.items()}
    print(f"{shape[0]:,} vectors of {shape[1]}; {len(questions)} questions")
    cells = "  ".join(f"@{k} {share[k]:5.2f}" for k in CUTOFFS)
    print(
        f"{'exact':20} {2 * shape[0] * shape[1] / 1e6:8.1f} MB          "
        f"search {seconds:6.2f} s  {cells}"
    )
    for factory in arguments.factories:
        with tempfile.TemporaryDirectory() as name:
            started = time.perf_counter()
            facts = build_index(vectors, Path(name), factory)
            built = time.perf_counter() - started
            values, seconds, rows = measure(FaissIndex(Path(name), shape))
        differences = {k: 100 * sum(values[k]) / len(questions) - share[k] for k in CUTOFFS}
        ps = {k: paired_randomization(values[k], exact[k]) for k in CUTOFFS}
        cells = "  ".join(f"@{k} {differences[k]:+5.2f} (p {ps[k]:.2f})" for k in CUTOFFS)
        same = float(
            np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(rows, exact_rows, strict=True)])
        )
        size = f"{facts['bytes'] / 1e6:8.1f} MB  build {built:6.1f} s  search {seconds:6.2f} s"
        print(f"{factory:20} {size}  {cells}  {same:.1%} of exact's first 20", flush=True)


def memory(arguments: argparse.Namespace) -> None:
    """Print a line for each index: measured and estimated bytes for building and searching."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "vectors"
        folder.mkdir()
        write_random(folder, arguments.vectors, arguments.dimension)
        for factory in arguments.factories:
            index = Path(name) / "index"
            index.mkdir()
            part = estimate_bytes(
                factory, min(PART_VECTORS, arguments.vectors), arguments.dimension
            )
            whole = estimate_bytes(factory, arguments.vectors, arguments.dimension)
            cells = []
            for step, estimate in {"build": 2 * part, "search": whole}.items():
                peak = run(step, folder, index, factory)
                cells.append(
                    f"{step} {peak / 1e6:8.0f} MB, estimated {estimate / 1e6:8.0f} MB "
                    f"({estimate / peak - 1:+.0%})"
                )
            print(f"{factory:20} {'  '.join(cells)}", flush=True)
            shutil.rmtree(index)


def write_random(folder: Path, count: int, dimension: int) -> None:
    writer = ShardWriter(folder)
    draw = np.random.default_rng(0)
    keys = {}
    for number, start in enumerate(range(0, count, 4096)):
        rows = draw.standard_normal((min(4096, count - start), dimension)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        keys[number] = "random"
        writer.add(
            number,
            "random",
            [f"p{start + row}" for row in range(len(rows))],
            {"vectors": rows.astype(np.float16)},
        )
    writer.finish(keys)


def run(step: str, vectors: Path, folder: Path, factory: str) -> float:
    command = [sys.executable, "-c", STEP, step, str(vectors), str(folder), factory]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(process.stdout.splitlines()[-1])["peak"])


if __name__ == "__main__":
    main()
