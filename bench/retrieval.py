"""Prints gold recall of each retriever for each part of a question, with and without reranking.

    python bench/retrieval.py CORPUS [--only bm25] [--ranker] [--sparse] [--rerank DEPTH] \
        [--reader] [--control] [--missed]
    python bench/retrieval.py CORPUS --timed 100

{question, presupposition, main clause, fused, weighted} x {BM25, dense, hybrid} x {as found,
reranked}. CORPUS has the indexes "bm25" and "dense" (`ifqa index CORPUS`). The columns are gold
recall in percent with its 95% bootstrap interval, and p of a paired randomisation test against BM25
asked the question. `--to` keeps every ranking as a TREC run, and the table.

"fused" is RRF over the question, its presupposition and its main clause. "weighted" repeats names
and numbers for BM25, and adds a quarter of the presupposition's scores for the dense retriever.
"rrf" and "hybrid" fuse the two retrievers' rankings of a row, by rank and by score. "hybrid names"
fuses BM25 with the names and dense retrieval with the question, by score. Reranking reorders the
first DEPTH; the others keep their order.

"ranker weighted" is the retriever "ranker" over BM25 with the question and its names (`--ranker`).
"sparse question" is the corpus's index "sparse" (`--sparse`). It is also fused by rank with BM25
asked the names ("rrf sparse"), and with the ranker ("rrf ranker-sparse").
In rows "read", the retriever "rerank" with the span reader as its model reordered the first DEPTH
(`--reader`); in rows "read reranked", the cross-encoder followed, with a third of the weight.

`--control` tests whether a row knows gold passages by their style (`control_table`). CORPUS then
needs passages of the format "gold".
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import ConfigError
from ifqa.formats.runs import write_run
from ifqa.plugins import load_plugin, open_benchmark
from ifqa.progress import bar
from ifqa.reading.span.reader import Extractive
from ifqa.records import GOLD, Hit, Passage, Question
from ifqa.retrieval.bm25 import BM25
from ifqa.retrieval.composition import Part
from ifqa.retrieval.fusion import Fusion, fuse_by_rank, fuse_by_score, top_hits
from ifqa.retrieval.linear_ranker import Ranker
from ifqa.retrieval.rerank import BUNDLED_MODEL, MODEL_WEIGHT, CrossEncoder, reorder_hits
from ifqa.retrieval.sparse import Sparse
from ifqa.scoring.gold_overlap import covers
from ifqa.scoring.statistics import mean_interval, paired_randomization

CUTOFFS = (1, 5, 20, 100)
K = 100
CONTROL_CUTOFFS = (1, 5, 20)
QUERIES = ("question", "presupposition", "main", "fused", "weighted")
Rows = dict[str, list[list[Hit]]]  # row name -> the ranking of each question
Table = dict[str, dict[str, dict[str, float]]]  # row name -> measure -> "value", ...


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("--benchmark", default="ifqa")
    parser.add_argument("--split", default="full-dev")
    parser.add_argument(
        "--only", choices=["bm25", "dense"], help="only this retriever, without hybrids"
    )
    parser.add_argument(
        "--asked",
        nargs="+",
        choices=QUERIES,
        default=QUERIES,
        help="only these rows (default: all)",
    )
    parser.add_argument(
        "--ranker",
        action="store_true",
        help='also the retriever "ranker", over BM25 with the names',
    )
    parser.add_argument("--sparse", action="store_true", help="also learned sparse retrieval")
    parser.add_argument(
        "--rerank", type=int, default=0, metavar="DEPTH", help="also rerank the first DEPTH of each"
    )
    kinds = [*QUERIES, "names"]
    parser.add_argument(
        "--rerank-asked",
        nargs="+",
        choices=kinds,
        default=kinds,
        help="rerank only these (default: all)",
    )
    parser.add_argument(
        "--reader", action="store_true", help="also rerank those by the span reader, and by both"
    )
    parser.add_argument(
        "--model", default=BUNDLED_MODEL, help="reranker: ifqa, a folder, or a model of the hub"
    )
    parser.add_argument("--limit", type=int, help="first N questions")
    parser.add_argument(
        "--control", action="store_true", help="also count gold passages of other questions"
    )
    parser.add_argument(
        "--missed", action="store_true", help="also print the questions that every row misses"
    )
    parser.add_argument(
        "--timed", type=int, default=0, metavar="N", help="only time N questions, one at a time"
    )
    parser.add_argument("--to", type=Path, help="folder for the rankings and the table")
    return parser.parse_args()


def main() -> None:
    arguments = read_arguments()
    questions = open_benchmark(arguments.benchmark).questions(arguments.split)[: arguments.limit]
    folder = Path("indexes") / arguments.corpus
    names = [arguments.only] if arguments.only else ["bm25", "dense"]
    store = PassageStore(folder / "passages")
    if arguments.timed:
        print("\n".join(time_searches(questions[: arguments.timed], folder, store)))
        return
    rows = rankings(questions, folder, names, arguments.asked)
    if arguments.ranker:
        rows["ranker weighted"] = open_ranker(folder, store).search(questions, K)
    if arguments.sparse:
        rows |= sparse_rows(rows, questions, folder)
    if arguments.rerank:
        chosen = {
            name: row for name, row in rows.items() if name.split()[1] in arguments.rerank_asked
        }
        relevance = CrossEncoder(arguments.model).relevance
        depth = arguments.rerank
        rows |= rerank_rows(chosen, questions, store, relevance, depth)
        if arguments.reader:
            reader = Extractive(Extractive.Settings())
            read = rerank_rows(chosen, questions, store, reader.relevance, depth, "read")
            rows |= read | rerank_rows(read, questions, store, relevance, depth, weight=1 / 3)
    judgements = judge(rows, questions, store)
    table = recall_table(rows, judgements)
    print(markdown(table))
    if arguments.missed:
        print("\n".join(missed_by_all(questions, judgements)))
    control = control_table(rows, judgements) if arguments.control else {}
    if control:
        print(control_markdown(control))
    if arguments.to:
        write_rankings(arguments.to, rows, questions)
        (arguments.to / "table.json").write_text(json.dumps(table, indent=1))
        if control:
            (arguments.to / "control.json").write_text(json.dumps(control, indent=1))


def write_rankings(folder: Path, rows: Rows, questions: Sequence[Question]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, ranking in rows.items():
        by_question = {question.id: hits for question, hits in zip(questions, ranking, strict=True)}
        write_run(folder / f"{name.replace(' ', '-')}.trec", by_question, tag="ifqa")


def rankings(
    questions: Sequence[Question],
    folder: Path,
    names: Sequence[str],
    queries: Sequence[str] = QUERIES,
) -> Rows:
    rows: Rows = {}
    for name in names:
        plugin = load_plugin("retriever", name)
        retriever = plugin(plugin.Settings(), index=folder / name)
        for query in queries:
            parts = _parts(retriever, name, query)
            method = "rrf" if query == "fused" else "weighted"
            if len(parts) > 1:
                fusion = Fusion(Fusion.Settings(method=method), parts=parts)
                rows[f"{name} {query}"] = fusion.search(questions, K)
            else:
                rows[f"{name} {query}"] = parts[0].search(questions)
    if len(names) == 2:
        for query in queries:
            pairs = list(zip(*(rows[f"{name} {query}"] for name in names), strict=True))
            rows[f"rrf {query}"] = [top_hits(fuse_by_rank(pair, [1.0, 1.0]), K) for pair in pairs]
            rows[f"hybrid {query}"] = [
                top_hits(fuse_by_score(pair, [1.0, 1.0], [K, K]), K) for pair in pairs
            ]
        if {"question", "weighted"} <= set(queries):
            pairs = list(zip(rows["bm25 weighted"], rows["dense question"], strict=True))
            rows["hybrid names"] = [
                top_hits(fuse_by_score(pair, [1.0, 1.0], [K, K]), K) for pair in pairs
            ]
    return rows


def open_ranker(folder: Path, store: PassageStore) -> Ranker:
    bm25 = BM25(BM25.Settings(), index=folder / "bm25")
    part = Part(bm25, K, 1.0, "names")
    return Ranker(Ranker.Settings(), parts=[part], passages=store.get)


def time_searches(
    questions: Sequence[Question], folder: Path, store: PassageStore
) -> Iterator[str]:
    """Milliseconds a question of BM25, ranker, sparse and the latter two fused, asked in turns."""
    bm25 = BM25(BM25.Settings(), index=folder / "bm25")
    ranker = open_ranker(folder, store)
    sparse = Sparse(Sparse.Settings(), index=folder / "sparse")
    parts = [Part(ranker, K, 1.0, "question"), Part(sparse, K, 1.0, "question")]
    searches = {
        "bm25": bm25,
        "ranker": ranker,
        "sparse": sparse,
        "fusion of ranker and sparse": Fusion(Fusion.Settings(method="weighted"), parts=parts),
    }
    times: dict[str, list[float]] = {name: [] for name in searches}
    for question in [questions[0], *questions]:  # the first warms up
        for name, searcher in searches.items():
            started = time.perf_counter()
            searcher.search([question], K)
            times[name].append(1000 * (time.perf_counter() - started))
    yield "| retriever | median ms | 95th percentile |"
    yield "|---|---|---|"
    for name, milliseconds in times.items():
        ordered = sorted(milliseconds[1:])
        yield (
            f"| {name} | {ordered[len(ordered) // 2]:.1f} | {ordered[len(ordered) * 95 // 100]:.1f} |"
        )


def sparse_rows(rows: Rows, questions: Sequence[Question], folder: Path) -> Rows:
    """Learned sparse retrieval, alone and fused with the rows that are there."""
    found = list(Sparse(Sparse.Settings(), index=folder / "sparse").search(questions, K))
    new_rows: Rows = {"sparse question": found}
    for partner, name in (("bm25 weighted", "sparse"), ("ranker weighted", "ranker-sparse")):
        if partner in rows:
            pairs = list(zip(rows[partner], found, strict=True))
            new_rows[f"rrf {name}"] = [
                top_hits(fuse_by_rank(pair, [1.0, 1.0]), K) for pair in pairs
            ]
            new_rows[f"hybrid {name}"] = [
                top_hits(fuse_by_score(pair, [1.0, 1.0], [K, K]), K) for pair in pairs
            ]
    return new_rows


def _parts(retriever: Any, name: str, query: str) -> list[Part]:
    """The rankings that a row of a retriever fuses."""
    if query == "fused":
        return [
            Part(retriever, K, 1.0, clause) for clause in ("question", "presupposition", "main")
        ]
    if query == "weighted" and name == "dense":
        return [Part(retriever, K, 1.0, "question"), Part(retriever, K, 0.25, "presupposition")]
    return [Part(retriever, K, 1.0, "names" if query == "weighted" else query)]


def rerank_rows(
    rows: Rows,
    questions: Sequence[Question],
    store: PassageStore,
    relevance: Callable[..., Sequence[float]],
    depth: int,
    suffix: str = "reranked",
    weight: float = MODEL_WEIGHT,
) -> Rows:
    """The rows with the first `depth` of each ranking reordered.

    Each passage is scored once per question.
    """
    ids = [
        {hit.passage_id for row in rows.values() for hit in row[number][:depth]}
        for number in range(len(questions))
    ]
    new_rows: Rows = {f"{name} {suffix}": [] for name in rows}
    with bar(suffix, sum(map(len, ids))) as advance:
        for number, question in enumerate(questions):
            passages: list[Passage] = store.get(sorted(ids[number]))
            pairs = [(question.text, passage.text) for passage in passages]
            scores = dict(
                zip(sorted(ids[number]), map(float, relevance(pairs, advance)), strict=True)
            )
            for name, row in rows.items():
                first = [scores[hit.passage_id] for hit in row[number][:depth]]
                new_rows[f"{name} {suffix}"].append(reorder_hits(row[number], first, weight))
    return new_rows


def judge(rows: Rows, questions: Sequence[Question], store: PassageStore) -> list[dict[str, bool]]:
    """For each question: id of a ranked passage -> whether it covers a gold passage of the
    question.
    """
    judgements = []
    for number, question in enumerate(questions):
        ids = sorted({hit.passage_id for row in rows.values() for hit in row[number]})
        golds = question.gold_passages
        texts = (passage.text for passage in store.get(ids))
        judgements.append(
            {
                name: any(covers(text, gold) for gold in golds)
                for name, text in zip(ids, texts, strict=True)
            }
        )
    return judgements


def missed_by_all(
    questions: Sequence[Question], judgements: Sequence[dict[str, bool]]
) -> Iterator[str]:
    """The questions of which no ranking has a gold passage, each with its gold passages."""
    missed = [
        question
        for question, is_gold in zip(questions, judgements, strict=True)
        if not any(is_gold.values())
    ]
    yield f"{len(missed)} of {len(questions)} questions are missed at {K} by every row"
    for question in missed:
        yield f"\n{question.id}: {question.text}"
        yield from (f"  {text}" for text in question.gold_passages)


def recall_table(rows: Rows, judgements: Sequence[dict[str, bool]]) -> Table:
    """Row -> "gold_any@K" -> value, low, high (percent), and p against the first row."""
    table: Table = {}
    baseline: dict[str, list[float]] = {}
    for name, row in rows.items():
        right = [
            [is_gold[hit.passage_id] for hit in hits]
            for hits, is_gold in zip(row, judgements, strict=True)
        ]
        values = {f"gold_any@{k}": [float(any(flags[:k])) for flags in right] for k in CUTOFFS}
        baseline = baseline or values
        table[name] = {}
        for measure, scores in values.items():
            mean, low, high = (100 * share for share in mean_interval(scores))
            p = paired_randomization(scores, baseline[measure])
            table[name][measure] = {"value": mean, "low": low, "high": high, "p": p}
    return table


def control_table(rows: Rows, judgements: Sequence[dict[str, bool]]) -> Table:
    """Row -> measure -> value, and its difference from the first row with the ends of a 95%
    bootstrap interval.

    Gold passages have a style by which a trained retriever may know them. Such a retriever also
    raises the gold passages of *other* questions. So passages that cover a question's own gold
    passages are removed from its ranking, and the measures count gold passages among the rest:
    "share@K" is their share of the first K in percent, "reciprocal" 100 / the rank of the first.
    """
    values: dict[str, dict[str, list[float]]] = {}
    for name, row in rows.items():
        values[name] = {
            measure: [] for measure in (*(f"share@{k}" for k in CONTROL_CUTOFFS), "reciprocal")
        }
        for hits, is_gold in zip(row, judgements, strict=True):
            others = [
                hit.passage_id.startswith(GOLD) for hit in hits if not is_gold[hit.passage_id]
            ]
            for k in CONTROL_CUTOFFS:
                values[name][f"share@{k}"].append(100 * sum(others[:k]) / max(1, len(others[:k])))
            first = others.index(True) + 1 if True in others else math.inf
            values[name]["reciprocal"].append(100 / first)
    if not any(any(measures["reciprocal"]) for measures in values.values()):
        raise ConfigError(
            "the control wants gold passages of other questions in the corpus; "
            "found none in any ranking"
        )
    baseline = next(iter(values.values()))
    table: Table = {}
    for name, measures in values.items():
        table[name] = {}
        for measure, scores in measures.items():
            difference = mean_interval(
                [score - other for score, other in zip(scores, baseline[measure], strict=True)]
            )
            cells = (sum(scores) / len(scores), *difference)
            table[name][measure] = dict(
                zip(("value", "difference", "low", "high"), cells, strict=True)
            )
    return table


def passed(measures: dict[str, dict[str, float]]) -> bool:
    """Whether a row passes the control: no interval of a difference is above 0."""
    return all(measure["low"] <= 0 for measure in measures.values())


def control_markdown(table: Table) -> str:
    """The table of the control: each measure, and in brackets the interval of its difference from
    the first row.
    """
    heads = [*(f"of the first {k}" for k in CONTROL_CUTOFFS), "100 / rank of the first", "control"]
    lines = [
        f"| other questions' gold passages, % | {' | '.join(heads)} |",
        "|---" * (len(heads) + 1) + "|",
    ]
    for name, measures in table.items():
        cells = [
            f"{score['value']:.2f} [{score['low']:+.2f}, {score['high']:+.2f}]"
            for score in measures.values()
        ]
        lines.append(
            f"| {name} | {' | '.join(cells)} | {'passed' if passed(measures) else 'failed'} |"
        )
    return "\n".join(lines)


def markdown(table: Table) -> str:
    """The table; a star where p < 0.05."""
    lines = [
        f"| retriever | {' | '.join(f'@{k}' for k in CUTOFFS)} | p @1, @5, @20 |",
        "|---|---|---|---|---|---|",
    ]
    for name, measures in table.items():
        stars = {measure: "*" if score["p"] < 0.05 else "" for measure, score in measures.items()}
        cells = [
            f"{score['value']:.1f}{stars[measure]} [{score['low']:.1f}, {score['high']:.1f}]"
            for measure, score in measures.items()
        ]
        ps = ", ".join(f"{score['p']:.3f}" for score in list(measures.values())[:3])
        lines.append(f"| {name} | {' | '.join(cells)} | {ps} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
