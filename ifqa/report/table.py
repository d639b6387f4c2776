"""A table of plain text for the terminal, Markdown and HTML, and texts for LaTeX; text from outside
is escaped.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Literal

from rich import markup
from rich.console import Console
from rich.table import Table as Drawing

from ifqa.config.expected import NEAR, OFF, OK, OTHER_SET, RETIRED
from ifqa.errors import MissingInput
from ifqa.formatting import printable, printable_line

if TYPE_CHECKING:
    import pandas as pd

NOT_RUN, STALE = "not run", "stale"
#: First word of a cell in the column "verdict" -> CSS class.
VERDICTS = {OK: "ok", NEAR: "near", OFF: "off", STALE: "off"} | dict.fromkeys(
    (NOT_RUN, RETIRED, OTHER_SET), "absent"
)

_VERDICT = re.compile(rf"({'|'.join(VERDICTS)})(?![\w-])")
# A date is not a number
_NUMBER = re.compile(r"(?!\d{4}-\d\d-\d\d)[^A-Za-z\d]*\d(?:[^A-Za-z]| of )*")
# "EM 45.6 [42.0, 49.3] of 221"
_SCORE = re.compile(r"((?:[^\s\[\]]+ )?-?[\d.]+) (\[[^\[\]]*\][^\[\]]*)")
_SHORT = 16  # characters: a column of texts up to this length is not wrapped
_NOTHING = re.compile(r"[\s–—-]*")


def sanitize(text: str) -> str:
    """Text for the terminal, with markup escaped and control characters replaced."""
    return markup.escape(printable(text))


def markdown_cell(text: str) -> str:
    """A line of Markdown that shows the text literally, without cells, links, images or HTML."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("*", "\\*")
    # [text](url), [text][name], [name]: url
    text = " ".join(re.sub(r"\](?=[(\[:])", r"]\\", text).split())
    return printable(text)  # the file may be read in a terminal


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\char34{}",  # babel makes it a command in some languages
    "`": r"\char96{}",
    "-": "-{}",  # two would be a dash
    "?": "?{}",  # before "`" another letter
    "!": "!{}",
    "[": "{[}",  # after the end of a row, an argument of it
    "]": "{]}",
    "*": "{*}",
    "↓": r"$\downarrow$",
    "±": r"$\pm$",
    "–": "--",
} | {character: f"\\{character}" for character in "{}$&#_%"}


def latex_text(text: str) -> str:
    """A text that LaTeX prints literally, on one line; it neither runs nor breaks a table's row."""
    return "".join(_LATEX.get(character, character) for character in printable_line(text))


def p_cell(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def render_text(show: Callable[[Console], None]) -> str:
    """What `show` prints on a console of 100 columns, as plain text."""
    file = StringIO()
    show(Console(file=file, width=100, highlight=False))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


@dataclass(frozen=True)
class Table:
    """A table: each row has as many cells as there are columns."""

    title: str
    note: str  # the text below the table; each line is a paragraph
    columns: tuple[str, ...]  # a table without columns consists of its title and note
    rows: tuple[tuple[str, ...], ...]
    # The columns aligned left on the terminal; others are aligned right
    left: tuple[int, ...] = (0,)
    # The terminal dims rows whose first cell starts with this: published values
    published: str = ""
    bold: frozenset[tuple[int, int]] = frozenset()  # rows and columns of the cells in bold

    def show(self, console: Console, gap: int = 1) -> None:
        """Print the title, the table with `gap` spaces between its columns, and the note."""
        for line in self.title.splitlines():
            console.print(f"[italic]{sanitize(line)}[/italic]", soft_wrap=True)
        if self.columns:
            drawing = Drawing(box=None, padding=(0, gap, 0, 0), pad_edge=False)
            for n, column in enumerate(self.columns):
                justify: Literal["left", "right"] = "left" if n in self.left else "right"
                drawing.add_column(sanitize(column), justify=justify, no_wrap=not n)
            for number, row in enumerate(self.rows):
                dim = bool(self.published) and row[0].strip().startswith(self.published)
                cells = [
                    f"[bold]{sanitize(cell)}[/bold]" if (number, n) in self.bold else sanitize(cell)
                    for n, cell in enumerate(row)
                ]
                drawing.add_row(*cells, style="dim" if dim else None)
            console.print(drawing)
        if self.note:
            console.print(sanitize(self.note), soft_wrap=True)

    def markdown(self) -> str:
        """The table in Markdown, without its title and its note."""
        lines = [
            f"| {' | '.join(map(markdown_cell, self.columns))} |",
            "|" + "---|" * len(self.columns),
        ]
        for number, row in enumerate(self.rows):
            cells = [
                f"**{markdown_cell(cell)}**" if (number, n) in self.bold else markdown_cell(cell)
                for n, cell in enumerate(row)
            ]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines) + "\n"

    def section(self) -> str:
        """The table in Markdown below its heading, with its note."""
        note = f"\n{markdown_cell(self.note)}\n" if self.note else ""
        return f"## {markdown_cell(self.title)}\n\n{self.markdown()}{note}"

    def html(self, label: str = "") -> str:
        """The table as HTML. `label` is its name for screen readers; if empty, the title is.

        On a narrow screen the page's style sheet shows each row as a card, so cells name their
        columns. They have ARIA roles because browsers drop a table's own roles when its layout
        changes.
        """
        kinds = [_kind([row[n] for row in self.rows]) for n in range(len(self.columns))]
        columns = zip(kinds, map(escape, self.columns), strict=True)
        head = "".join(
            f'<th scope="col" role="columnheader"{kind}>{text}</th>' for kind, text in columns
        )
        rows = "\n".join(
            f'<tr role="row">{_row(self.columns, kinds, row)}</tr>' for row in self.rows
        )
        return (
            '<div class="scroll" tabindex="0" role="region" '
            f'aria-label="{escape(label or self.title)}">\n'
            '<table role="table">\n<thead role="rowgroup"><tr '
            f'role="row">{head}</tr></thead>\n<tbody role="rowgroup">\n'
            f"{rows}\n</tbody>\n</table>\n</div>\n"
        )

    def _repr_html_(self) -> str:
        """The table for a notebook, which applies its own style."""
        lines = [("th", self.columns), *(("td", row) for row in self.rows)]
        rows = ("".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) for tag, row in lines)
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def select_rows(table: Table, rows: Sequence[tuple[str, ...]]) -> Table:
    """The table with some of its rows, without columns that are then blank."""
    columns = [n for n in range(len(table.columns)) if any(row[n] for row in rows)]
    cells = tuple(tuple(row[n] for n in columns) for row in rows)
    return Table(table.title, table.note, tuple(table.columns[n] for n in columns), cells)


def _kind(cells: Sequence[str]) -> str:
    """The class attribute of a column: numbers (ignoring "not run" and the like), short texts, or
    none.
    """
    values = [cell for cell in cells if not (_NOTHING.fullmatch(cell) or _VERDICT.match(cell))]
    if values and all(_NUMBER.fullmatch(cell) for cell in values):
        return ' class="number"'
    return ' class="short"' if max(map(len, cells), default=0) <= _SHORT else ""


def _row(columns: Sequence[str], kinds: Sequence[str], row: Sequence[str]) -> str:
    cells = [f'<th scope="row" role="rowheader">{escape(row[0])}</th>']
    for column, kind, text in list(zip(columns, kinds, row, strict=True))[1:]:
        inner = escape(text)
        if column == "verdict" and (match := _VERDICT.match(text)):
            inner = (
                '<span class="verdict '
                f'{VERDICTS[match[1]]}">{match[1]}</span>{escape(text[match.end() :])}'
            )
        elif score := _SCORE.fullmatch(text):  # the interval is set apart
            inner = f"<b>{escape(score[1])}</b> <small>{escape(score[2])}</small>"
        cells.append(f'<td role="cell" data-label="{escape(column)}"{kind}>{inner}</td>')
    return "".join(cells)


def make_frame(rows: Sequence[object], columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """A pandas frame of rows with keys, or of `columns`; MissingInput without pandas."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise MissingInput("a frame needs pandas; install it with: pip install pandas") from error
    return pd.DataFrame(rows, columns=columns)
