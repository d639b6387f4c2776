"""Compares our BM25 with pyserini's: ids and scores of the same questions over the same passages.

    python bench/pyserini_parity.py indexes/NAME/passages questions.json [--limit 700] [--k 100]

Pyserini indexes and searches through its own command lines (`pyserini.index.lucene`,
`pyserini.search.lucene`). Both sides share the passages, the questions and the Java runtime.
Questions are a JSON list of objects with "question". The exit code is 1 if any ranking differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ifqa.formats.runs import read_run, write_run
from ifqa.records import Question
from ifqa.retrieval.bm25 import BM25

# pyserini's modules run unchanged; the JVM is started before them because pyserini itself needs a
# full JDK 21
MODULE = """
import runpy, sys
from ifqa.retrieval.jvm import start_jvm
start_jvm()
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("passages", type=Path, help="folder with passages-*.jsonl")
    parser.add_argument("questions", type=Path, help='JSON list of objects with "question"')
    parser.add_argument("--limit", type=int, default=700, help="first N questions (default 700)")
    parser.add_argument("--k", type=int, default=100, help="passages for each (default 100)")
    parser.add_argument("--k1", type=float, default=0.9)
    parser.add_argument("--b", type=float, default=0.4)
    arguments = parser.parse_args()
    rows = json.loads(arguments.questions.read_text(encoding="utf-8"))[: arguments.limit]
    questions = [Question(f"{number:06d}", row["question"]) for number, row in enumerate(rows)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = run_ours(questions, arguments, folder)
        theirs = run_pyserini(questions, arguments, folder)
    same_ids = same = 0
    for question, our, their in zip(questions, ours, theirs, strict=True):
        same_ids += [passage for passage, _ in our] == [passage for passage, _ in their]
        same += our == their
        if our != their:
            rank = next(
                (n for n, (a, b) in enumerate(zip(our, their, strict=False)) if a != b), len(our)
            )
            first = slice(rank, rank + 3)
            print(
                f"{question.id} from rank {rank + 1}: ours {our[first]}, pyserini's {their[first]}"
            )
    equal = f"{same_ids} rankings equal in ids, {same} in ids and scores"
    print(f"{len(questions)} questions, {sum(map(len, ours))} hits: {equal}")
    return 0 if same == len(questions) else 1


def run_ours(
    questions: list[Question], arguments: argparse.Namespace, folder: Path
) -> list[list[tuple[str, str]]]:
    started = time.monotonic()
    BM25.build(arguments.passages, folder / "ours", BM25.BuildSettings())
    built = time.monotonic()
    bm25 = BM25(BM25.Settings(k1=arguments.k1, b=arguments.b), index=folder / "ours")
    rankings = bm25.search(questions, arguments.k)
    print(f"ours: built in {built - started:.1f} s, searched in {time.monotonic() - built:.1f} s")
    write_run(
        folder / "run.trec",
        {q.id: ranking for q, ranking in zip(questions, rankings, strict=True)},
        "ours",
    )
    run = read_run(folder / "run.trec")
    return [
        [(hit.passage_id, f"{hit.score:.6f}") for hit in run.get(question.id, [])]
        for question in questions
    ]


def run_pyserini(
    questions: list[Question], arguments: argparse.Namespace, folder: Path
) -> list[list[tuple[str, str]]]:
    """Pyserini's rankings, in the order and with the six decimals that its command line writes."""
    topics = folder / "topics.json"
    output = folder / "pyserini.trec"
    topics.write_text(json.dumps({question.id: {"title": question.text} for question in questions}))
    started = time.monotonic()
    index = [
        "--collection",
        "JsonCollection",
        "--generator",
        "DefaultLuceneDocumentGenerator",
        "--threads",
        "1",
    ]
    call(
        "pyserini.index.lucene", *index, "--input", arguments.passages, "--index", folder / "theirs"
    )
    built = time.monotonic()
    search = ["--bm25", "--hits", arguments.k, "--k1", arguments.k1, "--b", arguments.b]
    call(
        "pyserini.search.lucene",
        *search,
        "--index",
        folder / "theirs",
        "--topics",
        topics,
        "--output",
        output,
    )
    print(
        f"pyserini: built in {built - started:.1f} s, searched in {time.monotonic() - built:.1f} s"
    )
    rankings: dict[str, list[tuple[str, str]]] = {question.id: [] for question in questions}
    for line in output.read_text(encoding="utf-8").splitlines():
        question_id, _, passage_id, _, score, _ = line.split()
        rankings[question_id].append((passage_id, score))
    return list(rankings.values())


def call(module: str, *arguments: object) -> None:
    """Run a module of pyserini.

    Importing its search builds an OpenAI client, which requires a key but never uses it.
    """
    command = [sys.executable, "-c", MODULE, module, *map(str, arguments)]
    environment = os.environ | {"OPENAI_API_KEY": "unused", "PYTHONUTF8": "1"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    process = subprocess.run(command, env=environment, text=True, check=False, **pipes)
    if process.returncode:
        raise SystemExit(f"{module} ended with {process.returncode}:\n{process.stdout[-4000:]}")


if __name__ == "__main__":
    sys.exit(main())
