"""Decides which rows of a table, of any format, are its header.

What the format declares (HTML's <th>, Markdown) is taken. Otherwise the types of the cells and
repetition decide: over a column of numbers a text is its name, and a value that stands again below
it is none. A missing value says nothing. The functions take rows as `first_rows` makes them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

from ifqa.corpus.documents.rows import Row

Kind = Literal["empty", "number", "mixed", "text"]

WIDEST = 1_000  # columns that decide about the header
MAJORITY = 2 / 3  # of the cells of a column; then it has a type
_LONGEST_PREAMBLE = 20  # rows
_LONGEST_NAME = 8  # words of a column's name, where nothing but its look decides
_NUMBER = re.compile(r"[^\w\s]{0,3}\s?\d[\d\s.,:/'’–-]*(?:[a-zA-Z%°€$£]{1,3}\.?)?[^\w\s]{0,2}")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
_DATE = re.compile(
    r"(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d\d)"
    r"|\d{4}[-/]\d{1,2}|\d{1,2}[-/]\d{4})(?:[ T]\d{1,2}:\d\d(?::\d\d)?)?"
)
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?:\s?[-–]\s?\d{1,2}:\d\d)?")
_QUANTITY = re.compile(r"(\d{1,9}(?:[.,]\d{1,9})?)\s?%?")
#: What stands in a cell whose value is missing, in some of the languages of `languages`.
_MISSING = frozenset(
    "n/a na nan none null tba tbc tbd unknown pending missing notavailable notapplicable notknown "
    "nodata nd ka keineangabe unbekannt ukjent ukendt okänd inconnu desconocido".split()
)
_LONGEST_MARK = 20  # characters
_MISSING_MARK = re.compile(r"[-–—−?.…]+")
_APART = re.compile(r"[\s.#()\[\]]+")  # between the letters of "n. a."
#: Words that columns and the keys of forms are called by, in some of the languages of `languages`.
_ATTRIBUTES = frozenset(
    (
        "account address age amount answer area author balance birthday born budget built "
        "capacity category chair city class closed code color colour comment company contact "
        "continent cost count country county currency customer date day deadline definition "
        "department deputy description destination director due duration e-mail email employees "
        "end entry example expires extension fax field file floor founded frequency from function "
        "gender grade group hours id index inhabitants invoice isbn item job key kind label "
        "language last length level licence license location manager maximum mayor meaning "
        "measure member minimum mobile model month name nationality no note notes number office "
        "opened order organisation organization owner page parameter parent percent period person "
        "phone place plan population position postcode price priority product project property "
        "quantity question rank rate rating reference region remark remarks result role room "
        "salary school score section serial sex share size source speed stage start state status "
        "store street subject supplier surname symbol task tax team telephone tenant term time "
        "title to total town type unit units until url user value vat version ward website weight "
        "width year zip "
        "adresse alter anzahl art artikel bemerkung betrag datum einheit farbe jahr land menge "
        "nachname nummer ort preis stadt strasse straße telefon titel vorname wert zeit anno "
        "année date dirección fecha nom nombre número numéro pays prix précio precio quantité "
        "antal beløp by dato enhet navn pris rolle sted år "
    ).split()
)


def first_rows(rows: Sequence[Row]) -> list[Row]:
    """The rows that decide: without white space around their texts, all of the same width.

    That is the last column with text, or the last of `WIDEST`.
    """
    stripped = [[cell.strip() for cell in row.cells[:WIDEST]] for row in rows]
    ends = (place + 1 for cells in stripped for place, cell in enumerate(cells) if cell)
    width = max(ends, default=0)
    return [
        row._replace(cells=(cells + [""] * width)[:width])
        for row, cells in zip(rows, stripped, strict=True)
    ]


def locate_header(rows: Sequence[Row], declared: int | None) -> tuple[int, int]:
    """The index of the first row of the header, and the number of its rows."""
    # Some programs mark all rows as a header that is repeated on each page
    if declared is not None and (declared < len(rows) or declared == 0):
        return 0, declared
    start = _find_table(rows)
    return start, find_header(rows[start:])


def _find_table(rows: Sequence[Row]) -> int:
    """The index of the first row below a preamble, whose rows have one cell where others have
    several.
    """
    widths = list(map(count_cells, rows))
    common = max(Counter(widths).items(), key=lambda pair: (pair[1], pair[0]), default=(1, 0))[0]
    start = 0
    while start + 1 < len(rows) and start < _LONGEST_PREAMBLE:
        is_narrow = widths[start] <= 1 < common and not _names_a_part(rows[start], common)
        if not is_narrow:
            break
        start += 1
    return max(start, _find_names(rows))


def _names_a_part(row: Row, common: int) -> bool:
    """Whether the one cell of a row names the second of two columns, or is merged over several."""
    is_of_two = common == 2 and len(row.cells) == 2
    is_merged = any(row.cells[place] for place in row.covered if place < len(row.cells))
    return not row.cells[0] and (is_of_two or is_merged)


def _find_names(rows: Sequence[Row]) -> int:
    """The index of the row of names above the first row with numbers in most columns of numbers.

    Above it may be notes in several cells, and below it rows whose numbers are missing. 0 if
    numbers do not tell.
    """
    columns = [list(map(cell_kind, column)) for column in _columns(rows)]
    of_numbers = [
        column
        for column in columns
        if 2 * column.count("number") >= len(column) - column.count("empty") > 0
    ]
    counts = [sum(column[n] == "number" for column in of_numbers) for n in range(len(rows))]
    first = next((n for n, count in enumerate(counts) if 2 * count > len(of_numbers)), 0)
    if not 1 < first <= _LONGEST_PREAMBLE or any(counts[:first]):
        return 0
    named = [sum(column[n] in ("text", "mixed") for column in of_numbers) for n in range(first)]
    may_name = [
        n
        for n, count in enumerate(named)
        if 2 * count >= len(of_numbers) and count_cells(rows[n]) > 1 and not _is_data(rows, n)
    ]
    # A row of data may have a text in place of its only number, but hardly of several
    nearest = 1 if len(of_numbers) > 1 else -1
    names = max(
        may_name,
        key=lambda n: (named[n], _are_known(rows[n].cells), count_cells(rows[n]), nearest * n),
        default=0,
    )
    return names - 1 if names and _has_two_levels(rows[names - 1 :]) else names


def _is_data(rows: Sequence[Row], number: int) -> bool:
    """Whether a cell of a row stands again below it in its column, or says that it is missing.

    Not if the whole row stands again below, as a header does.
    """
    own = rows[number].cells
    below = [row.cells for row in rows[number + 1 :] if row.cells != own]
    return any(
        cell and (cell_kind(cell) == "empty" or any(cells[place] == cell for cells in below))
        for place, cell in enumerate(own)
    )


def _columns(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    return list(zip(*(row.cells for row in rows), strict=True))


def heads(lone: Row, rows: Sequence[Row]) -> bool:
    """Whether a row that an empty row parts from those below names their columns."""
    joined = first_rows([lone, *rows])
    width = len(joined[0].cells)
    if count_cells(joined[0]) < max(width - 1, 2) or find_header(joined) != 1:
        return False
    if vote(rows) > 0 or find_header(rows) > 1 or _are_known(rows[0].cells):  # they have a header
        return False
    return vote(joined) > 0 or _are_known(lone.cells)


def find_header(rows: Sequence[Row]) -> int:
    """The number of the first rows that name the columns: 0, 1 or 2.

    A table of one row has none. Two are names of groups of columns above the columns' own names, or
    units below them.
    """
    if len(rows) < 2:
        return 0
    filled = [column for column in _columns(rows) if any(column)]
    if len(filled) == 1:
        return int(_names_one_column(filled[0]))
    if _has_two_levels(rows):
        return 2
    votes = vote(rows)
    if votes:
        return int(votes > 0)
    return int(_looks_like_names(rows))


def _has_two_levels(rows: Sequence[Row]) -> bool:
    return len(rows) > 2 and (_groups_columns(rows) or _has_units(rows))


def _groups_columns(rows: Sequence[Row]) -> bool:
    """Whether the first row names groups of the columns that the second row names."""
    names = list(filter(None, rows[0].cells))
    groups = list(dict.fromkeys(names))
    is_group = len(groups) < len(names) or 2 * len(names) <= sum(map(bool, rows[1].cells))
    has_numbers = any(cell_kind(name) == "number" for name in groups)
    is_year = len(groups) == 1 and _YEAR.fullmatch(groups[0])
    if not is_group or not names or (has_numbers and not is_year and not _are_times(groups)):
        return False
    is_title = count_cells(rows[0]) == 1 and bool(rows[0].cells[0])
    return not is_title and vote(rows[1:]) > 0


def _has_units(rows: Sequence[Row]) -> bool:
    """Whether the second row has units, such as "cm", below the names of columns of numbers.

    The first column, that of the rows' names, has none.
    """
    names = rows[0].cells
    units = rows[1].cells
    if not names[0] or units[0] not in ("", names[0]) or not any(units[1:]):
        return False
    columns = _columns(rows[2:])
    for name, unit, column in list(zip(names, units, columns, strict=True))[1:]:
        is_unit = name and cell_kind(unit) in ("text", "mixed") and _type(column) == "number"
        if unit and not is_unit:
            return False
    return vote([rows[0], *rows[2:]]) > 0


def vote(rows: Sequence[Row]) -> float:
    """How much speaks for the first row as a header; below 0 more speaks against."""
    if len(rows) < 2:
        return 0
    first = rows[0].cells
    if len(first) == 2 and _may_be_pairs(rows):
        return 1 if all(map(_is_attribute, first)) else -1
    if _has_series(rows):
        return 1
    below = zip(first, _columns(rows[1:]), strict=True)
    return sum(
        _vote_of_column(name, column, is_corner=place == 0 and not _are_long(first))
        for place, (name, column) in enumerate(below)
    )


def _may_be_pairs(rows: Sequence[Row]) -> bool:
    """Whether two columns may be keys and values, so that a first row of texts says nothing."""
    body = rows[1:]
    if not rows[0].cells[0] or any(cell_kind(row.cells[0]) == "number" for row in body):
        return False
    return len(body) < 2 or _has_keys(body)


def _vote_of_column(name: str, column: Sequence[str], is_corner: bool) -> float:
    values = _values(column)
    own = cell_kind(name)
    if not values:
        return 0
    if own == "empty" and (is_corner or not name):
        return 0.5 if is_corner else 0
    if name in column:
        return -1
    kind = _type(values)
    if kind == "number":
        return 1 if own in ("text", "mixed") else -1
    if kind is None or own == "empty":
        return 0
    if kind == "mixed":
        shapes = {_DIGIT.sub("0", cell) for cell in values}
        return -0.5 if _DIGIT.sub("0", name) in shapes else 0.5 * (own == "text")
    repeats = len(values) >= 4 and 2 * len(set(values)) <= len(values)
    return 0.5 if repeats else 0


def _values(column: Sequence[str]) -> list[str]:
    """The cells of a column whose values are not missing."""
    return [cell for cell in column if cell_kind(cell) != "empty"]


def _type(column: Sequence[str]) -> Kind | None:
    """The type of most values of a column; None if it has none."""
    kinds = Counter(map(cell_kind, _values(column)))
    kind, count = kinds.most_common(1)[0] if kinds else (None, 0)
    return kind if count >= MAJORITY * kinds.total() else None


def _looks_like_names(rows: Sequence[Row]) -> bool:
    """Whether a first row of nothing but texts, over texts, looks like names of columns."""
    first = rows[0].cells
    width = len(first)
    names = list(filter(None, first))
    if len(names) < width - 1 or len(set(names)) < len(names):
        return False
    if _are_long(names) or any(cell_kind(name) == "number" for name in names):
        return False
    below = list(zip(first, _columns(rows[1:]), strict=True))[1:]
    is_missing = any(
        cell_kind(name) == "empty" and (name or _type(column) == "number") for name, column in below
    )
    return (width > 2 and not is_missing) or _are_known(first)


def _names_one_column(column: Sequence[str]) -> bool:
    """Whether the first text of one column names the others, which are numbers, or more than one
    below a word like "City". Of other texts, such as lines of notes, the first is a line too.
    """
    name, *cells = filter(None, column)
    values = _values(cells)
    if values and all(cell_kind(value) == "number" for value in values):
        return cell_kind(name) in ("text", "mixed")
    is_word = name[0].isalpha() and ":" not in name and len(name.split()) <= 2
    return is_word and _is_attribute(name) and len(values) > 1 and name not in values


def _has_keys(rows: Sequence[Row]) -> bool:
    """Whether the first of two columns has keys, such as "Owner" or "Name:"."""
    keys = [row.cells[0] for row in rows if row.cells[0]]
    known = sum(key.endswith(":") or _is_attribute(key) for key in keys)
    return 3 * known >= len(keys) > 0


def is_key_value(rows: Sequence[Row]) -> bool:
    """Whether rows without a header are keys, each with its value: "Deputy | Nora Pike"."""
    width = len(rows[0].cells)
    if width % 2 or not width:
        return False
    keys = [cell for row in rows for cell in row.cells[::2] if cell]
    if not keys or any(cell_kind(key) == "number" for key in keys):
        return False
    if all(key.endswith(":") for key in keys):
        return True
    return width == 2 and len(set(keys)) == len(keys)


def _are_long(names: Sequence[str]) -> bool:
    return any(len(name.split()) > _LONGEST_NAME for name in names)


def _are_known(cells: Sequence[str]) -> bool:
    """Whether most texts of a row or column are words that columns are called by."""
    names = list(filter(None, cells))
    return 2 * sum(map(_is_attribute, names)) > len(names)


def _is_attribute(name: str) -> bool:
    """Whether a text is a word, or begins or ends with one, that columns are called by."""
    words = re.findall(r"[^\W\d_]+", name.casefold().replace("_", " "))
    return bool(words) and len(words) <= 4 and bool({words[0], words[-1]} & _ATTRIBUTES)


def _has_series(rows: Sequence[Row]) -> bool:
    """Whether the numbers in the first row name columns: years, dates, or numbers that go up."""
    first = rows[0].cells
    places = [place for place, cell in enumerate(first) if cell_kind(cell) == "number"]
    numbers = [first[place] for place in places]
    if _are_years(numbers):
        return True
    if _are_times(numbers):
        columns = _columns(rows[1:])
        below = [cell for place in places for cell in _values(columns[place])]
        return 3 * sum(bool(_DATE.fullmatch(cell)) for cell in below) < len(below)
    return len(numbers) > 2 and places[0] > 0 and _go_up(rows, slice(places[0], places[-1] + 1))


def _go_up(rows: Sequence[Row], part: slice) -> bool:
    """Whether the numbers in a part of the first row go up, and name the columns below.

    The first data of a table may go up by chance. So the column of rows' names must have a name, or
    the numbers are more than three and as far from one another, unlike those of the rows below.
    """
    steps = [_steps(row.cells[part]) for row in rows]
    if not steps[0] or min(steps[0]) <= 0 or 2 * steps[1:].count(steps[0]) >= len(steps) - 1:
        return False
    corner, *keys = (row.cells[0] for row in rows)
    is_corner = not corner or (_is_attribute(corner) and not _are_known(keys))
    return is_corner or (len(steps[0]) > 2 and len(set(steps[0])) == 1)


def _steps(cells: Sequence[str]) -> list[Fraction]:
    """The differences between the numbers or times in cells; none if they are others."""
    ranks = [rank for cell in cells for rank in _ranks(cell)]
    return [after - before for before, after in pairwise(ranks)] if len(ranks) == len(cells) else []


def _ranks(cell: str) -> list[Fraction]:
    """The number in a cell, or its time in minutes."""
    if time := _TIME.fullmatch(cell):
        return [Fraction(60 * int(time[1]) + int(time[2]))]
    if number := _QUANTITY.fullmatch(cell):
        return [Fraction(number[1].replace(",", "."))]
    return []


def _are_times(numbers: Sequence[str]) -> bool:
    """Whether numbers in a first row are columns for several years or dates."""
    are_dates = len(numbers) > 1 and all(map(_DATE.fullmatch, numbers))
    return _are_years(numbers) or (are_dates and len(set(numbers)) == len(numbers))


def _are_years(numbers: Sequence[str]) -> bool:
    """Whether numbers in a first row are columns for years, one after another."""
    if len(numbers) < 2 or not all(map(_YEAR.fullmatch, numbers)):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(numbers)}
    go_up = len(numbers) > 3 and min(steps) > 0  # some may be left out
    return go_up or (len(steps) == 1 and 0 not in steps)


def cell_kind(cell: str) -> Kind:
    """The type of a cell; dates, times and amounts with a unit are numbers.

    A cell that says that its value is missing is empty: "n/a", "–".
    """
    text = cell.strip()
    if not text or (len(text) <= _LONGEST_MARK and _says_missing(text)):
        return "empty"
    if _NUMBER.fullmatch(text[:60]):
        return "number"
    return "mixed" if _DIGIT.search(text) else "text"


def _says_missing(text: str) -> bool:
    is_mark = _MISSING_MARK.fullmatch(text) is not None
    return is_mark or _APART.sub("", text).casefold() in _MISSING


def count_cells(row: Row) -> int:
    """The number of filled cells; one that is merged over several columns is one."""
    return sum(
        bool(cell.strip()) for place, cell in enumerate(row.cells) if place not in row.covered
    )
