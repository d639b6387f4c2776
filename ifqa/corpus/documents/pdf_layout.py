"""The lines of a page of a PDF with their places, in points, as the page is shown."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from ifqa.corpus.documents.pdf_characters import NOWHERE, Box, Characters
from ifqa.corpus.documents.pdf_marks import mark_by_place, text_with_marks
from ifqa.corpus.sentences import count_words

# PDFium ends a part of a word with a mark where it joins the word over two lines
_LINE = re.compile("[^\r\n\x02\ufffe]+[\x02\ufffe]?|[\x02\ufffe]")
_OVERLAP = 0.3  # share of the lower height that two pieces of a line have in common
_WIDE = 0.8  # heights of a line: a wider gap may part columns
_MAYBE_WIDE = 0.5  # the same, where the end of the word before is only about known
_SPACE = 0.12  # heights of a line: a wider gap is a space
_WIDEST = 1.35  # of its letters' natural width: that of a line of code
_SAMPLED = 4  # long lines of a page that are looked at for the gap between two columns of prose
_MIDDLE = (0.28, 0.72)  # the part of a line in which that gap is
# Of lines that are put in order
_FEWEST_LINES = 3
_FEWEST_WORDS = 3  # of most of them
_APART = 0.8  # heights of a line from one to the next, at least
_NEAR = 2.0  # heights of a line: a larger gap is between parts of a page
_WORD = re.compile(r"\S{1,40}")
# Widths of the characters of Latin-1 in hundredths of a line's height, roughly
_NARROW = b"iljftI.,;:'!|()[]-/ "
_WIDE_LETTERS = b"mwMW@%"
_CAPITALS = bytes(range(65, 91))


def _width(code: int) -> int:
    if code in _NARROW:
        return 26
    if code in _WIDE_LETTERS:
        return 75
    return 58 if code in _CAPITALS else 47


_WIDTHS = bytes(map(_width, range(256)))


@dataclass(slots=True)
class Span:
    """A piece of a line without a wide gap."""

    text: str
    start: int  # the place of its first character in the page's text
    left: float
    bottom: float
    right: float
    top: float
    opens: bool = True  # whether it begins a line of the file's text

    @property
    def height(self) -> float:
        return self.top - self.bottom

    @property
    def box(self) -> Box:
        return self.left, self.bottom, self.right, self.top


@dataclass(slots=True)
class Line:
    """A line of a page, or a row of a table."""

    text: str
    box: Box = NOWHERE
    #: The pieces of the line between wide gaps; of a row of a table its cells, also the empty ones.
    parts: tuple[str, ...] = ()
    #: Of a row of a table: where its columns begin.
    columns: tuple[float, ...] = ()
    covered: frozenset[int] = frozenset()  # the columns into which the cell to their left is merged

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]


def make_line(spans: Sequence[Span]) -> Line:
    """A line of spans, from left to right."""
    if len(spans) == 1:
        return Line(spans[0].text, spans[0].box, (spans[0].text,))
    box = (
        min(span.left for span in spans),
        min(span.bottom for span in spans),
        max(span.right for span in spans),
        max(span.top for span in spans),
    )
    parts = tuple(span.text for span in spans)
    return Line(" ".join(parts), box, parts)


@dataclass(slots=True)
class _Piece:
    """A stretch of characters on one line, without white space at its ends."""

    start: int
    end: int
    first: Box
    last: Box
    plain: int  # the place of its larger end: the other end may be a superscript

    @property
    def box(self) -> Box:
        """The box of its character `plain`."""
        return self.first if self.plain == self.start else self.last

    @property
    def height(self) -> float:
        box = self.first if self.plain == self.start else self.last
        return box[3] - box[1]

    @property
    def width(self) -> float:
        return self.last[2] - self.first[0]


def read_rows(characters: Characters) -> list[list[Span]]:
    """The lines of a page, each cut at its wide gaps, in the order of `order_rows`."""
    pieces = list(_pieces(characters))
    cuts = _find_cuts(characters, pieces)
    rows: list[list[Span]] = []
    for number, piece in enumerate(pieces):
        gaps = cuts.get(number)
        parts = _split_piece(characters, piece, gaps) if gaps else (piece,)
        spans = [_make_span(characters, part, piece) for part in parts]
        if rows and _continues(rows[-1][-1], spans[0]):
            last = rows[-1].pop()
            spans = [*_join_spans(last, spans[0]), *spans[1:]]
            rows[-1] += spans
        else:
            rows.append(spans)
    return order_rows(rows)


def order_rows(rows: Sequence[list[Span]]) -> list[list[Span]]:
    """The lines of a page in the order of the file's text, but those of a column from the top.

    Some programs draw a page from the bottom up, or its headings last.
    """
    steps = list(pairwise(rows))
    ups = sum(after[0].bottom > before[0].bottom for before, after in steps)
    if 2 * ups > len(steps):
        ordered = _from_the_top(rows)
        if ordered is not None:  # a page without columns
            return ordered
    return [row for column in _columns(rows) for row in _from_the_top(column) or column]


def _columns(rows: Sequence[list[Span]]) -> Iterator[list[list[Span]]]:
    """The lines that follow one another in a column.

    Each is above, below or between the others without a large gap, and a vertical line crosses all.
    """
    column = list[list[Span]]()
    left = right = bottom = top = 0.0
    for row in rows:
        begins = min(span.left for span in row)
        ends = max(span.right for span in row)
        near = _NEAR * row[0].height
        is_near = bottom - row[0].top < near and row[0].bottom - top < near
        if column and is_near and max(left, begins) <= min(right, ends):
            left = max(left, begins)
            right = min(right, ends)
            bottom = min(bottom, row[0].bottom)
            top = max(top, row[0].top)
        else:
            if column:
                yield column
            column = []
            left = begins
            right = ends
            bottom = row[0].bottom
            top = row[0].top
        column.append(row)
    if column:
        yield column


def _from_the_top(rows: Sequence[list[Span]]) -> list[list[Span]] | None:
    """Lines of prose by their heights on the page.

    None if they are few or short, as the labels of a drawing are, if they overlap, so that heights
    do not order them, or if one is not written from left to right.
    """
    if len(rows) < _FEWEST_LINES or median(map(_count_words, rows)) < _FEWEST_WORDS:
        return None
    if any(span.right < span.left or span.height <= 0 for row in rows for span in row):
        return None
    ordered = sorted(rows, key=lambda row: -row[0].bottom)
    are_apart = all(
        above[0].bottom - below[0].bottom > _APART * min(above[0].height, below[0].height)
        for above, below in pairwise(ordered)
    )
    return ordered if are_apart else None


def _count_words(row: Sequence[Span]) -> int:
    return sum(count_words(span.text) for span in row)


def _make_span(characters: Characters, part: _Piece, piece: _Piece) -> Span:
    box = piece.box
    text = text_with_marks(characters, part.start, part.end, piece.plain, box)
    opens = part.start == piece.start
    return Span(text, part.start, part.first[0], box[1], part.last[2], box[3], opens)


def _pieces(characters: Characters) -> Iterator[_Piece]:
    text = characters.text
    for match in _LINE.finditer(text):
        line = match[0]
        start = match.start() + len(line) - len(line.lstrip())
        end = match.start() + len(line.rstrip())
        if start < end:
            last = end - 2 if text[end - 1] in "\x02\ufffe" and end - 1 > start else end - 1
            yield _make_piece(start, end, characters.box(start), characters.box(last))


def _make_piece(start: int, end: int, first: Box, last: Box) -> _Piece:
    is_first_larger = first[3] - first[1] >= last[3] - last[1]
    return _Piece(start, end, first, last, start if is_first_larger else end - 1)


def _find_cuts(
    characters: Characters, pieces: Sequence[_Piece]
) -> dict[int, list[tuple[int, int]]]:
    """Number of a piece -> the white space in it that is a wide gap.

    Each box takes as long as a dozen characters, so only lines are looked at that are wider than
    their text, those beside them, and a few long ones.
    """
    cuts: dict[int, list[tuple[int, int]]] = {}
    looked_at = set[int]()
    waiting = _loose_lines(characters, pieces)
    for number, (piece, after) in enumerate(pairwise(pieces)):
        if after.first[0] > piece.last[2] and _is_beside(piece.box, after.box):
            waiting += range(max(number - 1, 0), min(number + 3, len(pieces)))
    seen = set(waiting)
    long_lines = [
        number
        for number, piece in enumerate(pieces)
        if piece.width > 0.5 * characters.width and number not in seen
    ]
    sample = long_lines[:: max(len(long_lines) // _SAMPLED, 1)][:_SAMPLED]
    found = [number for number in sample if _wide_gaps(characters, pieces[number], *_MIDDLE)]
    waiting += found
    if len(found) * 2 >= _SAMPLED:
        waiting = list(range(len(pieces)))
    while waiting:
        number = waiting.pop()
        if number in looked_at:
            continue
        looked_at.add(number)
        if gaps := _wide_gaps(characters, pieces[number]):
            cuts[number] = gaps
            waiting += [near for near in (number - 1, number + 1) if 0 <= near < len(pieces)]
    return cuts


def _loose_lines(characters: Characters, pieces: Sequence[_Piece]) -> list[int]:
    """The lines that are wider than their letters would be, by a gap or more."""
    text = characters.text
    natural = [_natural_width(text[piece.start : piece.end]) * piece.height for piece in pieces]
    ratios = sorted(
        piece.width / width
        for piece, width in zip(pieces, natural, strict=True)
        if width > 0 and piece.end - piece.start > 3
    )
    usual = min(ratios[len(ratios) // 3], _WIDEST) if ratios else 1.0
    loose = list[int]()
    for number, (piece, width) in enumerate(zip(pieces, natural, strict=True)):
        extra = piece.width - width * usual
        if extra > max(_WIDE * piece.height, 0.15 * piece.width):
            loose.append(number)
    return loose


def _natural_width(text: str) -> float:
    """About the width of a text in heights of its line."""
    return sum(text.encode("latin-1", "replace").translate(_WIDTHS)) / 100


def _wide_gaps(
    characters: Characters, piece: _Piece, low: float = 0.0, high: float = 1.0
) -> list[tuple[int, int]]:
    """Start and end of the white space that is a wide gap, in a part of a piece."""
    text = characters.text[piece.start : piece.end]
    size = len(text)
    start = int(low * size)
    end = int(high * size)
    height = piece.height
    if height <= 0 or ("  " not in text and characters.is_monospaced(piece.start, piece.end)):
        return []
    gaps = list[tuple[int, int]]()
    reached = 0.0  # about where the word before a gap ends, if it is not set wide
    for match in re.finditer(r"\s+", text[start:end]):
        before = start + match.start() - 1
        after = start + match.end()
        if before < 0 or after >= size:
            continue
        left = characters.box(piece.start + after)[0]
        if left - reached > _MAYBE_WIDE * height:
            room = left - characters.box(piece.start + before)[2]
            if room > _WIDE * height:
                gaps.append((piece.start + before + 1, piece.start + after))
        word = _WORD.match(text, after)
        reached = left + _natural_width(word[0]) * height if word else left
    return gaps


def _split_piece(
    characters: Characters, piece: _Piece, gaps: Sequence[tuple[int, int]]
) -> Iterator[_Piece]:
    start = piece.start
    first = piece.first
    for end, after in gaps:
        yield _make_piece(start, end, first, characters.box(end - 1))
        start = after
        first = characters.box(after)
    yield _make_piece(start, piece.end, first, piece.last)


def _continues(before: Span, after: Span) -> bool:
    """Whether a piece that the file has on a line of its own is on the same line, to the right."""
    if not _is_beside(before.box, after.box) or before.text[-1:] in "\x02\ufffe":
        return False
    return after.left >= before.right - _OVERLAP * min(before.height, after.height)


def _is_beside(before: Box, after: Box) -> bool:
    """Whether two boxes are at the same height of a page."""
    common = min(before[3], after[3]) - max(before[1], after[1])
    lower = min(before[3] - before[1], after[3] - after[1])
    return 0 < _OVERLAP * lower < common


def _join_spans(before: Span, after: Span) -> list[Span]:
    """Two pieces of a line: one unless a wide gap is between them."""
    height = max(before.height, after.height)
    gap = after.left - before.right
    if gap > _WIDE * height:
        return [before, after]
    larger = before if before.height >= after.height else after
    parts = [mark_by_place(span.text, span.box, larger.box) for span in (before, after)]
    is_mark = parts[1] != after.text
    joined = (" " if gap > _SPACE * height and not is_mark else "").join(parts)
    return [replace(before, text=joined, right=after.right, bottom=larger.bottom, top=larger.top)]
