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
from ifqa.report.stats import summary
from ifqa.report.table import Table
from ifqa.scoring.measures.gold_recall import COVERED_SHARE, GoldGrams
from ifqa.storage.files import field, read_jsonl
from ifqa.workers.tasks import run

_BIN, _BINS, _MOST = 10, 20, 1_000  # words: bars of 10 up to 200, then a bar up to 1,000, and a bar for more
_BAR = 32  # characters


Page = tuple[str, str] | None  # identifies the page of a passage; None for a passage without a page
End = tuple[Page, int]  # a page at the end of a shard, and how many of its passages are in the shard


@dataclass(frozen=True)
class Coverage:
    """How much of a split's gold passages a set of passages covers.

    Attributes:
        best: for each distinct gold passage, in the questions' order, the largest share (0 to 1) of its distinct word
            5-grams that one passage holds; a gold passage is covered from 0.4 on.
        questions: how many questions have gold passages.
        questions_any: how many of them have at least one gold passage covered.
        questions_all: how many of them have every gold passage covered.
    """

    best: tuple[float, ...]
    questions: int
    questions_any: int
    questions_all: int

    @property
    def golds(self) -> int:
        """How many distinct gold passages there are."""
        return len(self.best)

    @property
    def covered(self) -> int:
        """How many gold passages are covered."""
        return sum(share >= COVERED_SHARE for share in self.best)

    def percents(self) -> dict[str, float]:
        """Percentages: gold passages covered, the mean of `best`, and questions with any or with all gold passages covered.

        All are nan if there are no gold passages.
        """
        parts = {
            "covered": (self.covered, self.golds),
            "mean_best": (math.fsum(self.best), self.golds),
            "questions_any": (self.questions_any, self.questions),
            "questions_all": (self.questions_all, self.questions),
        }
        return {name: 100 * part / whole if whole else math.nan for name, (part, whole) in parts.items()}


def coverage(questions: Sequence[Question], best: Mapping[str, float]) -> Coverage:
    """The coverage of the questions' gold passages; `best` is the best share of each text, 0 for texts not in it."""
    shares = {text: best.get(text, 0.0) for question in questions for text in question.gold_passages}
    hits = [[shares[text] >= COVERED_SHARE for text in one.gold_passages] for one in questions if one.gold_passages]
    return Coverage(tuple(shares.values()), len(hits), sum(map(any, hits)), sum(map(all, hits)))


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
    def passages(self) -> int:
        """How many passages there are."""
        return sum(self.lengths.values())

    @property
    def words(self) -> int:
        """How many words the passages have in total."""
        return sum(length * count for length, count in self.lengths.items())

    @property
    def pages(self) -> int:
        """How many pages the passages were cut from."""
        return sum(self.page_sizes.values())


@dataclass(frozen=True)
class ShardTask:
    """One task for a worker: a file of passages, and the gold passages to look for in it."""

    path: Path
    golds: tuple[str, ...]


@dataclass(frozen=True)
class ShardStats:
    """Statistics of one shard.

    `first` and `last` are its first and last page, with their number of passages in the shard; both pages may continue in
    the neighbouring shards. `last` is None if the shard has one page. `best` and `best_gold` map the index of a gold passage
    to the largest share of its 5-grams found in one passage of the shard: `best_gold` over passages whose id starts with
    `gold/`, `best` over all others.
    """

    path: Path
    gold: int
    lengths: Counter[int]
    page_sizes: Counter[int]
    first: End | None
    last: End | None
    best: dict[int, float]
    best_gold: dict[int, float]


# A worker gets several shards, with the same gold passages each time.
_gold_grams = lru_cache(maxsize=1)(GoldGrams)


def measure_shard(task: ShardTask) -> ShardStats:
    """The statistics of one shard.

    Raises:
        IfqaError: a line is not a passage; the message names file:line.
    """
    grams = _gold_grams(task.golds) if task.golds else None
    lengths, golds = Counter[int](), Counter[bool]()
    best, best_gold = dict[int, float](), dict[int, float]()

    def pages() -> Iterator[Page]:
        for number, record in read_jsonl(task.path):
            where = f"{task.path}:{number}"
            passage_id: str = field(record, "id", str, where)
            text: str = field(record, "contents", str, where)
            is_gold = passage_id.startswith(GOLD)
            golds[is_gold] += 1
            lengths[len(text.split())] += 1
            if grams:
                _raise(best_gold if is_gold else best, grams.shares(text))
            yield _page(passage_id, field(record, "title", str, where))

    page_sizes, first, last = Counter[int](), None, None
    for page, group in groupby(pages()):
        size = sum(1 for _ in group)
        page_sizes[size] += page is not None
        first, last = (first, (page, size)) if first else ((page, size), None)
    return ShardStats(task.path, golds[True], lengths, page_sizes, first, last, best, best_gold)


def _page(passage_id: str, title: str) -> Page:
    """The part of an id before "-n"; the title for ids without it, such as DPR's numbers; None for gold passages."""
    if passage_id.startswith(GOLD):
        return None
    page, _, number = passage_id.rpartition("-")
    if page and number.isdecimal():
        return "id", page
    return ("title", title) if title else None


def _raise(best: dict[int, float], shares: Mapping[int, float]) -> None:
    for number, share in shares.items():
        best[number] = max(best.get(number, 0.0), share)


def merge(
    parts: Iterable[ShardStats],
    paths: Sequence[Path],
    golds: Sequence[str],
    questions_by_split: Mapping[str, Sequence[Question]],
) -> PassageStats:
    """The statistics of all shards together.

    Args:
        parts: the statistics of each shard, in any order; consumed one at a time.
        paths: the shards in order.
        golds: the gold passages, in the same order as in `ShardTask.golds`.
        questions_by_split: split -> the questions that `golds` was collected from.
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
    _join_pages(page_sizes, [ends[path] for path in paths])

    def coverages(shares: Mapping[int, float]) -> dict[str, Coverage]:
        by_text = {golds[place]: share for place, share in shares.items()}
        return {split: coverage(questions, by_text) for split, questions in questions_by_split.items()}

    without = coverages(best)
    _raise(best, best_gold)
    return PassageStats(
        len(ends), gold, dict(sorted(lengths.items())), dict(sorted(page_sizes.items())), without, coverages(best)
    )


def _join_pages(page_sizes: Counter[int], ends: Iterable[tuple[End | None, End | None]]) -> None:
    """Count a page that continues from one shard into the next as one page."""
    open_page, before = None, 0  # the page that the shards so far end in, and its passages so far
    for first, last in ends:
        if first:
            page, size = first
            if page and page == open_page:
                page_sizes -= Counter([before, size])
                size += before
                page_sizes[size] += 1
            open_page, before = last or (page, size)


def measure(corpus: Corpus, questions_by_split: Mapping[str, Sequence[Question]], workers: int = 0) -> PassageStats:
    """Read a corpus's passages once, a shard at a time, and count them.

    Args:
        corpus: the corpus; its passages must be built.
        questions_by_split: the questions whose gold passages to look for; {} for none.
        workers: number of processes; 0 for the number of cores.

    Raises:
        IfqaError: the passages are not built, damaged or out of date, or a line is no passage (named as file:line).
    """
    folder, command = corpus.folder / "passages", f"ifqa passages {corpus.name}"
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
    if stats.passages != recorded:
        raise IfqaError(
            f"{folder} holds {stats.passages:,} passages, its manifest says {recorded:,}; remove the folder and build "
            f"it again: {command}"
        )
    return stats


def stats_json(stats: PassageStats) -> dict[str, object]:
    """The statistics as JSON data: counts, shares in percent, and histograms as {size: count}."""
    return {
        "shards": stats.shards,
        "passages": stats.passages,
        "gold_passages": stats.gold,
        "pages": stats.pages,
        "words": stats.words,
        "words_a_passage": summary(stats.lengths) | {"histogram": stats.lengths},
        "passages_a_page": summary(stats.page_sizes) | {"histogram": stats.page_sizes},
        "coverage": {split: _coverage_json(own) for split, own in stats.coverage.items()},
        "coverage_with_gold": {split: _coverage_json(own) for split, own in stats.coverage_with_gold.items()},
    }


def _coverage_json(own: Coverage) -> dict[str, object]:
    percents = {name: None if math.isnan(value) else value for name, value in own.percents().items()}
    return {"golds": own.golds, "questions": own.questions, "percent": percents}


def bars(lengths: Mapping[int, int]) -> list[tuple[str, int]]:
    """The bars of the histogram of words, with their numbers of passages: "1 - 10", "11 - 20", … to "over 1,000".

    Passages without words count in the first bar. Empty bars at both ends are left out.
    """
    names = [f"{n * _BIN + 1} - {(n + 1) * _BIN}" for n in range(_BINS)]
    names += [f"{_BINS * _BIN + 1} - {_MOST:,}", f"over {_MOST:,}"]
    counts = [0] * len(names)
    for length, count in lengths.items():
        number = max(length - 1, 0) // _BIN
        counts[number if number < _BINS else _BINS + (length > _MOST)] += count
    filled = [number for number, count in enumerate(counts) if count]
    return list(zip(names, counts, strict=True))[filled[0] : filled[-1] + 1] if filled else []


def tables(corpus_name: str, stats: PassageStats) -> Iterator[Table]:
    """The counts, the lengths and the covered gold passages, as tables that fit 80 columns."""
    rows = [("shards", stats.shards), ("pages with text", stats.pages), ("passages", stats.passages)]
    rows += [("  of them gold", stats.gold)] if stats.gold else []
    cells = [(name, f"{count:,}", *[""] * 4) for name, count in [*rows, ("words", stats.words)]]
    for name, histogram in (("passages a page", stats.page_sizes), ("words a passage", stats.lengths)):
        values = summary(histogram).items()
        cells.append((name, "", *(f"{value:,.1f}" if key == "mean" else f"{value:,g}" for key, value in values)))
    yield Table(corpus_name, "", ("", "count", "mean", "median", "least", "most"), tuple(cells))
    filled = bars(stats.lengths)
    most = max((count for _, count in filled), default=0)
    cells = []
    for name, count in filled:
        bar_of = "█" * round(_BAR * count / most) or ("▏" if count else "")
        cells.append((name, f"{count:,}", f"{100 * count / stats.passages:.1f}", bar_of))
    yield Table("Words a passage", "", ("words", "passages", "%", ""), tuple(cells), left=(0, 3))
    if stats.coverage:
        title = f"Gold passages covered, in %: one passage holds {100 * COVERED_SHARE:.0f}% of the word 5-grams"
        note = ""
        cells = []
        for split, own in stats.coverage.items():
            cells.append((split, *_coverage_cells(own)))
            if stats.gold:
                cells.append(("  with gold", *_coverage_cells(stats.coverage_with_gold[split])))
                note = (
                    "A corpus given the gold passages holds them, however its pages were cut:\n"
                    "a split's first row is what the other passages hold."
                )
        columns = ("split", "golds", "covered", "mean best", "questions", "any", "all")
        yield Table(title, note, columns, tuple(cells))


def _coverage_cells(own: Coverage) -> tuple[str, ...]:
    covered, best, any_of, all_of = ("-" if math.isnan(value) else f"{value:.1f}" for value in own.percents().values())
    return (f"{own.golds:,}", covered, best, f"{own.questions:,}", any_of, all_of)
