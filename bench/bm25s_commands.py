"""bm25s as two commands, because it has none of its own.

    pip install bm25s PyStemmer
    python bench/bm25s_commands.py index COLLECTION INDEX [--analysis lucene]
    python bench/bm25s_commands.py search INDEX TOPICS RUN [--analysis lucene] [--k 100]

COLLECTION is a folder of JSON lines with "id" and "contents", TOPICS a JSON object of
{id: {"title": question}}, and RUN a TREC run: the files of Pyserini's commands. k1 is 0.9 and b is
0.4, as there. With `--analysis bm25s`, the default, bm25s splits texts into words and stems them
with PyStemmer. With `--analysis lucene`, they are analysed as Lucene's English analyzer does: words
in lower case, without a possessive "'s" and without its stop words, stemmed by Porter.

`peers.py` measures these commands. They import nothing of ifqa, whose start would count as theirs.
"""

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
import Stemmer

WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
POSSESSIVE = re.compile(r"['’]s?$")
# org.apache.lucene.analysis.en.EnglishAnalyzer.ENGLISH_STOP_WORDS_SET
STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)


def analyse(texts: Sequence[str], analysis: str, queries: bool) -> Any:
    """What bm25s indexes, or searches for if these are queries."""
    stemmer = Stemmer.Stemmer("porter")
    if analysis == "bm25s":
        ids = not queries
        return bm25s.tokenize(
            list(texts), stopwords="en", stemmer=stemmer, return_ids=ids, show_progress=False
        )
    rows = []
    for text in texts:
        words = (POSSESSIVE.sub("", word) for word in WORD.findall(text.lower()))
        rows.append(stemmer.stemWords([word for word in words if word and word not in STOP_WORDS]))
    return rows


def build_index(collection: Path, folder: Path, analysis: str) -> None:
    ids = []
    texts = []
    for path in sorted(collection.glob("*.jsonl")):
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                passage = json.loads(line)
                ids.append(passage["id"])
                texts.append(passage["contents"])
    index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    index.index(analyse(texts, analysis, queries=False), show_progress=False)
    index.save(folder, show_progress=False)
    (folder / "ids.json").write_text(json.dumps(ids), encoding="utf-8")


def search(folder: Path, topics: Path, run: Path, analysis: str, k: int) -> None:
    index = bm25s.BM25.load(folder)
    ids = json.loads((folder / "ids.json").read_text(encoding="utf-8"))
    questions = json.loads(topics.read_text(encoding="utf-8"))
    texts = [question["title"] for question in questions.values()]
    queries = analyse(texts, analysis, queries=True)
    rankings, scores = index.retrieve(queries, k=min(k, len(ids)), show_progress=False)
    with run.open("w", encoding="utf-8") as handle:
        for number, question_id in enumerate(questions):
            ranked = zip(rankings[number], scores[number], strict=True)
            for rank, (row, score) in enumerate(ranked, start=1):
                handle.write(f"{question_id} Q0 {ids[row]} {rank} {score:.6f} bm25s\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    indexing = verbs.add_parser("index")
    indexing.add_argument("collection", type=Path)
    searching = verbs.add_parser("search")
    for verb in (indexing, searching):
        verb.add_argument("index", type=Path)
        verb.add_argument("--analysis", choices=["bm25s", "lucene"], default="bm25s")
    searching.add_argument("topics", type=Path)
    searching.add_argument("run", type=Path)
    searching.add_argument("--k", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.verb == "index":
        build_index(arguments.collection, arguments.index, arguments.analysis)
    else:
        search(arguments.index, arguments.topics, arguments.run, arguments.analysis, arguments.k)


if __name__ == "__main__":
    main()
