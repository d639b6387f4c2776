"""Makes runs of the paragraphs and tables of Word's older formats, .rtf and .doc.

Their rows say no columns but the edges of their cells: a cell that is as wide as several of another
row is merged over their columns.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ifqa.corpus.documents.decoding import TextRun
from ifqa.corpus.documents.rows import Row
from ifqa.corpus.documents.tables import table_runs

_NEAR = 60  # twips (a twentieth of a point) between two edges that are one
_MOST = 128  # columns; Word allows 63
_MOST_HEADERS = 3  # rows above a table that name its columns
#: A bullet or a number that is typed before a tab.
_TYPED = re.compile(r"\s*(?:([•·▪■◦‣○●*–-])|(\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,6})[.)]))[ \xa0]*\t")
_BULLET = frozenset("oO§¨ØüvVq")  # a letter that is a bullet, of another font


@dataclass(frozen=True, slots=True)
class WordCell:
    """A cell, with its right edge in twips, or None where the file gives none."""

    text: str
    right: int | None = None
    continues_left: bool = False  # merged with the cell to its left
    continues_above: bool = False


@dataclass(frozen=True, slots=True)
class WordRow:
    """A row, with the left edge of its first cell in twips."""

    place: int
    cells: Sequence[WordCell]
    left: int = 0
    is_header: bool = False  # repeated on each page of the table


def paragraph_run(text: str, place: int, level: int = 0, label: str | None = None) -> TextRun:
    """The run of a paragraph: a heading if it has a level, or else an item if it has a label.

    The label is the number or the bullet that Word shows before it. Only numbers are text.
    """
    typed = _TYPED.match(text) if label is None else None
    if typed:
        label = typed[2] or typed[1]
        text = text[typed.end() :]
    number = _number_of(label or "")
    shown = f"{number} {text}" if number and text.strip() else text
    return TextRun(shown, place, level=level, item=label is not None and not level)


def _number_of(label: str) -> str:
    """The label of an item without a bullet."""
    text = label.strip()
    is_number = any(map(str.isalnum, text)) and text not in _BULLET
    return text if is_number else ""


def word_table_runs(rows: Sequence[WordRow]) -> Iterator[TextRun]:
    """The rows of a table, each a sentence."""
    headers = next((n for n, row in enumerate(rows) if not row.is_header), len(rows))
    starts = _column_starts(rows)
    above = list[str]()
    filled = list[Row]()
    for row in rows:
        columns = _columns(row, starts)
        above = _fill(row, columns, above)
        filled.append(Row(row.place, above, _covered(row, columns)))
    # Some writers make all rows repeat
    is_declared = 0 < headers < len(rows) and headers <= _MOST_HEADERS
    declared = headers if is_declared else None
    yield from table_runs(filled, header=declared, has_titles=False)


def _column_starts(rows: Sequence[WordRow]) -> list[int]:
    """The left edges of the columns, or none if the rows have no common columns."""
    edges = {row.left for row in rows}
    for row in rows:
        right = row.left
        for cell in row.cells:
            if cell.right is None or cell.right <= right:
                return []
            right = cell.right
            edges.add(right)
    starts = list[int]()
    for edge in sorted(edges):
        if not starts or edge - starts[-1] > _NEAR:
            starts.append(edge)
    return starts if len(starts) <= _MOST else []


def _columns(row: WordRow, starts: Sequence[int]) -> list[range]:
    """The columns that each cell covers."""
    edges = [cell.right for cell in row.cells if cell.right is not None] if starts else []
    ends = [bisect_right(starts, edge + _NEAR) - 1 for edge in edges]
    begins = [bisect_right(starts, row.left + _NEAR) - 1, *ends[:-1]]
    covered = [range(*pair) for pair in zip(begins, ends, strict=False)]
    if not all(covered) or len(covered) < len(row.cells):
        return [range(place, place + 1) for place in range(len(row.cells))]
    return covered


def _covered(row: WordRow, columns: Sequence[range]) -> set[int]:
    """The columns into which the cell to their left is merged."""
    return {
        column
        for cell, covered in zip(row.cells, columns, strict=True)
        for column in covered
        if column > covered.start or cell.continues_left
    }


def _fill(row: WordRow, columns: Sequence[range], above: Sequence[str]) -> list[str]:
    """The text in each column of a row, from the row above where a cell is merged with it."""
    filled = [""] * (columns[-1].stop if columns else 0)
    before = ""
    for cell, covered in zip(row.cells, columns, strict=True):
        text = before if cell.continues_left else cell.text
        for column in covered:
            is_repeated = cell.continues_above and column < len(above)
            filled[column] = above[column] if is_repeated else text
        before = filled[covered.start]
    return filled
