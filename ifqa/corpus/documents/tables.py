"""Reads the rows of a table, of any format, with the names of their columns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, clean_text
from ifqa.corpus.documents.rows import ENDED, Cell, Row, row_text
from ifqa.corpus.documents.table_headers import (
    MAJORITY,
    WIDEST,
    cell_kind,
    count_cells,
    first_rows,
    heads,
    is_key_value,
    locate_header,
    vote,
)

#: A row without merged cells: its place and its cells.
PlainRow = tuple[int, Sequence[str]]

TOP = 100  # rows that decide about the header
_TITLE = "title"  # the column of a row's heading
_SHORTEST_SENTENCE = 5  # words
_LONG_PROSE = 20


def table_runs(
    rows: Iterable[Row | PlainRow],
    columns: Sequence[str] = (),
    header: int | None = None,
    has_titles: bool = True,
) -> Iterator[TextRun]:
    """The rows of a table, in order: each a sentence with the names of its columns.

    `header` is the number of rows above the data if the format declares it; None lets `find_header`
    decide. Rows above the header are text. `columns` chooses columns by name; UnreadableFile if one
    is missing. Below an empty row may begin another table, with a header of its own. `has_titles`
    makes the column `title` the heading of its row, which a document's table is not to have.
    """
    names: list[str] = []
    lone = list[Row]()  # a row by itself, which may be the header of the rows below an empty one
    for number, block in enumerate(_blocks(rows, header or 0)):
        top = list(islice(block, TOP))
        deciding = first_rows(top)
        if lone and heads(lone[0], deciding):
            top = lone + top
            deciding = first_rows(top)
        else:
            yield from _text_runs(lone, has_titles)
        is_repeated = bool(names) and names == column_names([top[0].cells])  # the header
        may_begin = header is None and not is_repeated
        begins = number == 0 or bool(lone) or (may_begin and _begins_table(deciding, names))
        lone = []
        if begins and len(top) == 1 and header is None and not columns:
            lone = top
            continue
        is_one = header is not None or any(len(row.cells) > WIDEST for row in top)
        parts = [] if is_one else _tables_beside(deciding)
        if parts:
            yield from _runs_beside(chain(top, block), parts, has_titles)
            continue
        if begins:
            start, rows_of_header = locate_header(deciding, header if number == 0 else None)
            yield from _preamble(top[:start], has_titles)
            if columns:  # they are known by their names
                rows_of_header = max(rows_of_header, 1)
            below = start + rows_of_header
            names = column_names([row.cells for row in top[start:below]])
            if columns:
                require_columns(columns, names)
            top = top[below:]
        elif is_repeated:
            top = top[1:]
        pairs = not names and is_key_value(deciding)
        for row in chain(top, block):
            if pairs:
                yield from _pair_runs(row, has_titles)
            else:
                yield from row_runs(_named(row, names), columns, row.place, has_titles)
    yield from _text_runs(lone, has_titles)


def _text_runs(rows: Sequence[Row], has_titles: bool) -> Iterator[TextRun]:
    """Rows by themselves, without a header."""
    for row in rows:
        if is_key_value(first_rows([row])):
            yield from _pair_runs(row, has_titles)
        else:
            yield from row_runs(_named(row, ()), (), row.place, has_titles)


def _tables_beside(rows: Sequence[Row]) -> list[slice]:
    """The columns of each of several tables that stand beside one another; empty if it is one.

    Empty columns are between them, and each has a first column of names.
    """
    filled = [any(column) for column in zip(*(row.cells for row in rows), strict=True)]
    width = len(filled)
    starts = [n for n in range(width) if filled[n] and (n == 0 or not filled[n - 1])]
    if len(starts) < 2:
        return []
    ends = [n + 1 for n in range(width) if filled[n] and (n + 1 == width or not filled[n + 1])]
    parts = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
    are_tables = all(_is_table_beside([row.cells[part] for row in rows]) for part in parts)
    return parts if are_tables else []


def _is_table_beside(cells: Sequence[Sequence[str]]) -> bool:
    rows = [row for row in cells if any(row)]
    names = [row[0] for row in rows[1:] if row[0].strip()]
    has_names = sum(cell_kind(name) == "text" for name in names) >= MAJORITY * len(names) > 0
    return has_names and max(map(len, rows)) > 1


def _runs_beside(
    rows: Iterable[Row], parts: Sequence[slice], has_titles: bool
) -> Iterator[TextRun]:
    """The rows of tables that stand beside one another, each table by itself."""
    kept = list(rows)
    for part in parts:
        yield from table_runs((_part(row, part) for row in kept), has_titles=has_titles)


def _part(row: Row, part: slice) -> Row:
    """Some columns of a row."""
    covered = {place - part.start for place in row.covered if part.start < place < part.stop}
    return Row(row.place, row.cells[part], covered)


def _blocks(rows: Iterable[Row | PlainRow], header: int) -> Iterator[Iterator[Row]]:
    """The runs of rows that are not empty; each must be consumed before the next.

    The first has more than the `header` that a format declares: an empty row may stand below it.
    """
    remaining = (Row(*row) for row in rows)
    for row in remaining:
        if any(map(str.strip, row.cells)):
            yield _block(row, remaining, header)
            header = 0


def _block(first: Row, remaining: Iterator[Row], header: int) -> Iterator[Row]:
    yield first
    count = 1
    for row in remaining:
        if any(map(str.strip, row.cells)):
            yield row
            count += 1
        elif count > header:
            return


def _begins_table(rows: Sequence[Row], names: Sequence[str]) -> bool:
    """Whether rows below an empty one are a table of their own, not more rows of the one above."""
    start, _ = locate_header(rows, None)
    if not names or len(rows[start].cells) > len(names) or vote(rows[start:]) > 0:
        return True
    return max(map(count_cells, rows)) == 1


def _preamble(rows: Sequence[Row], has_titles: bool) -> Iterator[TextRun]:
    """The rows above a table, such as its title, as text."""
    for row in rows:
        yield from row_runs(_named(row, ()), (), row.place, has_titles)


def column_names(header: Sequence[Sequence[str]]) -> list[str]:
    """The names of the columns from the rows of a header; the second "a" is "a (2)".

    A column without a name is "column 7", but the first, which has the names of the rows, is "".
    """
    if not header:
        return []
    width = max(map(len, header))
    levels = [_spread(row, width) for row in header[:-1]] + [_padded(header[-1], width)]
    names = list[str]()
    seen = Counter[str]()
    for place, parts in enumerate(zip(*levels, strict=True), start=1):
        name = " ".join(dict.fromkeys(filter(None, parts)))
        name = name.rstrip(":").rstrip() or ("" if place == 1 else f"column {place}")
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return names


def _padded(row: Sequence[str], width: int) -> list[str]:
    cells = [clean_text(cell) for cell in row]
    return cells + [""] * (width - len(cells))


def _spread(row: Sequence[str], width: int) -> list[str]:
    """The names of groups, each also over the empty cells to its right."""
    cells = _padded(row, width)
    for place in range(1, width):
        cells[place] = cells[place] or cells[place - 1]
    return cells


def require_columns(columns: Sequence[str], names: Sequence[str], where: str = "") -> None:
    """Raise UnreadableFile if a wanted column is missing."""
    if missing := [column for column in columns if column not in names]:
        raise UnreadableFile(
            f"{where}no column {missing[0]!r}; found {', '.join(map(repr, names)) or 'none'}"
        )


def _pair_runs(row: Row, has_titles: bool) -> Iterator[TextRun]:
    """The sentence of a row of keys and values: "Deputy: Nora Pike."."""
    cells = [clean_text(cell) for cell in row.cells]
    pairs = zip(cells[::2], cells[1::2], strict=False)
    filled = tuple((key.rstrip(":").rstrip(), value) for key, value in pairs if value)
    if filled:
        yield TextRun(row_text(filled), row.place, row=filled, outside=int(has_titles))
    elif any(cells):
        text = row_text([("", cell) for cell in cells if cell])
        yield TextRun(text, row.place, outside=int(has_titles))


def _named(row: Row, names: Sequence[str]) -> list[Cell]:
    """The cells of a row with the names of their columns.

    A cell that is merged and stands alone from the first column on, such as a title of rows, is one
    cell without a name. So is a text that stands alone in the first column, but not a number, which
    is a value.
    """
    cells = row.cells
    is_title = 1 in row.covered and bool(cells[0].strip()) and count_cells(row) == 1
    is_text = len(cells) == 1 < len(names) and cell_kind(cells[0]) != "number"
    if is_title or is_text:
        return [("", cells[0])]
    if not names:
        return [("", cell) for place, cell in enumerate(cells) if place not in row.covered]
    beyond = (f"column {place}" for place in range(len(names) + 1, len(cells) + 1))
    return list(zip(chain(names, beyond), cells, strict=False))


def row_runs(
    row: Sequence[Cell], columns: Sequence[str], place: int, has_titles: bool = True
) -> Iterator[TextRun]:
    """The sentence of a row, below a heading from the column `title` if it `has_titles`.

    `columns` chooses cells by the names of their columns; empty for all.
    """
    chosen = [cell for cell in row if not columns or cell[0] in columns]
    cells = [(name, clean_text(value)) for name, value in chosen]
    may_have = has_titles and len(cells) > 1
    title = next((cell for cell in cells if may_have and cell[0].lower() == _TITLE), None)
    if title and title[1]:
        yield TextRun(title[1], place, True, 1)
    filled = [cell for cell in cells if cell[1] and cell is not title]
    if filled:
        is_single = len(cells) - (title is not None) == 1
        written = [("", filled[0][1])] if is_single and _is_prose(filled[0][1]) else filled
        is_untitled = has_titles and not (title and title[1])
        yield TextRun(row_text(written), place, row=tuple(written), outside=int(is_untitled))


def _is_prose(text: str) -> bool:
    """Whether a text is a sentence or more, which needs no name of its column."""
    words = len(text.split())
    return words >= _LONG_PROSE or (words >= _SHORTEST_SENTENCE and bool(ENDED.search(text)))
