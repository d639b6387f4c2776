"""The best row of each split, beside the best published one; and a score of each reader that was measured."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ifqa.config.expected import Expected, measured
from ifqa.report.result_tables import verdict_of
from ifqa.report.results import Result
from ifqa.report.table import Table
from ifqa.scoring.per_question import Mean, partial

READERS = "Every reader on every benchmark"
_OWN = "this project"  # the source of an expected value that this project measured before; others are publications
_SUMMARY_NOTE = (
    "The best row has the highest headline score of a split, among experiments over the whole split that search a corpus; if "
    "none searches, among all. Experiments that are given the annotated passages are left out. A published score judges a row "
    "only if both are of the same split. The passages may still differ."
)
_READERS_NOTE = (
    "Closed book: the question alone. Given: the passages that come with the question. Retrieved: those found in the corpus. Of "
    "several experiments the first by name is shown."
)


class _Published(NamedTuple):
    result: Result
    expected: Expected


class _Row(NamedTuple):
    """A measured result with its headline score."""

    result: Result
    key: str
    mean: Mean

    @property
    def worth(self) -> float:
        best = self.result.experiment.scheme.best(self.key)
        return self.mean["value"] if best else -self.mean["value"]

    @property
    def retriever(self) -> str:
        table = self.result.experiment.retriever
        return table["name"] if table else ""

    def __str__(self) -> str:
        return "{value:.1f} [{low:.1f}, {high:.1f}]".format(**self.mean)


def _rows(results: Sequence[Result]) -> Iterator[_Row]:
    """The results that have a score in the headline measure of answers, without those trained on their questions."""
    for result in results:
        by = result.experiment.scheme
        if not result.scores or not result.experiment.reader or "trained_on_them" in result.made:
            continue
        key = by.headline(by.shown(result.scores["measures"]))
        if mean := measured(result.scores, key):
            yield _Row(result, key, mean)


def summary(results: Sequence[Result]) -> Table:
    """A row for each split of a benchmark with measured results; those of benchmarks with published scores first."""
    splits: dict[tuple[str, str], list[_Row]] = {}
    for row in _rows(results):
        if row.result.scores and not partial(row.result.scores):
            splits.setdefault((row.result.experiment.benchmark, row.result.experiment.split), []).append(row)
    rows = [_best(some, results) for some in splits.values()]
    columns = ("questions", "best row", "score", "published", "verdict")
    return Table("Summary", _SUMMARY_NOTE, columns, tuple(sorted(rows, key=lambda row: (not row[3], row[0]))))


def _best(rows: Sequence[_Row], results: Sequence[Result]) -> tuple[str, ...]:
    ungiven = [row for row in rows if row.retriever != "gold"]
    searching = [row for row in ungiven if row.result.experiment.corpus]
    best = max(searching or ungiven or rows, key=lambda row: row.worth)
    experiment = best.result.experiment
    published = list(_published(best, results))
    told = []
    for theirs in published:
        model = f", {theirs.expected.retired}, retired" if theirs.expected.retired else ""
        told.append(
            f"{theirs.expected.value:g} {theirs.result.experiment.name} ({theirs.result.experiment.split}{model})"
        )
    score = f"{experiment.scheme.marked(best.key)} {best}"
    names = (f"{experiment.benchmark} {experiment.split}", experiment.name)
    return (*names, score, "; ".join(dict.fromkeys(told)), _verdict(best, published))


def _published(best: _Row, results: Sequence[Result]) -> Iterator[_Published]:
    """The best published scores of the benchmark in a measure: of models that can still be asked, and of any."""
    every = [
        _Published(result, expected)
        for result in results
        if result.experiment.benchmark == best.result.experiment.benchmark
        and not (result.experiment.questions or result.experiment.limit)
        for expected in result.experiment.expected
        if expected.measure == best.key and not expected.source.startswith(_OWN)
    ]
    candidates = [one for one in every if one.result.experiment.split == best.result.experiment.split] or every
    for some in ([one for one in candidates if not one.expected.retired], candidates):
        if some:
            yield max(some, key=lambda published: published.expected.value)


def _verdict(best: _Row, published: Sequence[_Published]) -> str:
    """The verdict on the row's own expected values; else how it stands to a published score of the same split."""
    if best.result.experiment.expected:
        return verdict_of(best.result)
    if not published:
        return ""
    theirs = published[0]
    if theirs.result.experiment.split != best.result.experiment.split:
        return f"not comparable: published on {theirs.result.experiment.split}"
    if best.mean["low"] <= theirs.expected.value <= best.mean["high"]:
        return "as published: within the interval"
    return f"{'above' if best.mean['value'] > theirs.expected.value else 'below'} the published score"


def readers(results: Sequence[Result]) -> list[Table]:
    """A row for each reader on each split and kind of passages where it was measured; no table if nothing was.

    Variants, experiments on single questions, and those on questions they were trained on are left out.
    """
    cells: dict[tuple[str, str, str], _Row] = {}
    for row in _rows(results):
        experiment = row.result.experiment
        if not experiment.variant and not experiment.questions and experiment.reader:
            kind = _kind(row)
            key = (f"{experiment.benchmark} {experiment.split}", kind, experiment.reader["name"])
            cells[key] = min(cells.get(key, row), row, key=_order)
    rows = tuple((*key, cell.key, _score(cell), cell.result.experiment.name) for key, cell in sorted(cells.items()))
    columns = ("questions", "passages", "reader", "measure", "score", "experiment")
    return [Table(READERS, _READERS_NOTE, columns, rows)] if rows else []


def _kind(row: _Row) -> str:
    if not row.retriever:
        return "closed book"
    return "given" if row.retriever in ("gold", "context") else f"retrieved from {row.result.experiment.corpus}"


def _order(row: _Row) -> tuple[bool, str]:
    """Whole splits first, then by name: no score decides which experiment is shown."""
    return bool(row.result.scores and partial(row.result.scores)), row.result.experiment.name


def _score(row: _Row) -> str:
    part = partial(row.result.scores) if row.result.scores else ""
    return f"{row} {part}".rstrip()
