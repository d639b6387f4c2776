"""The cost of a corpus at different sizes: build seconds, memory, bytes, and each retriever's ms
per question.

    python bench/scale.py [--copies 0 2.4] [--dense CORPUS] [--timed 100] [--to FILE.json]
    python bench/scale.py --plot FILE.svg --times FILE.json --recall table.json [table.json ...]

A corpus has the gold passages of IfQA's full-train and full-dev, the articles in `data/articles`,
and `--copies` times as many articles with changed names. A name, a capitalised word of a title,
becomes another name, the same throughout an article and another in each copy. Years and other
numbers are shifted by the number of the copy. So words, articles and passages keep their sizes, and
a copy does not repeat an article's facts.

`ifqa index` builds each corpus as `indexes/scale-COPIES`. Memory is the peak of all its processes
together. The first questions of full-dev are then asked one at a time, of all corpora in turn, so
that other load affects all. Times are the median and the 95th percentile.

Rows are named as in `retrieval.py`: "bm25 weighted" gets the question and its names, "ranker
weighted" reorders its 100 best, in a row "reranked" the cross-encoder reorders the first 30, in a
row "read" the span reader. CORPUS, built before, also has a dense index: "hybrid names" fuses both.

`--plot` draws recall@1 and @5, from the tables of `retrieval.py --to`, over the times in the file
of `--to`.
"""

import argparse
import json
import logging
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Any

from retrieval import K
from wikipedia import resident

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import open_benchmark
from ifqa.records import Hit, Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.composition import Part
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.fusion import Fusion
from ifqa.retrieval.linear_ranker import Ranker
from ifqa.retrieval.rerank import Rerank
from ifqa.storage.files import read_json, read_lines, write_json, write_jsonl

logger = logging.getLogger(__name__)

ARTICLES = Path("data/articles")
_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_NUMBER = re.compile(r"\b\d{2,4}\b")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--copies", type=float, nargs="+", default=[0.0, 2.4], help="changed copies of the articles"
    )
    parser.add_argument(
        "--dense", metavar="CORPUS", help="also time this built corpus with a dense index"
    )
    parser.add_argument(
        "--timed", type=int, default=100, help="questions that are asked one at a time"
    )
    parser.add_argument("--to", type=Path, help="a file for the figures")
    parser.add_argument(
        "--plot", type=Path, help="measure nothing; draw a picture of recall against time"
    )
    parser.add_argument("--times", type=Path, help="the file of --to, for the picture")
    parser.add_argument(
        "--recall", type=Path, nargs="+", default=[], help="tables of retrieval.py, for the picture"
    )
    arguments = parser.parse_args()
    if arguments.plot:
        recall = {name: row for path in arguments.recall for name, row in read_json(path).items()}
        plot(read_json(arguments.times), recall, arguments.plot)
        return
    corpora = {
        f"scale-{copies:g}": {"build": build(f"scale-{copies:g}", copies)}
        for copies in arguments.copies
    }
    retrievers = {name: sparse_retrievers(Path("indexes") / name) for name in corpora}
    if arguments.dense:
        folder = Path("indexes") / arguments.dense
        corpora[arguments.dense] = {"build": {"passages": len(PassageStore(folder / "passages"))}}
        retrievers[arguments.dense] = hybrid_retrievers(folder)
    questions = open_benchmark("ifqa").questions("full-dev")[: arguments.timed]
    for name, times in time_questions(retrievers, questions).items():
        corpora[name]["ms"] = {
            retriever: [
                1000 * sorted(seconds)[len(seconds) * percent // 100] for percent in (50, 95)
            ]
            for retriever, seconds in times.items()
        }
    print(markdown(corpora))
    if arguments.to:
        write_json(arguments.to, corpora)


def build(name: str, copies: float) -> dict[str, float]:
    """Write the corpus and build its passages and index; returns the cost."""
    folder = Path("data") / name
    index = Path("indexes") / name
    write_articles(folder, copies)
    sources = ['format = "gold"\nbenchmark = "ifqa"\nsplits = ["full-train", "full-dev"]\n']
    sources += [
        f'format = "articles"\npath = "{path}"\n'
        for path in [ARTICLES, *([folder] if copies else [])]
    ]
    corpus = "".join(f"[[passages.sources]]\n{source}\n" for source in sources)
    Path(f"indexes/{name}.toml").write_text(f'{corpus}[index.bm25]\nretriever = "bm25"\n')
    shutil.rmtree(index, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    peak = 0
    environment = {**os.environ, "IFQA_SCALE": name}
    child = subprocess.Popen(
        [sys.executable, "-m", "ifqa", "index", name, "--quiet"], env=environment
    )
    while child.poll() is None:
        peak = max(peak, sum(resident(f"IFQA_SCALE={name}".encode())))
        time.sleep(0.1)
    if child.returncode:
        raise SystemExit(f"scale.py: ifqa index {name} ended with {child.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "passages": len(PassageStore(index / "passages")),
        "seconds": time.monotonic() - began,
        "cpu seconds": cpu,
        "memory": peak,
        "passages bytes": size(index / "passages"),
        "index bytes": size(index / "bm25"),
    }


def write_articles(folder: Path, copies: float) -> None:
    """Write `copies` times as many articles as there are, with changed names."""
    articles = [
        json.loads(line)
        for path in sorted(ARTICLES.glob("*.jsonl*"))
        for _, line in read_lines(path)
    ]
    names = sorted({name for article in articles for name in _NAME.findall(article["title"])})
    known = frozenset(names)
    logger.info(
        f"{folder}: {copies * len(articles):,.0f} articles with changed names, of {len(names):,}"
    )
    shutil.rmtree(folder, ignore_errors=True)
    pairs = islice(
        ((copy, article) for copy in count(1) for article in articles),
        round(copies * len(articles)),
    )
    write_jsonl(
        folder / "articles.jsonl",
        (change_names(article, copy, names, known) for copy, article in pairs),
    )


def change_names(
    article: dict[str, str], copy: int, names: Sequence[str], known: frozenset[str]
) -> dict[str, str]:
    """An article with another name for each of its names, and numbers shifted by the number of the
    copy.
    """
    draw = random.Random(f"{copy} {article['id']}")
    renamed = dict[str, str]()

    def rename(match: re.Match[str]) -> str:
        return renamed.setdefault(match[0], draw.choice(names)) if match[0] in known else match[0]

    def change(text: str) -> str:
        return _NUMBER.sub(lambda match: str(int(match[0]) + copy), _NAME.sub(rename, text))

    return {
        "id": f"{article['id']}-{copy}",
        "title": change(article["title"]),
        "text": change(article["text"]),
    }


def time_questions(
    retrievers: dict[str, dict[str, Any]], questions: Sequence[Question]
) -> dict[str, dict[str, list[float]]]:
    times: dict[str, dict[str, list[float]]] = {name: {} for name in retrievers}
    for retriever in dict.fromkeys(chain.from_iterable(retrievers.values())):
        names = [name for name in retrievers if retriever in retrievers[name]]
        for name in names:
            retrievers[name][retriever].search(questions[-3:], K)  # opens files, starts threads
            times[name][retriever] = []
        for question in questions:
            for name in names:
                began = time.perf_counter()
                retrievers[name][retriever].search([question], K)
                times[name][retriever].append(time.perf_counter() - began)
    return times


def sparse_retrievers(folder: Path) -> dict[str, Any]:
    bm25 = Part(BM25(BM25.Settings(), index=folder / "bm25"), K, 1.0, "names")
    get = PassageStore(folder / "passages").get
    ranker = Ranker(Ranker.Settings(), parts=[bm25], passages=get)
    rows = {
        "bm25 weighted": AsPart(bm25),
        "ranker weighted": ranker,
        "bm25 weighted reranked": reranked(bm25, get),
    }
    return rows | rerankings("ranker weighted", ranker, get)


def hybrid_retrievers(folder: Path) -> dict[str, Any]:
    get = PassageStore(folder / "passages").get
    bm25 = Part(BM25(BM25.Settings(), index=folder / "bm25"), K, 1.0, "names")
    dense = Part(Dense(Dense.Settings(), index=folder / "dense"), K, 1.0, "question")
    fusion = Fusion(Fusion.Settings(), parts=[bm25, dense])
    return {
        "dense question": AsPart(dense),
        "hybrid names": fusion,
        **rerankings("hybrid names", fusion, get),
    }


def rerankings(name: str, retriever: Any, get: Any) -> dict[str, Any]:
    """A retriever's first passages reordered by the cross-encoder, by the span reader, and by
    both.
    """
    read = reranked(Part(retriever, K), get, model="extractive")
    return {
        f"{name} reranked": reranked(Part(retriever, K), get),
        f"{name} read": read,
        f"{name} read reranked": reranked(Part(read, K), get, model_weight=1 / 3),
    }


def reranked(part: Part, get: Any, **settings: Any) -> Any:
    return Rerank(Rerank.Settings(depth=30, **settings), parts=[part], passages=get)


class AsPart:
    """A retriever that gets the query of a part."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def search(self, questions: Sequence[Question], _: int) -> list[list[Hit]]:
        return self._part.search(questions)


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def markdown(corpora: dict[str, Any]) -> str:
    lines = [
        "| passages | build, s | CPU, s | memory, MB | passages, MB | index, MB |",
        "|---|---|---|---|---|---|",
    ]
    for cost in (corpus["build"] for corpus in corpora.values() if "seconds" in corpus["build"]):
        megabytes = [
            f"{cost[key] / 1e6:,.0f}" for key in ("memory", "passages bytes", "index bytes")
        ]
        seconds = [f"{cost[key]:,.0f}" for key in ("seconds", "cpu seconds")]
        lines.append("| " + " | ".join([f"{cost['passages']:,}", *seconds, *megabytes]) + " |")
    lines += ["", "| passages | retriever | ms | ms p95 |", "|---|---|---|---|"]
    for corpus in corpora.values():
        for retriever, (middle, high) in corpus["ms"].items():
            lines.append(
                f"| {corpus['build']['passages']:,} | {retriever} | {middle:.1f} | {high:.1f} |"
            )
    return "\n".join(lines)


def plot(corpora: dict[str, Any], recall: dict[str, Any], path: Path) -> None:
    """Draw recall over the ms per question, for the rows in both and the corpora of the first one's
    size.
    """
    from matplotlib.figure import Figure

    size = next(iter(corpora.values()))["build"]["passages"]
    tables = [corpus["ms"] for corpus in corpora.values() if corpus["build"]["passages"] == size]
    times = {name: ms for table in tables for name, (ms, _) in table.items() if name in recall}
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    for k, marker in ((5, "s"), (1, "o")):
        values = {name: recall[name][f"gold_any@{k}"]["value"] for name in times}
        axis.plot(
            [times[name] for name in values],
            list(values.values()),
            marker,
            label=f"gold recall @{k}",
        )
    for number, (name, ms) in enumerate(times.items(), start=1):
        for k in (1, 5):
            point = (ms, recall[name][f"gold_any@{k}"]["value"])
            axis.annotate(str(number), point, (4, 4), textcoords="offset points", fontsize=8)
    axis.set_xscale("log")
    axis.set_xlabel(f"ms a question, {size:,} passages, two CPU cores")
    axis.set_ylabel("gold recall, %")
    title = "\n".join(f"{number}  {name}" for number, name in enumerate(times, start=1))
    labels = axis.get_legend_handles_labels()
    figure.legend(*labels, loc="outside right upper", fontsize=8, title=title, title_fontsize=8)
    figure.savefig(path, dpi=200)


if __name__ == "__main__":
    main()
