"""What a corpus costs at several sizes: build seconds, memory, bytes, ms a question and gold recall of each retriever.

    python experiments/benchmarks/scale.py [--copies 0 2.4] [--timed 100] [--to FILE.json] [--plot FILE.svg]

A corpus has the gold passages of IfQA's full-train and full-dev, the articles in `data/articles`, and `--copies` times as many
further articles: the same ones with their names changed. A name, that is a word of a title with a capital, becomes another name,
the same one throughout an article and another in each copy. Years and other numbers move by the number of the copy. So words,
articles and passages keep their sizes, and a copy does not repeat an article's facts.

Each corpus is built from nothing by `ifqa index`, as `indexes/scale-COPIES`. Memory is the peak of all its processes together.
All questions of full-dev are then searched for at once, for recall. The first of them are asked one at a time of all corpora in
turn, so that the machine's other work falls on all. A question's time is the median, and beside it the 95th percentile.

"bm25" is asked the question and its names. "ranker" reorders its 100 best, "rerank" its first 30 with the cross-encoder, and
"both" the first 30 of the ranker's.
"""

import argparse
import json
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

from retrieval import CUTOFFS, K, judged, scored
from wikipedia import resident

from ifqa.corpus.store import PassageStore
from ifqa.plugins import load, open_benchmark
from ifqa.progress import say
from ifqa.records import Hit, Question
from ifqa.report.figures import check_figure, save
from ifqa.retrieval.queries import Part
from ifqa.storage.files import read_lines, write_json, write_jsonl

ARTICLES = Path("data/articles")
_NAME = re.compile(r"\b[A-Z][a-z]+\b")
_NUMBER = re.compile(r"\b\d{2,4}\b")


def main() -> None:
    """Make, build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--copies", type=float, nargs="+", default=[0.0, 2.4], help="further articles, for one there is"
    )
    parser.add_argument("--timed", type=int, default=100, help="questions that are asked one at a time")
    parser.add_argument("--to", type=Path, help="a file for the figures")
    parser.add_argument("--plot", type=Path, help="a picture of recall against cost")
    arguments = parser.parse_args()
    if arguments.plot:
        check_figure(arguments.plot)
    built = {f"scale-{copies:g}": build(f"scale-{copies:g}", copies) for copies in arguments.copies}
    questions = open_benchmark("ifqa").questions("full-dev")
    opened = {name: retrievers(name) for name in built}
    seconds = ask(opened, questions[: arguments.timed])
    found = {name: {"build": built[name], "retrievers": {}} for name in built}
    for name, by_retriever in opened.items():
        rankings = {retriever: one.search(questions, K) for retriever, one in by_retriever.items()}
        for retriever, right in scored(rankings, judged(rankings, questions, store_of(name))).items():
            took = sorted(seconds[name][retriever])
            found[name]["retrievers"][retriever] = {
                "ms": 1000 * took[len(took) // 2],
                "ms p95": 1000 * took[len(took) * 95 // 100],
                **{f"@{k}": right[f"gold_any@{k}"]["value"] for k in CUTOFFS},
            }
    print(markdown(found))
    if arguments.plot:
        plot(found, arguments.plot)
    if arguments.to:
        write_json(arguments.to, found)


def build(name: str, copies: float) -> dict[str, float]:
    """Write the corpus and build its passages and index; what that cost."""
    folder = Path("data") / name
    write_articles(folder, copies)
    sources = ['format = "gold"\nbenchmark = "ifqa"\nsplits = ["full-train", "full-dev"]\n']
    sources += [f'format = "articles"\npath = "{one}"\n' for one in [ARTICLES, *([folder] if copies else [])]]
    corpus = "".join(f"[[passages.sources]]\n{one}\n" for one in sources)
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
        "passages": len(store_of(name)),
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
    say(f"{folder}: {copies * len(articles):,.0f} articles with changed names, of {len(names):,}")
    shutil.rmtree(folder, ignore_errors=True)
    many = ((copy, one) for copy in count(1) for one in articles)
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
    for retriever in next(iter(opened.values())):
        for name in opened:
            opened[name][retriever].search(questions[-3:], K)  # opens files, starts threads
            found[name][retriever] = []
        for question in questions:
            for name in opened:
                began = time.perf_counter()
                opened[name][retriever].search([question], K)
                found[name][retriever].append(time.perf_counter() - began)
    return found


def retrievers(name: str) -> dict[str, Any]:
    """The retrievers of a corpus."""
    bm25 = Part(load("retriever", "bm25")(Path("indexes") / name / "bm25"), K, 1.0, "names")
    get = store_of(name).get
    ranker = load("retriever", "ranker")(parts=[bm25], passages=get)
    rerank = load("retriever", "rerank")
    return {
        "bm25": AsPart(bm25),
        "ranker": ranker,
        "rerank": rerank(parts=[bm25], passages=get, depth=30),
        "both": rerank(parts=[Part(ranker, K)], passages=get, depth=30),
    }


class AsPart:
    """A retriever that is asked the query of a part."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def search(self, questions: Sequence[Question], _: int) -> list[list[Hit]]:
        """The part's rankings."""
        return self._part.search(questions)


def store_of(name: str) -> PassageStore:
    """The passages of a corpus."""
    return PassageStore(Path("indexes") / name / "passages")


def size(folder: Path) -> int:
    """Bytes of a folder's files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def markdown(found: dict[str, Any]) -> str:
    """The two tables."""
    lines = ["| passages | build, s | CPU, s | memory, MB | passages, MB | index, MB |", "|---|---|---|---|---|---|"]
    for one in found.values():
        cost = one["build"]
        megabytes = [f"{cost[key] / 1e6:,.0f}" for key in ("memory", "passages bytes", "index bytes")]
        seconds = [f"{cost[key]:,.0f}" for key in ("seconds", "cpu seconds")]
        lines.append("| " + " | ".join([f"{cost['passages']:,}", *seconds, *megabytes]) + " |")
    heads = ["ms", "ms p95", *(f"@{k}" for k in CUTOFFS)]
    lines += ["", f"| passages | retriever | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    for one in found.values():
        for retriever, values in one["retrievers"].items():
            cells = [f"{values[head]:.1f}" for head in heads]
            lines.append(f"| {one['build']['passages']:,} | {retriever} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(found: dict[str, Any], path: Path) -> None:
    """Draw recall@1 over the milliseconds of a question, a marker for each size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axis = figure.subplots()
    for one, marker in zip(found.values(), "os^Dv", strict=False):
        values = list(one["retrievers"].values())
        label = f"{one['build']['passages'] / 1e6:.2g} million passages"
        axis.plot([row["ms"] for row in values], [row["@1"] for row in values], marker, label=label)
        for name, row in zip(one["retrievers"], values, strict=True):
            axis.annotate(name, (row["ms"], row["@1"]), (5, 5), textcoords="offset points", fontsize=8)
    axis.set_xscale("log")
    axis.set_xlabel("ms a question")
    axis.set_ylabel("gold recall@1, %")
    axis.margins(0.2)
    axis.legend(fontsize=8, loc="lower right")
    save(figure, path)


if __name__ == "__main__":
    main()
