"""Reads Org files (Emacs) without their markup: headings, lists, tables and text."""

import re
from collections.abc import Callable, Iterator, Sequence

from ifqa.corpus.documents.decoding import TextRun, split_lines
from ifqa.corpus.documents.marks import lowered, note_mark, raised
from ifqa.corpus.documents.tables import table_runs
from ifqa.corpus.documents.text_lines import Enumerations

_HEADING = re.compile(r"(\*{1,50})\s+(.*?)(?:\s+:[\w@#%:]+:)?\s*$")
_KEYWORD = re.compile(r"\s*#\+(\w{1,30}):\s*(.*)")
_BLOCK = re.compile(r"\s*#\+(begin|end)_(\w{1,30})", re.I)
_DRAWER = re.compile(r"\s*:([\w-]{1,40}):\s*$")
_BULLET = re.compile(r"\s*[-+]\s+|\s+\*\s+")
_TERM = re.compile(r"(.{1,200}?)\s+::(?:\s+|$)")
_TABLE_RULE = re.compile(r"\s*\|[-+]+\|?\s*")
_NOTE_TEXT = re.compile(r"\[fn:([\w-]{1,40})\]\s*")
_SHOWN = frozenset("title subtitle author date caption description".split())
_EMPHASIS = r"(?<![^\s\-(\[{'\"])%s(?=\S)([^\n]{1,500}?)(?<=\S)%s(?![^\s\-.,;:!?)\]}'\"])"
_MARKUP: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\[\[[^\[\]\n]{1,2000}\]\[([^\[\]\n]{1,500})\]\]"), r"\1"),
    (re.compile(r"\[\[(?:file:|https?://)?([^\[\]\n]{1,2000})\]\]"), r"\1"),
    (re.compile(r"\[fn:([\w-]{1,40})\]"), lambda match: note_mark(f"[{match[1]}]")),
    (re.compile(_EMPHASIS % (r"\+", r"\+")), ""),  # struck out
    (re.compile(_EMPHASIS % (r"\*", r"\*")), r"\1"),
    (re.compile(_EMPHASIS % ("/", "/")), r"\1"),
    (re.compile(_EMPHASIS % ("=", "=")), r"\1"),
    (re.compile(_EMPHASIS % ("~", "~")), r"\1"),
    (re.compile(_EMPHASIS % ("_", "_")), r"\1"),
    (
        re.compile(r"(?<=[\w)])\^(?:\{([^{}\n]{1,100})\}|([-+]?\w{1,4}))"),
        lambda m: raised(m[1] or m[2]),
    ),
    (re.compile(r"(?<=[\w)])_\{([^{}\n]{1,100})\}"), lambda match: lowered(match[1])),
)


def read_org(text: str) -> Iterator[TextRun]:
    """The text of an Org file, without comments, drawers and the addresses of links."""
    yield from _Reader(split_lines(text)).runs()


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0
        self.opens = True
        self.block = ""  # the open block, in lower case
        self.commented = 0  # the level of the heading of a part that is a comment; 0 outside
        self.numbers = Enumerations()

    def runs(self) -> Iterator[TextRun]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            if border := _BLOCK.match(line):
                is_start = border[1].lower() == "begin"
                self.block = border[2].lower() if is_start else ""
                self.opens = True
            elif self.block in ("src", "example", "verse"):
                yield from self._text(line, verbatim=True)
            elif self.block not in ("comment", "export"):
                yield from self._read(line)

    def _read(self, line: str) -> Iterator[TextRun]:
        heading = _HEADING.match(line)
        if heading:
            yield from self._read_heading(heading)
        elif not self.commented:
            yield from self._read_body(line)

    def _read_heading(self, heading: re.Match[str]) -> Iterator[TextRun]:
        level = len(heading[1])
        if self.commented and level > self.commented:
            return
        self.commented = level if heading[2].startswith("COMMENT") else 0
        self.opens = True
        if not self.commented:
            yield TextRun(_strip_markup(heading[2]), self.at, True, level + 1)

    def _read_body(self, line: str) -> Iterator[TextRun]:
        stripped = line.strip()
        keyword = _KEYWORD.match(line)
        if not stripped or set(stripped) == {"-"}:
            self.opens = True
        elif keyword:
            name = keyword[1].lower()
            if name in _SHOWN and keyword[2]:
                yield TextRun(_strip_markup(keyword[2]), self.at, True, int(name == "title"))
            self.opens = True
        elif stripped == "#" or stripped.startswith("# "):
            self.opens = True
        elif _DRAWER.match(line):
            self._skip_drawer()
        elif stripped.startswith("|"):
            yield from self._read_table()
        else:
            yield from self._text(line)

    def _skip_drawer(self) -> None:
        """Skip a drawer, which ends above the next heading if its end is missing."""
        while self.at < len(self.lines) and not _HEADING.match(self.lines[self.at]):
            self.at += 1
            if self.lines[self.at - 1].strip().lower() == ":end:":
                return

    def _read_table(self) -> Iterator[TextRun]:
        rows = list[tuple[int, list[str]]]()
        header = 0
        self.at -= 1
        while self.at < len(self.lines) and self.lines[self.at].lstrip().startswith("|"):
            line = self.lines[self.at]
            self.at += 1
            if _TABLE_RULE.fullmatch(line):
                header = header or len(rows)
            else:
                cells = line.strip().strip("|").split("|")
                rows.append((self.at, [_strip_markup(cell) for cell in cells]))
        declared = header if 0 < header < len(rows) else None
        yield from table_runs(rows, header=declared, has_titles=False)
        self.opens = True

    def _text(self, line: str, verbatim: bool = False) -> Iterator[TextRun]:
        label, rest = ("", "") if verbatim else self.numbers.read(line, self.opens)
        bullet = None if verbatim else _BULLET.match(line)
        note = _NOTE_TEXT.match(line)
        if bullet:
            rest = line[bullet.end() :]
            term = _TERM.match(rest)
            text = f"{term[1]}: {rest[term.end() :]}" if term else rest
        elif note:
            text = f"[{note[1]}] {line[note.end() :]}"
        else:
            text = f"{label} {rest}" if label else line
        is_item = bool(label or bullet)
        shown = text if verbatim else _strip_markup(text)
        if shown.strip():
            yield TextRun(shown, self.at, self.opens or is_item or bool(note), item=is_item)
            self.opens = False


def _strip_markup(text: str) -> str:
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()
