"""Compares the retriever "milvus" with this project's own indexes: recall, time, memory, clients.

And kills inserts.

    python bench/milvus.py CORPUS [--benchmark ifqa] [--split full-dev] [--limit N] \
        [--clients 1 8 64] [--kills 10]

CORPUS has the passages and the index "bm25", and may have the index "dense" (`ifqa index CORPUS`).
Milvus runs as Milvus Lite: in a file of this process, and as its own server in another. Recall is
that of `retrieval.py`, with a paired test against BM25 by Lucene. Milliseconds are of a question
asked alone, and of questions asked by several clients at once, each in turn. Memory is the
server's. `--kills` kills a build at random moments, and compares its rankings with those of an
uninterrupted one.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "stand_ins"))
import psutil
from milvus_server import milvus_server
from retrieval import Rows, judge, markdown, recall_table

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import load_plugin, open_benchmark
from ifqa.records import Question
from ifqa.retrieval.fusion import fuse_by_rank, top_hits
from ifqa.retrieval.milvus import Milvus
from ifqa.storage.files import read_json

K = 100


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("--benchmark", default="ifqa")
    parser.add_argument("--split", default="full-dev")
    parser.add_argument("--limit", type=int, help="first N questions")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--kills", type=int, default=0)
    arguments = parser.parse_args()
    questions = open_benchmark(arguments.benchmark).questions(arguments.split)[: arguments.limit]
    corpus = Path("indexes") / arguments.corpus
    passages = corpus / "passages"
    dense = corpus / "dense"
    model = {"model": read_json(dense / "dense.json")["model"]} if dense.exists() else {}
    rows: Rows = {"bm25": load_plugin("retriever", "bm25")(corpus / "bm25").search(questions, K)}
    if model:
        rows["dense"] = load_plugin("retriever", "dense")(dense).search(questions, K)
        rows["rrf"] = fuse(rows["bm25"], rows["dense"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.kills:
            kill_builds(passages, folder, questions, arguments.kills)
            return
        with milvus_server(folder / "data") as (uri, server):
            process = psutil.Process(server.pid)
            print(
                f"insert: {build_seconds(passages, folder / 'file'):,.0f} s into a file, BM25 alone"
            )
            print(
                f"insert: {build_seconds(passages, folder / 'served', uri=uri, **model):,.0f} "
                f"s on the server, {model}"
            )
            print(
                f"server: {process.memory_info().rss / 1e6:,.0f} MB, file: "
                f"{disk(folder / 'file') / 1e6:,.0f} MB of disk"
            )
            for fields in (["bm25"], ["dense"], ["bm25", "dense"]) if model else (["bm25"],):
                rows["milvus " + " + ".join(fields)] = Milvus(
                    folder / "served", fields=fields
                ).search(questions, K)
            print(markdown(recall_table(rows, judge(rows, questions, PassageStore(passages)))))
            retrievers = {"bm25": load_plugin("retriever", "bm25")(corpus / "bm25")}
            retrievers |= {
                "milvus, file": Milvus(folder / "file"),
                "milvus, server": Milvus(folder / "served", fields=["bm25"]),
            }
            for title, retriever in retrievers.items():
                for clients in arguments.clients:
                    print(
                        f"{title}, {clients} clients: "
                        f"{ask(retriever.search, questions[:64], clients)}",
                        flush=True,
                    )
            print(f"server: {process.memory_info().rss / 1e6:,.0f} MB")


def fuse(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [top_hits(fuse_by_rank(pair, [1.0, 1.0]), K) for pair in zip(first, second, strict=True)]


def build_seconds(passages: Path, folder: Path, **settings: Any) -> float:
    folder.mkdir()
    started = time.monotonic()
    Milvus.build(passages, folder, **settings)
    return time.monotonic() - started


def disk(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def ask(search: Callable[..., Any], questions: Sequence[Question], clients: int) -> str:
    """The median milliseconds of a question, and questions per second, with clients that ask one
    after another.
    """

    def seconds(question: Question) -> float:
        started = time.monotonic()
        search([question], 20)
        return time.monotonic() - started

    seconds(questions[0])
    started = time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        times = list(pool.map(seconds, questions))
    return (
        f"{1000 * median(times):,.0f} ms, {len(times) / (time.monotonic() - started):,.1f} "
        "questions a second"
    )


def kill_builds(passages: Path, folder: Path, questions: Sequence[Question], kills: int) -> None:
    code = (
        "import sys, pathlib; from ifqa.retrieval.milvus import Milvus; "
        "Milvus.build(*map(pathlib.Path, sys.argv[1:]))"
    )
    seconds = build_seconds(passages, folder / "whole")
    expected = Milvus(folder / "whole").search(questions, K)
    draw = random.Random(0)
    for number in range(kills):
        index = folder / f"killed {number}"
        index.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(passages), str(index)], stderr=subprocess.DEVNULL
        )
        moment = draw.uniform(0.5, 1.0) * (seconds + 2)
        time.sleep(moment)
        process.kill()
        process.wait()
        Milvus.build(passages, index)
        same = Milvus(index).search(questions, K) == expected
        print(
            f"killed after {moment:.1f} s: {'the same rankings' if same else 'OTHER RANKINGS'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
