"""Decides which rows of a table, of any format, are its header.

What the format declares (HTML's <th>, Markdown) is taken. Otherwise the types of the cells and
repetition decide: over a column of numbers a text is its name, and a value that stands again below
it is none.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

Kind = Literal["empty", "number", "mixed", "text"]

_LONGEST_PREAMBLE = 20  # rows
MAJORITY = 2 / 3  # of the cells of a column; then it has a type
_LONGEST_NAME = 8  # words of a column's name, where nothing but its look decides
_NUMBER = re.compile(r"[^\w\s]{0,3}\s?\d[\d\s.,:/'’–-]*(?:[a-zA-Z%°€$£]{1,3}\.?)?[^\w\s]{0,2}")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"(?:1[5-9]|20)\d\d")
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


def locate_header(cells: Sequence[Sequence[str]], declared: int | None) -> tuple[int, int]:
    """The index of the first row of the header, and the number of its rows."""
    # Some programs mark all rows as a header that is repeated on each page
    if declared is not None and (declared < len(cells) or declared == 0):
        return 0, declared
    start = _find_table(cells)
    return start, find_header(cells[start:])


def _find_table(cells: Sequence[Sequence[str]]) -> int:
    """The index of the first row below a preamble, whose rows have one cell where others have
    several.
    """
    widths = list(map(count_cells, cells))
    common = max(Counter(widths).items(), key=lambda pair: (pair[1], pair[0]), default=(1, 0))[0]
    start = 0
    while start + 1 < len(cells) and start < _LONGEST_PREAMBLE:
        is_narrow = widths[start] <= 1 < common and not _is_index_header(cells[start], common)
        if not is_narrow:
            break
        start += 1
    return max(start, _find_names(cells))


def _find_names(cells: Sequence[Sequence[str]]) -> int:
    """The index of the row of names above the first row with numbers in most columns of numbers.

    Above it may be notes in several cells. 0 if numbers do not tell.
    """
    width = max(map(len, cells))
    columns = [[row[n].strip() if n < len(row) else "" for row in cells] for n in range(width)]
    kinds = [list(map(cell_kind, column)) for column in columns]
    of_numbers = [
        column
        for column in kinds
        if 2 * column.count("number") >= len(column) - column.count("empty") > 0
    ]
    counts = [sum(column[n] == "number" for column in of_numbers) for n in range(len(cells))]
    first = next((n for n, count in enumerate(counts) if 2 * count > len(of_numbers)), 0)
    if not 1 < first <= _LONGEST_PREAMBLE or any(counts[:first]):
        return 0
    names = first - 1
    while names and count_cells(cells[names]) == 1:  # a title of rows
        names -= 1
    has_groups = names > 0 and _groups_columns(cells[names - 1 :])
    return names - 1 if has_groups else names


def _is_index_header(row: Sequence[str], common: int) -> bool:
    """Whether a row of one name is the header of two columns, whose first has no name."""
    return common == 2 and len(row) == 2 and not row[0].strip()


def find_header(cells: Sequence[Sequence[str]]) -> int:
    """The number of the first rows that name the columns: 0, 1 or 2.

    A table of one row has none. Two are a row over groups of columns and the names below it.
    """
    if len(cells) < 2:
        return 0
    if _groups_columns(cells):
        return 2
    votes = vote(cells)
    if votes:
        return int(votes > 0)
    return int(_looks_like_names(cells))


def _groups_columns(cells: Sequence[Sequence[str]]) -> bool:
    """Whether the first row names groups of the columns that the second row names."""
    if len(cells) < 3:
        return False
    first, second = ([cell.strip() for cell in row] for row in cells[:2])
    names = list(filter(None, first))
    is_group = len(set(names)) < len(names) or 2 * len(names) <= sum(map(bool, second))
    has_numbers = any(cell_kind(name) == "number" for name in names)
    if not is_group or not names or (has_numbers and not _are_years(list(dict.fromkeys(names)))):
        return False
    is_single = len(set(names)) == 1 and len(names) == len(first)  # a title over the whole width
    return not is_single and vote(cells[1:]) > 0


def vote(cells: Sequence[Sequence[str]]) -> float:
    """How much speaks for the first row as a header; below 0 more speaks against."""
    if len(cells) < 2:
        return 0
    first = cells[0]
    body = cells[1:]
    width = max(map(len, cells))
    if width == 2 and _may_be_pairs(first, body):
        return _vote_of_pairs(cells)
    if _are_years([cell for cell in first if cell_kind(cell) == "number"]):
        return 1
    votes = 0.0
    for place, name in enumerate(first):
        column = [row[place].strip() for row in body if place < len(row) and row[place].strip()]
        votes += _vote_of_column(name.strip(), column, is_first=place == 0)
    return votes


def _may_be_pairs(first: Sequence[str], body: Sequence[Sequence[str]]) -> bool:
    """Whether two columns may be keys and values, so that a first row of texts says nothing."""
    if not first[0].strip() or any(cell_kind(row[0]) == "number" for row in body if row):
        return False
    return len(body) < 2 or _has_keys(body)


def _vote_of_pairs(cells: Sequence[Sequence[str]]) -> float:
    """The vote of a table of two columns that may be keys and values."""
    names = [cell.strip().casefold() for cell in cells[0]]
    return 1 if len(names) == 2 and all(_is_attribute(name) for name in names) else -1


def _vote_of_column(name: str, column: Sequence[str], is_first: bool) -> float:
    if not column:
        return 0
    if not name:
        return 0.5 if is_first else 0  # a corner without a name
    kinds = Counter(map(cell_kind, column))
    kind, count = kinds.most_common(1)[0]
    own = cell_kind(name)
    if name in column:
        return -1
    if count < MAJORITY * len(column):
        return 0
    if kind == "number":
        return -1 if own == "number" else 1
    if kind == "mixed":
        shapes = {_DIGIT.sub("0", cell) for cell in column}
        return -0.5 if _DIGIT.sub("0", name) in shapes else 0.5 * (own == "text")
    repeats = len(column) >= 4 and 2 * len(set(column)) <= len(column)
    return 0.5 if repeats else 0


def _looks_like_names(cells: Sequence[Sequence[str]]) -> bool:
    """Whether a first row of nothing but texts, over texts, looks like names of columns."""
    names = [cell.strip() for cell in cells[0]]
    width = max(map(len, cells))
    filled = list(filter(None, names))
    if width == 1:
        return _is_attribute(names[0])
    if len(filled) < width - 1 or len(set(filled)) < len(filled):
        return False
    if any(cell_kind(name) == "number" or len(name.split()) > _LONGEST_NAME for name in filled):
        return False
    known = sum(_is_attribute(name) for name in filled)
    return width > 2 or 2 * known > len(filled)


def _has_keys(body: Sequence[Sequence[str]]) -> bool:
    """Whether the first of two columns has keys, such as "Owner" or "Name:"."""
    keys = [row[0].strip() for row in body if row and row[0].strip()]
    known = sum(key.endswith(":") or _is_attribute(key) for key in keys)
    return 3 * known >= len(keys) > 0


def is_key_value(cells: Sequence[Sequence[str]]) -> bool:
    """Whether rows without a header are keys, each with its value: "Deputy | Nora Pike"."""
    width = max(map(len, cells), default=0)
    if width % 2 or not width:
        return False
    keys = [cell.strip() for row in cells for cell in row[::2] if cell.strip()]
    if not keys or any(cell_kind(key) == "number" for key in keys):
        return False
    if all(key.endswith(":") for key in keys):
        return True
    return width == 2 and len(set(keys)) == len(keys)


def _is_attribute(name: str) -> bool:
    """Whether a text is a word, or begins or ends with one, that columns are called by."""
    words = re.findall(r"[^\W\d_]+", name.casefold().replace("_", " "))
    return bool(words) and len(words) <= 4 and bool({words[0], words[-1]} & _ATTRIBUTES)


def _are_years(numbers: Sequence[str]) -> bool:
    """Whether numbers in a first row are columns for years, one after another."""
    stripped = [number.strip() for number in numbers]
    if len(stripped) < 2 or not all(map(_YEAR.fullmatch, stripped)):
        return False
    steps = {int(after) - int(before) for before, after in pairwise(stripped)}
    return len(steps) == 1 and 0 not in steps


def cell_kind(cell: str) -> Kind:
    """The type of a cell; dates, times and amounts with a unit are numbers."""
    text = cell.strip()
    if not text:
        return "empty"
    if _NUMBER.fullmatch(text[:60]):
        return "number"
    return "mixed" if _DIGIT.search(text) else "text"


def count_cells(row: Sequence[str]) -> int:
    """The number of filled cells; one that is merged over the whole width is one."""
    if len(set(row)) == 1 and row[0].strip():
        return 1
    return sum(bool(cell.strip()) for cell in row)
