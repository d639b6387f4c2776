"""Removes page numbers, running heads and contents pages from the lines of a PDF.

A running head stands apart from the text at the top or bottom of its page, and it is the same on
other pages, or has the page's number. A number that is a name of something, as in "Invoice number
1001", is text even if it grows by one from page to page.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from ifqa.corpus.documents.chunking import ENDED
from ifqa.corpus.documents.pdf_layout import Line

_EDGE = 3  # rows at a page's top and bottom that may be its running head or foot
_FEWEST_PAGES = 4  # of a document; then a line at the edge of half of its pages is a running head
_CHAPTER = 3  # neighbouring pages with the same line at their edge: a chapter's running head
_APART = 1.25  # usual distances of lines: from a running head to the text there is more
_SMALLER = 0.93  # heights of the text: a running head of this height needs no such distance
_LARGER = 1.12  # heights of the text: that of a title
_SAME_ROW = 0.5  # heights of a line
_LONGEST = 1_000  # characters of a line that may end in leaders; the pattern takes quadratic time
_LONGEST_NUMBER = 40  # characters of a page number with its words
_LEADERS = re.compile(r"(?:[.·…] ?){4,}\s*(?:\d+|[ivxlc]+)?$")  # "1.2 The wheel . . . . . 17"
_PAGE_AT_END = re.compile(r"\s(?:\d+|[ivxlc]+)$")  # "1 Welcome 3"
#: "17", "- 17 -", "Page 17 of 20", "A-17", "xvii"
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|pp?\.?|seite|s\.|página|pagina|pág\.|sida|side|sivu|strona|str\.|стр\.?|第)\s*)?"
    r"(?P<chapter>(?:[A-Z]|\d{1,2})[-–.])?(?P<number>\d{1,5}|[ivxlc]+)"
    r"(?:\s*(?:of|/|von|de|sur|av|af|di|van|из)\s*\d+)?\s*[页頁]?\W*",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s[|•·–—-]\s")  # "Annual report | 17"
#: Words before the number of something else than a page.
_LABEL = re.compile(
    r"(?i)(?::|\b(?:number|no\.?|nr\.?|nummer|numéro|número|id|code|invoice|rechnung|facture|order|"
    r"receipt|ticket|room|card|customer|account|case|file|figure|table|question|part))\s*$"
)
_LETTER = re.compile(r"[^\W\d_]")
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True)
class Page:
    """The lines of a page in their order, and its size in points."""

    lines: Sequence[Line]
    width: float = 0.0
    height: float = 0.0
    has_picture: bool = False  # only looked at if it has few lines


@dataclass(frozen=True, slots=True)
class _Edge:
    """A row at the edge of a page that may be a running head."""

    lines: tuple[int, ...]  # places in the page
    keys: frozenset[tuple[str, int | None]]
    depth: int  # 0 for the outermost row
    is_top: bool
    is_apart: bool
    is_title: bool
    is_number: bool  # nothing but a page number, perhaps that of another page
    is_page_number: bool  # that of its page, counted from the file's first

    @property
    def may_be_head(self) -> bool:
        """Whether it may be a running head if it is repeated."""
        return self.is_apart or (self.is_number and self.depth == 0)


def drop_running_heads(pages: Sequence[Page], may_be_letter: bool = True) -> list[list[Line]]:
    """The lines of each page without its page number and running heads.

    On the first page, running heads are kept if they may be a letter's head. If all lines were
    running heads, all are kept, unless they are numbers.
    """
    edges = [list(_edges(page, number)) for number, page in enumerate(pages)]
    places: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    for number, rows in enumerate(edges):
        for key in {key for row in rows if row.may_be_head for key in row.keys}:
            places[key].append(number)
    repeated = {key: _repeated_pages(numbers, len(pages)) for key, numbers in places.items()}
    kept = list[list[Line]]()
    for number, (page, rows) in enumerate(zip(pages, edges, strict=True)):
        dropped = set[int]()
        numbered = False  # each page has one number
        for row in sorted(rows, key=lambda row: (not row.is_number, row.depth)):
            heads = {key for key in row.keys if number in repeated.get(key, ())}
            if numbered:
                heads = {(text, offset) for text, offset in heads if offset is None}
            if not _is_running_head(row, heads):
                continue
            numbered = numbered or any(offset is not None for _, offset in heads)
            is_first = may_be_letter and number == 0
            if not (is_first and _is_letterhead(row, heads, page)):
                dropped.update(row.lines)
        kept.append([line for at, line in enumerate(page.lines) if at not in dropped])
    if any(kept) or not any(_LETTER.search(line.text) for page in pages for line in page.lines):
        return kept
    return [list(page.lines) for page in pages]


def _is_running_head(row: _Edge, heads: set[tuple[str, int | None]]) -> bool:
    if not row.may_be_head or (row.is_title and not row.is_number):
        return False
    if row.is_page_number:
        return True
    has_number = any(offset is not None for _, offset in heads)
    return has_number or (bool(heads) and len(heads) >= len(row.lines))


def _is_letterhead(row: _Edge, heads: set[tuple[str, int | None]], page: Page) -> bool:
    """Whether the words of a running head can be kept on its page: they split no sentence."""
    if row.is_page_number or any(offset is not None for _, offset in heads):
        return False
    before = page.lines[min(row.lines) - 1].text if min(row.lines) else "."
    return row.is_top or bool(ENDED.search(before[-10:]))


def _edges(page: Page, number: int) -> Iterator[_Edge]:
    """The rows at the top and bottom of a page, from its edges inwards."""
    rows = _rows(page.lines)
    bottoms = [min(page.lines[at].box[1] for at in row) for row in rows]
    distances = [above - below for above, below in pairwise(bottoms)]
    usual = median(distances) if distances else 0.0
    heights = [page.lines[at].height for row in rows for at in row]
    body = median(heights) if heights else 0.0
    is_slide = page.width > page.height
    half = -(-len(rows) // 2)
    for is_top in (True, False):
        ordered = rows[:half] if is_top else rows[::-1][: len(rows) - half]
        gaps = distances if is_top else distances[::-1]
        apart = [
            depth
            for depth in range(min(_EDGE, len(ordered)))
            if depth >= len(gaps) or gaps[depth] > _APART * usual
        ]
        for depth, row in enumerate(ordered[:_EDGE]):
            lines = [page.lines[at] for at in row]
            height = max(line.height for line in lines)
            limit = 0.97 if is_slide else _LARGER
            yield _Edge(
                tuple(row),
                frozenset(key for line in lines for key in _keys(line, number)),
                depth,
                is_top,
                depth <= max(apart, default=-1) or height < _SMALLER * body,
                is_top and len(rows) > 1 and height > limit * body,
                *_number_of_row(lines, number),
            )


def _rows(lines: Sequence[Line]) -> list[list[int]]:
    """The places of the lines on each row of a page, from the top; a row may have several lines."""
    order = sorted(range(len(lines)), key=lambda at: (-lines[at].box[1], lines[at].box[0]))
    rows: list[list[int]] = []
    for at in order:
        line = lines[at]
        if rows and lines[rows[-1][0]].box[1] - line.box[1] < _SAME_ROW * line.height:
            rows[-1].append(at)
        else:
            rows.append([at])
    return rows


def _keys(line: Line, page: int) -> Iterator[tuple[str, int | None]]:
    """What a running head has in common with that of other pages: its text, or its page number's
    distance from the page's place in the file.
    """
    yield line.text, None
    label = ""
    for part in _parts(line):
        number = _page_number(part)
        if number and not _LABEL.search(label):
            yield number[0], number[1] - page
        label = part


def _number_of_row(lines: Sequence[Line], page: int) -> tuple[bool, bool]:
    """Whether a row is nothing but a page number, and whether it is that of its page."""
    text = " ".join(line.text for line in lines)
    number = _page_number(text)
    return number is not None, number == ("#", page + 1) and any(map(str.isdecimal, text))


def _parts(line: Line) -> list[str]:
    return [part for piece in line.parts for part in _SEPARATOR.split(piece[:_LONGEST])]


def _page_number(part: str) -> tuple[str, int] | None:
    """The number in a text that is only a page number, and what stands beside it."""
    match = _PAGE_NUMBER.fullmatch(part) if len(part) <= _LONGEST_NUMBER else None
    if match is None:
        return None
    digits = match["number"]
    around = f"{match['chapter'] or ''}#"
    return around, int(digits) if digits.isdecimal() else _roman(digits.lower())


def _roman(numeral: str) -> int:
    digits = [_ROMAN[letter] for letter in numeral]
    pairs = zip(digits, [*digits[1:], 0], strict=True)
    return sum(-digit if digit < after else digit for digit, after in pairs)


def _repeated_pages(numbers: Sequence[int], pages: int) -> frozenset[int]:
    """The pages on which what they have in common is of a running head."""
    if pages >= _FEWEST_PAGES and len(numbers) * 2 >= pages:
        return frozenset(numbers)
    repeated = set[int]()
    run = list[int]()
    for number in [*numbers, pages + _CHAPTER]:
        if run and number - run[-1] > 2:  # left and right pages may differ
            repeated |= set(run) if len(run) >= _CHAPTER else set()
            run = []
        run.append(number)
    return frozenset(repeated)


def drop_contents(lines: Sequence[Line]) -> list[Line]:
    """Remove the lines of a table of contents.

    From a third of the page on, also those between, and a rest without a sentence.
    """
    entries = [at for at, line in enumerate(lines) if _LEADERS.search(line.text[-_LONGEST:])]
    if not entries:
        return list(lines)
    if len(entries) < max(3, len(lines) / 3):
        return [line for at, line in enumerate(lines) if at not in set(entries)]
    around = [
        line
        for line in [*lines[: entries[0]], *lines[entries[-1] + 1 :]]
        if not _PAGE_AT_END.search(line.text)
    ]
    return around if any(" " in line.text and ENDED.search(line.text) for line in around) else []
