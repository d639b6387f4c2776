"""The results as one self-contained HTML file: tables, figures and every question.

The texts on the page come from data sets and models, so they are escaped. A content security policy allows only the page's own
script, by its hash, so that even a mistake in escaping runs no other script. That script inserts the questions as text, and their
figures as images: an SVG in an image runs no script and fetches nothing.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from ifqa.pipeline.probe import read_losses
from ifqa.pipeline.run import Run
from ifqa.report.question_browser import browser_data
from ifqa.report.result_tables import (
    group_by_title,
    legend,
    losses_table,
    provenance_table,
    reader_tables,
    score_tables,
    summary_table,
)
from ifqa.report.results_log import Result, gather_results, read_records
from ifqa.report.svg import RECALL, RELIABILITY, RISK, Curve, curves_svg
from ifqa.report.table import NOT_RUN, Table, select_rows
from ifqa.scoring.scheme import merge_schemes
from ifqa.scoring.score_files import partial_notice

COLOURS = Path(__file__).with_name("colours.css")  # the server's page uses them too

_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_ASK = """<nav aria-label="Pages"><a href="/">Ask</a> <a href="/results" aria-current="page">Results</a></nav>"""

#: What a verdict means -> its CSS class, and the explanation.
_VERDICTS = {
    "OK": ("ok", "the score is within the tolerance of the value published or measured before"),
    "near": ("near", "it is not, but the value lies in the score's interval"),
    "off": ("off", "the value lies outside both"),
    "model retired": ("absent", "the published value's model is no longer available, so there is no verdict"),
    "stale": ("off", "the results are older than their settings, corpus or code"),
    "PARTIAL": ("absent", "not all questions of the split"),
}
_PERCENT = (
    "Scores are in percent, over all questions of an experiment. A failed question counts as wrong. Brackets hold 95% "
    "bootstrap intervals."
)


@dataclass(frozen=True)
class Section:
    """A table of the page, and its figures: SVG that this program made, inserted unescaped.

    `done`: whether any row was run; others are folded at the end of the page. `compact`: folded although it was run.
    """

    table: Table
    figures: tuple[str, ...] = ()
    done: bool = True
    compact: bool = False


def render_results(root: Path = Path(), served: bool = False) -> str:
    """The HTML of the results of all experiments below `root`; `served`: with a link to `/`, to ask a question."""
    return render_report(gather_results(read_records(root), root), served=served)


def render_report(results: Sequence[Result], chosen: Sequence[str] = (), served: bool = False) -> str:
    """The HTML text of results.

    Args:
        results: as `gather_results` returns them.
        chosen: the experiments with figures and questions; empty for all.
        served: whether a server shows the page, with a link to `/`, to ask a question.
    """
    wanted = [result for result in results if not chosen or result.experiment.name in chosen]
    here = [result.experiment for result in wanted if result.here]
    sections = []
    for title, some in group_by_title(results):
        first, *more = score_tables(title, some)
        done = any(result.scores or result.stale for result in some)
        sections.append(Section(first, tuple(draw_figures([result for result in some if result in wanted])), done))
        sections += [Section(table, done=done, compact=True) for table in more]
    if losses := {experiment.name: every for experiment in here if (every := read_losses(Run(experiment)))}:
        sections.append(Section(losses_table(losses)))
    sections += [Section(table, compact=True) for table in (*reader_tables(results), provenance_table(results))]
    return render_page(sections, browser_data(here), _about(results), summary_table(results), legend(results), served)


def _about(results: Sequence[Result]) -> str:
    """How many experiments were measured, when, and on what hardware."""
    measured = [result for result in results if result.scores]
    if not measured:
        return "No experiment has been completed in this folder."
    days, machines = ({result.made[key] for result in measured} for key in ("at", "hardware"))
    first, last = min(days)[:10], max(days)[:10]
    when = f"on {first}" if first == last else f"between {first} and {last}"
    count = f"{len(measured)} experiment{'s' * (len(measured) > 1)} measured, {when}"
    missing = len(results) - len(measured)
    return f"{count}{f'; {missing} not run' if missing else ''}. Hardware: {'; '.join(sorted(machines))}."


def render_page(
    sections: Sequence[Section],
    browsed: Mapping[str, object],
    about: str = "",
    summary: Table | None = None,
    legend: Mapping[str, str] | None = None,
    served: bool = False,
) -> str:
    """The page's HTML text.

    Args:
        sections: the tables, in order.
        browsed: what `browser_data` returned; if it has no split, the page has no questions and no script.
        about: when and on what hardware the results were measured.
        summary: the table on top.
        legend: measure or subset -> its explanation.
        served: whether the page has a link to `/`, to ask a question.
    """
    page, questions, colours, styles, script = (
        COLOURS.with_name(name).read_text(encoding="utf-8")
        for name in ("page.html", "questions.html", COLOURS.name, "page.css", "page.js")
    )
    style, scripts = f"{colours}\n{styles}", ""
    parts: list[str] = []
    folded: list[str] = []
    missing: list[str] = []
    contents: dict[str, str] = {}  # anchor -> title
    for name, section in zip(_anchors([section.table.title for section in sections]), sections, strict=True):
        if not section.done:
            missing.append(_folded_section(name, section.table))
        elif not section.compact:
            parts.append(_section(name, section))
            contents[name] = section.table.title
        elif section.table.rows:
            folded.append(_folded_section(name, section.table))
    if browsed.get("splits"):
        parts.append(questions)
        contents["questions"] = "Questions"
        scripts = f'<script type="application/json" id="data">{json_text(browsed)}</script>\n<script>{script}</script>'
    if missing:
        parts.append(
            '<section id="not-run">\n<h2>Not run</h2>\n<p class="note">Experiments that were not run here and have no '
            f"record, and what they need.</p>\n{''.join(missing)}</section>"
        )
        contents["not-run"] = "Not run"
    if folded:
        parts.append(f'<section class="more-tables">\n{"".join(folded)}</section>')
    top = []
    if summary and summary.rows:
        inner = f"<h2>{escape(summary.title)}</h2>\n{summary.html()}{_note(summary)}"
        top.append(f'<section id="summary" class="summary">\n{inner}</section>')
    links = "\n".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents.items())
    top += [_legend(legend or {}), f'<nav class="contents" aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>']
    text = Template(page).substitute(
        policy=content_security_policy(style, script),
        style=style,
        ask=_ASK if served else "",
        about=f'<p class="about">{escape(about)}</p>' if about else "",
        sections="\n".join([*top, *parts]),
        scripts=scripts,
    )
    return text.encode("utf-8", "replace").decode()


def json_text(value: object) -> str:
    """JSON that is safe in a `script` element: it cannot end the element, and lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def content_security_policy(style: str, script: str) -> str:
    """The content security policy that allows one style sheet, one script and images in the page; nothing is fetched."""
    hashes = [b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        "default-src 'none'; img-src data:; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; "
        "form-action 'none'"
    ).format(*hashes)


def _anchors(titles: Sequence[str]) -> list[str]:
    """A unique anchor for each table, from its title."""
    names: list[str] = []
    for title in titles:
        name = "table-" + (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "x")
        while name in names:
            name += "-2"
        names.append(name)
    return names


def _legend(legend: Mapping[str, str]) -> str:
    terms = [f'<dt class="verdict {kind}">{name}</dt><dd>{text}</dd>' for name, (kind, text) in _VERDICTS.items()]
    terms += [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in legend.items()]
    explained = "\n".join(terms)
    return (
        f'<details class="key">\n<summary>Legend</summary>\n<p class="note">{_PERCENT}</p>\n'
        f"<dl>\n{explained}\n</dl>\n</details>"
    )


def _note(table: Table) -> str:
    return "".join(f'<p class="note">{escape(line)}</p>\n' for line in table.note.splitlines() if line.strip())


def _section(name: str, section: Section) -> str:
    """A section: its rows, those that were not run folded, and its figures."""
    table = section.table
    at = table.columns.index("verdict") if "verdict" in table.columns else None
    missing = [row for row in table.rows if at is not None and row[at].startswith(NOT_RUN)]
    whole = select_rows(table, [row for row in table.rows if row not in missing]) if missing else table
    inner = f'<section id="{name}">\n<h2>{escape(table.title)}</h2>\n{whole.html()}{_note(table)}'
    if missing:
        inner += _details(f"{len(missing)} not run", select_rows(table, missing).html(f"{table.title}, not run"))
    if section.figures:
        shown = "".join(f'<figure tabindex="0">{svg}</figure>\n' for svg in section.figures)
        inner += f'<div class="figures">\n{shown}</div>\n'
    return f"{inner}</section>"


def _folded_section(name: str, table: Table) -> str:
    return _details(table.title, f"{table.html()}{_note(table)}", f' id="{name}"')


def _details(title: str, inner: str, attributes: str = "") -> str:
    return f"<details{attributes}>\n<summary>{escape(title)}</summary>\n{inner}</details>\n"


def draw_figures(results: Sequence[Result]) -> Iterator[str]:
    """Recall curves of runs over the same split and passages, and confidence curves by split; whole splits only."""
    splits: dict[str, list[Result]] = {}
    for result in results:
        if result.scores and not partial_notice(result.scores):
            splits.setdefault(f"{result.experiment.benchmark} {result.experiment.split}", []).append(result)
    for over, some in splits.items():
        yield from _recall_figures(over, some)
        yield from _confidence_figures(over, some)


def _recall_figures(over: str, results: Sequence[Result]) -> Iterator[str]:
    together: dict[str, list[Result]] = {}
    for result in results:
        if result.experiment.corpus:
            passages = f"{result.made['passages']:,} passages of {result.experiment.corpus}"
            together.setdefault(passages, []).append(result)
    for passages, some in together.items():
        for measure in merge_schemes(result.experiment.scheme for result in some).rankings:
            curves = [curve for result in some for curve in _recall_curve(result, measure.name)]
            if curves and measure.tables:
                title = measure.title or measure.name
                yield curves_svg(f"{title[:1].upper()}{title[1:]} at K, {over}, {passages}", curves, RECALL)


def _recall_curve(result: Result, name: str) -> Iterator[Curve]:
    """The curve of the measures NAME@K; none if there are none."""
    means = result.scores["measures"] if result.scores else {}
    depths = {int(key.partition("@")[2]): mean for key, mean in means.items() if key.startswith(f"{name}@")}
    if depths:
        points = ((k, mean["value"], mean["low"], mean["high"]) for k, mean in sorted(depths.items()))
        yield Curve(result.experiment.name, tuple(points))


def _confidence_figures(over: str, results: Sequence[Result]) -> Iterator[str]:
    """The risk-coverage curves of readers that give confidences, and the reliability diagram."""
    risks, bins = [], []
    for result in results:
        if result.scores and (calibration := result.scores.get("sureness")):
            points = tuple((at["coverage"], at["value"], at["low"], at["high"]) for at in calibration["risks"])
            risks.append(Curve(result.experiment.name, points))
            points = tuple((at["confidence"], at["value"], at["low"], at["high"]) for at in calibration["bins"])
            bins.append(Curve(result.experiment.name, points))
    if risks:
        yield curves_svg(f"Risk at coverage, {over}", risks, RISK)
        yield curves_svg(f"EM at confidence, {over}", bins, RELIABILITY)
