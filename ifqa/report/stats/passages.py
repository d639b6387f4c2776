"""Statistics of a corpus's passages: number, lengths, and how many gold passages of a benchmark they cover.

With them, two ways of building passages can be compared before anything is indexed or searched.
"""

import math
from collections.abc import Iterator, Mapping, Sequence

from ifqa.config.corpus import Corpus
from ifqa.corpus.store import shards_of
from ifqa.errors import IfqaError
from ifqa.pipeline.run import CorpusBuild
from ifqa.progress import bar
from ifqa.records import Question
from ifqa.report.stats import summary
from ifqa.report.table import Table
from ifqa.scoring.coverage import Coverage, PassageStats, ShardStats, ShardTask, measure_shard, merge
from ifqa.scoring.measures.covers import COVERED_SHARE
from ifqa.workers.tasks import run

_BIN, _BINS, _MOST = 10, 20, 1_000  # words: bars of 10 up to 200, then a bar up to 1,000, and a bar for more
_BAR = 32  # characters


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
