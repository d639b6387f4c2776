"""Collects the text of a page from its tags and texts, with its headings, lists and tables."""

import re
from collections.abc import Callable, Set
from dataclasses import dataclass, field
from html import unescape

from ifqa.corpus.documents.decoding import TextRun
from ifqa.corpus.documents.html_lists import DEEPEST_LISTS, OpenList, start_list
from ifqa.corpus.documents.html_skipped import BLOCKS, Skipped
from ifqa.corpus.documents.html_tables import LAYOUT_BLOCKS, Line, Table
from ifqa.corpus.documents.html_tokens import VOID, Token, is_self_closing, parse_attributes
from ifqa.corpus.documents.marks import lowered, note_mark, raised, ruby
from ifqa.corpus.documents.mathml import Formula
from ifqa.corpus.sentences import count_words

#: Elements within a word or beside it, which do not separate the text around them.
INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark math nobr q "
    "rb rp rt rtc ruby s samp small span strike strong sub sup time tt u var wbr".split()
)
# Elements that separate words but not paragraphs
_APART = frozenset(
    "audio br button canvas datalist iframe img input meter object optgroup option output "
    "progress select svg textarea tspan video".split()
)
_UNREAD = frozenset(
    "annotation audio button canvas datalist del object rp s script strike style template "
    "video iframe".split()
)
_STRUCK = frozenset("del s strike".split())
_UNSEEN = frozenset(("script", "style", "template"))  # elements without a box, within a word
# Elements that may be left out, if they end and others have text
_MENUS = frozenset("nav header footer aside form noscript".split())
_MENU_ROLES = frozenset("navigation banner contentinfo search menu menubar".split())
_STRUCK_OR_HIDDEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*hidden|text-decoration(?:-line)?\s*:[^;]*line-through",
    re.I,
)
_NOTE = re.compile(r"(?:foot|end|rear)note|\brole\s*=\s*[\"']?note", re.I)
_NOTE_REFERENCE = re.compile(
    r"(?:^|[\s-])(?:noteref|(?:foot|end)note-?(?:ref|reference|anchor)|fnref|reference)(?:\s|$)",
    re.I,
)
_BACK_LINK = re.compile(
    r"(?:^|\s)(?:headerlink|(?:footnote-?)?back-?(?:ref|link)|footnote-back)(?:\s|$)", re.I
)
_BACK = "back"  # the name of the mark that is a link from a note to its place
_NOTE_LENGTH = 12  # characters of a note's number or sign
_TEXT_INPUTS = frozenset("text email tel url number date time month week datetime-local".split())
HIDDEN = "struck or hidden part"  # as told of a page that has some
FRAME = -1  # the level of a run that is a page by itself
_DEEPEST_TABLES = 20
_DEEPEST_MENUS = 100
_DEEPEST_MARKS = 20
_FEWEST_WORDS = 25  # of a form that is read, and of a <noscript> that is the only text
_TERM_WORDS = 10  # of a term that is repeated before its second definition
_ENDED = re.compile(r"[.:;!?,][\"”’')\]]*$")


@dataclass(slots=True)
class _Menu:
    """An element that may be left out: a menu, a header, a form or the like."""

    kind: str  # the element's name, or its role
    parent: int
    depth: int = 1  # open elements of its name within it, with itself


@dataclass(slots=True)
class _Mark:
    """An open <sup>, <sub>, <rt> or link of a note, whose text is written as a whole."""

    name: str
    is_note: bool
    parts: list[str] = field(default_factory=list)


class Page:
    """The text of a page, as its tags and texts are added in order.

    `unclosed` has the numbers of start tags to be ignored where their element is not read, because
    it has no end.
    """

    def __init__(self, unclosed: Set[int] = frozenset()) -> None:
        self.line = 1
        self.unread = 0  # struck or hidden elements
        self._unclosed = unclosed
        self._count = 0  # start tags
        self._lines: list[Line] = []
        self._skipped: Skipped | None = None
        self._formula: Formula | None = None
        self._menus = [_Menu("", 0, 0)]
        self._open_menus: list[int] = [0]
        self._menus_by_name: dict[str, list[int]] = {}
        self._tables: list[tuple[Table, list[OpenList]]] = []
        self._flat_tables = 0  # open tables that are too deep
        self._lists: list[OpenList] = []
        self._flat_lists = 0
        self._marks: list[_Mark] = []
        self._level = 0  # of the open heading
        self._main = 0  # open elements `main`
        self._article = 0  # open elements of the page's own content
        self._svg = 0  # open elements `svg`
        self._svg_text = 0
        self._in_summary = False
        self._in_fragment_link = False
        self._opens = True  # whether the next text begins a block
        self._goes_on = False  # whether it continues the term of a definition instead
        self._glued = False  # whether the next text goes on within a word: "H<sub>2</sub>O"
        self._label = ""  # the number of the next text's item
        self._item = False  # whether the next text begins an item

    @property
    def is_open(self) -> bool:
        """Whether an element that is not read has not ended."""
        return self._skipped is not None and self._skipped.needs_end

    def add(self, token: Token) -> None:
        kind, content, attributes = token
        self._count += kind == "start"
        if self._skipped is not None and self._skipped.passes(kind, content):
            if not self._skipped.depth:
                self._skipped = None
        elif kind in ("text", "plain"):
            self._skipped = None
            self._add_text(content, kind == "text")
        elif kind != "raw":
            self._skipped = None
            self._add_tag(kind == "start", content, attributes)
        self.line += attributes.count("\n")
        if kind not in ("start", "end"):
            self.line += content.count("\n")

    # Text

    def _add_text(self, content: str, has_references: bool) -> None:
        if self._svg and not self._svg_text:
            return
        if self._formula is not None:
            self._formula.add_text(unescape(content))
            return
        if self._marks:
            text = content.replace("\n", " ")
            self._marks[-1].parts.append(unescape(text) if has_references else text)
            return
        parts = content.split("\n")
        if has_references and "&" in content:
            parts = [unescape(part) for part in parts]
        for number, part in enumerate(parts):
            if self._glued and not number:
                self._lines[-1].add(part, self.line)
            elif part and not part.isspace():
                self._add_line(part, self.line + number)
        last = parts[-1]
        goes_on = self._glued and len(parts) == 1
        self._glued = goes_on or bool(last and not last.isspace())

    def _add_inline(self, text: str) -> None:
        """Add a piece that goes on within the line."""
        if self._marks:
            self._marks[-1].parts.append(text)
        elif self._glued:
            self._lines[-1].add(text, self.line)
        elif text.strip():
            self._add_line(text, self.line)
            self._glued = True

    def _add_line(self, text: str, number: int) -> None:
        """Add a line to the open heading, which is one run, or as a run of its own."""
        if self._level and not self._opens and self._lines:
            line = self._lines[-1]
            if line.level == self._level:
                line.add(f" {text}", number)
                line.is_main = self._main > 0
                return
        opens = self._opens and not self._goes_on
        item = self._item and not self._level
        line = Line([text], number, opens, self._level, item, self._main > 0, self._open_menus[-1])
        if self._label:
            line.pieces.insert(0, f"{self._label} ")
        if self._item and self._lists:
            self._lists[-1].lines.append(line)
        self._lines.append(line)
        self._opens = self._goes_on = self._item = False
        self._label = ""

    # Tags

    def _add_tag(self, is_start: bool, name: str, raw: str) -> None:
        attributes = parse_attributes(raw) if is_start and raw and not raw.isspace() else {}
        if self._formula is not None and not self._ends_formula(is_start, name):
            if not (is_start and self._is_unread(name, attributes, raw)):
                self._formula.add_tag(is_start, name)
            else:
                self._skip(name)
            return
        if is_start and self._is_unread(name, attributes, raw):
            self._skip(name)
            return
        if name in _MENUS or name in self._menus_by_name or "role" in attributes:
            self._count_menu(is_start, name, attributes, raw)
        if name not in INLINE:
            self._break(name)
        handler = (_STARTS if is_start else _ENDS).get(name)
        if handler is not None:
            handler(self, name, attributes)
        if is_start and attributes.get("role") == "main":
            self._main += name != "main"

    def _ends_formula(self, is_start: bool, name: str) -> bool:
        """Whether a tag ends the formula; a block does, if the end of the formula is missing."""
        is_end = name == "math" if not is_start else name in BLOCKS
        if is_end and self._formula is not None:
            text = self._formula.text()
            self._formula = None
            self._add_inline(text)
        return is_end

    def _skip(self, name: str) -> None:
        self._skipped = Skipped(name)
        self._glued = self._glued and (name in INLINE or name in _UNSEEN)

    def _is_unread(self, name: str, attributes: dict[str, str], raw: str) -> bool:
        if self._count in self._unclosed or name in VOID or is_self_closing(raw):
            return False
        if name in _UNREAD:
            return self._is_unread_element(name, attributes)
        if name == "option":
            return "selected" not in attributes
        if name == "dialog" and "open" not in attributes:
            return True
        if name == "a" and _BACK_LINK.search(attributes.get("class", "")):
            return True
        is_hidden = attributes.get("hidden", "until-found") != "until-found" or (
            "style" in attributes and bool(_STRUCK_OR_HIDDEN.search(attributes["style"]))
        )
        self.unread += is_hidden
        return is_hidden or attributes.get("aria-hidden") == "true"

    def _is_unread_element(self, name: str, attributes: dict[str, str]) -> bool:
        if name == "button":  # the heading of a part that can be opened, not beside a heading
            return not ((self._level and self._opens) or self._in_summary)
        if name == "template":
            return not any(key.startswith("shadowroot") for key in attributes)
        if name == "iframe" and attributes.get("srcdoc"):
            self._end_block()
            frame = [attributes["srcdoc"]]
            self._lines.append(
                Line(frame, self.line, True, FRAME, False, self._main > 0, self._open_menus[-1])
            )
        self.unread += name in _STRUCK
        return True

    # Menus, headers, footers and forms

    def _count_menu(self, is_start: bool, name: str, attributes: dict[str, str], raw: str) -> None:
        """Count a tag of an element that may be left out, or of one with the same name."""
        if is_start and name not in VOID and not is_self_closing(raw):
            kind = self._menu_kind(name, attributes, raw)
            if kind and len(self._open_menus) <= _DEEPEST_MENUS:
                self._menus.append(_Menu(kind, self._open_menus[-1]))
                self._open_menus.append(len(self._menus) - 1)
                self._menus_by_name.setdefault(name, []).append(len(self._menus) - 1)
                return
        numbers = self._menus_by_name.get(name)
        if not numbers:
            return
        menu = self._menus[numbers[-1]]
        menu.depth += 1 if is_start else -1
        if not menu.depth:
            self._end_block()
            numbers.pop()
            while self._open_menus[-1] and not self._menus[self._open_menus[-1]].depth:
                self._open_menus.pop()

    def _menu_kind(self, name: str, attributes: dict[str, str], raw: str) -> str:
        """The kind of an element that may be left out; empty for others."""
        role = attributes.get("role", "").lower()
        if name in _MENUS:
            if name == "aside" and _NOTE.search(raw):
                return ""
            if self._article and name in ("header", "footer", "aside"):
                return ""  # an article's own heading or box
            return name
        return role if role in _MENU_ROLES else ""

    def _is_left_out(self) -> list[bool]:
        """Whether each of the menus is left out."""
        words = [0] * len(self._menus)
        titled = [False] * len(self._menus)
        for line in self._lines:
            number = line.menu
            words[number] += count_words(line.text)
            titled[number] |= bool(line.row or line.level)
        left_out = [False] * len(self._menus)
        read = sum(
            count
            for count, menu in zip(words, self._menus, strict=True)
            if menu.depth or menu.kind in ("", "form")
        )
        for number, menu in enumerate(self._menus[1:], start=1):
            own = words[number]
            is_text = own >= _FEWEST_WORDS or 2 * own >= read or titled[number]
            is_form = menu.kind == "form" and own and is_text
            left_out[number] = left_out[menu.parent] or not (menu.depth or is_form)
        return left_out

    # Blocks

    def _break(self, name: str) -> None:
        if self._marks:
            self._end_marks(0)
        self._glued = False
        if name not in _APART:
            self._opens = True
            if self._tables and name in LAYOUT_BLOCKS:
                self._tables[-1][0].has_blocks = True
            if self._svg and not self._svg_text and name in BLOCKS:
                self._svg = 0  # its end is missing

    def _end_block(self) -> None:
        self._glued = False
        self._opens = True

    def _start_heading(self, name: str, _: dict[str, str]) -> None:
        self._level = int(name[1])
        self._goes_on = False

    def _end_heading(self, _: str, __: dict[str, str]) -> None:
        self._level = 0

    def _start_section(self, name: str, _: dict[str, str]) -> None:
        self._main += name == "main"
        self._article += 1

    def _end_section(self, name: str, _: dict[str, str]) -> None:
        if name == "main":
            self._main = max(0, self._main - 1)
        self._article = max(0, self._article - 1)

    def _start_summary(self, _: str, __: dict[str, str]) -> None:
        self._in_summary = True

    def _end_summary(self, _: str, __: dict[str, str]) -> None:
        self._in_summary = False

    # Lists

    def _start_list(self, name: str, attributes: dict[str, str]) -> None:
        self._goes_on = False
        if len(self._lists) < DEEPEST_LISTS:
            self._lists.append(start_list(name, attributes))
        else:
            self._flat_lists += 1

    def _end_list(self, name: str, _: dict[str, str]) -> None:
        self._goes_on = self._item = False
        if self._flat_lists:
            self._flat_lists -= 1
        elif any(each.name == name for each in self._lists):
            while True:
                ended = self._lists.pop()
                ended.number_backwards()
                if ended.name == name:
                    break

    def _start_item(self, _: str, attributes: dict[str, str]) -> None:
        self._item = True
        if self._lists and not self._flat_lists:
            label = self._lists[-1].next_label(attributes)
            self._label = f"{self._label} {label}".strip()

    def _end_item(self, _: str, __: dict[str, str]) -> None:
        self._item = False
        self._label = ""

    def _start_term(self, _: str, __: dict[str, str]) -> None:
        self._end_item("", {})
        self._goes_on = False
        if self._lists and self._lists[-1].term_start >= 0:
            self._end_term(",")  # several terms of one definition
        elif self._lists:
            self._lists[-1].term_start = len(self._lines)
        self._item = not self._goes_on

    def _start_definition(self, _: str, __: dict[str, str]) -> None:
        if not self._lists or self._lists[-1].name != "dl":
            return
        terms = self._lists[-1]
        if terms.term_start >= 0:
            lines = self._lines[terms.term_start :]
            words = " ".join(line.text for line in lines).split()
            is_short = 0 < len(words) <= _TERM_WORDS
            terms.term = " ".join(words).rstrip(":").rstrip() if is_short else ""
            self._end_term(":")
            terms.term_start = -1
        else:
            self._item = True
            self._label = f"{terms.term}:" if terms.term else ""

    def _end_term(self, mark: str) -> None:
        """End a term, so that the next text goes on in its line."""
        line = self._lines[-1] if len(self._lines) > self._lists[-1].term_start else None
        if line is None or line.level or line.row:
            return
        if not _ENDED.search(line.text.rstrip()):
            line.pieces.append(mark)
        self._goes_on = True

    # Tables

    def _start_table(self, _: str, attributes: dict[str, str]) -> None:
        self._goes_on = False
        if self._label:  # of an item that begins with a table
            self._add_line("", self.line)
            self._opens = True
        if len(self._tables) >= _DEEPEST_TABLES:
            self._flat_tables += 1
            return
        self._tables.append((Table(len(self._lines), attributes), self._lists))
        self._lists = []

    def _end_table(self, _: str, __: dict[str, str]) -> None:
        if self._flat_tables:
            self._flat_tables -= 1
        elif self._tables:
            self._lists = []
            self._level = 0
            table, self._lists = self._tables.pop()
            rows = table.read(self._lines[table.start :])
            if rows is not None:
                self._lines[table.start :] = rows
                if self._tables:
                    self._tables[-1][0].has_blocks = True

    def _add_table_tag(self, name: str, attributes: dict[str, str]) -> None:
        if not self._tables or self._flat_tables:
            return
        table = self._tables[-1][0]
        self._end_cell("", {})
        end = len(self._lines)
        if name in ("td", "th"):
            table.start_cell(name, attributes, self.line, end)
        elif name == "tr":
            table.start_row(self.line, end)
        elif name == "caption":
            table.start_caption()
        else:
            table.start_group(name, end)

    def _end_group(self, _: str, __: dict[str, str]) -> None:
        if self._tables and not self._flat_tables:
            self._tables[-1][0].start_group("", len(self._lines))

    def _end_cell(self, _: str, __: dict[str, str]) -> None:
        if not self._tables or self._flat_tables:
            return
        self._lists = []
        self._level = 0
        self._goes_on = False
        self._end_item("", {})
        self._tables[-1][0].end_cell(len(self._lines))

    # Marks

    def _start_mark(self, name: str, attributes: dict[str, str]) -> None:
        if name == "rt" and self._marks and self._marks[-1].name == "rt":
            self._end_mark(name, {})
        if len(self._marks) < _DEEPEST_MARKS:
            is_note = self._in_fragment_link or _is_note_reference(attributes)
            self._marks.append(_Mark(name, name == "sup" and is_note))

    def _end_mark(self, name: str, _: dict[str, str]) -> None:
        for place in range(len(self._marks) - 1, -1, -1):
            if self._marks[place].name == name:
                self._end_marks(place + 1)
                self._write_mark(self._marks.pop())
                return

    def _end_marks(self, count: int) -> None:
        """End the marks but the first ones; their ends are missing, so they are plain text."""
        while len(self._marks) > count:
            self._add_inline("".join(self._marks.pop().parts))

    def _write_mark(self, mark: _Mark) -> None:
        text = "".join(mark.parts)
        if mark.name == _BACK:  # the number of the note is shown, but not a sign such as "↩"
            self._add_inline(text if re.search(r"\d", text) else "")
        elif self._marks:  # within another mark
            self._add_inline(f"^{text}" if mark.name == "sup" and not mark.is_note else text)
        elif mark.is_note and len(text.strip()) <= _NOTE_LENGTH:
            self._add_inline(note_mark(text.strip()))
        elif text:
            self._add_inline(_WRITERS[mark.name](text))

    def _start_link(self, _: str, attributes: dict[str, str]) -> None:
        self._in_fragment_link = "#" in attributes.get("href", "")
        if attributes.get("role") == "doc-backlink":
            self._marks.append(_Mark(_BACK, False))
        elif self._marks and self._in_fragment_link:
            self._marks[-1].is_note |= self._marks[-1].name == "sup"
        elif _is_note_reference(attributes):
            self._marks.append(_Mark("a", True))

    def _end_link(self, _: str, __: dict[str, str]) -> None:
        self._in_fragment_link = False
        self._end_mark("a", {})
        self._end_mark(_BACK, {})

    def _end_ruby(self, _: str, __: dict[str, str]) -> None:
        self._end_mark("rt", {})

    def _start_quote(self, _: str, __: dict[str, str]) -> None:
        self._add_inline("“")

    def _end_quote(self, _: str, __: dict[str, str]) -> None:
        self._add_inline("”")

    # Drawings, formulas and controls

    def _start_svg(self, _: str, __: dict[str, str]) -> None:
        self._svg += 1

    def _end_svg(self, _: str, __: dict[str, str]) -> None:
        self._svg = max(self._svg - 1, 0)
        self._svg_text = 0

    def _start_svg_text(self, _: str, __: dict[str, str]) -> None:
        self._svg_text += self._svg > 0

    def _end_svg_text(self, _: str, __: dict[str, str]) -> None:
        self._svg_text = max(self._svg_text - 1, 0)

    def _start_formula(self, _: str, __: dict[str, str]) -> None:
        self._formula = Formula()

    def _add_input(self, _: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("type", "text").lower()
        if kind in ("checkbox", "radio"):
            self._add_inline("[x] " if "checked" in attributes else "[ ] ")
        elif kind in _TEXT_INPUTS and attributes.get("value", "").strip():
            self._end_field_name()
            self._add_inline(attributes["value"])
            self._glued = False

    def _end_field_name(self, _: str = "", __: object = None) -> None:
        """Write a colon after the name of a field that has a value."""
        if self._lines and not self._opens and not _ENDED.search(self._lines[-1].text.rstrip()):
            line = self._lines[-1]
            line.pieces[-1] = line.pieces[-1].rstrip()
            line.pieces.append(":")

    # The result

    def runs(self) -> list[TextRun]:
        """The runs in order, of the part `main` if it has text, else of all but the menus.

        One of level FRAME has the HTML of a page within the page.
        """
        while self._tables:
            self._flat_tables = 0
            self._end_table("", {})
        self._end_marks(0)
        if self._formula is not None:
            self._ends_formula(False, "math")
        left_out = self._is_left_out()
        lines = [line for line in self._lines if not left_out[line.menu]]
        if not any(line.level < 1 for line in lines):
            lines = self._all_lines()
        main = [line for line in lines if line.is_main]
        return [line.run() for line in (main if any(line.level < 1 for line in main) else lines)]

    def _all_lines(self) -> list[Line]:
        """All lines, of menus too, but not a page's note that it needs JavaScript."""
        unscripted = [number for number, menu in enumerate(self._menus) if menu.kind == "noscript"]
        words = sum(count_words(line.text) for line in self._lines if line.menu in set(unscripted))
        if words >= _FEWEST_WORDS:
            return self._lines
        return [line for line in self._lines if line.menu not in set(unscripted)]


def _is_note_reference(attributes: dict[str, str]) -> bool:
    if not attributes:
        return False
    if attributes.get("role") == "doc-noteref" or attributes.get("epub:type") == "noteref":
        return True
    return bool(_NOTE_REFERENCE.search(attributes.get("class", "")))


_WRITERS: dict[str, Callable[[str], str]] = {
    "sup": raised,
    "sub": lowered,
    "rt": ruby,
    "a": str,
}
_Handler = Callable[[Page, str, dict[str, str]], None]
_HEADINGS = tuple(f"h{level}" for level in range(1, 7))
_LISTS = ("ul", "ol", "dl", "menu")
_MARKS = ("sup", "sub", "rt")
_STARTS: dict[str, _Handler] = {
    **dict.fromkeys(_HEADINGS, Page._start_heading),
    **dict.fromkeys(("main", "article", "section"), Page._start_section),
    **dict.fromkeys(_LISTS, Page._start_list),
    **dict.fromkeys(("td", "th", "tr", "thead", "tbody", "tfoot", "caption"), Page._add_table_tag),
    **dict.fromkeys(_MARKS, Page._start_mark),
    **dict.fromkeys(("text", "foreignobject"), Page._start_svg_text),
    "li": Page._start_item,
    "dt": Page._start_term,
    "dd": Page._start_definition,
    "table": Page._start_table,
    "a": Page._start_link,
    "q": Page._start_quote,
    "svg": Page._start_svg,
    "math": Page._start_formula,
    "input": Page._add_input,
    "option": Page._end_field_name,
    "summary": Page._start_summary,
}
_ENDS: dict[str, _Handler] = {
    **dict.fromkeys(_HEADINGS, Page._end_heading),
    **dict.fromkeys(("main", "article", "section"), Page._end_section),
    **dict.fromkeys(_LISTS, Page._end_list),
    **dict.fromkeys(("td", "th", "tr"), Page._end_cell),
    **dict.fromkeys(("thead", "tbody", "tfoot"), Page._end_group),
    **dict.fromkeys(_MARKS, Page._end_mark),
    **dict.fromkeys(("text", "foreignobject"), Page._end_svg_text),
    "li": Page._end_item,
    "dt": Page._end_item,
    "table": Page._end_table,
    "a": Page._end_link,
    "ruby": Page._end_ruby,
    "q": Page._end_quote,
    "svg": Page._end_svg,
    "summary": Page._end_summary,
}
