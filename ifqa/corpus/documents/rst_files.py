"""Reads reStructuredText as lines, without its markup, with its lists and tables."""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ifqa.corpus.documents.decoding import TextRun, clean_text, split_lines
from ifqa.corpus.documents.html import html_runs
from ifqa.corpus.documents.marks import lowered, note_mark, raised
from ifqa.corpus.documents.rst_tables import (
    GRID_RULE,
    SIMPLE_RULE,
    csv_table_runs,
    find_grid_end,
    grid_runs,
    list_table_runs,
    simple_runs,
)
from ifqa.corpus.documents.text_lines import RULE, Enumerations, rule_below

_RULES = "=-~^\"'`#*+.:_<>"
_BULLET = re.compile(r"\s*[-*+•‣]\s+")
_DIRECTIVE = re.compile(r"\s*\.\.\s+([\w:-]+)::\s*(.*)")
_OPTION = re.compile(r"\s+:([\w-]+):\s*(.*)")
_FIELD = re.compile(r"\s*:([^\s:`][^:`]{0,100}):(?:\s+(.*))?$")
_NOTE = re.compile(r"\s*\.\. \[([^\]\s]{1,40})\]\s+(.*)")
_LINE_BLOCK = re.compile(r"\s*\|\s+(.*)")
_REPLACE = re.compile(r"\.\. \|([^|]{1,100})\| replace:: (.*)")
_SUBSTITUTED = re.compile(r"\|([^|]{1,100})\|")
_SHOWN = frozenset(
    (
        "note warning tip hint important caution attention danger error "
        "admonition topic rubric glossary table list-table csv-table"
    ).split()
)
_VERBATIM = frozenset("code code-block sourcecode parsed-literal prompt highlight".split())
_UNSHOWN = frozenset("raw comment index meta toctree contents".split())
_ROLES: dict[str, Callable[[str], str]] = {
    "sup": raised,
    "superscript": raised,
    "sub": lowered,
    "subscript": lowered,
    "del": lambda text: "",
    "strike": lambda text: "",
}
# "Usage <usage>" shows "Usage", but "CMAKE_<LANG>" has no target
_ROLE = re.compile(
    r":([\w:.+-]{1,40}):`([^`]{1,500}?)(?:(?:\s{1,9}|(?<=[^\W_]))<[^`<>]{1,500}>)?\s{0,9}`"
)
_NOTE_REFERENCE = re.compile(r"\s?\[(#?[\w-]{1,40}|#|\*)\]_(?!\w)")
_MARKUP = (
    (re.compile(r"`([^`<>]{1,500}?)\s*<[^`<>]{1,2000}>`__?"), r"\1"),
    (re.compile(r"``([^`]{1,1000})``"), r"\1"),
    (re.compile(r"`([^`]{1,500})`_?_?"), r"\1"),
    (re.compile(r"(?<!\w)\*{1,2}(?=\S)([^*]{1,1000}?)(?<=\S)\*{1,2}(?!\w)"), r"\1"),
)
_ESCAPE = re.compile(r"\\(?:\s|([^\w\s\\]))")

_TableReader = Callable[[Sequence[str], int, Mapping[str, str]], Iterator[TextRun]]
_TABLE_DIRECTIVES: dict[str, _TableReader] = {
    "list-table": list_table_runs,
    "csv-table": csv_table_runs,
}


def read_rst(text: str) -> Iterator[TextRun]:
    """The lines of reStructuredText.

    Notes and similar directives keep their text; roles keep the text they show.
    """
    lines = split_lines(text)
    if substitutions := {match[1]: match[2] for line in lines if (match := _REPLACE.match(line))}:
        lines = [
            _SUBSTITUTED.sub(lambda match: substitutions.get(match[1], match[0]), line)
            for line in lines
        ]
    yield from _Reader(lines).runs()


class _Reader:
    """Reads the lines one after another; each method starts at `at` and moves it on."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.at = 0  # the index of the next line
        self.levels: list[str] = []  # the rules of the headings so far
        self.opens = True  # whether the next line starts a paragraph
        self.in_options = False  # whether the next line may be an option of a directive
        self.before = 0  # the indent of the line before
        self.verbatim = -1  # the indent above a block of code; -1 outside
        self.numbers = Enumerations()
        self.has_simple_end = True  # whether a simple table may end further down

    def runs(self) -> Iterator[TextRun]:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip():
                self._start_paragraph()
                self.in_options = False
                self.at += 1
            elif 0 <= self.verbatim < _indent(line):
                if not (self.in_options and _OPTION.match(line)):
                    yield TextRun(line, self.at + 1, self.opens)
                    self.opens = False
                self.at += 1
            else:
                self.verbatim = -1
                yield from self._read_block(line)

    def _start_paragraph(self) -> None:
        self.opens = True

    def _read_block(self, line: str) -> Iterator[TextRun]:
        number = self.at + 1
        if rule := rule_below(self.lines, number, _RULES):
            if rule not in self.levels:
                self.levels.append(rule)
            yield TextRun(strip_markup(line), number, True, self.levels.index(rule) + 1)
            self._start_paragraph()
            self.at += 2
        elif GRID_RULE.fullmatch(line):
            yield from self._read_grid()
        elif SIMPLE_RULE.fullmatch(line) and self.has_simple_end:
            yield from self._read_simple_table()
        elif RULE.fullmatch(line) or SIMPLE_RULE.fullmatch(line):
            self._start_paragraph()
            self.at += 1
        elif line.lstrip().startswith(".."):
            yield from self._read_explicit(line)
        elif self.in_options and _OPTION.match(line):
            self._start_paragraph()
            self.at += 1
        else:
            yield from self._read_line(line)

    def _read_grid(self) -> Iterator[TextRun]:
        end = find_grid_end(self.lines, self.at)
        yield from _stripped(grid_runs(self.lines[self.at : end], self.at + 1))
        self._start_paragraph()
        self.at = end

    def _read_simple_table(self) -> Iterator[TextRun]:
        """A simple table ends with a rule above an empty line."""
        end = self.at + 1
        while end < len(self.lines):
            is_last = end + 1 == len(self.lines) or not self.lines[end + 1].strip()
            if is_last and SIMPLE_RULE.fullmatch(self.lines[end]):
                break
            end += 1
        self.has_simple_end = end < len(self.lines)
        if self.has_simple_end:
            yield from _stripped(simple_runs(self.lines[self.at : end + 1], self.at + 1))
            self.at = end
        self._start_paragraph()
        self.at += 1

    def _read_explicit(self, line: str) -> Iterator[TextRun]:
        """A directive, a note, or a comment or target, which are not shown."""
        number = self.at + 1
        if directive := _DIRECTIVE.match(line):
            yield from self._read_directive(line, directive[1].lower(), directive[2])
        elif note := _NOTE.match(line):
            yield TextRun(f"[{note[1]}] {strip_markup(note[2])}", number)
            self.opens = False
            self.at += 1
        elif line.strip() == ".." or line.lstrip().startswith(".. "):
            has_body = self.at + 1 < len(self.lines) and bool(self.lines[self.at + 1].strip())
            self.at = self._find_end(line) if has_body or line.strip() != ".." else self.at + 1
            self._start_paragraph()
        else:
            yield from self._read_line(line)

    def _read_directive(self, line: str, name: str, argument: str) -> Iterator[TextRun]:
        number = self.at + 1
        shown = strip_markup(argument) if name in _SHOWN else ""
        if shown:
            yield TextRun(shown, number)
            self.opens = False
        else:
            self._start_paragraph()
        self.in_options = True
        if name in _TABLE_DIRECTIVES:
            end = self._find_end(line)
            options, first = self._read_options(end)
            read = _TABLE_DIRECTIVES[name]
            try:
                yield from _stripped(read(self.lines[first:end], first + 1, options))
            except csv.Error:
                yield from (TextRun(self.lines[n], n + 1) for n in range(first, end))
            self._start_paragraph()
        elif name in _UNSHOWN:
            end = self._find_end(line)
            if name == "raw" and argument.strip() == "html":
                page = "\n".join(self.lines[self.at + 1 : end])
                above = self.at + 1
                yield from (
                    replace(run, place=run.place + above, last=run.last + above)
                    for run in html_runs(page)
                )
        else:
            if name in _VERBATIM:
                self.verbatim = _indent(line)
            end = self.at + 1
        self.at = end

    def _find_end(self, line: str) -> int:
        """The index after the block that is indented below a line."""
        end = self.at + 1
        while end < len(self.lines):
            below = self.lines[end]
            if below.strip() and _indent(below) <= _indent(line):
                break
            end += 1
        return end

    def _read_options(self, end: int) -> tuple[dict[str, str], int]:
        """The options of a directive, and the index of the line below them."""
        options = dict[str, str]()
        first = self.at + 1
        name = ""
        while first < end and self.lines[first].strip():
            option = _OPTION.match(self.lines[first])
            if option:
                name = option[1].lower()
                options[name] = option[2]
            elif name:
                options[name] += f" {self.lines[first].strip()}"
            else:
                break
            first += 1
        return options, first

    def _read_line(self, line: str) -> Iterator[TextRun]:
        """A line of a paragraph, or the first line of an item, definition or field."""
        number = self.at + 1
        indent = _indent(line)
        starts = self.opens or indent < self.before
        self.before = indent
        self.at += 1
        label, rest = self.numbers.read(line, starts)
        bullet = _BULLET.match(line)
        field = _FIELD.match(line)
        if label:
            text = f"{label} {strip_markup(rest)}"
        elif bullet:
            text = strip_markup(line[bullet.end() :])
        elif field:
            text = f"{strip_markup(field[1])}: {strip_markup(field[2] or '')}"
        elif block := _LINE_BLOCK.match(line):
            yield TextRun(strip_markup(block[1]), number)
            return
        elif starts and self._is_term(indent):
            term = strip_markup(line)
            yield TextRun(term if term.endswith(":") else f"{term}:", number, item=True)
            self.opens = False
            return
        else:
            text = self._read_plain(line, indent)
        is_item = bool(label or bullet or field)
        if text:
            yield TextRun(text, number, self.opens or is_item, item=is_item)
            self.opens = False

    def _read_plain(self, line: str, indent: int) -> str:
        text = strip_markup(line)
        if text.endswith("::"):  # a block of code follows
            below = self.lines[self.at] if self.at < len(self.lines) else ""
            if not below.strip():
                self.verbatim = indent
            return text[:-1].rstrip(":") + ":" if text.strip(":") else ""
        return text

    def _is_term(self, indent: int) -> bool:
        """Whether the next line is the definition of the line before it."""
        below = self.lines[self.at] if self.at < len(self.lines) else ""
        return bool(below.strip()) and _indent(below) > indent


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _stripped(runs: Iterator[TextRun]) -> Iterator[TextRun]:
    """The runs of a table without the markup in their cells."""
    for run in runs:
        row = tuple((_plain(name), _plain(value)) for name, value in run.row)
        yield replace(run, text=strip_markup(run.text), row=row)


def _plain(cell: str) -> str:
    return clean_text(strip_markup(cell))


def strip_markup(line: str) -> str:
    """A line without the marks of emphasis, roles, links and escapes."""
    if "`" in line:
        line = _ROLE.sub(_write_role, line)
    if "]_" in line:
        line = _NOTE_REFERENCE.sub(lambda match: note_mark(f"[{match[1]}]"), line)
    if "`" in line or "*" in line:  # else there is no more markup
        for pattern, replacement in _MARKUP:
            line = pattern.sub(replacement, line)
    if "\\" in line:
        line = _ESCAPE.sub(r"\1", line)
    return line.strip()


def _write_role(match: re.Match[str]) -> str:
    write = _ROLES.get(match[1].rpartition(":")[2])
    return write(match[2]) if write else match[2]
