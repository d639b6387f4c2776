"""Prints gold recall of each retriever for each part of a question, with and without reranking.

    python bench/retrieval.py CORPUS [--only bm25] [--ranker] [--rerank DEPTH] [--reader] [--control]

{question, presupposition, main clause, fused, weighted} x {BM25, dense, hybrid} x {as found, reranked}. CORPUS has the
indexes "bm25" and "dense" (`ifqa index CORPUS`). The columns are gold recall in percent with its 95% bootstrap interval, and
p of a paired randomisation test against BM25 asked the question. `--to` keeps every ranking as a TREC run, and the table.

"fused" is RRF over the question, its presupposition and its main clause. "weighted" repeats names and numbers for BM25, and
adds a quarter of the presupposition's scores for the dense retriever. "rrf" and "hybrid" fuse the two retrievers' rankings
of a row, by rank and by score. "hybrid names" fuses BM25 asked its names and dense retrieval asked the question, by score.
In a reranked ranking the first DEPTH are reordered, and the others follow as they were.

"ranker weighted" is the retriever "ranker" over BM25 asked the question and its names (`--ranker`). Rows that are "read" were
reordered to DEPTH by the retriever "rerank" with the span reader for its model (`--reader`), and those "read reranked" by the
cross-encoder after that, which then has a third of the weight.

`--control` asks of each row whether it knows gold passages by their style (`controlled`). CORPUS needs passages of the format
"gold" for that.
"""

import argparse
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ifqa.corpus.passage_store import PassageStore
from ifqa.errors import IfqaError
from ifqa.formats.runs import write_run
from ifqa.plugins import load_plugin, open_benchmark
from ifqa.progress import bar
from ifqa.reading.span.reader import Extractive
from ifqa.records import GOLD, Hit, Passage, Question
from ifqa.retrieval.composition import Part, fuse_by_rank, fuse_by_score, top_hits
from ifqa.retrieval.fusion import Fusion
from ifqa.retrieval.rerank import BUNDLED_MODEL, MODEL_WEIGHT, CrossEncoder, reorder_hits
from ifqa.scoring.measures.gold_recall import covers
from ifqa.scoring.statistics import mean_interval, paired_randomization

CUTOFFS = (1, 5, 20, 100)
K = 100
CONTROL_CUTOFFS = (1, 5, 20)
ASKED = ("question", "presupposition", "main", "fused", "weighted")


def main() -> None:
    """Rank, score, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--benchmark", default="ifqa")
    parser.add_argument("--split", default="full-dev")
    parser.add_argument("--only", choices=["bm25", "dense"], help="only this retriever, without hybrids")
    parser.add_argument("--asked", nargs="+", choices=ASKED, default=ASKED, help="only these rows (default: all)")
    parser.add_argument(
        "--ranker", action="store_true", help='also the retriever "ranker", over BM25 asked with its names'
    )
    parser.add_argument("--rerank", type=int, default=0, metavar="DEPTH", help="also rerank the first DEPTH of each")
    parser.add_argument(
        "--rerank-asked",
        nargs="+",
        choices=[*ASKED, "names"],
        default=[*ASKED, "names"],
        help="rerank only these (default: all)",
    )
    parser.add_argument("--reader", action="store_true", help="also rerank those by the span reader, and by both")
    parser.add_argument("--model", default=BUNDLED_MODEL, help="reranker: ifqa, a folder, or a model of the hub")
    parser.add_argument("--limit", type=int, help="first N questions")
    parser.add_argument("--control", action="store_true", help="also count gold passages of other questions")
    parser.add_argument("--to", type=Path, help="folder for the rankings and the table")
    arguments = parser.parse_args()
    questions = open_benchmark(arguments.benchmark).questions(arguments.split)[: arguments.limit]
    folder = Path("indexes") / arguments.corpus
    names = [arguments.only] if arguments.only else ["bm25", "dense"]
    rows = rankings(questions, folder, names, arguments.asked)
    store = PassageStore(folder / "passages")
    if arguments.ranker:
        part = Part(load_plugin("retriever", "bm25")(folder / "bm25"), K, 1.0, "names")
        rows["ranker weighted"] = load_plugin("retriever", "ranker")(parts=[part], passages=store.get).search(
            questions, K
        )
    if arguments.rerank:
        chosen = {name: row for name, row in rows.items() if name.split()[1] in arguments.rerank_asked}
        rerank, depth = CrossEncoder(arguments.model).relevance, arguments.rerank
        rows |= reranked(chosen, questions, store, rerank, depth)
        if arguments.reader:
            read = reranked(chosen, questions, store, Extractive().relevance, depth, "read")
            rows |= read | reranked(read, questions, store, rerank, depth, weight=1 / 3)
    own = judged(rows, questions, store)
    table = scored(rows, own)
    print(markdown(table))
    control = controlled(rows, own) if arguments.control else {}
    if control:
        print(control_markdown(control))
    if arguments.to:
        arguments.to.mkdir(parents=True, exist_ok=True)
        for name, ranking in rows.items():
            by_question = {question.id: hits for question, hits in zip(questions, ranking, strict=True)}
            write_run(arguments.to / f"{name.replace(' ', '-')}.trec", by_question, tag="ifqa")
        (arguments.to / "table.json").write_text(json.dumps(table, indent=1))
        if control:
            (arguments.to / "control.json").write_text(json.dumps(control, indent=1))


def rankings(
    questions: Sequence[Question], folder: Path, names: Sequence[str], all_asked: Sequence[str] = ASKED
) -> dict[str, list[list[Hit]]]:
    """Row name ("bm25 question", "hybrid weighted", ...) -> rankings, one for each question, best first."""
    rows: dict[str, list[list[Hit]]] = {}
    for name in names:
        retriever = load_plugin("retriever", name)(folder / name)
        for request in all_asked:
            parts = _parts(retriever, name, request)
            fusion = Fusion(parts=parts, method="rrf" if request == "fused" else "weighted") if len(parts) > 1 else None
            rows[f"{name} {request}"] = fusion.search(questions, K) if fusion else parts[0].search(questions)
    if len(names) == 2:
        for request in all_asked:
            both = list(zip(*(rows[f"{name} {request}"] for name in names), strict=True))
            rows[f"rrf {request}"] = [top_hits(fuse_by_rank(pair, [1.0, 1.0]), K) for pair in both]
            rows[f"hybrid {request}"] = [top_hits(fuse_by_score(pair, [1.0, 1.0], [K, K]), K) for pair in both]
        if {"question", "weighted"} <= set(all_asked):
            both = list(zip(rows["bm25 weighted"], rows["dense question"], strict=True))
            rows["hybrid names"] = [top_hits(fuse_by_score(pair, [1.0, 1.0], [K, K]), K) for pair in both]
    return rows


def _parts(retriever: Any, name: str, asked: str) -> list[Part]:
    """The queries for a retriever: several lists if several rankings are fused."""
    if asked == "fused":
        return [Part(retriever, K, 1.0, query) for query in ("question", "presupposition", "main")]
    if asked == "weighted" and name == "dense":
        return [Part(retriever, K, 1.0, "question"), Part(retriever, K, 0.25, "presupposition")]
    return [Part(retriever, K, 1.0, "names" if asked == "weighted" else asked)]


def reranked(
    rows: dict[str, list[list[Hit]]],
    questions: Sequence[Question],
    store: PassageStore,
    score: Callable[..., Sequence[float]],
    depth: int,
    called: str = "reranked",
    weight: float = MODEL_WEIGHT,
) -> dict[str, list[list[Hit]]]:
    """The rows, with the first `depth` of each ranking reordered; a passage in several rows is scored once."""
    wanted: list[set[str]] = [
        {hit.passage_id for ranking in rows.values() for hit in ranking[number][:depth]}
        for number in range(len(questions))
    ]
    found: dict[str, list[list[Hit]]] = {f"{name} {called}": [] for name in rows}
    with bar(called, sum(map(len, wanted))) as advance:
        for number, question in enumerate(questions):
            passages: list[Passage] = store.get(sorted(wanted[number]))
            scores = score([(question.text, passage.text) for passage in passages], advance)
            by_id = {passage.id: float(of_one) for passage, of_one in zip(passages, scores, strict=True)}
            for name, ranking in rows.items():
                first = ranking[number][:depth]
                by_model = [by_id[hit.passage_id] for hit in first]
                found[f"{name} {called}"].append(reorder_hits(ranking[number], by_model, weight))
    return found


def judged(
    rows: dict[str, list[list[Hit]]], questions: Sequence[Question], store: PassageStore
) -> list[dict[str, bool]]:
    """For each question: id of a ranked passage -> whether it covers a gold passage of the question."""
    found = []
    for number, question in enumerate(questions):
        ids = sorted({hit.passage_id for ranking in rows.values() for hit in ranking[number]})
        passages = zip(ids, store.get(ids), strict=True)
        found.append(
            {one: any(covers(passage.text, gold) for gold in question.gold_passages) for one, passage in passages}
        )
    return found


def scored(rows: dict[str, list[list[Hit]]], own: Sequence[dict[str, bool]]) -> dict[str, dict[str, dict[str, float]]]:
    """Row -> "gold_any@K" -> value, low, high (percent), and p against the first row; `own` is that of `judged`."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    baseline: dict[str, list[float]] = {}
    for name, ranking in rows.items():
        right = [[is_own[hit.passage_id] for hit in hits] for hits, is_own in zip(ranking, own, strict=True)]
        values = {f"gold_any@{k}": [float(any(one[:k])) for one in right] for k in CUTOFFS}
        baseline = baseline or values
        table[name] = {}
        for measure, each in values.items():
            mean, low, high = (100 * share for share in mean_interval(each))
            p = paired_randomization(each, baseline[measure])
            table[name][measure] = {"value": mean, "low": low, "high": high, "p": p}
    return table


def controlled(
    rows: dict[str, list[list[Hit]]], own: Sequence[dict[str, bool]]
) -> dict[str, dict[str, dict[str, float]]]:
    """Row -> measure -> value, and its difference from the first row with the ends of a 95% bootstrap interval.

    Gold passages have a style of their own, by which a trained retriever may know them. Such a retriever also raises the gold
    passages of *other* questions. So passages that cover this question's own gold passages are taken out of its ranking, and
    the measures count gold passages among the rest: "share@K" is their share of the first K in percent, "reciprocal" 100
    divided by the rank of the first.

    Raises:
        IfqaError: no ranking holds a gold passage of another question.
    """
    measures = [*(f"share@{k}" for k in CONTROL_CUTOFFS), "reciprocal"]
    each: dict[str, dict[str, list[float]]] = {}
    for name, ranking in rows.items():
        each[name] = {measure: [] for measure in measures}
        for hits, is_own in zip(ranking, own, strict=True):
            others = [hit.passage_id.startswith(GOLD) for hit in hits if not is_own[hit.passage_id]]
            for k in CONTROL_CUTOFFS:
                each[name][f"share@{k}"].append(100 * sum(others[:k]) / max(1, len(others[:k])))
            first = others.index(True) + 1 if True in others else math.inf
            each[name]["reciprocal"].append(100 / first)
    if not any(value for values in each.values() for value in values["reciprocal"]):
        raise IfqaError("the control wants gold passages of other questions in the corpus; found none in any ranking")
    baseline = next(iter(each.values()))
    table: dict[str, dict[str, dict[str, float]]] = {}
    for name, values in each.items():
        table[name] = {}
        for measure, of_row in values.items():
            differences = [value - usual for value, usual in zip(of_row, baseline[measure], strict=True)]
            mean, low, high = mean_interval(differences)
            value = sum(of_row) / len(of_row)
            table[name][measure] = {"value": value, "difference": mean, "low": low, "high": high}
    return table


def passed(measures: dict[str, dict[str, float]]) -> bool:
    """Whether a row passes the control: no interval of a difference lies above 0."""
    return all(measure["low"] <= 0 for measure in measures.values())


def control_markdown(table: dict[str, dict[str, dict[str, float]]]) -> str:
    """The table of the control: each measure, and in brackets the interval of its difference from the first row."""
    heads = [*(f"of the first {k}" for k in CONTROL_CUTOFFS), "100 / rank of the first"]
    lines = [
        "| other questions' gold passages, % | " + " | ".join(heads) + " | control |",
        "|---" * (len(heads) + 2) + "|",
    ]
    for name, measures in table.items():
        cells = [
            f"{measure['value']:.2f} [{measure['low']:+.2f}, {measure['high']:+.2f}]" for measure in measures.values()
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {'passed' if passed(measures) else 'failed'} |")
    return "\n".join(lines)


def markdown(table: dict[str, dict[str, dict[str, float]]]) -> str:
    """The table; a star where p < 0.05."""
    lines = [
        "| retriever | " + " | ".join(f"@{k}" for k in CUTOFFS) + " | p @1, @5, @20 |",
        "|---|---|---|---|---|---|",
    ]
    for name, measures in table.items():
        cells = [
            f"{measure['value']:.1f}{'*' if measure['p'] < 0.05 else ''} [{measure['low']:.1f}, {measure['high']:.1f}]"
            for measure in measures.values()
        ]
        ps = ", ".join(f"{measure['p']:.3f}" for measure in list(measures.values())[:3])
        lines.append(f"| {name} | {' | '.join(cells)} | {ps} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
