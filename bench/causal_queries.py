"""Measures whether a causal question finds its cause better without its asking words, on the questions of WikiWhy.

    python bench/causal_queries.py FOLDER choose --to indexes/wikiwhy [--dense] [--limit N] [--seed 0]
    python bench/causal_queries.py FOLDER report --to indexes/wikiwhy [--dense] [--limit N] [--seed 0]

FOLDER has WikiWhy (Ho et al., ICLR 2023) as `wikiwhy-question.json.xz` and `wikiwhy-cause.json.xz`: {"question": {ID: text}} and
{"cause": {ID: text}}. Each cause is a passage, and a question's own cause is the one to find. The questions are split at
random, by their ids, into two halves. `choose` scores every query on the first half and says which has the highest mean
reciprocal rank. `report` scores them on the second half: run it once, after the choice. `--to` gets the passages and the
index; vectors there are encoded once.

The columns are recall@1, @5, @20 and @100 and the mean reciprocal rank (0 beyond rank 100), in percent, with the 95%
bootstrap interval, and p of a paired randomisation test of the reciprocal ranks against the question as it is and against
"names". Below each row stands its difference from the question's mean reciprocal rank. Some causes have the same text; a
question's own is the one with its id.
"""

import argparse
import json
import lzma
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from ifqa.errors import IfqaError
from ifqa.protocols import Retriever
from ifqa.records import Hit, Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.dense import Dense
from ifqa.retrieval.queries import rewrite_questions
from ifqa.scoring.statistics import Interval, count_wins, mean_interval, paired_randomization

CUTOFFS = (1, 5, 20, 100)
K = 100
ASKED = ("question", "names", "causal", "causal-connectives", "causal-names")


def main() -> None:
    """Index the causes, ask every query, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("what", choices=["choose", "report"])
    parser.add_argument("--to", type=Path, required=True, help="folder for the passages and the index")
    parser.add_argument("--dense", action="store_true", help="all-MiniLM-L6-v2 in place of BM25")
    parser.add_argument("--limit", type=int, help="first N questions of the half")
    parser.add_argument("--seed", type=int, default=0, help="of the split into halves")
    arguments = parser.parse_args()
    texts, causes = (read(arguments.folder, name) for name in ("question", "cause"))
    chosen = halves(sorted(texts), arguments.seed)[arguments.what == "report"][: arguments.limit]
    questions = [Question(number, texts[number]) for number in chosen]
    retriever = indexed(causes, arguments.to, arguments.dense)
    ranks = {query: own_ranks(retriever, rewrite_questions(questions, query)) for query in ASKED}
    print(f"{len(questions):,} questions, {len(causes):,} causes, {'all-MiniLM-L6-v2' if arguments.dense else 'BM25'}")
    print(table(ranks))
    if arguments.what == "choose":
        print("highest mean reciprocal rank:", max(ASKED, key=lambda asked: sum(reciprocal(ranks[asked]))))


def read(folder: Path, name: str) -> dict[str, str]:
    """A column of WikiWhy: id -> text.

    Raises:
        IfqaError: the file is missing or holds no such column.
    """
    path = folder / f"wikiwhy-{name}.json.xz"
    if not path.exists():
        raise IfqaError(f"no {path}; wanted the column {name!r} of WikiWhy")
    with lzma.open(path, "rt", encoding="utf-8") as file:
        found = json.load(file)
    if not isinstance(found, dict) or not isinstance(column := found.get(name), dict):
        raise IfqaError(f'{path} holds no {{"{name}": {{ID: text}}}}')
    return {str(number): str(text).strip() for number, text in column.items()}


def halves(ids: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """The ids in two halves, drawn at random; the same ids and seed give the same halves."""
    drawn = list(ids)
    random.Random(seed).shuffle(drawn)
    return drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]


def indexed(causes: Mapping[str, str], folder: Path, dense: bool) -> Retriever:
    """A retriever over the causes; a passage's id is its question's."""
    passages = folder / "passages"
    passages.mkdir(parents=True, exist_ok=True)
    with (passages / "passages-00000.jsonl").open("w", encoding="utf-8") as file:
        for number in sorted(causes):
            file.write(json.dumps({"id": number, "title": "", "contents": causes[number]}) + "\n")
    plugin, name = (Dense, "dense") if dense else (BM25, "bm25")
    plugin.build(passages, folder / name)
    return plugin(folder / name)


def own_ranks(retriever: Retriever, questions: Sequence[Question]) -> list[int]:
    """The rank of each question's own cause, from 1; 0 where it is not among the first K."""
    return [
        rank_of(question.id, hits) for question, hits in zip(questions, retriever.search(questions, K), strict=True)
    ]


def rank_of(passage_id: str, hits: Sequence[Hit]) -> int:
    """The rank of a passage, from 1; 0 if it is not in the ranking."""
    return next((rank for rank, hit in enumerate(hits, 1) if hit.passage_id == passage_id), 0)


def reciprocal(ranks: Sequence[int]) -> list[float]:
    """1 / rank, and 0 for rank 0, which stands for no rank."""
    return [1 / rank if rank else 0.0 for rank in ranks]


def table(ranks: Mapping[str, Sequence[int]]) -> str:
    """A Markdown table with a row for each query; p compares reciprocal ranks with those of "question" and of "names"."""
    lines = [
        "| query | " + " | ".join(f"@{k}" for k in CUTOFFS) + " | MRR | p, question | p, names | better, worse, same |",
        "|---|" + "---|" * (len(CUTOFFS) + 4),
    ]
    plain, names = reciprocal(ranks["question"]), reciprocal(ranks["names"])
    for asked, found in ranks.items():
        values = [[float(0 < rank <= k) for rank in found] for k in CUTOFFS] + [reciprocal(found)]
        cells = [percent(mean_interval(each)) for each in values]
        ps = [f"{paired_randomization(values[-1], other):.4f}" for other in (plain, names)]
        counts = "{}, {}, {}".format(*count_wins(values[-1], plain))
        lines.append(f"| {asked} | {' | '.join([*cells, *ps, counts])} |")
        difference = mean_interval([x - y for x, y in zip(values[-1], plain, strict=True)])
        lines.append(f"| - question | | | | | {percent(difference)} | | | |")
    return "\n".join(lines)


def percent(interval: Interval) -> str:
    """A mean and its interval in percent."""
    mean, low, high = (100 * share for share in interval)
    return f"{mean:.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
