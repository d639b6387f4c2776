"""Tables of plain text as HTML: scores with their intervals, verdicts, and the rows not run folded away.

On a narrow screen the style sheet makes a card of each row; the cells name their columns for that, and have ARIA roles, because
a browser drops those of a table that is no longer laid out as one.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape

from ifqa.config.expected import NEAR, OFF, OK, RETIRED
from ifqa.report.table import NOT_RUN, STALE, Grid

#: Beginning of a cell in the column "verdict" -> CSS class.
VERDICTS = {OK: "ok", NEAR: "near", OFF: "off", STALE: "off", NOT_RUN: "absent", RETIRED: "absent"}

_VERDICT = re.compile(rf"({'|'.join(VERDICTS)})(?![\w-])")
_NUMBER = re.compile(r"(?!\d{4}-\d\d-\d\d)[^A-Za-z\d]*\d(?:[^A-Za-z]| of )*")  # a date is no number
_SCORE = re.compile(r"((?:[^\s\[\]]+ )?-?[\d.]+) (\[[^\[\]]*\][^\[\]]*)")  # "EM 45.6 [42.0, 49.3] of 221"
_SHORT = 16  # characters: a column of texts up to this length is not wrapped
_NOTHING = re.compile(r"[\s–—-]*")


def parted(grid: Grid) -> tuple[Grid, Grid, Grid]:
    """A table in three: the scores over all questions, those over parts of them, and the rows not run, with what they need.

    Each is without its blank columns, and may have no row or only its first column.
    """
    if "verdict" not in grid.columns:
        return grid, replace(grid, columns=grid.columns[:1], rows=()), replace(grid, rows=())
    verdicts = [row[grid.columns.index("verdict")] for row in grid.rows]
    run = [row for row, found in zip(grid.rows, verdicts, strict=True) if not found.startswith(NOT_RUN)]
    missing = [row for row, found in zip(grid.rows, verdicts, strict=True) if found.startswith(NOT_RUN)]
    whole = [name for name in grid.columns if name not in grid.parts]
    part = [name for name in grid.columns if name in (grid.columns[0], *grid.parts)]
    return _cut(grid, run, whole), replace(_cut(grid, run, part), note=""), _needs(_cut(grid, missing, whole))


def _cut(grid: Grid, rows: Sequence[tuple[str, ...]], names: Sequence[str]) -> Grid:
    """Some rows and columns of a table, without columns that are blank in all of these rows."""
    places = [n for n, name in enumerate(grid.columns) if name in names]
    kept = [n for n in places if grid.columns[n] == "verdict" or any(row[n] for row in rows)]
    found = tuple(tuple(row[n] for n in kept) for row in rows)
    return replace(grid, columns=tuple(grid.columns[n] for n in kept), rows=found)


def _needs(grid: Grid) -> Grid:
    """The rows that were not run, with a column of what they need in place of the verdict."""
    at = grid.columns.index("verdict")
    found = [row[at].removeprefix(NOT_RUN).removeprefix(": needs ") or "nothing more" for row in grid.rows]
    rows = tuple((*row[:at], need, *row[at + 1 :]) for row, need in zip(grid.rows, found, strict=True))
    return replace(grid, columns=(*grid.columns[:at], "needs", *grid.columns[at + 1 :]), rows=rows)


def table(grid: Grid, label: str = "") -> str:
    """A table as HTML; its texts are plain text. `label` tells screen readers what it is; empty for its title."""
    kinds = [_kind([row[n] for row in grid.rows if n < len(row)]) for n in range(len(grid.columns))]
    head = "".join(
        f'<th scope="col" role="columnheader"{kind}>{escape(text)}</th>'
        for kind, text in zip(kinds, grid.columns, strict=True)
    )
    rows = "\n".join(f'<tr role="row">{_row(grid.columns, kinds, row)}</tr>' for row in grid.rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label or grid.title)}">\n<table role="table">\n'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>\n<tbody role="rowgroup">\n{rows}\n</tbody>\n'
        "</table>\n</div>\n"
    )


def _kind(cells: Sequence[str]) -> str:
    """The class attribute of a column: numbers (ignoring "not run" and the like), short texts, or none."""
    telling = [cell for cell in cells if not (_NOTHING.fullmatch(cell) or _VERDICT.match(cell))]
    if telling and all(_NUMBER.fullmatch(cell) for cell in telling):
        return ' class="number"'
    return ' class="short"' if max(map(len, cells), default=0) <= _SHORT else ""


def _row(columns: Sequence[str], kinds: Sequence[str], row: Sequence[str]) -> str:
    cells = [f'<th scope="row" role="rowheader">{escape(row[0])}</th>']
    for column, kind, text in list(zip(columns, kinds, row, strict=True))[1:]:
        inner = _verdict(text) if column == "verdict" else _text(text)
        cells.append(f'<td role="cell" data-label="{escape(column)}"{kind}>{inner}</td>')
    return "".join(cells)


def _verdict(text: str) -> str:
    found = _VERDICT.match(text)
    if not found:
        return escape(text)
    return f'<span class="verdict {VERDICTS[found[1]]}">{found[1]}</span>{escape(text[found.end() :])}'


def _text(text: str) -> str:
    """A cell; of a score the interval stands apart."""
    if score := _SCORE.fullmatch(text):
        return f"<b>{escape(score[1])}</b> <small>{escape(score[2])}</small>"
    return escape(text)
