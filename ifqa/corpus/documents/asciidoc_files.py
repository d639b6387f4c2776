"""Reads AsciiDoc without its markup: headings, lists, tables and text."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ifqa.corpus.documents.decoding import TextRun, split_lines, with_ends
from ifqa.corpus.documents.marks import lowered, note_mark, raised
from ifqa.corpus.documents.numerals import write_number
from ifqa.corpus.documents.spans import SpanCell, make_row, spread_cells
from ifqa.corpus.documents.tables import table_runs
from ifqa.corpus.documents.text_lines import Enumerations

_HEADING = re.compile(r"(={1,6}|#{1,6})\s+(\S.*)")
_ATTRIBUTE = re.compile(r":!?([\w-]{1,60})!?:(?:\s+(.*))?$")
_REFERENCE = re.compile(r"\{([\w-]{1,60})\}")
_BLOCK_ATTRIBUTES = re.compile(r"\[.{0,300}\]\s*$")
_BLOCK_MACRO = re.compile(
    r"(image|video|audio|include|toc|ifdef|ifndef|ifeval|endif)::(.{0,500}?)\[(.*)\]\s*$"
)
_BULLET = re.compile(r"\s*(?:\*{1,10}|-|•)\s+")
_ORDERED = re.compile(r"\s*(\.{1,5})\s+")
_TERM = re.compile(r"\s*([^\s:][^\n]{0,300}?)(?::{2,4}|;;)(?:\s+(.*))?$")
_TITLE = re.compile(r"\.([^\s.].*)")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):\s+")
_TABLE = re.compile(r"[|,:!]={3,}\s*$")
_CELL = re.compile(r"(?<!\\)(?:(\d{1,4})?(?:\.(\d{1,4}))?([+*]))?[<^>.]{0,4}([adehlmsv])?\|")
_FENCES = {"----": "code", "....": "code", "````": "code", "++++": "pass", "////": "comment"}
_BORDERS = frozenset(("====", "****", "____", "--", "|===", "'''", "<<<", "***", "---"))
_STYLES = ("1", "a", "i", "A", "I")
_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\[\.?line-through\]#{1,2}[^#\n]{1,500}#{1,2}"), ""),
    (re.compile(r"\[[\w.#%-]{1,60}\](?=[#*_`])"), ""),
    (re.compile(r"<<[^<>,\n]{1,200},\s*([^<>\n]{1,300})>>"), r"\1"),
    (re.compile(r"<<([^<>\n]{1,200})>>"), r"\1"),
    (re.compile(r"\[\[[\w.:-]{1,100}\]\]"), ""),
    (re.compile(r"footnote:[\w-]{0,40}\[([^\[\]\n]{1,1000})\]"), r" (\1)"),
    (
        re.compile(r"(?:link|xref|mailto|image|kbd|btn|menu):[^\s\[\]]{0,500}\[([^\[\]\n]{1,300})\]"),
        r"\1",
    ),
    (re.compile(r"https?://[^\s\[\]]{1,2000}\[([^\[\]\n^]{1,300})\^?\]"), r"\1"),
    (re.compile(r"stem:\[([^\[\]\n]{1,500})\]"), r"\1"),
    (re.compile(r"(?<!`)`{1,2}([^`\n]{1,500})`{1,2}"), r"\1"),
    (re.compile(r"(?<!\w)\*{1,2}(?=\S)([^*\n]{1,1000}?)(?<=\S)\*{1,2}(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_{1,2}(?=\S)([^_\n]{1,1000}?)(?<=\S)_{1,2}(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)#{1,2}(?=\S)([^#\n]{1,1000}?)(?<=\S)#{1,2}(?!\w)"), r"\1"),
    (re.compile(r"\^([^\s^~]{1,40})\^"), lambda match: raised(match[1])),
    (re.compile(r"(?<=\w)~([^\s^~]{1,40})~"), lambda match: lowered(match[1])),
    (re.compile(r"<(?:\d{1,3}|\.)>"), lambda match: note_mark(f"[{match[0][1:-1]}]")),
)  # fmt: skip


def read_asciidoc(text: str) -> Iterator[TextRun]:
    """The text of AsciiDoc, without comments, attributes and the files that it includes."""
    yield from _Reader(split_lines(text)).runs()


@dataclass(slots=True)
class _PlacedCell:
    """A cell of a table while its lines are read."""

    first: int  # its lines
    last: int
    texts: list[str]
    columns: int
    rows: int


class _Reader:
    """Reads the lines one after another."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0
        self.opens = True
        self.goes_on = False  # whether the next line is the definition of a term
        self.in_item = False  # whether the line before is the first of an item
        self.attributes: dict[str, str] = {}
        self.block_attributes = ""  # of the next block
        self.counts: list[int] = []  # the last number of each open list
        self.numbers = Enumerations()

    def runs(self) -> Iterator[TextRun]:
        while self.at < len(self.lines):
            line = self.lines[self.at].rstrip()
            self.at += 1
            if not line:
                self.opens = not self.goes_on
            elif line in _FENCES or (
                len(line) > 4 and line[:4] in _FENCES and set(line) == {line[0]}
            ):
                yield from self._read_fenced(line)
            elif _TABLE.fullmatch(line):
                yield from self._read_table(line)
            elif line in _BORDERS or line.startswith("//") or line == "+":
                self.opens = True
            elif attribute := _ATTRIBUTE.match(line):
                self.attributes[attribute[1]] = attribute[2] or ""
            elif _BLOCK_ATTRIBUTES.match(line):
                self.block_attributes = line
                self.opens = True
            else:
                yield from self._read_line(line)

    def _read_fenced(self, fence: str) -> Iterator[TextRun]:
        """A block whose lines are code, a comment, or passed on to HTML."""
        is_code = _FENCES[fence[:4]] == "code"
        self.opens = True
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if line.rstrip() == fence:
                break
            if is_code and line.strip():
                yield TextRun(line, self.at, self.opens)
                self.opens = False
        self.opens = True

    def _read_line(self, line: str) -> Iterator[TextRun]:
        number = self.at
        if heading := _HEADING.match(line):
            self._end_lists()
            yield TextRun(self._shown(heading[2]), number, True, len(heading[1]))
            self.opens = True
            return
        if macro := _BLOCK_MACRO.match(line):
            self.opens = True
            if macro[1] == "image" and macro[3]:
                yield TextRun(self._shown(macro[3].partition(",")[0].strip('"')), number)
            return
        title = _TITLE.match(line)
        if title and self.opens:
            yield TextRun(self._shown(title[1]), number)
            return
        yield from self._read_text(line, number)

    def _read_text(self, line: str, number: int) -> Iterator[TextRun]:
        label, rest = self.numbers.read(line, self.opens)
        starts = self.opens or self.in_item
        ordered = _ORDERED.match(line)
        bullet = _BULLET.match(line)
        term = _TERM.match(line)
        if ordered:
            text = f"{self._next_label(len(ordered[1]))} {line[ordered.end() :]}"
        elif bullet:
            text = line[bullet.end() :]
        elif term and starts:
            text = f"{term[1]}: {term[2] or ''}"
        else:
            text = f"{label} {rest}" if label else line
            if self.opens and not label:
                self._end_lists()
        is_item = bool(ordered or bullet or label or (term and starts))
        shown = self._shown(text.removesuffix(" +"))
        if shown:
            yield TextRun(shown, number, self.opens or is_item, item=is_item)
            self.opens = False
            self.in_item = is_item
            self.goes_on = bool(term and is_item and not term[2])

    def _next_label(self, depth: int) -> str:
        del self.counts[depth:]
        while len(self.counts) < depth:
            self.counts.append(0)
        start = re.search(r"\bstart=\"?(\d{1,6})", self.block_attributes)
        if start and not self.counts[-1]:
            self.counts[-1] = int(start[1]) - 1
        self.block_attributes = ""
        self.counts[-1] += 1
        return f"{write_number(self.counts[-1], _STYLES[depth - 1])}."

    def _end_lists(self) -> None:
        self.counts = []

    def _shown(self, text: str) -> str:
        if "{" in text:
            text = _REFERENCE.sub(lambda match: self.attributes.get(match[1], match[0]), text)
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
        return _ADMONITION.sub(lambda match: f"{match[1].capitalize()}: ", text).strip()

    # Tables

    def _read_table(self, border: str) -> Iterator[TextRun]:
        options = self.block_attributes
        self.block_attributes = ""
        first = self.at
        while self.at < len(self.lines) and self.lines[self.at].rstrip() != border:
            self.at += 1
        lines = self.lines[first : self.at]
        self.at += 1
        self.opens = True
        ends = dict[int, int]()
        if border[0] == ",":
            cells = [
                (n, [SpanCell(cell) for cell in line.split(",")])
                for n, line in enumerate(lines, first + 1)
                if line.strip()
            ]
        else:
            cells = _rows(lines, first + 1, _count_columns(options), ends)
        spread = spread_cells([[self._cell(cell) for cell in row] for _, row in cells])
        has_blank = len(lines) > 1 and bool(lines[0].strip()) and not lines[1].strip()
        has_header = "header" in options or ("%noheader" not in options and has_blank)
        places = [place for place, _ in cells]
        shown = map(make_row, places, spread)
        runs = table_runs(shown, header=1 if has_header else None, has_titles=False)
        yield from with_ends(runs, ends)

    def _cell(self, cell: SpanCell) -> SpanCell:
        return SpanCell(self._shown(cell.text), cell.columns, cell.rows)


def _count_columns(options: str) -> int:
    """The number of columns that the attributes of a table name; 0 if none."""
    named = re.search(r"cols=(?:\"([^\"]{0,300})\"|([^,\]\s]{1,40}))", options)
    if not named:
        return 0
    count = 0
    for part in re.split(r"[,;]", named[1] or named[2]):
        times = re.match(r"\s*(\d{1,3})\*", part)
        count += int(times[1]) if times else 1
    return count


def _rows(
    lines: Sequence[str], place: int, columns: int, ends: dict[int, int]
) -> list[tuple[int, list[SpanCell]]]:
    """The rows of a table: of `columns` columns, or of those of its first line.

    `ends` gets the last line of each row, by the first.
    """
    cells = list[_PlacedCell]()
    by_line = 0
    for number, line in enumerate(lines, start=place):
        marks = list(_CELL.finditer(line))
        before = line[: marks[0].start()] if marks else line
        if before.strip() and cells:
            cells[-1].texts.append(before.strip())
            cells[-1].last = number
        for n, mark in enumerate(marks):
            end = marks[n + 1].start() if n + 1 < len(marks) else len(line)
            text = line[mark.end() : end].strip().replace("\\|", "|")
            times = int(mark[1] or 1) if mark[3] else 1
            copies = min(times, 100) if mark[3] == "*" else 1
            width = times if mark[3] == "+" else 1
            cells += [
                _PlacedCell(number, number, [text], width, int(mark[2] or 1)) for _ in range(copies)
            ]
        by_line = by_line or sum(cell.columns for cell in cells)
    return _fill_rows(cells, max(columns or by_line, 1), ends)


def _fill_rows(
    cells: Sequence[_PlacedCell], columns: int, ends: dict[int, int]
) -> list[tuple[int, list[SpanCell]]]:
    rows = list[tuple[int, list[SpanCell]]]()
    below = dict[int, int]()  # by row: places that cells of the rows above cover
    room = 0
    for cell in cells:
        if room <= 0:
            rows.append((cell.first, []))
            room = columns - below.pop(len(rows) - 1, 0)
        rows[-1][1].append(SpanCell(" ".join(filter(None, cell.texts)), cell.columns, cell.rows))
        ends[rows[-1][0]] = cell.last
        room -= cell.columns
        for row in range(len(rows), len(rows) + min(cell.rows - 1, 100)):
            below[row] = below.get(row, 0) + cell.columns
    return rows
