"""Writes the row of a table as a sentence: "Item: Lamp; Old price: 99; New price: 30.".

A row that is longer than a passage becomes several sentences, which begin with the row's name.
"""

import re
from collections.abc import Iterator, Sequence, Set
from itertools import takewhile
from typing import NamedTuple

from ifqa.corpus.sentences import count_words, keep_whole, piece_spans

#: The name of the column, often empty, and the text of a filled cell.
Cell = tuple[str, str]

ENDED = re.compile(r"[.!?。！？｡][\"”’')\]」』）】》〉〕］]*$")
_LONGEST_NAME = 12  # words of a row's name that are repeated
_LONGEST_NUMBER = 10  # characters of a number or date that names a row
_LETTER = re.compile(r"[^\W\d_]")


class Row(NamedTuple):
    """A row of a table, as the reader of its format gives it."""

    place: int  # the number of its page, line or the like
    cells: Sequence[str]  # "" is an empty one; a merged one is in each column that it covers
    covered: Set[int] = frozenset()  # the columns into which the cell to their left is merged


def row_text(row: Sequence[Cell]) -> str:
    """The sentence of a row; one cell is a sentence by itself."""
    text = "; ".join(_cell_text(name, value) for name, value in row)
    return keep_whole(text if ENDED.search(text) else f"{text}.")


def _cell_text(name: str, value: str) -> str:
    return f"{name}: {value}" if name else value


def row_pieces(row: Sequence[Cell], longest: int) -> Iterator[str]:
    """The sentence of a row, or, if it has more than `longest` words, several.

    Each of them begins with the row's name and says the columns of its values.
    """
    if _count_words(row) <= longest:
        yield row_text(row)
        return
    name = _row_name(row, longest // 2)
    room = max(longest - _count_words([name]), longest // 2)
    piece = list[Cell]()
    for cell in _split_long_cells(row, room):
        if piece and _count_words([*piece, cell]) > longest:
            yield row_text(piece)
            piece = [name]
        piece.append(cell)
    yield row_text(piece)


def _count_words(row: Sequence[Cell]) -> int:
    return sum(count_words(name) + count_words(value) for name, value in row)


def _row_name(row: Sequence[Cell], longest: int) -> Cell:
    """The first text of a row.

    A text of more than `longest` words is what the row tells. So a number before it, such as the
    year of events, is the name.
    """
    before = list(takewhile(lambda cell: count_words(cell[1]) <= longest, row))
    texts = [cell for cell in before if _LETTER.search(cell[1])]
    numbers = [cell for cell in before if cell[0] and len(cell[1]) <= _LONGEST_NUMBER]
    others = [cell for cell in row if _LETTER.search(cell[1])]
    column, value = [*texts, *numbers, *others, row[0]][0]
    if count_words(value) > _LONGEST_NAME:
        first, last = next(piece_spans(value, _LONGEST_NAME))
        value = f"{value[first:last]} …"
    return column, value


def _split_long_cells(row: Sequence[Cell], room: int) -> Iterator[Cell]:
    """The cells; one of more than `room` words is several, each with the name of its column."""
    for column, value in row:
        step = max(room - count_words(column), 1)
        for first, last in piece_spans(value, step):
            yield column, value[first:last]
