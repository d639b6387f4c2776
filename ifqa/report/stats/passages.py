"""Statistics of a corpus's passages: number, lengths, and how many gold passages of a benchmark they cover.

With them, two ways of building passages can be compared before anything is indexed or searched.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from ifqa.config.corpus import Corpus
from ifqa.corpus.store import shards_of
from ifqa.errors import IfqaError
from ifqa.pipeline.run import CorpusBuild
from ifqa.progress import bar
from ifqa.records import GOLD, Question
from ifqa.report.stats import cell, summary
from ifqa.report.table import Table
from ifqa.scoring.measures.gold_recall import COVERED_SHARE, GoldGrams
from ifqa.storage.files import field, read_jsonl
from ifqa.workers.tasks import run

Page = tuple[str, str] | None  # identifies the page of a passage; None for a passage without a page
End = tuple[Page, int]  # a page at the end of a shard, and how many of its passages are in the shard
Shares = dict[int, float]  # which of the gold passages -> the largest share of its 5-grams found in one passage


@dataclass(frozen=True)
class Coverage:
    """How much of a split's gold passages a set of passages covers.

    Attributes:
        golds: how many distinct gold passages there are.
        questions: how many questions have gold passages.
        percents: "covered": gold passages of which one passage holds at least 40% of the distinct word 5-grams; "mean_best": the
            mean of the largest such share; "questions_any" and "questions_all": questions with any or with all gold passages
            covered. None without gold passages.
    """

    golds: int
    questions: int
    percents: dict[str, float | None]


def coverage(questions: Sequence[Question], best: Mapping[str, float]) -> Coverage:
    """The coverage of the questions' gold passages; `best` is the best share of each text, 0 for texts not in it."""
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
        page_sizes: passages of a page -> number of pages of that size.
        coverage: split -> coverage by the passages other than `gold`, which depends on how pages were cut.
        coverage_with_gold: split -> coverage by all passages; the same as `coverage` if `gold` is 0.
    """

    shards: int
    gold: int
    lengths: dict[int, int]
    page_sizes: dict[int, int]
    coverage: dict[str, Coverage]
    coverage_with_gold: dict[str, Coverage]

    @property
    def counts(self) -> dict[str, int]:
        """How many shards, pages, passages, gold passages and words there are."""
        words = sum(length * count for length, count in self.lengths.items())
        pages, passages = sum(self.page_sizes.values()), sum(self.lengths.values())
        return {"shards": self.shards, "pages": pages, "passages": passages, "gold_passages": self.gold, "words": words}


@dataclass(frozen=True)
class ShardTask:
    """One task for a worker: a file of passages, and the gold passages to look for in it."""

    path: Path
    golds: tuple[str, ...]


@dataclass(frozen=True)
class ShardStats:
    """Statistics of one shard.

    `first` and `last` are its first and last page, with their number of passages in the shard; both pages may continue in
    the neighbouring shards. `last` is None if the shard has one page. `best_gold` is over passages whose id starts with `gold/`,
    `best` over all others.
    """

    path: Path
    gold: int
    lengths: Counter[int]
    page_sizes: Counter[int]
    first: End | None
    last: End | None
    best: Shares
    best_gold: Shares


# A worker gets several shards, with the same gold passages each time.
_gold_grams = lru_cache(maxsize=1)(GoldGrams)


def measure_shard(task: ShardTask) -> ShardStats:
    """The statistics of one shard."""
    grams = _gold_grams(task.golds) if task.golds else None
    lengths, golds = Counter[int](), Counter[bool]()
    best: dict[bool, Shares] = {False: {}, True: {}}

    def pages() -> Iterator[Page]:
        for number, record in read_jsonl(task.path):
            where = f"{task.path}:{number}"
            passage_id: str = field(record, "id", str, where)
            text: str = field(record, "contents", str, where)
            title: str = field(record, "title", str, where)
            is_gold = passage_id.startswith(GOLD)
            golds[is_gold] += 1
            lengths[len(text.split())] += 1
            if grams:
                _raise(best[is_gold], grams.shares(text))
            # "PAGE-n", or plain numbers such as DPR's, whose page is known by its title
            page, _, place = passage_id.rpartition("-")
            named = ("id", page) if page and place.isdecimal() else ("title", title) if title else None
            yield None if is_gold else named

    page_sizes, first, last = Counter[int](), None, None
    for page, group in groupby(pages()):
        size = sum(1 for _ in group)
        page_sizes[size] += page is not None
        first, last = (first, (page, size)) if first else ((page, size), None)
    return ShardStats(task.path, golds[True], lengths, page_sizes, first, last, best[False], best[True])


def _raise(best: Shares, shares: Mapping[int, float]) -> None:
    for number, share in shares.items():
        best[number] = max(best.get(number, 0.0), share)


def merge(
    parts: Iterable[ShardStats],
    paths: Sequence[Path],
    golds: Sequence[str],
    questions_by_split: Mapping[str, Sequence[Question]],
) -> PassageStats:
    """The statistics of all shards together: of `paths` in order, their `parts` in any order.

    `golds` are the gold passages as in `ShardTask.golds`, and `questions_by_split` the questions that have them.
    """
    gold, lengths, page_sizes = 0, Counter[int](), Counter[int]()
    best, best_gold = dict[int, float](), dict[int, float]()
    ends: dict[Path, tuple[End | None, End | None]] = {}
    for part in parts:
        gold += part.gold
        lengths += part.lengths
        page_sizes += part.page_sizes
        ends[part.path] = part.first, part.last
        _raise(best, part.best)
        _raise(best_gold, part.best_gold)
    open_page, before = None, 0  # the page that the shards so far end in, and its passages so far
    for first, last in (ends[path] for path in paths):
        if first:
            page, size = first
            if page and page == open_page:  # it goes on from the shard before
                page_sizes -= Counter([before, size])
                size += before
                page_sizes[size] += 1
            open_page, before = last or (page, size)

    def coverages(shares: Mapping[int, float]) -> dict[str, Coverage]:
        by_text = {golds[place]: share for place, share in shares.items()}
        return {split: coverage(questions, by_text) for split, questions in questions_by_split.items()}

    without = coverages(best)
    _raise(best, best_gold)
    sizes = dict(sorted(lengths.items())), dict(sorted(page_sizes.items()))
    return PassageStats(len(ends), gold, *sizes, without, coverages(best))


def measure(corpus: Corpus, questions_by_split: Mapping[str, Sequence[Question]], workers: int = 0) -> PassageStats:
    """Read a corpus's passages once, a shard at a time, and count them.

    Args:
        corpus: the corpus; its passages must be built.
        questions_by_split: the questions whose gold passages to look for; {} for none.
        workers: number of processes; 0 for the number of cores.
    """
    folder = corpus.folder / "passages"
    recorded = CorpusBuild(corpus).passages["record"]["passages"]
    paths = list(shards_of(folder).values())
    texts = (text for split in questions_by_split.values() for question in split for text in question.gold_passages)
    golds = tuple(dict.fromkeys(texts))
    tasks = (ShardTask(path, golds) for path in paths)

    def parts() -> Iterator[ShardStats]:
        with bar(f"measuring {corpus.name}", len(paths)) as advance:
            for _, part in run(measure_shard, tasks, workers=workers, name=lambda task: str(task.path)):
                yield part
                advance(1)

    stats = merge(parts(), paths, golds, questions_by_split)
    if (there := stats.counts["passages"]) != recorded:
        raise IfqaError(
            f"{folder} holds {there:,} passages, its manifest says {recorded:,}; remove the folder and build it again: "
            f"ifqa passages {corpus.name}"
        )
    return stats


def stats_json(stats: PassageStats) -> dict[str, object]:
    """The statistics as JSON data: counts, shares in percent, and histograms as {size: count}."""
    every = {"coverage": stats.coverage, "coverage_with_gold": stats.coverage_with_gold}
    return {
        **stats.counts,
        "words_a_passage": {**summary(stats.lengths), "histogram": stats.lengths},
        "passages_a_page": {**summary(stats.page_sizes), "histogram": stats.page_sizes},
    } | {
        name: {
            split: {"golds": measured.golds, "questions": measured.questions, "percent": measured.percents}
            for split, measured in some.items()
        }
        for name, some in every.items()
    }


def tables(corpus_name: str, stats: PassageStats) -> Iterator[Table]:
    """The counts, the lengths and the covered gold passages, as tables that fit 80 columns."""
    cells = [(name.replace("_", " "), f"{count:,}", *[""] * 4) for name, count in stats.counts.items()]
    for name, histogram in (("passages a page", stats.page_sizes), ("words a passage", stats.lengths)):
        values = summary(histogram).items()
        cells.append((name, "", *(f"{value:,.1f}" if key == "mean" else f"{value:,g}" for key, value in values)))
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
    covered, best, any_of, all_of = map(cell, measured.percents.values())
    return (f"{measured.golds:,}", covered, best, f"{measured.questions:,}", any_of, all_of)
