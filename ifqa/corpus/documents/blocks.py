"""The paragraphs and tables of an office document, and the runs of text that they become.

A cell of a table holds paragraphs and tables of its own. Its paragraphs are its text; the rows of
its tables and the notes in it follow its row.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ifqa.corpus.documents.decoding import TextRun, clean_text
from ifqa.corpus.documents.rows import Row, row_text
from ifqa.corpus.documents.table_headers import count_cells
from ifqa.corpus.documents.tables import table_runs

WIDEST = 1_024  # columns of a table
_COPIED = (
    2_000  # characters that merged cells may repeat in a row, so that a small file stays small
)
_MOST_HEADER_ROWS = 4
_ENDS = tuple(".,;:!?-–—/(")  # a cell's paragraph that ends so goes on in the next one


@dataclass(slots=True)
class Paragraph:
    """A paragraph, heading or item of a list, with what is anchored in it."""

    place: int  # its number in the document, or that of the outermost row or paragraph around it
    text: str = ""
    level: int = 0  # of a heading, from 1
    item: bool = False
    bold: bool = False  # whether all of its text is bold
    above: list["Block"] = field(default_factory=list)  # text boxes anchored before its text
    below: list["Block"] = field(default_factory=list)  # other text boxes, charts and notes


@dataclass(slots=True)
class TableCell:
    """A cell; one that another cell covers copies that cell's text."""

    blocks: list["Block"] = field(default_factory=list)
    columns: int = 1
    is_absent: bool = False  # a column that the row leaves out before or after its cells
    copies_left: bool = False
    copies_above: bool = False


@dataclass(slots=True)
class TableRow:
    """A row of a table."""

    place: int
    cells: list[TableCell] = field(default_factory=list)
    is_header: bool = False  # as the format declares it


@dataclass(slots=True)
class Table:
    """A table of a document."""

    rows: list[TableRow] = field(default_factory=list)


@dataclass(slots=True)
class Notes:
    """Runs that are read as they are, such as the text of notes or the rows of a chart."""

    runs: Sequence[TextRun] = ()


Block = Paragraph | Table | Notes


def block_runs(blocks: Iterable[Block]) -> Iterator[TextRun]:
    """The runs of paragraphs and tables, in order."""
    for block in blocks:
        if isinstance(block, Notes):
            yield from block.runs
        elif isinstance(block, Paragraph):
            yield from _paragraph_runs(block)
        else:
            yield from _table_runs(block)


def _paragraph_runs(paragraph: Paragraph) -> Iterator[TextRun]:
    # What is anchored in a heading belongs below it
    if not paragraph.level:
        yield from block_runs(paragraph.above)
    yield TextRun(paragraph.text, paragraph.place, level=paragraph.level, item=paragraph.item)
    if paragraph.level:
        yield from block_runs(paragraph.above)
    yield from block_runs(paragraph.below)


def _table_runs(table: Table) -> Iterator[TextRun]:
    if _is_layout(table):
        for row in table.rows:
            for cell in row.cells:
                yield from block_runs(cell.blocks)
        return
    rows = fill_rows(table.rows)
    if max((len(row.cells) for row in rows), default=0) == 1:
        yield from _with_nested(table.rows, rows, 0)  # the name of one column is text like others
        return
    titles = _count_titles(rows)
    header = _find_declared_header(table.rows[titles:], rows[titles:])
    if not header:
        titles = 0
    title_rows = [Row(row.place, [next(filter(None, row.cells))]) for row in rows[:titles]]
    yield from _with_nested(table.rows[:titles], title_rows, 0)
    yield from _with_nested(table.rows[titles:], rows[titles:], header)


def _with_nested(
    table_rows: Sequence[TableRow], rows: Sequence[Row], header: int | None
) -> Iterator[TextRun]:
    """The runs of rows, each before those of the tables and notes in its cells."""
    done = 0
    numbered = [row._replace(place=number) for number, row in enumerate(rows)]
    runs = list(table_runs(numbered, header=header, has_titles=False))
    for run in [*_unsaid_names(numbered, runs), *runs]:
        for row in table_rows[done : run.place]:
            yield from _nested_runs(row)
        done = max(done, run.place)
        yield replace(run, place=table_rows[run.place].place)
    for row in table_rows[done:]:
        yield from _nested_runs(row)


def _unsaid_names(rows: Sequence[Row], runs: Sequence[TextRun]) -> Iterator[TextRun]:
    """The rows of a header with the name of a column that has no value, so that no row says it."""
    said = {name for run in runs for name, _ in run.row}
    places = {run.place for run in runs}
    for place, texts, covered in rows[:_MOST_HEADER_ROWS]:
        if place in places:
            return
        shown = (text for column, text in enumerate(texts) if column not in covered)
        cells = [cell for cell in map(clean_text, shown) if cell]
        names = [cell.rstrip(":").rstrip() for cell in cells]
        if not all(any(name in longer for longer in said) for name in names):
            row = tuple(("", cell) for cell in cells)
            yield TextRun(row_text(row), place, row=row)


def _nested_runs(row: TableRow) -> Iterator[TextRun]:
    for cell in row.cells:
        for block in cell.blocks:
            if isinstance(block, Paragraph):
                yield from block_runs([*block.above, *block.below])
            else:
                yield from block_runs([block])


def _is_layout(table: Table) -> bool:
    """Whether a table only arranges text on a page, as the frame around a notice does."""
    cells = [cell for row in table.rows for cell in row.cells]
    if any(_has_section(cell) for cell in cells):
        return True
    is_narrow = all(len(row.cells) == 1 for row in table.rows)
    return is_narrow and any(len(_texts(cell)) > 1 for cell in cells)


def _has_section(cell: TableCell) -> bool:
    """Whether a heading and text below it are in a cell."""
    paragraphs = _texts(cell)
    return any(paragraph.level for paragraph in paragraphs) and not paragraphs[-1].level


def _texts(cell: TableCell) -> list[Paragraph]:
    """The paragraphs with text."""
    return [block for block in cell.blocks if isinstance(block, Paragraph) and block.text.strip()]


def cell_text(cell: TableCell) -> str:
    """The text of a cell: its paragraphs, with a comma between two that are no one sentence."""
    parts = list[str]()
    for paragraph in _texts(cell):
        text = paragraph.text.strip()
        if parts:
            first = text[:1]
            is_apart = paragraph.item or first.isupper() or first.isdecimal()
            goes_on = parts[-1].rstrip().endswith(_ENDS) or not is_apart
            parts.append(" " if goes_on else ", ")
        parts.append(text)
    return "".join(parts)


def fill_rows(rows: Sequence[TableRow]) -> list[Row]:
    """The texts of the cells of each row.

    A merged cell is repeated in each place it covers. A place that is covered in every row is none.
    """
    texts = list[list[str]]()
    covered = list[set[int]]()
    for row in rows:
        above = texts[-1] if texts else []
        row_texts, row_covered = _fill_row(row, above)
        texts.append(row_texts)
        covered.append(row_covered)
    width = max(map(len, texts), default=0)
    used = [
        place
        for place in range(width)
        if any(
            place < len(row) and place not in gone for row, gone in zip(texts, covered, strict=True)
        )
    ]
    places = [row.place for row in rows]
    if len(used) == width:
        return list(map(Row, places, texts, covered))
    numbers = {place: number for number, place in enumerate(used)}
    kept = [[row[place] for place in used if place < len(row)] for row in texts]
    gone = [{numbers[place] for place in gone if place in numbers} for gone in covered]
    return list(map(Row, places, kept, gone))


def _fill_row(row: TableRow, above: Sequence[str]) -> tuple[list[str], set[int]]:
    texts = list[str]()
    covered = set[int]()
    room = _COPIED
    is_single = len(row.cells) == 1
    for cell in row.cells:
        place = len(texts)
        columns = min(cell.columns, WIDEST - place)
        if columns < 1:
            break
        is_copy = cell.copies_left or cell.copies_above
        if cell.copies_left:
            text = texts[-1] if texts else ""
        elif cell.copies_above:
            text = above[place] if place < len(above) else ""
        else:
            text = cell_text(cell)
        is_none = cell.copies_left or cell.is_absent
        covered.update(range(place if is_none else place + 1, place + columns))
        copied = columns if is_copy else columns - 1
        if not is_single and copied * len(text) > room:
            texts += ["" if is_copy else text, *[""] * (columns - 1)]
            continue
        room -= copied * len(text)
        texts += [text] * columns
    return texts, covered


def _count_titles(rows: Sequence[Row]) -> int:
    """The number of first rows that are one cell over the whole width."""
    width = max((len(row.cells) for row in rows), default=0)
    count = 0
    while count < len(rows) and width > 1 and count_cells(rows[count]) == 1:
        count += 1
    return count if count < len(rows) else 0


def _find_declared_header(rows: Sequence[TableRow], filled: Sequence[Row]) -> int | None:
    """The number of rows that the format, or bold type, declares as the header; None if none."""
    declared = 0
    while declared < len(rows) and rows[declared].is_header:
        declared += 1
    if not declared and len(rows) > 1 and _is_bold(rows[0]) and not _is_bold(rows[1]):
        declared = 1
    has_data = any(any(row.cells) for row in filled[declared:])
    is_header = 0 < declared <= _MOST_HEADER_ROWS and has_data
    return declared if is_header else None


def _is_bold(row: TableRow) -> bool:
    """Whether all texts in a row of several cells are bold."""
    paragraphs = [paragraph for cell in row.cells for paragraph in _texts(cell)]
    is_full = sum(bool(_texts(cell)) for cell in row.cells) >= max(len(row.cells) - 1, 1)
    return len(row.cells) > 1 and is_full and all(paragraph.bold for paragraph in paragraphs)
