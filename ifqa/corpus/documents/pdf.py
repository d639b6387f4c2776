"""Extracts the text of PDF files with PDFium: pages and headings, without running heads and tables
of contents.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from unicodedata import normalize

from ifqa.corpus.documents.chunking import ENDED
from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, split_lines
from ifqa.corpus.documents.worker import tell_share

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

NO_TEXT = "no text"  # opens the reason for a PDF that may be a scan
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
_EDGE = 2  # lines at a page's top and bottom that may be its running head or foot
_FEWEST_PAGES = 4  # of a document; then a line at the edge of half of its pages is a running head
_CHAPTER = 3  # neighbouring pages with the same line at their edge: a chapter's running head
_HEADING_LINES = 4  # lines of the longest heading
# Characters of a line that may be a heading or end in leaders; the patterns take quadratic time
_LONGEST = 1_000
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[^\W\d_a-z][^.!?;:]{2,70}")
_NUMBER = re.compile(
    r"\W*(?:(?i:chapter|appendix|annex|part|section)\s+)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)+"
    r"|[A-Z](?=[.:])|[IVXLC]+(?=[.:]))[.:)]?\s+"
)
_PAGE_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")
_LEADERS = re.compile(r"(?:[.·…] ?){4,}\s*(?:\d+|[ivxlc]+)?$")  # "1.2 The wheel . . . . . 17"
_PAGE_AT_END = re.compile(r"\s(?:\d+|[ivxlc]+)$")  # "1 Welcome 3"
_BULLET = re.compile(r"[-•‣▪◦*]\s")
#: A word over two lines: PDFium's mark within a line that it joined, or a hyphen and the start of
#: the next line.
_BROKEN = re.compile(
    "(?<![^\\W\\d_])([^\\W\\d_]+)(?:[\x02\ufffe]\\s*|-\n(?=[^\\W\\d_A-Z]))([^\\W\\d_]+)"
)
_CONJUNCTIONS = frozenset("and or und oder bzw og eller och".split())
_JOIN_MARKS = re.compile("[\x02\ufffe]")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")

_Page = list[str]  # its lines
_Heading = tuple[str, int]  # of the outline: title, and level from 1


def read_pdf(content: bytes) -> Iterator[TextRun]:
    """The lines of a PDF with their pages.

    Headings come from its outline, or are lines that begin with a section number.

    A heading of the outline is placed at its text, over up to four lines; it is dropped if its page
    does not show it.
    """
    raw, outline = _extract(content)
    pages = [_drop_contents(page) for page in _drop_running_heads(raw)]
    if not any(pages):
        raise UnreadableFile(
            f"{NO_TEXT} on its {len(pages)} pages: if they were scanned, --ocr reads them"
        )
    known = {word.casefold() for page in pages for line in page for word in _WORD.findall(line)}
    return _runs([_join_hyphenated(page, known) for page in pages], outline)


def _drop_running_heads(pages: Sequence[_Page]) -> list[_Page]:
    """Remove page numbers and running heads: lines at the edge of half of the pages, or of
    neighbouring pages.
    """
    shapes = [
        {
            n: _PAGE_NUMBER.sub("#", line)
            for n, line in enumerate(page)
            if not _EDGE <= n < len(page) - _EDGE
        }
        for page in pages
    ]
    places: dict[str, list[int]] = {}
    for number, edge in enumerate(shapes):
        for shape in set(edge.values()):
            places.setdefault(shape, []).append(number)
    heads = {
        shape: _running_head_pages(shape, numbers, len(pages)) for shape, numbers in places.items()
    }
    return [
        [line for n, line in enumerate(page) if n not in edge or number not in heads[edge[n]]]
        for number, (page, edge) in enumerate(zip(pages, shapes, strict=True))
    ]


def _running_head_pages(shape: str, numbers: Sequence[int], pages: int) -> frozenset[int]:
    """The pages on which a line of this shape is the running head."""
    if shape == "#" or (pages >= _FEWEST_PAGES and len(numbers) * 2 >= pages):
        return frozenset(numbers)
    if sum(map(str.isalpha, shape)) < 3:  # a row of numbers
        return frozenset()
    repeated = set[int]()
    run = list[int]()
    for number in [*numbers, pages + _CHAPTER]:
        if run and number - run[-1] > 2:  # left and right pages may differ
            repeated |= set(run) if len(run) >= _CHAPTER else set()
            run = []
        run.append(number)
    return frozenset(repeated)


def _drop_contents(page: _Page) -> _Page:
    """Remove the lines of a table of contents.

    From a third of the page on, also those between, and a rest without a sentence.
    """
    entries = [n for n, line in enumerate(page) if _LEADERS.search(line[-_LONGEST:])]
    if len(entries) < max(3, len(page) / 3):
        return [line for n, line in enumerate(page) if n not in set(entries)] if entries else page
    around = [
        line
        for line in page[: entries[0]] + page[entries[-1] + 1 :]
        if not _PAGE_AT_END.search(line)
    ]
    return around if any(" " in line and ENDED.search(line) for line in around) else []


def _join_hyphenated(page: _Page, known: set[str]) -> _Page:
    """Join words over two lines, except at a conjunction.

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

    joined: _Page = []
    for line in page:
        both = f"{joined[-1]}\n{line}" if joined and joined[-1].endswith("-") else "\n"
        if (merged := _BROKEN.sub(join, both)) != both and "\n" not in merged:
            joined[-1] = merged
        else:
            joined.append(_JOIN_MARKS.sub("-", _BROKEN.sub(join, line)))
    return joined


def _runs(pages: Sequence[_Page], outline: Mapping[int, Sequence[_Heading]]) -> Iterator[TextRun]:
    before = ""
    for number, page in enumerate(pages):
        placed = _place_headings(page, outline.get(number, ()))
        skip = 0
        for at, line in enumerate(page):
            for (_, level), lines in placed.get(at, ()):
                yield TextRun(" ".join(page[at : at + lines]), number + 1, True, level)
                before = "."
                skip = at + lines
            if at < skip:
                continue
            numbered = (
                _NUMBERED.fullmatch(line)
                if not outline and (not before or ENDED.search(before))
                else None
            )
            if numbered:
                yield TextRun(line, number + 1, True, numbered[1].count(".") + 1)
            else:
                yield TextRun(line, number + 1, not before or bool(_BULLET.match(line)))
            before = "." if numbered else line


def _place_headings(
    page: _Page, headings: Sequence[_Heading]
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


def _extract(content: bytes) -> tuple[list[_Page], dict[int, list[_Heading]]]:
    """The lines of each page of a PDF, and the outline's headings by page, from 0.

    U+0002 or U+FFFE in a line marks a word that PDFium joined over two lines.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        with PdfDocument(content) as document:
            pages = list[_Page]()
            characters = 0
            for number in range(len(document)):
                page = document[number]
                text: str = page.get_textpage().get_text_range()
                page.close()  # and with it the text
                lines = (_compose_accents(line).strip() for line in split_lines(text))
                pages.append([line for line in lines if line])
                characters += len(text)
                tell_share((number + 1) / len(document))
                if characters > LARGEST_TEXT:
                    raise UnreadableFile(f"it contains more than {LARGEST_TEXT:,} characters")
            return pages, _read_outline(document)
    except PdfiumError as error:
        message = str(error)
        if "password" in message.lower():
            raise UnreadableFile("it needs a password") from error
        raise UnreadableFile(
            f"not a complete PDF ({message.partition(' (PDFium')[0].strip(' .')})"
        ) from error


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
