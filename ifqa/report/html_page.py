"""The results as one HTML file: tables, figures, and every question to read; the page fetches nothing.

The texts on the page come from data sets and models, so they are escaped. A content security policy allows only the page's own
script, by its hash, so that even a mistake in escaping runs no other script. That script inserts the questions as text, and their
figures as images: an SVG in an image runs no script and fetches nothing.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ifqa.report.sanitize import json_text
from ifqa.report.table import Table

COLOURS = Path(__file__).with_name("colours.css")  # the page to ask on has them too

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ifqa results</title>
<style>{style}</style>
</head>
<body>
<header class="bar">
<p class="brand">ifqa</p>
{ask}
</header>
<main class="page">
<h1>Results</h1>
{about}
{sections}
</main>
{scripts}
</body>
</html>
"""

_ASK = """<nav aria-label="Pages"><a href="/">Ask</a> <a href="/results" aria-current="page">Results</a></nav>"""

#: What a verdict means -> its CSS class, and the explanation.
_VERDICTS = {
    "OK": ("ok", "the score is within the tolerance of the value published or measured before"),
    "near": ("near", "it is not, but that value lies in the score's interval"),
    "off": ("off", "neither"),
    "model retired": ("absent", "the model of the published value can be asked no more, so the value judges nothing"),
    "stale": ("off", "what was run is not of what the experiment says now"),
    "PARTIAL": ("absent", "not all questions of the split"),
}
_PERCENT = (
    "Scores are in percent, over all questions of an experiment. A failed question counts as wrong. In brackets stand 95% "
    "bootstrap intervals."
)

_BROWSER = """<section id="questions">
<h2>Questions</h2>
<p class="note">What each experiment answered, and the passages it read.</p>
<noscript><p class="note">The questions, their answers and passages are shown by a script, and JavaScript is off.
The tables and figures above do not need it.</p></noscript>
<div id="browser" hidden>
<ul class="legend">
<li><mark class="supposed">the counterfactual supposition</mark></li>
<li><mark class="answer">a gold answer</mark> found in a passage</li>
<li><mark class="wrong">an answer that is not right</mark>, where its reader found it</li>
<li><span class="gold">gold</span> a passage that covers an annotated one</li>
<li><b>A</b> 1: experiment A retrieved this passage at rank 1</li>
</ul>
<div class="tools" role="search">
<label>Search <kbd>/</kbd><input id="search" type="search" autocomplete="off" spellcheck="false"
placeholder="words of question, answer or id"></label>
<label>Benchmark and split<select id="split"></select></label>
<label>Show<select id="show">
<option value="all">all questions</option>
<option value="right">all right</option>
<option value="wrong">all wrong</option>
<option value="differ">differ: right in some experiments alone</option>
</select></label>
<label>Order<select id="sort">
<option value="file">as in the file</option>
<option value="apart">disagreement</option>
</select></label>
</div>
<p class="status" id="status" role="status"></p>
<button class="more" id="all" type="button" hidden>Show all questions</button>
<div id="list"></div>
<button class="more" id="more" type="button" hidden>Show more</button>
</div>
</section>"""


@dataclass(frozen=True)
class Section:
    """A table of the page, and its figures.

    Attributes:
        table: the table; its texts are plain text.
        figures: SVG that this program made (`ifqa.report.svg`); inserted unescaped.
        done: whether anything of it was run; what was not stands folded at the end.
        compact: whether it is folded although it was run.
    """

    table: Table
    figures: tuple[str, ...] = ()
    done: bool = True
    compact: bool = False


def page_text(
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
        browsed: what `browse.browse` returned; if it has no split, the page has no questions and no script.
        about: when and on what hardware the results were made; each line becomes a paragraph.
        summary: the table on top.
        legend: measure or subset -> its explanation.
        served: whether the page has a link to `/`, to ask a question.
    """
    files = (COLOURS, *map(COLOURS.with_name, ("page.css", "page.js")))
    colours, own, script = (path.read_text(encoding="utf-8") for path in files)
    style = f"{colours}\n{own}"
    names = _anchors([one.table.title for one in sections])
    named = list(zip(names, sections, strict=True))
    contents = [(name, one.table.title) for name, one in named if one.done and not one.compact]
    parts = [_section(name, one) for name, one in named if one.done and not one.compact]
    folded = [_folded(name, one.table) for name, one in named if one.done and one.compact and one.table.rows]
    missing = [_folded(name, _missing(one.table)) for name, one in named if not one.done]
    scripts = ""
    if browsed.get("splits"):
        parts.append(_BROWSER)
        contents.append(("questions", "Questions"))
        scripts = f'<script type="application/json" id="data">{json_text(browsed)}</script>\n<script>{script}</script>'
    if missing:
        parts.append(
            '<section id="not-run">\n<h2>Not run</h2>\n<p class="note">Experiments that were not run here and have no '
            f"record, and what they need.</p>\n{''.join(missing)}</section>"
        )
        contents.append(("not-run", "Not run"))
    if folded:
        parts.append(f'<section class="more-tables">\n{"".join(folded)}</section>')
    top = [_summary(summary)] if summary and summary.rows else []
    top += [_legend(legend or {}), _contents(contents)]
    text = _PAGE.format(
        policy=policy(style, script),
        style=style,
        ask=_ASK if served else "",
        about="\n".join(f'<p class="about">{escape(line)}</p>' for line in about.splitlines() if line.strip()),
        sections="\n".join([*top, *parts]),
        scripts=scripts,
    )
    return text.encode("utf-8", "replace").decode()


def policy(style: str, script: str) -> str:
    """The content security policy that allows one style sheet, one script and images in the page; nothing is fetched."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _anchors(titles: Sequence[str]) -> list[str]:
    """An anchor for each table, made of its title; no two are the same."""
    names: list[str] = []
    for title in titles:
        name = "table-" + (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "x")
        while name in names:
            name += "-2"
        names.append(name)
    return names


def _missing(table: Table) -> Table:
    """The rows not run of a table with verdicts; a table without is whole."""
    return table.parted()[2] if "verdict" in table.columns else table


def _summary(table: Table) -> str:
    return f'<section id="summary" class="summary">\n<h2>{escape(table.title)}</h2>\n{table.html()}{_note(table)}</section>'


def _contents(contents: Sequence[tuple[str, str]]) -> str:
    items = "\n".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents)
    return f'<nav class="contents" aria-label="Contents">\n<ul>\n{items}\n</ul>\n</nav>'


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
    whole, part, missing = section.table.parted()
    title = escape(whole.title)
    inner = [f'<section id="{name}">\n<h2>{title}</h2>\n{whole.html()}{_note(whole)}']
    if len(part.columns) > 1 and part.rows:
        inner.append(_details("Over parts of the questions", part.html(f"{part.title}, over parts of the questions")))
    if missing.rows:
        told = f"{len(missing.rows)} not run: what they need"
        inner.append(_details(told, missing.html(f"{missing.title}, not run")))
    if section.figures:
        shown = "".join(f'<figure tabindex="0">{svg}</figure>\n' for svg in section.figures)
        inner.append(f'<div class="figures">\n{shown}</div>\n')
    return f"{''.join(inner)}</section>"


def _folded(name: str, table: Table) -> str:
    return _details(table.title, f"{table.html()}{_note(table)}", f' id="{name}"')


def _details(title: str, inner: str, attributes: str = "") -> str:
    return f"<details{attributes}>\n<summary>{escape(title)}</summary>\n{inner}</details>\n"
