"""Which retriever is the best default where none has learned from the questions' own kind.

    python bench/default_retriever.py questions NAME FILE [--corpus articles] [--limit N]
    python bench/default_retriever.py documents SET FOLDER [--packages UNPACKED]

`ranker` learned from IfQA's questions. `questions` asks a file of other questions: lines of a
question, a tab and a list of answers (DPR's topics), JSON lines, or a JSON list, with `question` and
`answer`; compressed or not. `documents` asks a set of own_questions.py about its files, each
question that has an answer.

A passage counts if it holds an answer (DPR's rule), for `documents` one of the gold file. The table
gives the share of the questions with such a passage among the first 1, 5 and 20, in percent, with
its 95% bootstrap interval, and p of a paired randomisation test against BM25. Questions of a file
count that have an answer among the first 100 of a retriever, or all with --all: most questions are
about something that the corpus does not have.
"""

import argparse
import ast
import csv
import io
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w
from own_questions import HERE, SETS, gather, percent

import ifqa
from ifqa.corpus.documents.chunking import parse_locator
from ifqa.errors import IfqaError
from ifqa.pipeline.system import System
from ifqa.records import Passage, Question
from ifqa.scoring.measures.answer_recall import has_answer
from ifqa.scoring.statistics import mean_interval, paired_randomization
from ifqa.storage.files import read_jsonl

CUTOFFS = (1, 5, 20)
DEPTH = 100
RETRIEVERS: Mapping[str, Mapping[str, Any]] = {
    "bm25": {"retriever": "bm25"},
    "bm25, names repeated": {"retriever": "bm25", "settings": {"retriever.query": "names"}},
    "ranker": {"retriever": "ranker"},
}
Ranks = dict[str, list[int]]  # of each retriever, the first right passage's rank; 0: none


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    file = kinds.add_parser("questions")
    file.add_argument("name")
    file.add_argument("file", type=Path)
    file.add_argument("--corpus", default="articles")
    file.add_argument("--limit", type=int, help="ask this many, evenly spread over the file")
    file.add_argument("--all", action="store_true", help="count all questions")
    documents = kinds.add_parser("documents")
    documents.add_argument("name", choices=SETS)
    documents.add_argument("folder", type=Path)
    documents.add_argument("--packages", type=Path, help="folder of unpacked packages")
    arguments = parser.parse_args()
    if arguments.kind == "documents":
        ranks = ranks_in_documents(arguments)
    else:
        ranks = ranks_in_corpus(arguments)
        if not arguments.all:
            ranks = found_by_one(ranks)
    print("\n".join(table(arguments.name, ranks)))


def ranks_in_corpus(arguments: argparse.Namespace) -> Ranks:
    questions = list(read_questions(arguments.file))
    if arguments.limit:
        questions = questions[:: max(1, len(questions) // arguments.limit)][: arguments.limit]
    ranks: Ranks = {}
    for name, options in RETRIEVERS.items():
        with ifqa.open(corpus=arguments.corpus, **options) as system:
            ranks[name] = first_ranks(system, questions, {})
    return ranks


def ranks_in_documents(arguments: argparse.Namespace) -> Ranks:
    docs = arguments.folder / "docs"
    work = arguments.folder / "work-retrieval"
    files = HERE / f"{arguments.name}-questions-files.tsv"
    print("\n".join(gather(docs, files, arguments.packages)))
    corpus = {
        "passages": {"sources": [{"format": "documents", "path": str(docs.resolve())}]},
        "index": {"bm25": {"retriever": "bm25"}},
    }
    (work / "indexes").mkdir(parents=True, exist_ok=True)
    (work / "indexes" / "documents.toml").write_text(tomli_w.dumps(corpus), encoding="utf-8")
    questions = []
    gold_files = {}
    for _, record in read_jsonl(HERE / f"{arguments.name}-questions.jsonl"):
        if record["answers"]:
            identity = str(record["id"])
            answers = tuple(map(str, record["answers"]))
            questions.append(Question(identity, str(record["question"]), answers))
            gold_files[identity] = str(record["file"])
    ranks: Ranks = {}
    for name, options in RETRIEVERS.items():
        with ifqa.open(root=work, corpus="documents", **options) as system:
            ranks[name] = first_ranks(system, questions, gold_files)
    return ranks


def first_ranks(
    system: System, questions: Sequence[Question], gold_files: Mapping[str, str]
) -> list[int]:
    ranks = []
    for question, ranking in zip(questions, system.retrieve(questions, DEPTH), strict=True):
        file = gold_files.get(question.id, "")
        right = [holds(passage, question, file) for passage in ranking.passages]
        ranks.append(right.index(True) + 1 if True in right else 0)
    return ranks


def holds(passage: Passage, question: Question, file: str) -> bool:
    place = parse_locator(passage.id) if file else None
    if file and (place is None or place.file != file):
        return False
    return has_answer(passage.text, question.answers)


def read_questions(path: Path) -> Iterator[Question]:
    content = path.read_bytes()
    text = (lzma.decompress(content) if path.suffix == ".xz" else content).decode()
    if text.startswith("["):
        records = json.loads(text)
    elif text.startswith("{"):
        records = [json.loads(line) for line in text.split("\n") if line]
    else:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
        records = [
            {"question": question, "answer": ast.literal_eval(answers)}
            for question, answers in rows
        ]
    for number, record in enumerate(records):
        answers = record["answer"]
        listed = [answers] if isinstance(answers, str) else answers
        yield Question(str(number), record["question"], tuple(listed))


def found_by_one(ranks: Ranks) -> Ranks:
    """The ranks of the questions of which a retriever has found an answer."""
    columns = [column for column in zip(*ranks.values(), strict=True) if any(column)]
    return {name: [column[place] for column in columns] for place, name in enumerate(ranks)}


def table(name: str, ranks: Ranks) -> Iterator[str]:
    count = len(next(iter(ranks.values())))
    yield f"| {name}, {count:,} questions | " + " | ".join(f"@{k}" for k in CUTOFFS) + " |"
    yield "|---" * (len(CUTOFFS) + 1) + "|"
    for retriever, places in ranks.items():
        cells = []
        for k in CUTOFFS:
            found = [float(0 < place <= k) for place in places]
            base = [float(0 < place <= k) for place in ranks["bm25"]]
            p = "" if retriever == "bm25" else f", p {paired_randomization(found, base):.3f}"
            cells.append(f"{percent(mean_interval(found))}{p}")
        yield f"| {retriever} | {' | '.join(cells)} |"


if __name__ == "__main__":
    try:
        main()
    except IfqaError as error:
        raise SystemExit(f"error: {error}") from error
