"""Extracts the text of PDF files with PDFium: pages, headings, tables and the values of forms,
without running heads and tables of contents.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import sub
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from ifqa.corpus.documents import pdf_forms
from ifqa.corpus.documents.chunking import ENDED
from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile
from ifqa.corpus.documents.pdf_characters import Characters
from ifqa.corpus.documents.pdf_layout import Line, read_rows
from ifqa.corpus.documents.pdf_margins import Page, drop_contents, drop_running_heads
from ifqa.corpus.documents.pdf_pictures import has_picture
from ifqa.corpus.documents.pdf_rules import find_rules
from ifqa.corpus.documents.pdf_tables import arrange
from ifqa.corpus.documents.rows import Row
from ifqa.corpus.documents.tables import table_runs
from ifqa.corpus.documents.worker import tell_share

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

NO_TEXT = "no text"  # opens the reason for a PDF that may be a scan
WITHOUT_TEXT = "without text"  # ends what is told of pages that may be scans
LARGEST_TEXT = 50_000_000  # characters; a manual of 1,000 pages has 3 million
_DEEPEST = 3  # levels of the outline
_MOST_ENTRIES = 10_000  # entries of the outline
#: Accents that old TeX fonts set apart from their letter -> the combining accent.
_ACCENTS = {
    "¨": "\u0308",
    "´": "\u0301",
    "`": "\u0300",
    "ˆ": "\u0302",
    "˜": "\u0303",
    "ˇ": "\u030c",
    "˘": "\u0306",
    "˙": "\u0307",
    "˚": "\u030a",
    "˝": "\u030b",
    "¸": "\u0327",
    "˛": "\u0328",
}
_SEPARATE_ACCENT = re.compile(rf"([{''.join(_ACCENTS)}]) ?([^\W\d_])")
_HEADING_LINES = 4  # lines of the longest heading
# Characters of a line that may be a heading or end in leaders; the patterns take quadratic time
_LONGEST = 1_000
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[^\W\d_a-z][^.!?;:]{2,70}")
_NUMBER = re.compile(
    r"\W*(?:(?i:chapter|appendix|annex|part|section)\s+)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)+"
    r"|[A-Z](?=[.:])|[IVXLC]+(?=[.:]))[.:)]?\s+"
)
_BULLET = re.compile(r"[-•‣▪◦*]\s")
#: "3.", "(b)", "5.4 Force Majeure"
_ITEM = re.compile(r"\(?(\d{1,2}(?:\.\d{1,2}){1,3}(?=\.?\s)|(?:\d{1,2}|[a-zA-Z])(?=[.)]\s))")
#: A word over two lines: PDFium's mark within a line that it joined, or a hyphen and the start of
#: the next line.
_BROKEN = re.compile(
    "(?<![^\\W\\d_])([^\\W\\d_]+)(?:[\x02\ufffe]\\s*|-\n(?=[^\\W\\d_A-Z]))([^\\W\\d_]+)"
)
_CONJUNCTIONS = frozenset("and or und oder bzw og eller och".split())
_JOIN_MARKS = re.compile("[\x02\ufffe]")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")

_MARKS = "\x02\ufffe"
_HYPHENS = ("-", *_MARKS)
_LONGEST_WORD = 60  # characters of the first part of a word over two lines
_FEW_LINES = 6  # of a page that may have nothing but running heads
_SHIFT = 8.0  # points by which the columns of a table move from page to page
_XFA_NOTICE = 1_500  # characters of "Please wait ...", all that a form of XML has in a PDF

_Heading = tuple[str, int]  # of the outline: title, and level from 1
_Outline = Mapping[int, Sequence[_Heading]]


def read_pdf(content: bytes) -> Iterator[TextRun | Unread]:
    """The lines of a PDF with their pages, the rows of its tables, and what was left out.

    Headings come from its outline, or are lines that begin with a section number.

    A heading of the outline is placed at its text, over up to four lines; it is dropped if its page
    does not show it.
    """
    raw, outline = _extract(content)
    with_contents = drop_running_heads(raw, may_be_letter=not outline)
    pages = [drop_contents(page) for page in with_contents]
    if not any(pages):
        pages = with_contents
    if not any(pages):
        raise UnreadableFile(
            f"{NO_TEXT} on its {len(pages)} pages: if they were scanned, --ocr reads them"
        )
    counts = [sum(map(len, kept)) for kept in ([page.lines for page in raw], with_contents, pages)]
    dropped = map(sub, counts, counts[1:])
    for what, count in zip(("running-head line", "contents line"), dropped, strict=False):
        if count:
            yield Unread(what, count)
    scanned = sum(
        page.has_picture and not lines for page, lines in zip(raw, with_contents, strict=True)
    )
    if scanned:
        yield Unread(f"page {WITHOUT_TEXT}", scanned)
    known = {
        word.casefold() for page in pages for line in page for word in _WORD.findall(line.text)
    }
    yield from _runs([_join_hyphenated(page, known) for page in pages], outline)


def _join_hyphenated(page: Sequence[Line], known: set[str]) -> list[Line]:
    """Join words over two lines, except at a conjunction: the first line gets the whole word.

    The hyphen is kept if the file writes the word only with it.
    """

    def join(match: re.Match[str]) -> str:
        before = match[1]
        after = match[2]
        if after.casefold() in _CONJUNCTIONS and f"{before}{after}".casefold() not in known:
            return f"{before}- {after}"  # "Haupt- und Nebenstraße"
        hyphenated = (
            f"{before}-{after}".casefold() in known and f"{before}{after}".casefold() not in known
        )
        return f"{before}-{after}" if hyphenated or not after[0].islower() else f"{before}{after}"

    joined = list[Line]()
    for line in page:
        last = joined[-1] if joined else Line("")
        if last.text.endswith(_HYPHENS) and not last.columns and not line.columns:
            first, _, rest = line.text.partition(" ")
            end = last.text[-_LONGEST_WORD:]
            word = _BROKEN.sub(join, f"{end}\n{first}")
            if "\n" not in word:
                joined[-1] = replace(last, text=f"{last.text[:-_LONGEST_WORD]}{word}")
                if rest.strip():
                    joined.append(replace(line, text=rest.strip()))
                continue
        joined.append(line)
    return [
        replace(line, text=_JOIN_MARKS.sub("-", line.text)) if line.text[-1] in _MARKS else line
        for line in joined
    ]


def _runs(pages: Sequence[Sequence[Line]], outline: _Outline) -> Iterator[TextRun]:
    """The runs of all pages; a table that goes on over a page is one table."""
    table = list[tuple[int, Line]]()
    before = ""
    item = ""
    for number, page in enumerate(pages):
        placed = _place_headings([line.text for line in page], outline.get(number, ()))
        skip = 0
        for at, line in enumerate(page):
            if table and not _is_same_table(table[-1][1], line):
                yield from _table_runs(table)
                table = []
            for (_, level), lines in placed.get(at, ()):
                text = " ".join(shown.text for shown in page[at : at + lines])
                yield TextRun(text, number + 1, True, level)
                before = "."
                skip = at + lines
            if at < skip:
                continue
            if line.columns:
                table.append((number + 1, line))
                before = ""  # text below it is a paragraph of its own
                continue
            run = _run(line.text, number + 1, before, item, bool(outline))
            if run.item or run.level:
                item = line.text
            before = "." if run.level else line.text
            yield run
    yield from _table_runs(table)


def _run(text: str, place: int, before: str, item: str, has_outline: bool) -> TextRun:
    """The run of a line after the text `before`; `item` is the text that opened the last item."""
    is_new = not before or bool(ENDED.search(before))
    numbered = _NUMBERED.fullmatch(text) if not has_outline and is_new else None
    if numbered:
        return TextRun(text, place, True, numbered[1].count(".") + 1)
    is_item = bool(_BULLET.match(text)) or _opens_clause(text, is_new, item)
    return TextRun(text, place, not before or is_item, item=is_item)


def _opens_clause(text: str, is_new: bool, item: str) -> bool:
    """Whether a line begins with the number of an item: after a sentence, or after item 4 with 5.

    A number at the start of any other line is a part of a sentence.
    """
    marker = _ITEM.match(text)
    if marker is None:
        return False
    last = _ITEM.match(item)
    return is_new or (last is not None and _rank(marker) == _rank(last) + 1)


def _rank(marker: re.Match[str]) -> int:
    """The place of an item in its list; that of a letter is in the alphabet."""
    last = re.split(r"\W+", marker[1])[-1]
    return int(last) if last.isdecimal() else ord(last[-1].lower()) - ord("a") + 1


def _is_same_table(row: Line, line: Line) -> bool:
    """Whether a line is the next row of a table, perhaps on the next page."""
    return len(row.columns) == len(line.columns) and all(
        abs(left - other) <= _SHIFT for left, other in zip(row.columns, line.columns, strict=True)
    )


def _table_runs(rows: Sequence[tuple[int, Line]]) -> Iterator[TextRun]:
    """The rows of a table, without a header that is repeated on a new page."""
    kept = [
        Row(place, line.parts, line.covered)
        for number, (place, line) in enumerate(rows)
        if not number or place == rows[number - 1][0] or line.parts != rows[0][1].parts
    ]
    if kept:
        yield from table_runs(kept, has_titles=False)


def _place_headings(
    page: Sequence[str], headings: Sequence[_Heading]
) -> Mapping[int, Sequence[tuple[_Heading, int]]]:
    """Index of a line -> the headings that begin there, each with its number of lines.

    Only letters and digits are compared.
    """
    # characters of its lines, in which others may be between the letters
    rooms = [2 * (max(map(len, _heading_keys(title)), default=0) + 20) for title, _ in headings]
    # Letters -> index, lines from there on, characters of them
    windows: dict[str, list[tuple[int, int, int]]] = {}
    for at in range(len(page) if headings else 0):
        for lines in range(1, _HEADING_LINES + 1):
            text = " ".join(page[at : at + lines])
            if len(text) > max(rooms):
                break
            for form in _heading_keys(text):
                windows.setdefault(form, []).append((at, lines, len(text)))
    placed: dict[int, list[tuple[_Heading, int]]] = {}
    for heading, room in zip(headings, rooms, strict=True):
        matching = (
            window for form in _heading_keys(heading[0]) for window in windows.get(form, ())
        )
        if fitting := [window for window in matching if window[2] <= room]:
            at, lines, _ = min(fitting)
            placed.setdefault(at, []).append((heading, lines))
    return placed


def _heading_keys(heading: str) -> set[str]:
    """The letters and digits of a heading, with and without its section number."""
    bare = _NUMBER.sub("", heading, count=1) if len(heading) <= _LONGEST else heading
    return {re.sub(r"[\W_]+", "", text).casefold() for text in (heading, bare)} - {""}


def _extract(content: bytes) -> tuple[list[Page], _Outline]:
    """The lines of each page of a PDF, and the outline's headings by page, from 0.

    U+0002 or U+FFFE at the end of a line marks a word that goes on in the next.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        with PdfDocument(content) as document, pdf_forms.open_form(document) as form:
            pages = list[Page]()
            characters = 0
            for number in range(len(document)):
                page = document[number]
                shown, count = _read_page(form, page)
                page.close()  # and with it the text
                pages.append(shown)
                characters += count
                tell_share((number + 1) / len(document))
                if characters > LARGEST_TEXT:
                    raise UnreadableFile(f"it contains more than {LARGEST_TEXT:,} characters")
            if pdf_forms.is_xfa(document) and characters < _XFA_NOTICE:
                raise UnreadableFile(
                    "a form of XML (XFA), which only Adobe's programs show: print it to a PDF there"
                )
            return pages, _read_outline(document)
    except PdfiumError as error:
        message = str(error)
        if "password" in message.lower():
            raise UnreadableFile("it needs a password") from error
        raise UnreadableFile(
            f"not a complete PDF ({message.partition(' (PDFium')[0].strip(' .')})"
        ) from error


def _read_page(form: Any, page: "PdfPage") -> tuple[Page, int]:
    """The lines of a page, and the number of its characters.

    `form` is the handle of the file's form.
    """
    characters = Characters(page)
    rows = read_rows(characters)
    if fields := pdf_forms.read_fields(form, page, characters):
        rows = pdf_forms.add_fields(rows, fields, characters)
    rules = cache(lambda: find_rules(page, characters))
    lines = arrange(rows, rules, characters.is_monospaced)
    cleaned = [_compose_line(line) if _may_have_accent(line.text) else line for line in lines]
    kept = [line for line in cleaned if line.text]
    may_be_scan = len(kept) <= _FEW_LINES and has_picture(page)
    shown = Page(kept, characters.width, characters.height, may_be_scan)
    return shown, len(characters.text)


def _may_have_accent(text: str) -> bool:
    return "`" in text or not text.isascii()


def _compose_line(line: Line) -> Line:
    return replace(
        line,
        text=_compose_accents(line.text).strip(),
        parts=tuple(map(_compose_accents, line.parts)),
    )


def _compose_accents(line: str) -> str:
    """Combine each accent with the letter that follows it: `Schr¨oder` becomes Schröder."""

    def compose(match: re.Match[str]) -> str:
        letter = {"ı": "i", "ȷ": "j"}.get(match[2], match[2])
        composed = normalize("NFC", letter + _ACCENTS[match[1]])
        return composed if len(composed) == 1 else match[0]

    return _SEPARATE_ACCENT.sub(compose, line)


def _read_outline(document: "PdfDocument") -> dict[int, list[_Heading]]:
    outline: dict[int, list[_Heading]] = {}
    for _, entry in zip(range(_MOST_ENTRIES), document.get_toc(max_depth=_DEEPEST), strict=False):
        target = entry.get_dest()
        title = entry.get_title().strip()
        page = target.get_index() if target else None
        if page is not None and title:
            outline.setdefault(page, []).append((title, entry.level + 1))
    return outline
