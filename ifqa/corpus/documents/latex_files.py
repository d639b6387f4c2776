"""Reads LaTeX without its commands: headings, lists, tables and text; formulas stay as written.

Files that it includes are not read, and the commands that it defines are not known.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from unicodedata import normalize

from ifqa.corpus.documents.decoding import TextRun, with_ends
from ifqa.corpus.documents.marks import lowered, raised
from ifqa.corpus.documents.numerals import write_number
from ifqa.corpus.documents.spans import SpanCell, make_row, spread_cells
from ifqa.corpus.documents.tables import table_runs

_TOKEN = re.compile(
    r"\\(?:([a-zA-Z@]+)\*?[ \t]*|(.|\n))|(%[^\n]*\n?[ \t]*)|([{}])|(\n)|(~|---?|``|''|\$\$?)"
    r"|[^\\{}%$\n~`'-]+|.",
    re.S,
)
_OPTIONS = re.compile(r"\s?\[[^\]\[\n]{0,500}\]")
_NAME = re.compile(r"\s*\{([a-zA-Z]{1,40}\*?)\}")
_ITEM_LABEL = re.compile(r"\s*\[([^\]\n]{0,200})\]")
_ACCENTED = re.compile(r"\s*(?:\{\s*\\?([a-zA-Z])\s*\}|\\?([a-zA-Z]))")
_VERB = re.compile(r"\*?([^\sa-zA-Z*])([^\n]{0,500}?)\1")
_LEVELS = {
    "title": 1,
    "part": 2,
    "chapter": 3,
    "section": 4,
    "subsection": 5,
    "subsubsection": 6,
    "paragraph": 7,
    "subparagraph": 8,
}
#: Commands whose first arguments are not shown, with the number of these.
_UNSHOWN_ARGUMENTS = {
    **dict.fromkeys(
        "label vspace hspace includegraphics input include bibliography bibliographystyle "
        "usepackage documentclass pagestyle thispagestyle index color textcolor sout st xout href "
        "cellcolor rowcolor graphicspath geometry hypersetup cline cmidrule selectlanguage "
        "setmainfont addbibresource RequirePackage theoremstyle pagenumbering hypertarget "
        "enlargethispage captionsetup lstset newif nocite protect@ colorbox cancel".split(),
        1,
    ),
    **dict.fromkeys(
        "newcommand renewcommand providecommand setlength addtolength setcounter addtocounter "
        "newtheorem DeclareMathOperator definecolor multirow rule titleformat".split(),
        2,
    ),
    **dict.fromkeys(("newenvironment", "renewenvironment"), 3),
}
_REFERENCES = frozenset(
    "ref eqref pageref autoref nameref cref Cref cite citep citet citeauthor citeyear parencite "
    "textcite autocite footcite".split()
)
_SYMBOLS = {
    "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø", "O": "Ø", "aa": "å",
    "AA": "Å", "l": "ł", "L": "Ł", "i": "i", "j": "j", "S": "§", "P": "¶", "dag": "†",
    "ldots": "…", "dots": "…", "textellipsis": "…", "textendash": "–", "textemdash": "—",
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textbar": "|",
    "textless": "<", "textgreater": ">", "textdegree": "°", "textbullet": "•", "euro": "€",
    "EUR": "€", "pounds": "£", "copyright": "©", "textregistered": "®", "texttrademark": "™",
    "LaTeX": "LaTeX", "TeX": "TeX", "quad": " ", "qquad": " ", "today": "", "textquotedbl": '"',
    "textquoteleft": "‘", "textquoteright": "’", "textsection": "§", "slash": "/", "space": " ",
}  # fmt: skip
_TIES = {"~": "\xa0", "--": "–", "---": "—", "``": "“", "''": "”"}
_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304",
    ".": "\u0307", "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "r": "\u030a",
    "k": "\u0328", "d": "\u0323", "b": "\u0331",
}  # fmt: skip
_LISTS = {"itemize": "", "enumerate": "1", "description": "", "compactitem": "", "compactenum": "1"}
_STYLES = ("1", "a", "i", "A")
_MATH = frozenset(
    "equation align gather multline eqnarray displaymath math flalign alignat dmath".split()
)
_VERBATIM = frozenset("verbatim Verbatim lstlisting minted alltt".split())
_UNSHOWN = frozenset("comment tikzpicture picture filecontents CCSXML".split())
_TABLES = frozenset("tabular tabularx tabulary longtable supertabular array tblr".split())
_WIDE_TABLES = frozenset(("tabular*", "tabularx", "tabulary"))  # their width stands first
_POSITION = re.compile(r"\A\s*\[[^\]\n]{0,40}\]")
_RULES = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfirsthead|endfoot|endlastfoot|"
    r"(?:cline|cmidrule)(?:\([a-z]{0,4}\))?\s*\{[^{}\n]{0,40}\})(?![a-zA-Z])"
)
_ABOVE_ROW = re.compile(rf"(?:\s|{_RULES.pattern})*")
_ROW_END = re.compile(r"\\\\(?:\*|\[[^\]\n]{0,40}\])?|\\tabularnewline(?![a-zA-Z])")
_COLUMN_END = re.compile(r"(?<!\\)&")
_MERGED = re.compile(r"\s*\\multicolumn\s*\{\s*(\d{1,4})\s*\}\s*\{[^{}]{0,200}\}")
_MERGED_ROWS = re.compile(
    r"\s*\\multirow(?:\[[^\]\n]{0,20}\])?\s*\{\s*(\d{1,4})\s*\}\s*(?:\[[^\]\n]{0,20}\])?\s*\{[^{}]{0,60}\}"
)
_BLANK = re.compile(r"[ \t]*(?:\n|\Z)")
_LABEL = re.compile(r"\\label\{[^{}\n]{0,100}\}")
_COMMENT = re.compile(r"(?<!\\)%[^\n]*\n?")
_DEEPEST = 500  # groups within one another


def read_latex(text: str) -> Iterator[TextRun]:
    """The text of LaTeX: of the document, with its title, or of a part without a beginning."""
    yield from _Reader(text.replace("\r\n", "\n").replace("\r", "\n")).runs()


@dataclass(slots=True)
class _Group:
    """An open group in braces; `kind` says what becomes of its text, empty if it is just text."""

    kind: str
    line: int = 0
    pieces: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)  # the kinds of the groups after it


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.pieces: list[str] = []  # of the line
        self.begun = 0  # the line that they begin in
        self.opens = True
        self.item = False
        self.groups: list[_Group] = []
        self.lost = 0  # open groups that are too deep
        self.waiting: list[str] = []  # the kinds of the next groups
        self.lists: list[tuple[str, int]] = []  # style and last number of each
        self.ready: list[TextRun] = []
        self.paragraph_end = -1  # at or after `at`, once it is needed
        self.endless: set[str] = set()  # ends that are not found any more
        start = re.search(r"\\begin\s*\{document\}", text)
        self.preamble_end = start.start() if start else 0

    def runs(self) -> Iterator[TextRun]:
        while self.at < len(self.text):
            token = _TOKEN.match(self.text, self.at)
            assert token is not None
            self.at = token.end()
            self._read(token)
            self.line += token[0].count("\n")
            if self.ready:
                yield from self.ready
                self.ready = []
        self._end_line()
        yield from self.ready

    def _read(self, token: re.Match[str]) -> None:
        command, escaped, comment, brace, line_end, tie = token.groups()
        if command:
            self._read_command(command)
        elif escaped:
            self._read_escape(escaped)
        elif brace == "{":
            self._open_group()
        elif brace:
            self._close_group()
        elif line_end:
            self._end_line()
            if _BLANK.match(self.text, self.at):
                self.opens = True
                self.item = False
        elif tie in ("$", "$$"):
            self._read_formula(tie)
        elif not comment:
            self._add(_TIES.get(token[0], token[0]))

    # Text

    def _add(self, text: str) -> None:
        if self.waiting and not text.isspace():
            self.waiting = []  # its argument is no group
        if self.groups and self.groups[-1].kind:
            self.groups[-1].pieces.append(text)
        elif self.at > self.preamble_end:
            self.begun = self.begun or self.line
            self.pieces.append(text)

    def _end_line(self) -> None:
        if self.groups and self.groups[-1].kind:
            self.groups[-1].pieces.append(" ")
            return
        text = "".join(self.pieces)
        if text.strip():
            opens = self.opens or self.item
            self.ready.append(TextRun(text, self.begun, opens, item=self.item, last=self.line))
            self.opens = self.item = False
        self.pieces = []
        self.begun = 0

    def _end_paragraph(self) -> None:
        self._end_line()
        self.opens = True

    # Groups

    def _open_group(self) -> None:
        if len(self.groups) >= _DEEPEST:
            self.lost += 1
            return
        kind = self.waiting.pop(0) if self.waiting else ""
        if not kind and self.groups and self.groups[-1].kind:
            kind = "inner"
        self.groups.append(_Group(kind, self.line, waiting=self.waiting))
        self.waiting = []

    def _close_group(self) -> None:
        if self.lost:
            self.lost -= 1
            return
        if not self.groups:
            return
        group = self.groups.pop()
        self.waiting = []
        self._write_group(group, "".join(group.pieces))
        self.waiting = group.waiting
        if self.waiting and (options := _OPTIONS.match(self.text, self.at)):
            self.at = options.end()

    def _write_group(self, group: _Group, text: str) -> None:
        if group.kind == "skip" or not group.kind:
            return
        if group.kind in _LEVELS:
            self._end_paragraph()
            self.ready.append(TextRun(text, group.line, True, _LEVELS[group.kind], last=self.line))
        elif group.kind == "paragraph of its own":
            self._end_paragraph()
            self.ready.append(TextRun(text, group.line, last=self.line))
        elif text.strip():
            self._add(_WRITERS[group.kind](text))

    # Commands

    def _read_escape(self, mark: str) -> None:
        if mark in _ACCENTS and mark.isascii() and not mark.isalpha():
            self._add_accented(_ACCENTS[mark])
        elif mark in "([":
            self._read_formula("\\" + mark)
        elif mark == "\\":
            options = _OPTIONS.match(self.text, self.at)
            self.at = options.end() if options else self.at
            self._add(" ")
        elif mark in ",;:! \n":
            self._add(" " if mark != "!" else "")
        elif mark not in "-/@)]":
            self._add(mark)

    def _add_accented(self, accent: str) -> None:
        letter = _ACCENTED.match(self.text, self.at)
        if letter:
            self.at = letter.end()
            self._add(normalize("NFC", (letter[1] or letter[2]) + accent))

    def _read_command(self, name: str) -> None:
        self.waiting = []
        if name in ("begin", "end"):
            self._read_environment(name)
        elif name == "item":
            self._read_item()
        elif name in ("verb", "lstinline", "mintinline"):
            verb = _VERB.match(self.text, self.at)
            self.at = verb.end() if verb else self.at
            self._add(verb[2] if verb else "")
        elif name in _SYMBOLS:
            self._add(_SYMBOLS[name])
        elif name in _ACCENTS:
            self._add_accented(_ACCENTS[name])
        elif name == "par":
            self._end_paragraph()
        elif name == "def":
            end = self.text.find("{", self.at, self.at + 200)
            self.at = end if end >= 0 else self.at
            self.waiting = ["skip"]
        elif name in ("newline", "linebreak", "hfill", "hskip", "smallskip", "bigskip"):
            self._add(" ")
        else:
            self._await_arguments(name)

    def _await_arguments(self, name: str) -> None:
        """Say what becomes of the next groups."""
        while options := _OPTIONS.match(self.text, self.at):
            self.at = options.end()
        if name in _LEVELS:
            self.waiting = [name]
        elif name in ("caption", "author", "date", "subtitle"):
            self.waiting = ["paragraph of its own"]
        elif name in _REFERENCES:
            self.waiting = ["reference"]
        elif name in _WRITERS:
            self.waiting = [name]
        elif name == "bibitem":
            self._end_paragraph()
            self.item = True
            self.waiting = ["reference"]
        else:
            self.waiting = ["skip"] * _UNSHOWN_ARGUMENTS.get(name, 0)

    # Environments

    def _read_environment(self, border: str) -> None:
        name = _NAME.match(self.text, self.at)
        if name is None:
            return
        self.at = name.end()
        kind = name[1].rstrip("*")
        if kind not in _MATH or border == "end":
            self._end_paragraph()
            self.item = False
        if border == "end":
            if kind in _LISTS and self.lists:
                self.lists.pop()
        elif kind in _LISTS:
            options = _OPTIONS.match(self.text, self.at)
            start = re.search(r"start\s*=\s*(\d{1,6})", options[0]) if options else None
            depth = sum(bool(style) for style, _ in self.lists)
            style = _STYLES[min(depth, 3)] if _LISTS[kind] else ""
            self.lists.append((style, int(start[1]) - 1 if start else 0))
            self.at = options.end() if options else self.at
        elif kind in _MATH:
            self.begun = self.begun or self.line
            self._add(_LABEL.sub("", self._take_until(f"\\end{{{name[1]}}}")))
        elif kind in _VERBATIM:
            self._add_verbatim(self._take_until(f"\\end{{{name[1]}}}"))
        elif kind in _UNSHOWN:
            self._take_until(f"\\end{{{name[1]}}}")
        elif kind in _TABLES:
            self._read_table(name[1])
        else:
            while options := _OPTIONS.match(self.text, self.at):
                self.at = options.end()
            if kind in ("multicols", "minipage", "thebibliography", "wrapfigure"):
                self.waiting = ["skip"] * (2 if kind == "wrapfigure" else 1)

    def _take_until(self, end: str) -> str:
        """The text before `end`, which is taken too; empty if it is not found."""
        found = -1 if end in self.endless else self.text.find(end, self.at)
        if found < 0:
            self.endless.add(end)
            return ""
        taken = self.text[self.at : found]
        self.at = found + len(end)
        self.line += taken.count("\n")
        return taken

    def _add_verbatim(self, text: str) -> None:
        first = self.line - text.count("\n")
        for number, line in enumerate(text.split("\n")):
            if line.strip() and not (number == 0 and line.strip().startswith(("[", "{"))):
                self.ready.append(TextRun(line, first + number, self.opens))
                self.opens = False
        self.opens = True

    def _read_formula(self, mark: str) -> None:
        """A formula as it is written; a "$" without an end in its paragraph is a dollar."""
        end = {"\\(": "\\)", "\\[": "\\]"}.get(mark, mark)
        if self.paragraph_end < self.at:
            found = self.text.find("\n\n", self.at)
            self.paragraph_end = found if found >= 0 else len(self.text)
        key = f"{end}{self.paragraph_end}"
        is_endless = key in self.endless
        found = -1 if is_endless else self.text.find(end, self.at, self.paragraph_end)
        if found < 0:
            self.endless.add(key)
            self._add(mark if mark == "$" else "")
            return
        formula = self.text[self.at : found]
        self.at = found + len(end)
        self._add(f"{mark}{' '.join(formula.split())}{end}")
        self.line += formula.count("\n")

    def _read_item(self) -> None:
        self._end_line()
        self.item = True
        label = _ITEM_LABEL.match(self.text, self.at)
        if label:
            self.at = label.end()
            shown = _plain(label[1])
            is_number = not self.lists or self.lists[-1][0]
            self._add(f"{shown} " if is_number or shown.endswith(":") else f"{shown}: ")
        elif self.lists and self.lists[-1][0]:
            style, number = self.lists[-1]
            self.lists[-1] = style, number + 1
            shown = write_number(number + 1, style)
            self._add(f"({shown}) " if style == "a" else f"{shown}. ")

    # Tables

    def _read_table(self, name: str) -> None:
        first = self.line
        body = self._take_until(f"\\end{{{name}}}")
        if not body:
            return
        body = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), body)
        body = _skip_columns(body, 2 if name in _WIDE_TABLES else 1)
        rows = list[list[SpanCell]]()
        places = list[int]()
        ends = dict[int, int]()
        header = 0
        line = first
        for text in _ROW_END.split(body):
            above = _ABOVE_ROW.match(text)
            begun = line + (above[0].count("\n") if above else 0)
            line += text.count("\n")
            rules = _RULES.findall(text)
            if "\\midrule" in rules or "\\endhead" in rules or "\\endfirsthead" in rules:
                header = header or len(rows)
            cells = [_cell(cell) for cell in _COLUMN_END.split(_RULES.sub("", text))]
            if any(cell.text for cell in cells):
                rows.append(cells)
                places.append(begun)
                ends[begun] = line
        declared = header if 0 < header < len(rows) else None
        shown = map(make_row, places, spread_cells(rows))
        self.ready += with_ends(table_runs(shown, header=declared, has_titles=False), ends)
        self.opens = True


def _skip_columns(body: str, groups: int) -> str:
    """The body of a table without the groups that name its width and columns."""
    for _ in range(groups):
        body = _POSITION.sub("", body)
        depth = 0
        for position, char in enumerate(body if body.lstrip().startswith("{") else ""):
            depth += (char == "{") - (char == "}")
            if char == "}" and not depth:
                body = body[position + 1 :]
                break
    return body


def _cell(text: str) -> SpanCell:
    columns = rows = 1
    if merged := _MERGED.match(text):
        columns = int(merged[1])
        text = text[merged.end() :]
    if merged := _MERGED_ROWS.match(text):
        rows = int(merged[1])
        text = text[merged.end() :]
    return SpanCell(_plain(text), columns, rows)


def _plain(text: str) -> str:
    """A piece of LaTeX without its commands, in one line."""
    if not any(mark in text for mark in "\\{}$~`'%-"):
        return " ".join(text.split())
    return " ".join(" ".join(run.text.split()) for run in _Reader(text).runs())


def _write_note(text: str) -> str:
    return f" ({text.strip()})"


def _write_reference(text: str) -> str:
    return f"[{text.strip()}]"


#: What becomes of the text of a group.
_WRITERS: dict[str, Callable[[str], str]] = {
    "inner": str,
    "reference": _write_reference,
    "footnote": _write_note,
    "thanks": _write_note,
    "textsuperscript": raised,
    "textsubscript": lowered,
}
