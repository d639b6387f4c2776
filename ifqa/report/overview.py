"""The page of all results: a summary, a table and figures for each heading, and every question to read."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ifqa.pipeline.probe import losses_of
from ifqa.report.html_page import Section, page_text
from ifqa.report.leaderboard import readers, summary
from ifqa.report.question_browser import browse
from ifqa.report.result_tables import by_title, how_made, legend, losses_table, tables_of
from ifqa.report.results import Result, gather
from ifqa.report.results_log import read_records
from ifqa.report.svg import RECALL, RELIABILITY, RISK, Curve, Interval, curves_svg, intervals_svg
from ifqa.scoring.per_question import Mean, Means, Sureness, partial
from ifqa.scoring.scheme import joined

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
    wanted = [result for result in results if not chosen or result.experiment.name in chosen]
    here = [result.experiment for result in wanted if result.here]
    sections = []
    for title, some in by_title(results):
        first, *more = tables_of(title, some)
        done = any(result.scores or result.stale for result in some)
        sections.append(Section(first, tuple(figures([result for result in some if result in wanted])), done))
        sections += [Section(table, done=done, compact=True) for table in more]
    if losses := {experiment.name: every for experiment in here if (every := losses_of(experiment))}:
        sections.append(Section(losses_table(losses)))
    sections += [Section(table, compact=True) for table in (*readers(results), how_made(results))]
    return page_text(sections, browse(here), about(results), summary(results), legend(results), served)


def about(results: Sequence[Result]) -> str:
    """How many experiments were measured, when, and on what hardware."""
    there = [result for result in results if result.scores]
    if not there:
        return "No experiment has been completed in this folder."
    days, machines = ({result.made[key] for result in there} for key in ("at", "hardware"))
    first, last = min(days)[:10], max(days)[:10]
    when = f"on {first}" if first == last else f"between {first} and {last}"
    count = f"{len(there)} experiment{'s' * (len(there) > 1)} measured, {when}"
    missing = len(results) - len(there)
    return f"{count}{f'; {missing} not run' if missing else ''}. Hardware: {'; '.join(sorted(machines))}."


def figures(results: Sequence[Result]) -> Iterator[str]:
    """Of each split the scores; of runs over the same split and passages the recall; of each split the confidence.

    Only results over a whole split are in figures.
    """
    splits: dict[str, list[Result]] = {}
    for result in results:
        if result.scores and not partial(result.scores):
            splits.setdefault(f"{result.experiment.benchmark} {result.experiment.split}", []).append(result)
    for over, some in splits.items():
        yield from _of_scores(over, some)
        yield from _of_recall(over, some)
        yield from _of_confidence(over, some)


def _of_scores(over: str, results: Sequence[Result]) -> Iterator[str]:
    by = joined(result.experiment.scheme for result in results)
    measures = [key for key in by.shown([measure.name for measure in by.answers]) if by.best(key)][:_MEASURES]
    every = {result.experiment.name: _measures(result) for result in results}
    rows = {
        name: {key: _interval(means[key]) for key in measures if key in means}
        for name, means in every.items()
        if not means.keys().isdisjoint(measures)
    }
    if rows:
        names = " and ".join([", ".join(measures[:-1]), measures[-1]] if len(measures) > 1 else measures)
        yield intervals_svg(f"{names}, {over}", rows, measures)


def _measures(result: Result) -> Means:
    return result.scores["measures"] if result.scores else {}


def _interval(mean: Mean) -> Interval:
    return mean["value"], mean["low"], mean["high"]


def _of_recall(over: str, results: Sequence[Result]) -> Iterator[str]:
    together: dict[str, list[Result]] = {}
    for result in results:
        if result.experiment.corpus:
            passages = f"{result.made['passages']:,} passages of {result.experiment.corpus}"
            together.setdefault(passages, []).append(result)
    for passages, some in together.items():
        by = joined(result.experiment.scheme for result in some)
        for measure in (measure for measure in by.rankings if measure.tables):
            if curves := [
                curve for one in some for curve in recall_curve(one.experiment.name, _measures(one), measure.name)
            ]:
                title = measure.title or measure.name
                yield curves_svg(f"{title[:1].upper()}{title[1:]} at K, {over}, {passages}", curves, RECALL)


def recall_curve(label: str, measures: Mapping[str, Mean], name: str) -> list[Curve]:
    """The curve of the measures NAME@K; none if there are none."""
    ks = sorted(int(key.partition("@")[2]) for key in measures if key.partition("@")[0] == name and "@" in key)
    return [Curve(label, tuple((k, *_interval(measures[f"{name}@{k}"])) for k in ks))] if ks else []


def _of_confidence(over: str, results: Sequence[Result]) -> Iterator[str]:
    """The risk-coverage curves of readers that give confidences, and the reliability diagram."""
    sure: dict[str, Sureness] = {
        result.experiment.name: result.scores["sureness"]
        for result in results
        if result.scores and "sureness" in result.scores
    }
    if sure:
        risks = [
            Curve(name, tuple((at["coverage"], at["value"], at["low"], at["high"]) for at in one["risks"]))
            for name, one in sure.items()
        ]
        bins = [
            Curve(name, tuple((at["confidence"], at["value"], at["low"], at["high"]) for at in one["bins"]))
            for name, one in sure.items()
        ]
        yield curves_svg(f"Risk at coverage, {over}", risks, RISK)
        yield curves_svg(f"EM at confidence, {over}", bins, RELIABILITY)
