"""Statistics of a corpus's passages: number, lengths, and coverage of a benchmark's gold passages.

They compare two ways to build passages before anything is indexed or searched.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from ifqa.config.corpus import CorpusConfig
from ifqa.corpus.passage_store import list_shards
from ifqa.errors import IfqaError
from ifqa.pipeline.run import CorpusBuild
from ifqa.progress import bar
from ifqa.records import GOLD, Question
from ifqa.report.stats import percent_cell, summary
from ifqa.report.table import Table
from ifqa.scoring.measures.gold_recall import COVERED_SHARE, GoldGrams
from ifqa.storage.files import read_jsonl, typed_field
from ifqa.workers.pool import map_tasks


@dataclass(frozen=True)
class Coverage:
    """The coverage of a split's gold passages by a set of passages.

    Attributes:
        golds: the number of distinct gold passages.
        questions: the number of questions with gold passages.
        percents: "covered": gold passages with at least 40% of their distinct word 5-grams in one passage; "mean_best": the
            mean of the largest such share; "questions_any", "questions_all": questions with any or all gold passages covered.
            None without gold passages.
    """

    golds: int
    questions: int
    percents: dict[str, float | None]


def compute_coverage(questions: Sequence[Question], best: Mapping[str, float]) -> Coverage:
    """The coverage of the questions' gold passages; `best`: gold text -> its largest share, 0 if missing."""
    shares = {text: best.get(text, 0.0) for question in questions for text in question.gold_passages}
    hits = [
        [shares[text] >= COVERED_SHARE for text in question.gold_passages]
        for question in questions
        if question.gold_passages
    ]
    parts = {
        "covered": (sum(share >= COVERED_SHARE for share in shares.values()), len(shares)),
        "mean_best": (math.fsum(shares.values()), len(shares)),
        "questions_any": (sum(map(any, hits)), len(hits)),
        "questions_all": (sum(map(all, hits)), len(hits)),
    }
    percents = {name: 100 * part / whole if whole else None for name, (part, whole) in parts.items()}
    return Coverage(len(shares), len(hits), percents)


@dataclass(frozen=True)
class PassageStats:
    """Statistics of a corpus, over all shards.

    Attributes:
        shards: number of files.
        gold: number of passages that are themselves gold passages of a benchmark (`gold/…`).
        lengths: words of a text, split at white space -> number of passages of that length.
        coverage: split -> coverage by the other passages, which depends on the chunking.
        coverage_with_gold: split -> coverage by all passages; the same as `coverage` if `gold` is 0.
    """

    shards: int
    gold: int
    lengths: dict[int, int]
    coverage: dict[str, Coverage]
    coverage_with_gold: dict[str, Coverage]

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of shards, passages, gold passages and words."""
        words = sum(length * count for length, count in self.lengths.items())
        return {
            "shards": self.shards,
            "passages": sum(self.lengths.values()),
            "gold_passages": self.gold,
            "words": words,
        }


class ShardStats(NamedTuple):
    """A shard's passage lengths, and for each gold passage the largest share of its 5-grams in one passage.

    Both are separate for gold passages (True) and others.
    """

    lengths: dict[bool, Counter[int]]
    best: dict[bool, dict[str, float]]


# A worker processes several shards with the same gold passages.
_gold_grams = lru_cache(maxsize=1)(GoldGrams)


def _measure_shard(golds: tuple[str, ...], path: Path) -> ShardStats:
    grams = _gold_grams(golds) if golds else None
    stats = ShardStats({False: Counter(), True: Counter()}, {False: {}, True: {}})
    for number, record in read_jsonl(path):
        where = f"{path}:{number}"
        text: str = typed_field(record, "contents", str, where)
        is_gold = typed_field(record, "id", str, where).startswith(GOLD)
        stats.lengths[is_gold][len(text.split())] += 1
        if grams:
            _update_best(stats.best[is_gold], {golds[place]: share for place, share in grams.shares(text).items()})
    return stats


def _update_best(best: dict[str, float], shares: Mapping[str, float]) -> None:
    for text, share in shares.items():
        best[text] = max(best.get(text, 0.0), share)


def measure(
    corpus: CorpusConfig, questions_by_split: Mapping[str, Sequence[Question]], workers: int = 0
) -> PassageStats:
    """Read a corpus's passages once, a shard at a time, and count them.

    Args:
        corpus: the corpus; its passages must be built.
        questions_by_split: the questions with the gold passages to look for; {} for none.
        workers: number of processes; 0 for the number of cores.
    """
    folder = corpus.folder / "passages"
    recorded = CorpusBuild(corpus).passages["record"]["passages"]
    paths = list(list_shards(folder).values())
    texts = (text for split in questions_by_split.values() for question in split for text in question.gold_passages)
    measure_shard = partial(_measure_shard, tuple(dict.fromkeys(texts)))
    lengths, gold, best, best_with_gold = Counter[int](), 0, dict[str, float](), dict[str, float]()
    with bar(f"measuring {corpus.name}", len(paths)) as advance:
        for _, shard in map_tasks(measure_shard, paths, workers=workers):
            lengths += shard.lengths[False] + shard.lengths[True]
            gold += shard.lengths[True].total()
            _update_best(best, shard.best[False])
            _update_best(best_with_gold, shard.best[True])
            advance(1)
    _update_best(best_with_gold, best)
    if (count := lengths.total()) != recorded:
        raise IfqaError(
            f"{folder}: found {count:,} passages, the manifest says {recorded:,}; remove the folder and build it again: "
            f"ifqa passages {corpus.name}"
        )
    coverages = (
        {split: compute_coverage(questions, shares) for split, questions in questions_by_split.items()}
        for shares in (best, best_with_gold)
    )
    return PassageStats(len(paths), gold, dict(sorted(lengths.items())), *coverages)


def stats_json(stats: PassageStats) -> dict[str, object]:
    """The statistics as JSON data: counts, shares in percent, and histograms as {size: count}."""
    every = {"coverage": stats.coverage, "coverage_with_gold": stats.coverage_with_gold}
    return {**stats.counts, "words_a_passage": {**summary(stats.lengths), "histogram": stats.lengths}} | {
        name: {
            split: {"golds": measured.golds, "questions": measured.questions, "percent": measured.percents}
            for split, measured in coverages.items()
        }
        for name, coverages in every.items()
    }


def tables(corpus_name: str, stats: PassageStats) -> Iterator[Table]:
    """The counts, the lengths and the covered gold passages, as tables that fit 80 columns."""
    cells = [(name.replace("_", " "), f"{count:,}", *[""] * 4) for name, count in stats.counts.items()]
    values = summary(stats.lengths).items()
    cells.append(
        ("words a passage", "", *(f"{value:,.1f}" if key == "mean" else f"{value:,g}" for key, value in values))
    )
    yield Table(corpus_name, "", ("", "count", "mean", "median", "least", "most"), tuple(cells))
    if not stats.coverage:
        return
    rows = []
    for split, measured in stats.coverage.items():
        rows.append((split, *_coverage_cells(measured)))
        if stats.gold:
            rows.append(("  with gold", *_coverage_cells(stats.coverage_with_gold[split])))
    note = (
        "A corpus given the gold passages holds them, however its pages were cut:\n"
        "a split's first row is what the other passages hold."
    )
    title = f"Gold passages covered, in %: one passage holds {100 * COVERED_SHARE:.0f}% of the word 5-grams"
    columns = ("split", "golds", "covered", "mean best", "questions", "any", "all")
    yield Table(title, note if stats.gold else "", columns, tuple(rows))


def _coverage_cells(measured: Coverage) -> tuple[str, ...]:
    covered, best, any_of, all_of = map(percent_cell, measured.percents.values())
    return (f"{measured.golds:,}", covered, best, f"{measured.questions:,}", any_of, all_of)
