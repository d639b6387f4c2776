"""How much of a benchmark's gold passages a whole corpus holds, and what else can be counted of its passages.

It is `measures.covers`, but for all gold passages at once, and a shard at a time, so that shards can be counted apart.
Held pair by pair, millions of passages against thousands of gold ones would take years. Here a map from each word
5-gram to the gold passages that have it is asked once for each 5-gram of a passage; nearly all are in no gold passage.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from ifqa.records import Question
from ifqa.scoring.measures.covers import COVERED_SHARE, GRAM_WORDS, word_grams
from ifqa.storage.files import field, read_jsonl

_GOLD = "gold/"  # how records.gold_id() begins

Page = tuple[str, str] | None  # what the passages of a page have in common; None for a passage that is of no page
End = tuple[Page, int]  # a page at the end of a shard, and how many passages of it are there


class GoldGrams:
    """Gold passages by the word 5-grams in them; about 40 KB of memory for each gold passage of 100 words."""

    def __init__(self, golds: Sequence[str]) -> None:
        grams = [word_grams(gold) for gold in golds]
        self._sizes = [len(own) for own in grams]
        self._golds: dict[tuple[str, ...], list[int]] = {}
        for number, own in enumerate(grams):
            for gram in own:
                self._golds.setdefault(gram, []).append(number)
        self._known = frozenset(self._golds)
        # A gold of under five words is one gram of all its words, to be looked for at that length.
        self._short = {len(gram) for gram in self._golds} - {GRAM_WORDS}

    def shares(self, passage: str) -> dict[int, float]:
        """The place of a gold in `golds` -> the share, above 0 and up to 1, of its distinct 5-grams the passage holds.

        `covers(passage, golds[place])` is whether that share is at least `COVERED_SHARE`.
        """
        found = self._known & word_grams(passage)
        for size in self._short:
            found |= self._known & word_grams(passage, size)
        shared = Counter(number for gram in found for number in self._golds[gram])
        return {number: count / self._sizes[number] for number, count in shared.items()}


@dataclass(frozen=True)
class Coverage:
    """How much of a split's gold passages some passages hold.

    Attributes:
        best: for each distinct gold passage, in the questions' order, the largest share (0 to 1) of its distinct word
            5-grams that one passage holds; from 0.4 on it is covered.
        questions: how many of them have gold passages.
        questions_any: those with at least one gold passage covered.
        questions_all: those with every gold passage covered.
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
        """How many of them are covered."""
        return sum(share >= COVERED_SHARE for share in self.best)

    def percents(self) -> dict[str, float]:
        """Golds covered, the mean of `best`, questions with any and with all covered, in percent; nan of nothing."""
        parts = {
            "covered": (self.covered, self.golds),
            "mean_best": (math.fsum(self.best), self.golds),
            "questions_any": (self.questions_any, self.questions),
            "questions_all": (self.questions_all, self.questions),
        }
        return {name: 100 * part / whole if whole else math.nan for name, (part, whole) in parts.items()}


def coverage(questions: Sequence[Question], best: Mapping[str, float]) -> Coverage:
    """The coverage of the questions' gold passages, from the best share of each text; one that is not there has 0."""
    shares = {text: best.get(text, 0.0) for question in questions for text in question.gold_passages}
    hits = [[shares[text] >= COVERED_SHARE for text in one.gold_passages] for one in questions if one.gold_passages]
    return Coverage(tuple(shares.values()), len(hits), sum(map(any, hits)), sum(map(all, hits)))


@dataclass(frozen=True)
class PassageStats:
    """What `merge` makes of all shards' counts.

    Attributes:
        shards: files.
        gold: passages that are themselves a benchmark's gold passages, `gold/…`.
        lengths: white-space words of the text -> passages of so many.
        page_sizes: passages -> pages of so many.
        coverage: split -> what the passages other than `gold` hold, which is what tells how they were built.
        coverage_with_gold: split -> what all passages hold; the same if `gold` is 0.
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
        """How many words they have together."""
        return sum(length * count for length, count in self.lengths.items())

    @property
    def pages(self) -> int:
        """How many pages they were cut from."""
        return sum(self.page_sizes.values())


@dataclass(frozen=True)
class ShardTask:
    """A file of passages, and the gold passages to look for in it: one task, which can be done anywhere."""

    path: Path
    golds: tuple[str, ...]


@dataclass(frozen=True)
class ShardStats:
    """What `measure_shard` counts.

    `first` and `last` are its outermost pages and how many passages of each are in it, for they may go on outside;
    `last` is None where `first` is all there is. `best` and `best_gold` give a gold's place the best share among the
    shard's other passages, and among its gold ones.
    """

    path: Path
    gold: int
    lengths: Counter[int]
    page_sizes: Counter[int]
    first: End | None
    last: End | None
    best: dict[int, float]
    best_gold: dict[int, float]


# A worker is given one shard after the other, with the same golds each time.
_gold_grams = lru_cache(maxsize=1)(GoldGrams)


def measure_shard(task: ShardTask) -> ShardStats:
    """Read one shard and count.

    Raises:
        IfqaError: a line is no passage (named as file:line).
    """
    grams = _gold_grams(task.golds) if task.golds else None
    lengths, golds = Counter[int](), Counter[bool]()
    best, best_gold = dict[int, float](), dict[int, float]()

    def pages() -> Iterator[Page]:
        for number, record in read_jsonl(task.path):
            where = f"{task.path}:{number}"
            passage_id: str = field(record, "id", str, where)
            text: str = field(record, "contents", str, where)
            is_gold = passage_id.startswith(_GOLD)
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
    """What stands before "-n" in an id; where an id has no such end, as DPR's numbers, the title; gold is of no page."""
    if passage_id.startswith(_GOLD):
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
    """The counts of all shards together.

    Args:
        parts: of each shard, in any order; not kept.
        paths: the shards in their order.
        golds: the gold passages as they were looked for.
        questions_by_split: whose gold passages they are.
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
    """Make one page of each that was counted in several shards because it goes on from one into the next."""
    open_page, before = None, 0  # the page that the shards so far end in, and its passages so far
    for first, last in ends:
        if first:
            page, size = first
            if page and page == open_page:
                page_sizes -= Counter([before, size])
                size += before
                page_sizes[size] += 1
            open_page, before = last or (page, size)
