"""The summary of all results: for the questions of each split the best measured row, beside the best published one."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ifqa.config.declared import declared_for
from ifqa.config.expected import Expected, measured
from ifqa.report.results import Result
from ifqa.report.table import Grid, verdict_of
from ifqa.scoring.summary import partial

#: The source of an expected value that this project measured before; every other source is a publication.
OWN = "this project"
_NOTE = (
    "The best row has the highest headline score of a split, among experiments over the whole split that search a corpus; if "
    "none searches, among all. Experiments that are given the annotated passages are left out. A published score judges a row "
    "only if both are of the same split. The passages may still differ."
)


class _Published(NamedTuple):
    result: Result
    expected: Expected


def summary(results: Sequence[Result]) -> Grid:
    """A row for each split of a benchmark with measured results; those of benchmarks with published scores first."""
    splits: dict[tuple[str, str], list[Result]] = {}
    for one in results:
        if one.scores and not partial(one.scores) and "trained_on_them" not in one.made and _headline(one):
            splits.setdefault((one.experiment.benchmark, one.experiment.split), []).append(one)
    rows = [_row(several, results) for several in splits.values()]
    columns = ("questions", "best row", "score", "published", "verdict")
    return Grid("Summary", _NOTE, columns, tuple(sorted(rows, key=lambda row: (not row[3], row[0]))))


def _row(several: Sequence[Result], results: Sequence[Result]) -> tuple[str, ...]:
    searching = [one for one in several if one.experiment.corpus and _retriever(one) != "gold"]
    ungiven = [one for one in several if _retriever(one) != "gold"]
    best = _best(searching or ungiven or several)
    key = _headline(best)
    by = declared_for(best.experiment)
    published = list(_published(best, key, results))
    told = "; ".join(dict.fromkeys(map(_told, published)))
    questions = f"{best.experiment.benchmark} {best.experiment.split}"
    return (
        questions,
        best.experiment.name,
        f"{by.marked(key)} {_score(best, key)}",
        told,
        _verdict(best, key, published),
    )


def _retriever(one: Result) -> str:
    return one.experiment.retriever["name"] if one.experiment.retriever else ""


def _headline(one: Result) -> str:
    """The headline measure of its answers; empty if it has no reader."""
    by = declared_for(one.experiment)
    shown = by.shown([key for key in (one.scores or {"measures": {}})["measures"] if one.experiment.reader])
    return by.headline(shown) if shown else ""


def _best(several: Iterable[Result]) -> Result:
    def worth(one: Result) -> float:
        key = _headline(one)
        by = declared_for(one.experiment)
        found = measured(one.scores, key) if one.scores else None
        assert found is not None  # `summary` has left out those without
        return found["value"] if by.best(key) else -found["value"]

    return max(several, key=worth)


def _score(one: Result, key: str) -> str:
    found = measured(one.scores, key) if one.scores else None
    return f"{found['value']:.1f} [{found['low']:.1f}, {found['high']:.1f}]" if found else ""


def _published(best: Result, key: str, results: Iterable[Result]) -> Iterator[_Published]:
    """The best published scores of the benchmark in a measure: of models that can still be asked, and of any."""
    found = [
        _Published(one, expected)
        for one in results
        if one.experiment.benchmark == best.experiment.benchmark
        and not (one.experiment.questions or one.experiment.limit)
        for expected in one.experiment.expected
        if expected.measure == key and not expected.source.startswith(OWN)
    ]
    same = [one for one in found if one.result.experiment.split == best.experiment.split]
    for some in ([one for one in same or found if not one.expected.retired], same or found):
        if some:
            yield max(some, key=lambda one: one.expected.value)


def _told(one: _Published) -> str:
    model = f", {one.expected.retired}, retired" if one.expected.retired else ""
    return f"{one.expected.value:g} {one.result.experiment.name} ({one.result.experiment.split}{model})"


def _verdict(best: Result, key: str, published: Sequence[_Published]) -> str:
    """The verdict on the row's own expected values; else how it stands to a published score of the same split."""
    if best.experiment.expected:
        return verdict_of(best)
    same = [one for one in published if one.result.experiment.split == best.experiment.split]
    found = measured(best.scores, key) if best.scores else None
    if not published or found is None:
        return ""
    if not same:
        return f"not comparable: published on {published[0].result.experiment.split}"
    value = same[0].expected.value
    if found["low"] <= value <= found["high"]:
        return "as published: within the interval"
    return f"{'above' if found['value'] > value else 'below'} the published score"
