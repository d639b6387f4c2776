"""Reads Rich Text Format, and the HTML that Outlook wraps in it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ifqa.corpus.documents.decoding import HIDDEN, TextRun, Unread, UnreadableFile
from ifqa.corpus.documents.html import html_runs
from ifqa.corpus.documents.marks import lowered, raised
from ifqa.corpus.documents.rtf_events import ENDS, LABELS, STORIES, Event, Format, Parser
from ifqa.corpus.documents.word_blocks import WordCell, WordRow, paragraph_run, word_table_runs

_START = re.compile(rb"\s*\{\s*\\rtf")
_HEADING = re.compile(r"heading ([1-9])")
_DEEPEST_STYLE = 16  # styles that each are based on the next
_MERGED = {"clmrg": "continues_left", "clvmrg": "continues_above"}


def is_rtf(content: bytes) -> bool:
    """Whether bytes begin as RTF does."""
    return _START.match(content[:100]) is not None


def read_rtf(content: bytes) -> Iterator[TextRun | Unread]:
    """The paragraphs and table rows of a document, counted from 1, without running heads.

    Footnotes and text boxes follow the paragraph that they are in. Of HTML that is wrapped in RTF
    the lines are counted.
    """
    if not is_rtf(content):
        raise UnreadableFile("not RTF: it does not begin with {\\rtf")
    html = unwrap_html(content)
    if html:
        yield from html_runs(html)
        return
    document = _Document()
    for event in Parser(content).events():
        document.take(event)
        yield from document.take_runs()
    document.end()
    yield from document.take_runs()
    if document.hidden:
        yield Unread(HIDDEN, document.hidden)


def unwrap_html(content: bytes) -> str:
    """The HTML that is wrapped in RTF; empty if there is none."""
    if b"\\fromhtml" not in content[:1000]:
        return ""
    parts = list[str]()
    for event in Parser(content).events():
        if event.format.outside_html:
            continue
        if event.kind == "text" and event.format.destination.name in ("", "htmltag"):
            parts.append(event.text)
        elif event.kind == "word" and event.text in ENDS:
            parts.append("\n")
    return "".join(parts)


@dataclass(slots=True)
class _Style:
    name: str = ""
    level: int = -1
    base: int | None = None


@dataclass(slots=True)
class _Story:
    """The body, a footnote or a text box, as its text is added in order."""

    pieces: list[str] = field(default_factory=list)  # of the open paragraph or cell
    format: Format = field(default_factory=Format)  # of its last piece
    label: list[str] | None = None  # of the open paragraph
    cells: list[str] = field(default_factory=list)  # of the open row
    definition: list[WordCell] = field(default_factory=list)  # of the cells of rows
    left: int = 0  # the edge of rows, in twips
    is_header: bool = False
    merged: frozenset[str] = frozenset()  # how the next cell is merged
    rows: list[WordRow] = field(default_factory=list)  # of the open table
    #: The runs of notes and text boxes in the open paragraph or table.
    apart: list[TextRun] = field(default_factory=list)
    runs: list[TextRun] = field(default_factory=list)  # of the paragraphs and tables before

    def take_text(self) -> str:
        text = "".join(self.pieces)
        self.pieces = []
        return text


class _Document:
    """The runs of a document, as its events are taken in order."""

    def __init__(self) -> None:
        self._stories = [_Story()]
        self._number = 1  # of the next paragraph or row
        self._styles = dict[int, _Style]()
        self._style = _Style()  # that is being described
        self.hidden = 0  # pieces of hidden text
        self._was_hidden = False

    def take(self, event: Event) -> None:
        destination = event.format.destination.name
        if destination == "stylesheet":
            self._take_style(event)
        elif event.kind == "text":
            self._take_text(event.text, event.format)
        elif event.kind == "begin":
            self._begin(destination)
        elif event.kind == "end":
            self._end_story(destination)
        elif destination not in LABELS:
            self._take_word(event.text, event.number, event.format)

    def take_runs(self) -> list[TextRun]:
        """The runs that are complete, once."""
        body = self._stories[0]
        runs = body.runs
        if runs:
            body.runs = []
        return runs

    def end(self) -> None:
        while len(self._stories) > 1:
            self._end_story("footnote")
        self._end_row(only_open=True)
        self._end_paragraph(Format())

    def _take_style(self, event: Event) -> None:
        if event.kind == "text":
            self._style.name += event.text[:100]
        elif event.text == "s":
            self._style = self._styles.setdefault(event.number or 0, _Style())
        elif event.text in ("cs", "ds", "ts"):
            self._style = _Style()
        elif event.text == "outlinelevel":
            self._style.level = event.format.level
        elif event.text == "sbasedon":
            self._style.base = event.number

    def _begin(self, destination: str) -> None:
        if destination in STORIES:
            self._stories.append(_Story())
        elif destination in LABELS:
            self._stories[-1].label = []

    def _end_story(self, destination: str) -> None:
        """Add the paragraphs of a note or text box to the paragraph that it is in."""
        if destination not in STORIES or len(self._stories) == 1:
            return
        self._end_row(only_open=True)
        self._end_paragraph(Format())
        story = self._stories.pop()
        self._stories[-1].apart += story.runs

    def _take_text(self, text: str, format: Format) -> None:
        story = self._stories[-1]
        if not format.is_shown:
            self.hidden += not self._was_hidden
        self._was_hidden = not format.is_shown
        if self._was_hidden:
            return
        if format.destination.name in LABELS:
            if story.label is not None:
                story.label.append(text)
            return
        if text.strip():
            story.format = format
        if format.script:
            text = raised(text) if format.script == "raised" else lowered(text)
        story.pieces.append(text)

    def _take_word(self, name: str, number: int | None, format: Format) -> None:
        story = self._stories[-1]
        if name in ENDS:
            self._end_paragraph(format)
        elif name == "cell":
            story.cells.append(story.take_text())
            story.label = None
        elif name == "row":
            self._end_row(only_open=False)
        elif name == "trowd":
            story.definition = []
            story.left = 0
            story.is_header = False
            story.merged = frozenset()
        elif name == "trleft":
            story.left = number or 0
        elif name == "trhdr":
            story.is_header = True
        elif name in _MERGED:
            story.merged |= {_MERGED[name]}
        elif name == "cellx":
            merged = dict.fromkeys(story.merged, True)
            story.definition.append(WordCell("", number or 0, **merged))
            story.merged = frozenset()

    def _end_row(self, only_open: bool) -> None:
        story = self._stories[-1]
        if only_open and not story.cells:
            return
        if story.cells:
            defined = [*story.definition, *[WordCell("")] * len(story.cells)]
            cells = [
                replace(cell, text=text) for cell, text in zip(defined, story.cells, strict=False)
            ]
            story.rows.append(WordRow(self._number, cells, story.left, story.is_header))
            story.cells = []
        self._count()

    def _count(self) -> None:
        """Go on to the next paragraph; those of notes are not counted."""
        self._number += len(self._stories) == 1

    def _end_paragraph(self, format: Format) -> None:
        story = self._stories[-1]
        if format.in_table or story.cells:
            story.pieces.append("\n")
            return
        if story.rows:
            story.runs += word_table_runs(story.rows)
            story.rows = []
        text = story.take_text()
        label = None if story.label is None else "".join(story.label)
        if text.strip():
            level = self._level(story.format)
            story.runs.append(paragraph_run(text, self._number, level, label))
        story.label = None
        story.format = Format()
        story.runs += [replace(run, place=self._number) for run in story.apart]
        story.apart = []
        self._count()

    def _level(self, format: Format) -> int:
        """The level of a heading, by the paragraph, its style, or those that it is based on."""
        if format.level >= 0:
            return format.level
        number: int | None = format.style
        for _ in range(_DEEPEST_STYLE):
            style = self._styles.get(number) if number is not None else None
            if style is None:
                return 0
            name = style.name.strip().rstrip(";").lower()
            if heading := _HEADING.fullmatch(name):
                return int(heading[1])
            if style.level >= 0 or name == "title":
                return max(style.level, int(name == "title"))
            number = style.base
        return 0
