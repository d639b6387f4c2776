"""The results as one self-contained HTML file: tables, figures and every question.

The texts on the page come from data sets and models, so they are escaped. A content security policy
allows only the page's own script, by its hash, so that even a mistake in escaping runs no other
script. That script inserts the questions as text.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from string import Template
from typing import NamedTuple

from ifqa.errors import IfqaError
from ifqa.formatting import pluralize
from ifqa.pipeline.check import requirements
from ifqa.pipeline.probe import read_losses
from ifqa.pipeline.run import Run
from ifqa.report import result_tables
from ifqa.report.question_browser import browser_data
from ifqa.report.results_log import Entry, gather_entries, read_records
from ifqa.report.svg import RECALL, RELIABILITY, RISK, Curve, curves_svg
from ifqa.report.table import NOT_RUN, Table, select_rows
from ifqa.scoring.scheme import merge_schemes
from ifqa.scoring.stored_scores import partial_notice

COLOURS = Path(__file__).with_name("colours.css")  # the server's page uses them too

_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_ASK = (
    '<nav aria-label="Pages"><a href="/">Ask</a> '
    '<a href="/results" aria-current="page">Results</a></nav>'
)

#: Verdict -> its CSS class and its explanation.
_VERDICTS = {
    "OK": ("ok", "the score is within the tolerance of the value published or measured before"),
    "near": (
        "near",
        "the score is outside the tolerance, but the value lies in the score's interval",
    ),
    "off": (
        "off",
        "the score is outside the tolerance, and the value outside the score's interval",
    ),
    "model retired": (
        "absent",
        "the published value's model is no longer available, so there is no verdict",
    ),
    "another test set": (
        "absent",
        "the published value is over other questions, so there is no verdict",
    ),
    "stale": ("off", "the results are older than their settings, corpus or code"),
    "PARTIAL": ("absent", "only some questions of the split were asked"),
}
_PERCENT = (
    "Scores are in percent, over all questions of an experiment. "
    "A failed question counts as wrong. Brackets hold 95% bootstrap intervals."
)


class Section(NamedTuple):
    """A table of the page, and its figures: SVG made by this program, inserted unescaped.

    `done`: whether any row was run; a table without one is folded at the end of the page.
    `compact`: folded in any case.
    """

    table: Table
    figures: Sequence[str] = ()
    done: bool = True
    compact: bool = False


def render_results(root: Path = Path(), served: bool = False) -> str:
    """The HTML page of all experiments below `root`.

    `served`: with a link to `/`, to ask a question.
    """
    return render_report(gather_entries(read_records(root), root), served=served)


def render_report(
    entries: Sequence[Entry], chosen: Sequence[str] = (), served: bool = False
) -> str:
    """The HTML page of some entries.

    `chosen` are the experiments with figures and questions, empty for all.
    """
    entries = [_without_present_needs(entry) for entry in entries]
    shown = [entry for entry in entries if not chosen or entry.experiment.name in chosen]
    sections = []
    for title, group in result_tables.group_by_title(entries):
        first, *others = result_tables.score_tables(title, group)
        done = any(entry.scores or entry.stale for entry in group)
        sections.append(
            Section(first, [*draw_figures([entry for entry in group if entry in shown])], done)
        )
        sections += [Section(table, done=done, compact=True) for table in others]
    runs = [entry.run for entry in shown if entry.run]
    if losses := {run.experiment.name: probed for run in runs if (probed := read_losses(run))}:
        sections.append(Section(result_tables.losses_table(losses)))
    tables = (*result_tables.reader_tables(entries), result_tables.provenance_table(entries))
    sections += [Section(table, compact=True) for table in tables]
    questions = browser_data([run.experiment for run in runs])
    summary = result_tables.summary_table(entries)
    legend = result_tables.legend(entries, [section.table for section in sections])
    return render_page(sections, questions, _about(entries), summary, legend, served)


def _without_present_needs(entry: Entry) -> Entry:
    """The entry of an experiment that was not run without what it needs, if all that is here."""
    if not entry.needs:
        return entry
    try:
        is_ready = all(need.present for need in requirements(Run(entry.experiment)))
    except IfqaError:  # a file of it is missing
        is_ready = False
    return replace(entry, needs=()) if is_ready else entry


def _about(entries: Sequence[Entry]) -> str:
    measured = [entry for entry in entries if entry.scores]
    if not measured:
        return "No experiment has been completed in this folder."
    days, machines = ({entry.facts[key] for entry in measured} for key in ("at", "hardware"))
    first = min(days)[:10]
    last = max(days)[:10]
    when = f"on {first}" if first == last else f"between {first} and {last}"
    missing = len(entries) - len(measured)
    count = (
        f"{pluralize(len(measured), 'experiment')} measured "
        f"{when}{f'; {missing} not run' if missing else ''}"
    )
    return f"{count}. Hardware: {'; '.join(sorted(machines))}."


def render_page(
    sections: Sequence[Section],
    questions: Mapping[str, object],
    about: str = "",
    summary: Table | None = None,
    legend: Mapping[str, str] | None = None,
    served: bool = False,
) -> str:
    """The page's HTML text: the `sections` below the `summary`.

    `legend`: measure or subset -> its explanation.

    `questions` are from `browser_data`; if it has no split, the page has no question browser and no
    script. `about` says when and on what hardware the scores were measured. `served`: with a link
    to `/`, to ask a question.
    """
    files = ("page.html", "questions.html", COLOURS.name, "page.css", "page.js")
    texts = [COLOURS.with_name(name).read_text(encoding="utf-8") for name in files]
    page, browser, colours, styles, script = texts
    style = f"{colours}\n{styles}"
    scripts = ""
    parts: list[str] = []
    folded: list[str] = []
    missing: list[str] = []
    contents: dict[str, str] = {}  # anchor -> title
    for name, section in zip(
        _anchors([section.table.title for section in sections]), sections, strict=True
    ):
        if not section.done:
            missing.append(_folded_section(name, section.table))
        elif not section.compact:
            parts.append(_section(name, section))
            contents[name] = section.table.title
        elif section.table.rows:
            folded.append(_folded_section(name, section.table))
    if questions.get("splits"):
        parts.append(browser)
        contents["questions"] = "Questions"
        data = f'<script type="application/json" id="data">{json_text(questions)}</script>'
        scripts = f"{data}\n<script>{script}</script>"
    if missing:
        parts.append(
            '<section id="not-run">\n<h2>Not run</h2>\n<p class="note">Experiments that were '
            "not run here and have no "
            f"record, and what they need.</p>\n{''.join(missing)}</section>"
        )
        contents["not-run"] = "Not run"
    if folded:
        parts.append(f'<section class="more-tables">\n{"".join(folded)}</section>')
    top = []
    if summary and summary.rows:
        inner = f"<h2>{escape(summary.title)}</h2>\n{summary.html()}{_note(summary)}"
        top.append(f'<section id="summary" class="summary">\n{inner}</section>')
    links = "\n".join(
        f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents.items()
    )
    top += [
        _legend(legend or {}, [section.table for section in sections]),
        f'<nav class="contents" aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>',
    ]
    inner = "\n".join([*top, *parts])
    parts_of = {
        "policy": content_security_policy(style, script),
        "style": style,
        "ask": _ASK if served else "",
    }
    intro = f'<p class="about">{escape(about)}</p>' if about else ""
    text = Template(page).substitute(parts_of, about=intro, sections=inner, scripts=scripts)
    return text.encode("utf-8", "replace").decode()


def json_text(data: object) -> str:
    """JSON that is safe in a `script` element: it cannot end the element, and lone surrogates are
    escaped.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def content_security_policy(style: str, script: str) -> str:
    """The content security policy that allows one style sheet and one script in the page.

    Nothing is fetched.
    """
    allowed = [
        f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in (style, script)
    ]
    sources = (
        "default-src 'none'; img-src data:; style-src {}; script-src {}; base-uri 'none'; "
        "form-action 'none'"
    )
    return sources.format(*allowed)


def _anchors(titles: Sequence[str]) -> list[str]:
    names: list[str] = []
    for title in titles:
        name = "table-" + (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "x")
        while name in names:
            name += "-2"
        names.append(name)
    return names


def _legend(legend: Mapping[str, str], tables: Sequence[Table]) -> str:
    terms = [
        f'<dt class="verdict {kind}">{name}</dt><dd>{text}</dd>'
        for name, (kind, text) in _VERDICTS.items()
        if result_tables.shows_verdict(tables, name)
    ]
    terms += [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in legend.items()]
    explained = "\n".join(terms)
    return _details(
        "Legend", f'<p class="note">{_PERCENT}</p>\n<dl>\n{explained}\n</dl>\n', ' class="key"'
    )


def _note(table: Table) -> str:
    return "".join(
        f'<p class="note">{escape(line)}</p>\n' for line in table.note.splitlines() if line.strip()
    )


def _section(name: str, section: Section) -> str:
    """A section: its rows (those that were not run are folded) and its figures."""
    table = section.table
    at = table.columns.index("verdict") if "verdict" in table.columns else None
    missing = [row for row in table.rows if at is not None and row[at].startswith(NOT_RUN)]
    whole = (
        select_rows(table, [row for row in table.rows if row not in missing]) if missing else table
    )
    inner = f'<section id="{name}">\n<h2>{escape(table.title)}</h2>\n{whole.html()}{_note(table)}'
    if missing:
        inner += _details(
            f"{len(missing)} not run", select_rows(table, missing).html(f"{table.title}, not run")
        )
    if section.figures:
        shown = "".join(f'<figure tabindex="0">{svg}</figure>\n' for svg in section.figures)
        inner += f'<div class="figures">\n{shown}</div>\n'
    return f"{inner}</section>"


def _folded_section(name: str, table: Table) -> str:
    return _details(table.title, f"{table.html()}{_note(table)}", f' id="{name}"')


def _details(title: str, inner: str, attributes: str = "") -> str:
    return f"<details{attributes}>\n<summary>{escape(title)}</summary>\n{inner}</details>\n"


def draw_figures(entries: Sequence[Entry]) -> Iterator[str]:
    """For complete splits only: recall curves of runs over the same passages, and confidence
    curves.
    """
    splits: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.scores and not partial_notice(entry.scores):
            splits.setdefault(f"{entry.experiment.benchmark} {entry.experiment.split}", []).append(
                entry
            )
    for split, group in splits.items():
        yield from _recall_figures(split, group)
        yield from _confidence_figures(split, group)


def _recall_figures(split: str, entries: Sequence[Entry]) -> Iterator[str]:
    corpora: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.experiment.corpus:
            passages = f"{entry.facts['passages']:,} passages of {entry.experiment.corpus}"
            corpora.setdefault(passages, []).append(entry)
    for passages, group in corpora.items():
        for measure in merge_schemes(entry.experiment.scheme for entry in group).rankings:
            curves = []
            for entry in group:
                scores = entry.scores["measures"] if entry.scores else {}
                means = [
                    (k, scores[key])
                    for k, key in zip(measure.depths, measure.keys, strict=True)
                    if key in scores
                ]
                points = tuple(
                    (
                        k,
                        mean["value"],
                        mean.get("low", mean["value"]),
                        mean.get("high", mean["value"]),
                    )
                    for k, mean in means
                )
                curves += [Curve(entry.experiment.display_name, points)] if points else []
            if curves and measure.tables:
                title = measure.title or measure.name
                yield curves_svg(
                    f"{title[:1].upper()}{title[1:]} at K, {split}, {passages}", curves, RECALL
                )


def _confidence_figures(split: str, entries: Sequence[Entry]) -> Iterator[str]:
    """The risk-coverage curves and the reliability diagram of readers that give confidences."""
    risks = []
    bins = []
    for entry in entries:
        if entry.scores and (curves := entry.scores.get("sureness")):
            points = tuple(
                (risk["coverage"], risk["value"], risk["low"], risk["high"])
                for risk in curves["risks"]
            )
            risks.append(Curve(entry.experiment.display_name, points))
            points = tuple(
                (bin_["confidence"], bin_["value"], bin_["low"], bin_["high"])
                for bin_ in curves["bins"]
            )
            bins.append(Curve(entry.experiment.display_name, points))
    if risks:
        yield curves_svg(f"Risk at coverage, {split}", risks, RISK)
        yield curves_svg(f"EM at confidence, {split}", bins, RELIABILITY)
