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
from ifqa.plugins import open_benchmark
from ifqa.protocols import Retriever
from ifqa.records import Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.dense import Dense
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
    bm25 = BM25(BM25.Settings(), index=corpus / "bm25")
    rows: Rows = {"bm25": bm25.search(questions, K)}
    if model:
        rows["dense"] = Dense(Dense.Settings(), index=dense).search(questions, K)
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
                served = open_index(folder / "served", fields=fields)
                rows["milvus " + " + ".join(fields)] = served.search(questions, K)
            print(markdown(recall_table(rows, judge(rows, questions, PassageStore(passages)))))
            retrievers: dict[str, Retriever] = {
                "bm25": bm25,
                "milvus, file": open_index(folder / "file"),
                "milvus, server": open_index(folder / "served", fields=["bm25"]),
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
    Milvus.build(passages, folder, Milvus.BuildSettings(**settings))
    return time.monotonic() - started


def open_index(folder: Path, **settings: Any) -> Milvus:
    return Milvus(Milvus.Settings(**settings), index=folder)


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
        "Milvus.build(*map(pathlib.Path, sys.argv[1:]), Milvus.BuildSettings())"
    )
    seconds = build_seconds(passages, folder / "whole")
    expected = open_index(folder / "whole").search(questions, K)
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
        Milvus.build(passages, index, Milvus.BuildSettings())
        same = open_index(index).search(questions, K) == expected
        print(
            f"killed after {moment:.1f} s: {'the same rankings' if same else 'OTHER RANKINGS'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
