"""Statistics of a whole corpus: its passages and pages, and how many gold passages of a benchmark it covers.

Coverage is `measures.covers`, computed for all gold passages at once, and shard by shard, so that shards can be counted in
parallel. Comparing millions of passages with thousands of gold passages pair by pair would take years. Instead, a map from each
word 5-gram to the gold passages that contain it is looked up for each 5-gram of a passage; nearly all lookups find nothing.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from ifqa.identities import GOLD
from ifqa.records import Question
from ifqa.scoring.measures.covers import COVERED_SHARE, GRAM_WORDS, word_grams
from ifqa.storage.files import field, read_jsonl

Page = tuple[str, str] | None  # identifies the page of a passage; None for a passage without a page
End = tuple[Page, int]  # a page at the end of a shard, and how many of its passages are in the shard


class GoldGrams:
    """Gold passages by their word 5-grams; about 40 KB of memory for each gold passage of 100 words."""

    def __init__(self, golds: Sequence[str]) -> None:
        grams = [word_grams(gold) for gold in golds]
        self._sizes = [len(own) for own in grams]
        self._golds: dict[tuple[str, ...], list[int]] = {}
        for number, own in enumerate(grams):
            for gram in own:
                self._golds.setdefault(gram, []).append(number)
        self._known = frozenset(self._golds)
        # A gold passage of under five words is a single gram of that length.
        self._short = {len(gram) for gram in self._golds} - {GRAM_WORDS}

    def shares(self, passage: str) -> dict[int, float]:
        """Index of a gold passage in `golds` -> the share of its distinct 5-grams that the passage holds (above 0, up to 1).

        `covers(passage, golds[place])` is whether that share is at least `COVERED_SHARE`.
        """
        found = self._known & word_grams(passage)
        for size in self._short:
            found |= self._known & word_grams(passage, size)
        shared = Counter(number for gram in found for number in self._golds[gram])
        return {number: count / self._sizes[number] for number, count in shared.items()}


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
