"""The report as one HTML file: tables, figures, and every question to read; the page fetches nothing.

The texts on the page come from data sets and models, so they are escaped. A content security policy allows only the page's own
script, by its hash, so that even a mistake in escaping runs no other script. That script inserts the questions as text, and their
figures as images: an SVG in an image runs no script and fetches nothing.
"""

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from itertools import count
from pathlib import Path

from ifqa.config.expected import NEAR, OFF, OK, RETIRED
from ifqa.report.table import NOT_RUN, STALE, Grid
from ifqa.storage.files import create, write

#: Beginning of a cell in the column "verdict" -> CSS class.
VERDICTS = {OK: "ok", NEAR: "near", OFF: "off", STALE: "off", NOT_RUN: "absent", RETIRED: "absent"}

_VERDICT = re.compile(rf"({'|'.join(VERDICTS)})(?![\w-])")
_NUMBER = re.compile(r"(?!\d{4}-\d\d-\d\d)[^A-Za-z\d]*\d(?:[^A-Za-z]| of )*")  # a date is no number
_SHORT = 16  # characters: a column of texts up to this length is not wrapped
_NOTHING = re.compile(r"[\s–—-]*")
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ifqa report</title>
<style>{style}</style>
</head>
<body>
<div class="page">
<header>
<p class="eyebrow">ifqa report</p>
<h1>Counterfactual question answering</h1>
{about}
</header>
<nav class="contents" aria-label="Contents">
<h2>Contents</h2>
<ol>
{contents}
</ol>
</nav>
<main>
{sections}
</main>
</div>
{scripts}
</body>
</html>
"""

_BROWSER = """<section id="questions">
<h2>Questions</h2>
<p class="note">What each experiment answered, and the passages it read.</p>
<noscript><p class="note">The questions, their answers and passages are shown by a script, and JavaScript is off.
The tables and figures above do not need it.</p></noscript>
<div id="browser" hidden>
<ul class="legend">
<li><mark class="supposed">the counterfactual supposition</mark></li>
<li><mark class="answer">a gold answer</mark> found in a passage</li>
<li><span class="gold">gold</span> a passage that covers an annotated one</li>
<li><b>A</b> 1: experiment A retrieved this passage at rank 1</li>
</ul>
<div class="tools" role="search">
<label>Search <kbd>/</kbd><input id="search" type="search" autocomplete="off" spellcheck="false"
placeholder="words of question, answer or id"></label>
<label>Benchmark and split<select id="split"></select></label>
<label>Show<select id="show">
<option value="all">all questions</option>
<option value="differ">right in some experiments, wrong in others</option>
<option value="wrong">all wrong</option>
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


def write_page(
    path: Path, grids: Sequence[Grid], figures: Sequence[str], browsed: Mapping[str, object], about: str
) -> None:
    """Write the page atomically.

    Args:
        path: the file to write.
        grids: the tables, in order; their texts are plain text.
        figures: SVG that this program made (`curves.recall_svg`); inserted unescaped.
        browsed: what `browse.browse` returned; if it has no split, the page has no questions and no script.
        about: when and on what hardware the results were made; each line becomes a paragraph.
    """
    style, script = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    names = _anchors(grids)
    sections = [_section(name, grid) for name, grid in zip(names, grids, strict=True)]
    contents = list(zip(names, (grid.title for grid in grids), strict=True))
    if figures:
        sections.append(f'<section id="figures">\n<h2>Figures</h2>\n{"".join(map(_figure, figures))}\n</section>')
        contents.append(("figures", "Figures"))
    scripts = ""
    if browsed.get("splits"):
        sections.append(_BROWSER)
        contents.append(("questions", "Questions"))
        scripts = f'<script type="application/json" id="data">{json_text(browsed)}</script>\n<script>{script}</script>'
    page = _PAGE.format(
        policy=policy(style, script),
        style=style,
        about="\n".join(f'<p class="about">{escape(line)}</p>' for line in about.splitlines() if line.strip()),
        contents="\n".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in contents),
        sections="\n".join(sections),
        scripts=scripts,
    )
    with create(path) as handle:
        write(handle, page.encode("utf-8", "replace"))


def policy(style: str, script: str) -> str:
    """The content security policy that allows one style sheet, one script and images in the page; nothing is fetched."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def json_text(value: object) -> str:
    """JSON that is safe in a `script` element: nothing in it ends the element, and lone surrogates are escaped."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _anchors(grids: Sequence[Grid]) -> list[str]:
    """An anchor for each table, made of its title; no two are the same."""
    names: list[str] = []
    for grid in grids:
        name = "table-" + (re.sub(r"[^a-z0-9]+", "-", grid.title.lower()).strip("-") or "x")
        while name in names:
            name += "-2"
        names.append(name)
    return names


def _section(name: str, grid: Grid) -> str:
    note = "".join(f'<p class="note">{escape(line)}</p>\n' for line in grid.note.splitlines() if line.strip())
    kinds = [_kind([row[n] for row in grid.rows if n < len(row)]) for n in range(len(grid.columns))]
    head = "".join(f'<th scope="col"{kind}>{escape(text)}</th>' for kind, text in zip(kinds, grid.columns, strict=True))
    rows = "\n".join(f"<tr>{''.join(map(_cell, count(), grid.columns, kinds, row))}</tr>" for row in grid.rows)
    return (
        f'<section id="{name}">\n<h2>{escape(grid.title)}</h2>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(grid.title)}">\n<table>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>\n{note}</section>"
    )


def _kind(cells: Sequence[str]) -> str:
    """The class attribute of a column: numbers (ignoring "not run" and the like), short texts, or none."""
    telling = [cell for cell in cells if not (_NOTHING.fullmatch(cell) or _VERDICT.match(cell))]
    if telling and all(_NUMBER.fullmatch(cell) for cell in telling):
        return ' class="number"'
    return ' class="short"' if max(map(len, cells), default=0) <= _SHORT else ""


def _cell(number: int, column: str, kind: str, text: str) -> str:
    if number == 0:
        return f'<th scope="row">{escape(text)}</th>'
    if column == "verdict" and (verdict := _VERDICT.match(text)):
        marked = f'<span class="verdict {VERDICTS[verdict[1]]}">{verdict[1]}</span>'
        return f"<td{kind}>{marked}{escape(text[verdict.end() :])}</td>"
    return f"<td{kind}>{escape(text)}</td>"


def _figure(svg: str) -> str:
    return f'<figure class="scroll" tabindex="0">{svg}</figure>\n'
