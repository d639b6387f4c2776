"""Repeats the merged cells of a table in each place that they cover."""

from collections.abc import Sequence
from dataclasses import dataclass

from ifqa.corpus.documents.rows import Row

_WIDEST = 1000  # columns of a merged cell, as in browsers
_LONGEST_REPEATED = 200  # characters; a longer text stands in its first place only
# Covered places beyond these are left out: a few bytes can ask for any number of them
_PLACES_PER_CELL, _SPARE_PLACES = 10, 1000


@dataclass(frozen=True, slots=True)
class SpanCell:
    """A cell and the number of columns and rows that it covers."""

    text: str
    columns: int = 1
    rows: int = 1
    is_header: bool = False  # as the format marks it: <th>
    names_row: bool = False  # whether it is the header of its row: <th scope=row>


_EMPTY = SpanCell("")


def spread_cells(rows: Sequence[Sequence[SpanCell]]) -> list[list[SpanCell]]:
    """The cells of each row by column, a merged one in each place that it covers.

    The result has at most 11 times as many cells as `rows`, and 1000 more.
    """
    spare = _SPARE_PLACES + _PLACES_PER_CELL * sum(map(len, rows))
    covered = dict[int, tuple[int, SpanCell]]()  # by column: rows below, cell
    spread = list[list[SpanCell]]()
    for row in rows:
        placed, covered = _place_row(row, covered, spare)
        spare -= len(placed) - len(row)
        spread.append(placed)
    return spread


def make_row(place: int, cells: Sequence[SpanCell]) -> Row:
    """The row of cells that `spread_cells` made."""
    covered = {
        column
        for column in range(1, len(cells))
        if cells[column] is cells[column - 1] and cells[column].columns > 1
    }
    return Row(place, [cell.text for cell in cells], covered)


def _place_row(
    row: Sequence[SpanCell], covered: dict[int, tuple[int, SpanCell]], spare: int
) -> tuple[list[SpanCell], dict[int, tuple[int, SpanCell]]]:
    """The cells of a row by column, and what they cover in the rows below."""
    placed = list[SpanCell]()
    below = dict[int, tuple[int, SpanCell]]()
    waiting = list(reversed(row))
    last = max(covered, default=-1) if spare > 0 else -1
    while waiting or len(placed) <= last:
        column = len(placed)
        if column in covered and column <= last:
            left, cell = covered[column]
            placed.append(cell)
            if left > 1:
                below[column] = left - 1, cell
        elif not waiting:
            placed.append(_EMPTY)
        else:
            cell = waiting.pop()
            repeated = cell if len(cell.text) <= _LONGEST_REPEATED else _EMPTY
            width = max(min(cell.columns, _WIDEST, spare - len(placed)), 1)
            placed += [cell] + [repeated] * (width - 1)
            if cell.rows > 1:
                below |= dict.fromkeys(range(column, column + width), (cell.rows - 1, repeated))
    return placed, below
