"""Measures on WikiWhy whether retrieval finds a question's cause better without the asking words.

    python bench/causal_queries.py FOLDER choose --to indexes/wikiwhy [--dense] [--limit N] \
        [--seed 0]
    python bench/causal_queries.py FOLDER report --to indexes/wikiwhy [--dense] [--limit N] \
        [--seed 0]

FOLDER has WikiWhy (Ho et al., ICLR 2023) as `wikiwhy-question.json.xz` and `wikiwhy-cause.json.xz`:
{"question": {ID: text}} and {"cause": {ID: text}}. The causes are the passages; the cause with a
question's id is to be found. The questions are split at random into two halves. `choose` scores
every query on the first half and prints the one with the highest mean reciprocal rank. `report`
scores them on the second half: run it once, after the choice. `--to` gets the passages and the
index; vectors there are encoded once.

The columns are recall@1, @5, @20 and @100 and the mean reciprocal rank (0 beyond rank 100), in
percent, with the 95% bootstrap interval, and p of a paired randomisation test of the reciprocal
ranks against the question as it is and against "names". The line below each row is its difference
from the question's mean reciprocal rank.
"""

import argparse
import json
import lzma
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from ifqa.errors import FormatError, MissingInput
from ifqa.protocols import Retriever
from ifqa.records import Hit, Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.queries import rewrite_questions
from ifqa.scoring.statistics import Interval, count_wins, mean_interval, paired_randomization

CUTOFFS = (1, 5, 20, 100)
K = 100
QUERIES = ("question", "names", "causal", "causal-connectives", "causal-names")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=["choose", "report"])
    parser.add_argument(
        "--to", type=Path, required=True, help="folder for the passages and the index"
    )
    parser.add_argument("--dense", action="store_true", help="all-MiniLM-L6-v2 in place of BM25")
    parser.add_argument("--limit", type=int, help="first N questions of the half")
    parser.add_argument("--seed", type=int, default=0, help="of the split into halves")
    arguments = parser.parse_args()
    texts, causes = (read(arguments.folder, name) for name in ("question", "cause"))
    chosen = halves(sorted(texts), arguments.seed)[arguments.what == "report"][: arguments.limit]
    questions = [Question(number, texts[number]) for number in chosen]
    retriever = build_retriever(causes, arguments.to, arguments.dense)
    ranks = {
        query: cause_ranks(retriever, rewrite_questions(questions, query)) for query in QUERIES
    }
    print(
        f"{len(questions):,} questions, {len(causes):,} causes, "
        f"{'all-MiniLM-L6-v2' if arguments.dense else 'BM25'}"
    )
    print(table(ranks))
    if arguments.what == "choose":
        print(
            "highest mean reciprocal rank:",
            max(QUERIES, key=lambda query: sum(reciprocal(ranks[query]))),
        )


def read(folder: Path, name: str) -> dict[str, str]:
    """A column of WikiWhy: id -> text."""
    path = folder / f"wikiwhy-{name}.json.xz"
    if not path.exists():
        raise MissingInput(f"no {path}; wanted the column {name!r} of WikiWhy")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        content = json.load(file)
    if not isinstance(content, dict) or not isinstance(column := content.get(name), dict):
        raise FormatError(f'{path} holds no {{"{name}": {{ID: text}}}}')
    return {str(number): str(text).strip() for number, text in column.items()}


def halves(ids: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """The ids in two random halves, which depend on ids and seed."""
    shuffled = list(ids)
    random.Random(seed).shuffle(shuffled)
    return shuffled[: len(shuffled) // 2], shuffled[len(shuffled) // 2 :]


def build_retriever(causes: Mapping[str, str], folder: Path, dense: bool) -> Retriever:
    """A retriever over the causes; a passage's id is its question's."""
    passages = folder / "passages"
    passages.mkdir(parents=True, exist_ok=True)
    with (passages / "passages-00000.jsonl").open("w", encoding="utf-8") as file:
        for number in sorted(causes):
            file.write(json.dumps({"id": number, "title": "", "contents": causes[number]}) + "\n")
    plugin = Dense if dense else BM25
    index = folder / ("dense" if dense else "bm25")
    plugin.build(passages, index, plugin.BuildSettings())
    return plugin(plugin.Settings(), index=index)


def cause_ranks(retriever: Retriever, questions: Sequence[Question]) -> list[int]:
    """The rank of each question's cause, from 1; 0 if it is not among the first K."""
    rankings = retriever.search(questions, K)
    return [rank_of(question.id, hits) for question, hits in zip(questions, rankings, strict=True)]


def rank_of(passage_id: str, hits: Sequence[Hit]) -> int:
    """The rank of a passage, from 1; 0 if it is not in the ranking."""
    return next((rank for rank, hit in enumerate(hits, 1) if hit.passage_id == passage_id), 0)


def reciprocal(ranks: Sequence[int]) -> list[float]:
    """1 / rank, and 0 for no rank (0)."""
    return [1 / rank if rank else 0.0 for rank in ranks]


def table(ranks: Mapping[str, Sequence[int]]) -> str:
    """A Markdown table with a row for each query.

    P compares reciprocal ranks with those of "question" and of "names".
    """
    heads = [*(f"@{k}" for k in CUTOFFS), "MRR", "p, question", "p, names", "better, worse, same"]
    lines = [f"| query | {' | '.join(heads)} |", "|---|" + "---|" * len(heads)]
    baseline = reciprocal(ranks["question"])
    names = reciprocal(ranks["names"])
    for query, query_ranks in ranks.items():
        recalls = ([float(0 < rank <= k) for rank in query_ranks] for k in CUTOFFS)
        rr = reciprocal(query_ranks)
        cells = [percent(mean_interval(scores)) for scores in (*recalls, rr)]
        ps = [f"{paired_randomization(rr, other):.4f}" for other in (baseline, names)]
        counts = "{}, {}, {}".format(*count_wins(rr, baseline))
        lines.append(f"| {query} | {' | '.join([*cells, *ps, counts])} |")
        difference = mean_interval([a - b for a, b in zip(rr, baseline, strict=True)])
        lines.append(f"| - question | | | | | {percent(difference)} | | | |")
    return "\n".join(lines)


def percent(interval: Interval) -> str:
    mean, low, high = (100 * share for share in interval)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
