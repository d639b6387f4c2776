"""What a corpus costs at several sizes: build seconds, memory, bytes, and ms a question of each retriever.

    python bench/scale.py [--copies 0 2.4] [--dense CORPUS] [--timed 100] [--to FILE.json]
    python bench/scale.py --plot FILE.svg --times FILE.json --recall table.json [table.json ...]

A corpus has the gold passages of IfQA's full-train and full-dev, the articles in `data/articles`, and `--copies` times as many
further articles: the same ones with their names changed. A name, that is a word of a title with a capital, becomes another name,
the same one throughout an article and another in each copy. Years and other numbers move by the number of the copy. So words,
articles and passages keep their sizes, and a copy does not repeat an article's facts.

Each corpus is built from nothing by `ifqa index`, as `indexes/scale-COPIES`. Memory is the peak of all its processes together.
The first questions of full-dev are then asked one at a time of all corpora in turn, so that the machine's other work falls on
all. A question's time is the median, and beside it the 95th percentile.

Rows have the names of `retrieval.py`: "bm25 weighted" is asked the question and its names, "ranker weighted" reorders its 100
best, a row "reranked" has its first 30 reordered by the cross-encoder, and one "read" by the span reader. CORPUS, which is built
already, has a dense index too: "hybrid names" fuses both.

`--plot` draws recall@1 and @5, from the tables that `retrieval.py --to` wrote, over the times that this wrote.
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
from itertools import count, islice
from pathlib import Path
from typing import Any

from retrieval import K
from wikipedia import resident

from ifqa.corpus.passage_store import PassageStore
from ifqa.plugins import load_plugin, open_benchmark
from ifqa.records import Hit, Question
from ifqa.retrieval.composition import Part
from ifqa.storage.files import read_json, read_lines, write_json, write_jsonl

logger = logging.getLogger(__name__)

ARTICLES = Path("data/articles")
_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_NUMBER = re.compile(r"\b\d{2,4}\b")


def main() -> None:
    """Make, build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--copies", type=float, nargs="+", default=[0.0, 2.4], help="further articles, for one there is"
    )
    parser.add_argument("--dense", metavar="CORPUS", help="a built corpus with a dense index, to ask as well")
    parser.add_argument("--timed", type=int, default=100, help="questions that are asked one at a time")
    parser.add_argument("--to", type=Path, help="a file for the figures")
    parser.add_argument("--plot", type=Path, help="measure nothing; draw a picture of recall against time")
    parser.add_argument("--times", type=Path, help="the file of --to, for the picture")
    parser.add_argument("--recall", type=Path, nargs="+", default=[], help="tables of retrieval.py, for the picture")
    arguments = parser.parse_args()
    if arguments.plot:
        recall = {name: row for path in arguments.recall for name, row in read_json(path).items()}
        plot(read_json(arguments.times), recall, arguments.plot)
        return
    found = {f"scale-{copies:g}": {"build": build(f"scale-{copies:g}", copies)} for copies in arguments.copies}
    opened = {name: retrievers(Path("indexes") / name) for name in found}
    if arguments.dense:
        folder = Path("indexes") / arguments.dense
        found[arguments.dense] = {"build": {"passages": len(PassageStore(folder / "passages"))}}
        opened[arguments.dense] = hybrids(folder)
    for name, by_retriever in ask(opened, open_benchmark("ifqa").questions("full-dev")[: arguments.timed]).items():
        found[name]["ms"] = {
            retriever: [1000 * sorted(took)[len(took) * percent // 100] for percent in (50, 95)]
            for retriever, took in by_retriever.items()
        }
    print(markdown(found))
    if arguments.to:
        write_json(arguments.to, found)


def build(name: str, copies: float) -> dict[str, float]:
    """Write the corpus and build its passages and index; what that cost."""
    folder = Path("data") / name
    write_articles(folder, copies)
    sources = ['format = "gold"\nbenchmark = "ifqa"\nsplits = ["full-train", "full-dev"]\n']
    sources += [f'format = "articles"\npath = "{one}"\n' for one in [ARTICLES, *([folder] if copies else [])]]
    corpus = "".join(f"[[passages.sources]]\n{source}\n" for source in sources)
    Path(f"indexes/{name}.toml").write_text(f'{corpus}[index.bm25]\nretriever = "bm25"\n')
    shutil.rmtree(Path("indexes") / name, ignore_errors=True)
    before, began, most = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic(), 0
    mark = f"IFQA_SCALE={name}"
    environment = {**os.environ, **dict([mark.split("=")])}
    child = subprocess.Popen([sys.executable, "-m", "ifqa", "index", name, "--quiet"], env=environment)
    while child.poll() is None:
        most = max(most, sum(resident(mark.encode())))
        time.sleep(0.1)
    if child.returncode:
        raise SystemExit(f"scale.py: ifqa index {name} ended with {child.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "passages": len(PassageStore(Path("indexes") / name / "passages")),
        "seconds": time.monotonic() - began,
        "cpu seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "memory": most,
        "passages bytes": size(Path("indexes") / name / "passages"),
        "index bytes": size(Path("indexes") / name / "bm25"),
    }


def write_articles(folder: Path, copies: float) -> None:
    """The articles with changed names, `copies` times as many as there are."""
    articles = [json.loads(line) for path in sorted(ARTICLES.glob("*.jsonl*")) for _, line in read_lines(path)]
    names = sorted({name for article in articles for name in _NAME.findall(article["title"])})
    known = frozenset(names)
    logger.info(f"{folder}: {copies * len(articles):,.0f} articles with changed names, of {len(names):,}")
    shutil.rmtree(folder, ignore_errors=True)
    many = ((copy, article) for copy in count(1) for article in articles)
    chosen = islice(many, round(copies * len(articles)))
    write_jsonl(folder / "articles.jsonl", (changed(article, copy, names, known) for copy, article in chosen))


def changed(article: dict[str, str], copy: int, names: Sequence[str], known: frozenset[str]) -> dict[str, str]:
    """An article with another name for each of its names, and numbers moved by the number of the copy."""
    draw, other = random.Random(f"{copy} {article['id']}"), dict[str, str]()

    def name(match: re.Match[str]) -> str:
        found = match[0]
        return other.setdefault(found, draw.choice(names)) if found in known else found

    def text(one: str) -> str:
        return _NUMBER.sub(lambda match: str(int(match[0]) + copy), _NAME.sub(name, one))

    return {"id": f"{article['id']}-{copy}", "title": text(article["title"]), "text": text(article["text"])}


def ask(opened: dict[str, dict[str, Any]], questions: Sequence[Question]) -> dict[str, dict[str, list[float]]]:
    """Corpus -> retriever -> seconds of each question."""
    found: dict[str, dict[str, list[float]]] = {name: {} for name in opened}
    for retriever in dict.fromkeys(one for by_retriever in opened.values() for one in by_retriever):
        names = [name for name, by_retriever in opened.items() if retriever in by_retriever]
        for name in names:
            opened[name][retriever].search(questions[-3:], K)  # opens files, starts threads
            found[name][retriever] = []
        for question in questions:
            for name in names:
                began = time.perf_counter()
                opened[name][retriever].search([question], K)
                found[name][retriever].append(time.perf_counter() - began)
    return found


def retrievers(folder: Path) -> dict[str, Any]:
    """The retrievers of a corpus."""
    bm25, get = (
        Part(load_plugin("retriever", "bm25")(folder / "bm25"), K, 1.0, "names"),
        PassageStore(folder / "passages").get,
    )
    ranker = load_plugin("retriever", "ranker")(parts=[bm25], passages=get)
    return {
        "bm25 weighted": AsPart(bm25),
        "ranker weighted": ranker,
        "bm25 weighted reranked": reranked(bm25, get),
        **raised("ranker weighted", ranker, get),
    }


def hybrids(folder: Path) -> dict[str, Any]:
    """The retrievers of a corpus with a dense index."""
    get = PassageStore(folder / "passages").get
    parts = [
        Part(load_plugin("retriever", name)(folder / name), K, 1.0, query)
        for name, query in {"bm25": "names", "dense": "question"}.items()
    ]
    fusion = load_plugin("retriever", "fusion")(parts=parts)
    return {"dense question": AsPart(parts[1]), "hybrid names": fusion, **raised("hybrid names", fusion, get)}


def raised(name: str, retriever: Any, get: Any) -> dict[str, Any]:
    """A retriever's first passages reordered by the cross-encoder, by the span reader, and by both."""
    read = reranked(Part(retriever, K), get, model="extractive")
    return {
        f"{name} reranked": reranked(Part(retriever, K), get),
        f"{name} read": read,
        f"{name} read reranked": reranked(Part(read, K), get, model_weight=1 / 3),
    }


def reranked(part: Part, get: Any, **settings: Any) -> Any:
    """The retriever "rerank" over a part."""
    return load_plugin("retriever", "rerank")(parts=[part], passages=get, depth=30, **settings)


class AsPart:
    """A retriever that is asked the query of a part."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def search(self, questions: Sequence[Question], _: int) -> list[list[Hit]]:
        """The part's rankings."""
        return self._part.search(questions)


def size(folder: Path) -> int:
    """Bytes of a folder's files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def markdown(found: dict[str, Any]) -> str:
    """The two tables."""
    lines = ["| passages | build, s | CPU, s | memory, MB | passages, MB | index, MB |", "|---|---|---|---|---|---|"]
    for cost in (one["build"] for one in found.values() if "seconds" in one["build"]):
        megabytes = [f"{cost[key] / 1e6:,.0f}" for key in ("memory", "passages bytes", "index bytes")]
        seconds = [f"{cost[key]:,.0f}" for key in ("seconds", "cpu seconds")]
        lines.append("| " + " | ".join([f"{cost['passages']:,}", *seconds, *megabytes]) + " |")
    lines += ["", "| passages | retriever | ms | ms p95 |", "|---|---|---|---|"]
    for one in found.values():
        for retriever, (middle, high) in one["ms"].items():
            lines.append(f"| {one['build']['passages']:,} | {retriever} | {middle:.1f} | {high:.1f} |")
    return "\n".join(lines)


def plot(found: dict[str, Any], recall: dict[str, Any], path: Path) -> None:
    """Draw recall over the milliseconds of a question, of the rows that are in both; the size is that of the first corpus."""
    from matplotlib.figure import Figure

    size = next(iter(found.values()))["build"]["passages"]
    same = [one["ms"] for one in found.values() if one["build"]["passages"] == size]
    times = {name: ms for each in same for name, (ms, _) in each.items() if name in recall}
    figure = Figure(figsize=(7, 4), layout="constrained")
    axis = figure.subplots()
    for k, marker in ((5, "s"), (1, "o")):
        values = {name: recall[name][f"gold_any@{k}"]["value"] for name in times}
        axis.plot([times[name] for name in values], list(values.values()), marker, label=f"gold recall @{k}")
    for number, (name, ms) in enumerate(times.items(), start=1):
        for k in (1, 5):
            axis.annotate(
                str(number),
                (ms, recall[name][f"gold_any@{k}"]["value"]),
                (4, 4),
                textcoords="offset points",
                fontsize=8,
            )
    axis.set_xscale("log")
    axis.set_xlabel(f"ms a question, {size:,} passages, two CPU cores")
    axis.set_ylabel("gold recall, %")
    named = "\n".join(f"{number}  {name}" for number, name in enumerate(times, start=1))
    figure.legend(
        *axis.get_legend_handles_labels(), loc="outside right upper", fontsize=8, title=named, title_fontsize=8
    )
    figure.savefig(path, dpi=200)


if __name__ == "__main__":
    main()
