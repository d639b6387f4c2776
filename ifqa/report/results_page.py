"""The page of all results: a summary, a table and figures for each heading, and every question to read."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ifqa.config.declared import declared_for
from ifqa.report.best import summary
from ifqa.report.browse import browse
from ifqa.report.curves import recall_curve, recall_svg, reliability_curve, reliability_svg, risk_curve, risk_svg
from ifqa.report.intervals import Scored, intervals_svg
from ifqa.report.page import Section, page_text
from ifqa.report.probes import losses_grid
from ifqa.report.readers import reader_grid
from ifqa.report.records import read_records
from ifqa.report.results import Result, gather
from ifqa.report.table import by_title, grids_of, how_made, legend
from ifqa.scoring.declared import joined
from ifqa.scoring.summary import Mean, Sureness, partial

_MEASURES = 3  # in one figure of scores


def results_page(root: Path = Path(), served: bool = False) -> str:
    """The HTML text of the results of all experiments below `root`; `served`: with a link to `/`, to ask a question.

    Raises:
        IfqaError: a record, or a file of a finished experiment, is damaged.
    """
    return page_of(gather(read_records(root), root), served=served)


def page_of(results: Sequence[Result], chosen: Sequence[str] = (), served: bool = False) -> str:
    """The HTML text of results.

    Args:
        results: as `gather` gives them.
        chosen: names of experiments: figures and questions are of these alone; empty for all.
        served: whether the page is at `/results` of a server, whose `/` asks a question.

    Raises:
        IfqaError: a file of a finished experiment is damaged.
    """
    wanted = [one for one in results if not chosen or one.experiment.name in chosen]
    here = [one.experiment for one in wanted if one.here]
    sections = [one for title, several in by_title(results) for one in _sections(title, several, wanted)]
    sections += [Section(grid) for grid in losses_grid(here)]
    sections += [Section(grid, compact=True) for grid in reader_grid(results)]
    sections.append(Section(how_made(results), compact=True))
    return page_text(sections, browse(here), about(results), summary(results), legend(results), served)


def about(results: Sequence[Result]) -> str:
    """How many experiments were measured, when, and on what hardware."""
    there = [one for one in results if one.scores]
    if not there:
        return "No experiment has been completed in this folder."
    days, machines = ({one.made[key] for one in there} for key in ("at", "hardware"))
    first, last = min(days)[:10], max(days)[:10]
    when = f"on {first}" if first == last else f"between {first} and {last}"
    count = f"{len(there)} experiment{'s' * (len(there) > 1)} measured, {when}"
    missing = len(results) - len(there)
    return f"{count}{f'; {missing} not run' if missing else ''}. Hardware: {'; '.join(sorted(machines))}."


def _sections(title: str, several: Sequence[Result], wanted: Sequence[Result]) -> Iterator[Section]:
    first, *more = grids_of(title, several)
    done = any(one.scores or one.stale for one in several)
    yield Section(first, tuple(figures([one for one in several if one in wanted])), done)
    yield from (Section(grid, done=done, compact=True) for grid in more)


def figures(results: Sequence[Result]) -> Iterator[str]:
    """Of each split the scores; of runs over the same split and passages the recall; of each split the confidence.

    Only results over a whole split are in figures.
    """
    whole = [one for one in results if one.scores and not partial(one.scores)]
    splits: dict[str, list[Result]] = {}
    for one in whole:
        splits.setdefault(f"{one.experiment.benchmark} {one.experiment.split}", []).append(one)
    for over, several in splits.items():
        yield from _of_scores(over, several)
        yield from _of_recall(over, several)
        yield from _of_confidence(over, several)


def _of_scores(over: str, several: Sequence[Result]) -> Iterator[str]:
    by = joined(declared_for(one.experiment) for one in several)
    measures = [key for key in by.shown([one.name for one in by.answers]) if by.best(key)][:_MEASURES]
    rows = [Scored(one.experiment.name, _scores(one, measures)) for one in several]
    if rows := [row for row in rows if row.scores]:
        names = " and ".join([", ".join(measures[:-1]), measures[-1]] if len(measures) > 1 else measures)
        yield intervals_svg(f"{names}, {over}", rows, measures)


def _scores(one: Result, measures: Sequence[str]) -> dict[str, tuple[float, float, float]]:
    found: dict[str, Mean] = one.scores["measures"] if one.scores else {}
    means = {key: found[key] for key in measures if key in found}
    return {key: (mean["value"], mean["low"], mean["high"]) for key, mean in means.items()}


def _of_recall(over: str, several: Sequence[Result]) -> Iterator[str]:
    together: dict[str, list[Result]] = {}
    for one in several:
        if one.experiment.corpus:
            passages = f"{one.made['passages']:,} passages of {one.experiment.corpus}"
            together.setdefault(passages, []).append(one)
    for passages, some in together.items():
        by = joined(declared_for(one.experiment) for one in some)
        for measure in (one for one in by.rankings if one.tables):
            measured = [
                recall_curve(one.experiment.name, one.scores["measures"], measure.name) for one in some if one.scores
            ]
            if curves := [curve for curve in measured if curve]:
                title = measure.title or measure.name
                yield recall_svg(f"{title[:1].upper()}{title[1:]} at K, {over}, {passages}", curves)


def _of_confidence(over: str, several: Sequence[Result]) -> Iterator[str]:
    """The risk-coverage curves of readers that give confidences, and the reliability diagram."""
    sure: list[tuple[str, Sureness]] = [
        (one.experiment.name, one.scores["sureness"]) for one in several if one.scores and "sureness" in one.scores
    ]
    if sure:
        yield risk_svg(f"Risk at coverage, {over}", [risk_curve(*one) for one in sure])
        yield reliability_svg(f"EM at confidence, {over}", [reliability_curve(*one) for one in sure])
