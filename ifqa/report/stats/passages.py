"""Statistics of a corpus's passages: number, lengths, and coverage of a benchmark's gold passages.

They show which of two ways to build passages is better before anything is indexed or searched.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

from ifqa.config.corpus import CorpusConfig
from ifqa.corpus.passage_store import list_shards
from ifqa.errors import DamagedArtifact
from ifqa.pipeline.run import CorpusBuild
from ifqa.progress import bar
from ifqa.records import GOLD, Question
from ifqa.report.stats import percent_cell, summary
from ifqa.report.table import Table
from ifqa.scoring.gold_overlap import COVERED_SHARE, GoldGrams
from ifqa.storage.files import read_jsonl, typed_field
from ifqa.workers.pool import map_tasks


@dataclass(frozen=True)
class Coverage:
    """The coverage of a split's gold passages by a set of passages.

    `percent`: "covered": gold passages with at least 40% of their distinct word 5-grams in one passage; "mean_best": the mean of
    the largest such share; "questions_any", "questions_all": questions with any or all gold passages covered. None without gold
    passages.
    """

    golds: int  # distinct gold passages
    questions: int  # questions with gold passages
    percent: dict[str, float | None]


def compute_coverage(questions: Sequence[Question], best: Mapping[str, float]) -> Coverage:
    """The coverage of the questions' gold passages; `best`: gold text -> its 5-grams' largest share in a passage, or 0."""
    golds = [question.gold_passages for question in questions if question.gold_passages]
    shares = {text: best.get(text, 0.0) for texts in golds for text in texts}
    hits = [[shares[text] >= COVERED_SHARE for text in texts] for texts in golds]
    parts = {
        "covered": (sum(share >= COVERED_SHARE for share in shares.values()), len(shares)),
        "mean_best": (math.fsum(shares.values()), len(shares)),
        "questions_any": (sum(map(any, hits)), len(hits)),
        "questions_all": (sum(map(all, hits)), len(hits)),
    }
    percent = {name: 100 * part / whole if whole else None for name, (part, whole) in parts.items()}
    return Coverage(len(shares), len(hits), percent)


@dataclass(frozen=True)
class PassageStats:
    shards: int
    gold: int  # passages that are themselves gold passages of a benchmark (`gold/…`)
    lengths: dict[int, int]  # words of a text, split at white space -> passages of that length
    coverage: dict[str, Coverage]  # split -> coverage by the other passages, which depends on the chunking
    coverage_with_gold: dict[str, Coverage]  # split -> coverage by all passages

    @property
    def counts(self) -> dict[str, int]:
        passages, words = sum(self.lengths.values()), sum(length * count for length, count in self.lengths.items())
        return {"shards": self.shards, "passages": passages, "gold_passages": self.gold, "words": words}


_gold_grams = lru_cache(maxsize=1)(GoldGrams)  # a worker counts several shards with the same gold passages
Lengths = Counter[int]
Shares = dict[str, float]  # gold text -> the largest share of its 5-grams in one passage


def _measure_shard(golds: tuple[str, ...], path: Path) -> tuple[tuple[Lengths, Lengths], tuple[Shares, Shares]]:
    """The lengths of a shard's passages, and their shares of the gold passages; each pair ends with those of gold passages."""
    grams = _gold_grams(golds) if golds else None
    lengths, best = (Lengths(), Lengths()), (Shares(), Shares())
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        text: str = typed_field(record, "contents", str, where)
        is_gold = typed_field(record, "id", str, where).startswith(GOLD)
        lengths[is_gold][len(text.split())] += 1
        if grams:
            _update_best(best[is_gold], {golds[index]: share for index, share in grams.shares(text).items()})
    return lengths, best


def _update_best(best: dict[str, float], shares: Mapping[str, float]) -> None:
    for text, share in shares.items():
        best[text] = max(best.get(text, 0.0), share)


def measure(corpus: CorpusConfig, splits: Mapping[str, Sequence[Question]], workers: int = 0) -> PassageStats:
    """Count a corpus's passages and their coverage of the gold passages of `splits`, one shard at a time.

    `workers` is the number of processes; 0 for the number of cores.
    """
    folder = corpus.folder / "passages"
    recorded = CorpusBuild(corpus).passages["record"]["passages"]
    paths = list(list_shards(folder).values())
    texts = (text for questions in splits.values() for question in questions for text in question.gold_passages)
    measure_shard = partial(_measure_shard, tuple(dict.fromkeys(texts)))
    lengths, gold, best, best_with_gold = Lengths(), 0, Shares(), Shares()
    with bar(f"measuring {corpus.name}", len(paths)) as advance:
        for _, ((others, golds), (shares, gold_shares)) in map_tasks(measure_shard, paths, workers=workers):
            lengths += others + golds
            gold += golds.total()
            _update_best(best, shares)
            _update_best(best_with_gold, gold_shares)
            advance(1)
    _update_best(best_with_gold, best)
    if (count := lengths.total()) != recorded:
        remedy = f"remove the folder and build it again: ifqa passages {corpus.name}"
        raise DamagedArtifact(f"{folder}: found {count:,} passages, but the manifest says {recorded:,}; {remedy}")
    coverages = ({name: compute_coverage(splits[name], shares) for name in splits} for shares in (best, best_with_gold))
    return PassageStats(len(paths), gold, dict(sorted(lengths.items())), *coverages)


def stats_json(stats: PassageStats) -> dict[str, object]:
    """The statistics as JSON data: counts, shares in percent, and histograms as {size: count}."""
    content: dict[str, object] = {**stats.counts}
    content["words_a_passage"] = {**summary(stats.lengths), "histogram": stats.lengths}
    content["coverage"] = {split: asdict(coverage) for split, coverage in stats.coverage.items()}
    return content | {"coverage_with_gold": {name: asdict(part) for name, part in stats.coverage_with_gold.items()}}


def tables(corpus_name: str, stats: PassageStats) -> Iterator[Table]:
    """The counts, the lengths and the covered gold passages, as tables that fit 80 columns."""
    cells = [(name.replace("_", " "), f"{count:,}", *[""] * 4) for name, count in stats.counts.items()]
    lengths = summary(stats.lengths).items()
    words = (f"{length:,.1f}" if key == "mean" else f"{length:,g}" for key, length in lengths)
    cells.append(("words per passage", "", *words))
    yield Table(corpus_name, "", ("", "count", "mean", "median", "least", "most"), tuple(cells))
    if not stats.coverage:
        return
    rows = []
    for split, coverage in stats.coverage.items():
        rows.append((split, *_coverage_cells(coverage)))
        if stats.gold:
            rows.append(("  with gold", *_coverage_cells(stats.coverage_with_gold[split])))
    note = (
        "A corpus that was given the gold passages holds them, however its pages were\n"
        "cut; a split's first row counts only what the other passages hold."
    )
    title = f"Gold passages covered, in %: one passage holds {100 * COVERED_SHARE:.0f}% of the word 5-grams"
    columns = ("split", "golds", "covered", "mean best", "questions", "any", "all")
    yield Table(title, note if stats.gold else "", columns, tuple(rows))


def _coverage_cells(coverage: Coverage) -> tuple[str, ...]:
    covered, best, any_of, all_of = map(percent_cell, coverage.percent.values())
    return (f"{coverage.golds:,}", covered, best, f"{coverage.questions:,}", any_of, all_of)
