"""Finds the tables and the columns of prose on a page of a PDF by the places of its text.

A table has rules, or at least three rows whose short cells are aligned in columns. Prose, code and
lists in columns are no tables: it is better to miss a table than to make one up.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from statistics import fmean, median

from ifqa.corpus.documents.pdf_characters import Box
from ifqa.corpus.documents.pdf_layout import Line, Span, make_line
from ifqa.corpus.documents.pdf_rules import Rules
from ifqa.corpus.sentences import count_words

_MOST_COLUMNS = 60
_FEWEST_ROWS = 3  # of a table without rules
_FEWEST_LINES = 5  # of prose in columns
_PITCH = 3.0  # heights of a line from a row to the next
_TIGHT = 0.85  # usual distances of rows: the lines of one cell have less
_SOLID = 1.4  # heights of a line between the lines of one cell, at most
_LONG_CELL = 5  # words: a cell of more is prose
_ALIGNED = 2.5  # points
_MOST_ALIGNED = 0.6  # of the cells of a column have the same edge or centre
_BULLET = re.compile(r"\W|\(?\w{1,3}[.)]|\[.{1,8}\]")
_LEADERS = re.compile(r"\.(?: ?\.){3}")

_Row = Sequence[Span]
_Interval = tuple[float, float]


def arrange(
    rows: Sequence[_Row],
    rules: Callable[[], Rules],
    is_monospaced: Callable[[int, int], bool | None],
) -> list[Line]:
    """The lines of a page in reading order, from its rows in the order of the file.

    `rules` finds the page's rules, `is_monospaced` tells of a piece of the page's text.
    """
    lines = list[Line]()
    for block in _blocks(rows):
        if len(block) == 1:
            lines += _plain_lines(block)
        else:
            lines += _arrange_block(block, rules, is_monospaced)
    return lines


def _blocks(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    """Rows that may be a table or columns, and each other row by itself."""
    block = list[_Row]()
    for row in rows:
        if block and not _follows(block[-1], row):
            yield block
            block = []
        if block or len(row) > 1:
            block.append(row)
        else:
            yield [row]
    if block:
        yield block


def _follows(before: _Row, row: _Row) -> bool:
    """Whether a row is the next of a block: not far below, and not over its whole width."""
    height = max(span.height for span in before)
    distance = before[0].bottom - row[0].bottom
    if not 0 < distance < _PITCH * height:
        return False
    if len(row) > 1:
        return True
    left = min(span.left for span in before)
    right = max(span.right for span in before)
    if len(before) == 1:  # as a cell over several lines
        return row[0].right <= right + height and distance < _SOLID * height
    return row[0].right - row[0].left < 0.7 * (right - left) and row[0].right <= right + height


def _arrange_block(
    block: Sequence[_Row],
    rules: Callable[[], Rules],
    is_monospaced: Callable[[int, int], bool | None],
) -> Iterator[Line]:
    columns = _columns(block)
    if columns is None:
        yield from _plain_lines(block)
        return
    box = _bounds(block)
    heights = rules().heights(box)
    places = rules().places(box)
    is_ruled = len(heights) >= 3 or (len(heights) >= 2 and len(places) >= 3)
    if len(places) >= 3:
        columns = _columns_between(places, block) or columns
    logical = _logical_rows(block, heights if is_ruled else (), columns)
    cells = [_cells(rows, columns) for rows in logical]
    if (is_ruled and len(cells) >= 2) or _is_table(block, cells, columns, is_monospaced):
        lefts = tuple(round(left) for left, _ in columns)
        for rows, row in zip(logical, cells, strict=True):
            text = " ".join(dict.fromkeys(filter(None, row)))
            yield Line(text, _bounds(rows), tuple(row), lefts, _merged(rows, columns))
    elif _is_prose(block, columns):
        yield from _read_columns(block, columns)
    else:
        yield from _plain_lines(block)


def _plain_lines(rows: Sequence[_Row]) -> Iterator[Line]:
    """Lines as the file has them."""
    for row in rows:
        if len(row) == 1:
            yield make_line(row)
            continue
        line = list[Span]()
        for span in row:
            if line and span.opens:
                yield make_line(line)
                line = []
            line.append(span)
        yield make_line(line)


def _bounds(rows: Sequence[_Row]) -> Box:
    spans = [span for row in rows for span in row]
    return (
        min(span.left for span in spans),
        min(span.bottom for span in spans),
        max(span.right for span in spans),
        max(span.top for span in spans),
    )


def _columns(block: Sequence[_Row]) -> list[_Interval] | None:
    """Where the columns of a block begin and end; None if its rows are not aligned."""
    counts = Counter(len(row) for row in block if len(row) > 1)
    usual = max(counts, key=lambda count: (counts[count], count))
    base = [row for row in block if len(row) == usual]
    columns = list[_Interval]()
    for span in sorted((span for row in base for span in row), key=lambda span: span.left):
        if columns and span.left < columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], span.right)
        else:
            columns.append((span.left, span.right))
    if not 2 <= len(columns) <= _MOST_COLUMNS:
        return None
    for row in base:
        covered = [place for span in row for place in _covered(span, columns)]
        if len(set(covered)) < len(covered):
            return None
    return columns


def _columns_between(places: Sequence[float], block: Sequence[_Row]) -> list[_Interval] | None:
    """The columns between vertical rules, with those beyond the first and the last."""
    left, _, right, _ = _bounds(block)
    edges = [*places]
    if left < edges[0] - _ALIGNED:
        edges = [left - 1, *edges]
    if right > edges[-1] + _ALIGNED:
        edges = [*edges, right + 1]
    columns = list(pairwise(edges))
    return columns if 2 <= len(columns) <= _MOST_COLUMNS else None


def _covered(span: Span, columns: Sequence[_Interval]) -> list[int]:
    """The columns that a span is in; several if it is a merged cell."""
    common = [min(span.right, right) - max(span.left, left) for left, right in columns]
    width = span.right - span.left
    places = [
        place
        for place, (left, right) in enumerate(columns)
        if common[place] > 0.25 * min(width, right - left)
    ]
    if places:
        return places
    middle = (span.left + span.right) / 2
    distances = [abs(middle - (left + right) / 2) for left, right in columns]
    return [distances.index(min(distances))]


def _logical_rows(
    block: Sequence[_Row], heights: Sequence[float], columns: Sequence[_Interval]
) -> list[list[_Row]]:
    """The rows of a table, each with its lines: between rules, or by their distances."""
    if heights:
        bands: dict[int, list[_Row]] = {}
        from_below = sorted(heights)
        for row in block:
            middle = (row[0].bottom + row[0].top) / 2
            bands.setdefault(bisect_right(from_below, middle), []).append(row)
        single = sum(
            sum(0 in _covered(row[0], columns) for row in rows) <= 2 for rows in bands.values()
        )
        if len(bands) >= 2 and single * 2 > len(bands) and _largest_is_a_row(bands, block):
            return list(bands.values())
    distances = [above[0].bottom - below[0].bottom for above, below in pairwise(block)]
    usual = median(distances)
    far = [distance for distance in distances if distance >= usual]
    limit = _TIGHT * fmean(far)
    rows: list[list[_Row]] = [[block[0]]]
    for row, distance in zip(block[1:], distances, strict=True):
        if distance < limit and distance < _SOLID * max(span.height for span in row):
            rows[-1].append(row)
        else:
            rows.append([row])
    return rows


def _largest_is_a_row(bands: dict[int, list[_Row]], block: Sequence[_Row]) -> bool:
    """Whether rules part all rows, not only the header from the body."""
    return max(map(len, bands.values())) <= max(len(block) / 2, 2)


def _cells(rows: Sequence[_Row], columns: Sequence[_Interval]) -> list[str]:
    """The cells of a row of a table; one that is merged is in each column that it covers."""
    cells = [""] * len(columns)
    for row in rows:
        for span in row:
            for place in _covered(span, columns):
                cells[place] = _join(cells[place], span.text)
    return cells


def _merged(rows: Sequence[_Row], columns: Sequence[_Interval]) -> frozenset[int]:
    """The columns into which the cell to their left is merged."""
    held: list[list[Span]] = [[] for _ in columns]
    for row in rows:
        for span in row:
            for place in _covered(span, columns):
                held[place].append(span)
    return frozenset(
        place for place in range(1, len(held)) if held[place] and held[place] == held[place - 1]
    )


def _join(before: str, after: str) -> str:
    if before.endswith("-") and after[:1].islower():
        return before[:-1] + after
    return f"{before} {after}" if before else after


def _is_table(
    block: Sequence[_Row],
    cells: Sequence[Sequence[str]],
    columns: Sequence[_Interval],
    is_monospaced: Callable[[int, int], bool | None],
) -> bool:
    """Whether rows without rules are a table."""
    if len(cells) < _FEWEST_ROWS or any(len(row) < 2 for row in block[:1]):
        return False
    filled = [[row[place] for row in cells if row[place]] for place in range(len(columns))]
    if any(map(_LEADERS.search, (cell for column in filled for cell in column))):
        return False
    if len(columns) == 2 and (
        all(_BULLET.fullmatch(cell) for cell in filled[0]) or _are_line_numbers(filled[0])
    ):
        return False
    long_columns = sum(fmean(map(count_words, column)) > _LONG_CELL for column in filled if column)
    if 2 * long_columns >= len(columns):
        return False
    full = sum(sum(map(bool, row)) * 2 > len(row) for row in cells)
    if full * 3 < len(cells) * 2 or not all(
        _is_aligned(block, place, columns) for place in range(len(columns))
    ):
        return False
    return not _is_code(block, filled, is_monospaced)


def _are_line_numbers(cells: Sequence[str]) -> bool:
    """Whether cells are numbers that grow by one, as beside the lines of a program."""
    numbers = [int(cell) for cell in cells if cell.isdecimal() and len(cell) < 10]
    return len(numbers) == len(cells) and all(
        after == before + 1 for before, after in pairwise(numbers)
    )


def _is_code(
    block: Sequence[_Row],
    filled: Sequence[Sequence[str]],
    is_monospaced: Callable[[int, int], bool | None],
) -> bool:
    """Whether rows are code or a drawing in characters."""
    cells = [cell for column in filled for cell in column]
    if 3 * sum(not any(map(str.isalnum, cell)) for cell in cells) > len(cells):
        return True
    spans = [max(row, key=lambda span: len(span.text)) for row in block]
    votes = [is_monospaced(span.start, span.start + len(span.text)) for span in spans]
    return votes.count(True) > votes.count(False)


def _is_aligned(block: Sequence[_Row], place: int, columns: Sequence[_Interval]) -> bool:
    """Whether most cells of a column have the same left or right edge, or the same centre."""
    spans = [
        span for row in block if len(row) > 1 for span in row if _covered(span, columns) == [place]
    ]
    if not spans:
        return False
    for edges in (
        [span.left for span in spans],
        [span.right for span in spans],
        [(span.left + span.right) / 2 for span in spans],
    ):
        usual = median(edges)
        if sum(abs(edge - usual) < _ALIGNED for edge in edges) >= _MOST_ALIGNED * len(edges):
            return True
    return False


def _is_prose(block: Sequence[_Row], columns: Sequence[_Interval]) -> bool:
    """Whether rows are lines of prose in columns beside each other, drawn line by line."""
    if len(block) < _FEWEST_LINES:
        return False
    for place, (left, right) in enumerate(columns):
        spans = [span for row in block for span in row if _covered(span, columns) == [place]]
        if len(spans) < _FEWEST_LINES - 1:
            return False
        words = fmean(count_words(span.text) for span in spans)
        filled = fmean(span.right - span.left for span in spans) / (right - left)
        if words < 3 or filled < 0.6:
            return False
    return True


def _read_columns(block: Sequence[_Row], columns: Sequence[_Interval]) -> Iterator[Line]:
    below: list[list[Span]] = [[] for _ in columns]
    for row in block:
        for span in row:
            below[_covered(span, columns)[0]].append(span)
    for column in below:
        yield from (make_line([span]) for span in column)
