"""The text of PDF files, by PDFium: pages, the headings of the outline where they stand, no running heads or contents pages."""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ifqa.corpus.documents.decoding import Run, Unreadable
from ifqa.errors import IfqaError

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

LARGEST_TEXT = 50_000_000  # characters; a manual of 1,000 pages has 3 million
_DEEPEST = 3  # levels of the outline
_MOST = 10_000  # entries of the outline
#: Accents that old TeX fonts set apart from their letter -> the combining accent.
_ACCENTS = {
    "¨": "\u0308", "´": "\u0301", "`": "\u0300", "ˆ": "\u0302", "˜": "\u0303", "ˇ": "\u030c", "˘": "\u0306", "˙": "\u0307",
    "˚": "\u030a", "˝": "\u030b", "¸": "\u0327", "˛": "\u0328",
}  # fmt: skip
_APART = re.compile(rf"([{''.join(_ACCENTS)}]) ?([^\W\d_])")
_EDGE = 2  # lines at a page's top and bottom that may be its running head or foot
_FEW = 4  # pages from which on a line at the edge of half of them is a running head
_CHAPTER = 3  # neighbouring pages from which on a line at their edge is the running head of a chapter
_HEADING_LINES = 4  # lines of the longest heading
_LONGEST = 1_000  # characters of a line that may be a heading or end in leaders; patterns take time square in them
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[^\W\d_a-z][^.!?;:]{2,70}")
_NUMBER = re.compile(
    r"\W*(?:(?i:chapter|appendix|annex|part|section)\s+)?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)+|[A-Z](?=[.:])|[IVXLC]+(?=[.:]))[.:)]?\s+"
)
_PAGE_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b")
_LEADERS = re.compile(r"(?:[.·…] ?){4,}\s*(?:\d+|[ivxlc]+)?$")  # "1.2 The wheel . . . . . 17"
_PAGE_AT_END = re.compile(r"\s(?:\d+|[ivxlc]+)$")  # "1 Welcome 3"
_ENDED = re.compile(r"[.!?:;][\"”’')\]]*$")
_BULLET = re.compile(r"[-•‣▪◦*]\s")
#: A word over two lines: PDFium's mark within a line that it joined, or a hyphen, with the beginning of the next line.
_BROKEN = re.compile("(?<![^\\W\\d_])([^\\W\\d_]+)(?:[\x02\ufffe]\\s*|-\n(?=[^\\W\\d_A-Z]))([^\\W\\d_]+)")
_MARKS = re.compile("[\x02\ufffe]")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")

_Lines = list[tuple[int, str]]  # number in the page, from 0, and text


@dataclass(frozen=True, slots=True)
class Entry:
    """A heading of the outline.

    Attributes:
        title: its text.
        level: from 1.
        line: the first line of its page at or below the place that it points to; None if it points to the page alone.
    """

    title: str
    level: int
    line: int | None


@dataclass(frozen=True, slots=True)
class Page:
    """The lines of a page, and the headings that stand on it. U+0002 or U+FFFE joins a word that was over two lines."""

    lines: list[str]
    entries: list[Entry]


def read_pdf(data: bytes) -> Iterator[Run]:
    """The lines of a PDF with their pages. Headings are those of its outline, or lines that begin with a section's number.

    A heading of the outline stands where its text does, over up to four lines, else at the place that the outline points to; if
    that is a page alone, it is left out.

    Raises:
        Unreadable: it is no PDF, needs a password, or holds no text.
    """
    pages = _read(data)
    texts = [[(n, line.strip()) for n, line in enumerate(page.lines) if line.strip()] for page in pages]
    texts = [_without_contents(page) for page in _without_edges(texts, pages)]
    if not any(texts):
        raise Unreadable(f"no text on its {len(pages)} pages: if they were scanned, run OCR on the file first")
    known = {word.casefold() for page in texts for _, line in page for word in _WORD.findall(line)}
    texts = [_with_whole_words(page, known) for page in texts]
    return _runs(texts, [page.entries for page in pages])


def require_library(path: str) -> None:
    """Refuse a PDF before anything is read if it could not be.

    Raises:
        IfqaError: pypdfium2 is not installed.
    """
    if not _is_installed():
        raise IfqaError(
            f"{path}: PDF files need pypdfium2; install it with: pip install 'ifqa[documents]', or leave them out: "
            "exclude = [\"*.pdf\"], or --exclude '*.pdf'"
        )


@cache
def _is_installed() -> bool:
    return find_spec("pypdfium2") is not None


def _without_edges(texts: Sequence[_Lines], pages: Sequence[Page]) -> list[_Lines]:
    """The pages without page numbers and running heads.

    A running head stands at the edge of half of the pages, or of three neighbouring ones, with other numbers; or it is made of
    titles of the outline that stand elsewhere.
    """
    edges = [_edge(page) for page in texts]
    places: dict[str, list[int]] = {}
    for number, edge in enumerate(edges):
        for shape in {_shape(line) for _, line in edge}:
            places.setdefault(shape, []).append(number)
    heads = {shape: _repeated(shape, numbers, len(texts)) for shape, numbers in places.items()}
    titles = {_letters(entry.title) for page in pages for entry in page.entries} - {""}
    kept = []
    for number, (page, edge) in enumerate(zip(texts, edges, strict=True)):
        dropped = {n for n, line in edge if number in heads[_shape(line)]}
        here = {title for entry in pages[number].entries for title in _forms(entry.title)}
        dropped |= {n for n, line in edge if not _forms(line) & here and _is_made_of(line, titles)}
        kept.append([(n, line) for n, line in page if n not in dropped])
    return kept


def _edge(page: _Lines) -> _Lines:
    return page if len(page) <= 2 * _EDGE else [*page[:_EDGE], *page[-_EDGE:]]


def _repeated(shape: str, numbers: Sequence[int], pages: int) -> frozenset[int]:
    """The pages of which a line of this shape is the running head."""
    if shape == "#" or (pages >= _FEW and len(numbers) * 2 >= pages):
        return frozenset(numbers)
    if sum(map(str.isalpha, shape)) < 3:  # a row of numbers
        return frozenset()
    repeated, run = set[int](), list[int]()
    for number in [*numbers, pages + _CHAPTER]:
        if run and number - run[-1] > 2:  # left and right pages may differ
            repeated |= set(run) if len(run) >= _CHAPTER else set()
            run = []
        run.append(number)
    return frozenset(repeated)


def _is_made_of(line: str, titles: set[str]) -> bool:
    """Whether a line is a section's number and title, with those of its chapter before it."""
    if len(line) > _LONGEST:
        return False
    parts = re.split(r"(?<=\s)(?=[0-9A-Z]+(?:\.[0-9]+)*\.\s)", line)
    letters = [_letters(_NUMBER.sub("", part, count=1)) for part in parts if part.strip()]
    return any(_NUMBER.match(part) for part in parts) and all(title in titles or not title for title in letters)


def _shape(line: str) -> str:
    """A line with `#` for each number."""
    return _PAGE_NUMBER.sub("#", line)


def _without_contents(page: _Lines) -> _Lines:
    """The page without the lines of a table of contents.

    If they are a third of it, what stands between them is of it too, and the lines above and below stay if there is a sentence.
    """
    entries = [n for n, line in page if _LEADERS.search(line[-_LONGEST:])]
    rest = [(n, line) for n, line in page if not _LEADERS.search(line[-_LONGEST:])]
    if len(entries) < max(3, len(page) / 3):
        return rest
    around = [(n, line) for n, line in rest if not entries[0] < n < entries[-1] and not _PAGE_AT_END.search(line)]
    return around if any(" " in line and _ENDED.search(line) for _, line in around) else []


def _with_whole_words(page: _Lines, known: set[str]) -> _Lines:
    """Words over two lines are put together; the hyphen stays if the file writes the word only with it."""

    def whole(match: re.Match[str]) -> str:
        before, after = match[1], match[2]
        hyphenated = f"{before}-{after}".casefold() in known and f"{before}{after}".casefold() not in known
        return f"{before}-{after}" if hyphenated or not after[0].islower() else f"{before}{after}"

    joined: _Lines = []
    for number, line in page:
        both = f"{joined[-1][1]}\n{line}" if joined and joined[-1][1].endswith("-") else "\n"
        if (put := _BROKEN.sub(whole, both)) != both and "\n" not in put:
            joined[-1] = joined[-1][0], put
        else:
            joined.append((number, _MARKS.sub("-", _BROKEN.sub(whole, line))))
    return joined


def _runs(pages: Sequence[_Lines], entries: Sequence[Sequence[Entry]]) -> Iterator[Run]:
    before, has_outline = "", any(entries)
    for number, (page, headings) in enumerate(zip(pages, entries, strict=True), start=1):
        placed = _placed(page, headings)
        skip = 0
        for at, (_, line) in enumerate([*page, (-1, "")]):
            for heading, lines in placed.get(at, ()):
                text = " ".join(line for _, line in page[at : at + lines]) or heading.title
                yield Run(text, number, True, heading.level)
                before, skip = ".", max(skip, at + lines)
            if at < skip or at == len(page):
                continue
            numbered = _NUMBERED.fullmatch(line) if not has_outline and (not before or _ENDED.search(before)) else None
            if numbered:
                yield Run(line, number, True, numbered[1].count(".") + 1)
            else:
                yield Run(line, number, not before or bool(_BULLET.match(line)))
            before = "." if numbered else line


def _placed(page: _Lines, headings: Sequence[Entry]) -> Mapping[int, Sequence[tuple[Entry, int]]]:
    """Index in the page -> the headings that stand there, each with the number of its lines; 0 if its text is not there."""
    placed: dict[int, list[tuple[Entry, int]]] = {}
    windows = _windows(page, max((_room(heading.title) for heading in headings), default=0))
    for heading in headings:
        room = _room(heading.title)
        standing = [window for form in _forms(heading.title) for window in windows.get(form, ()) if window[2] <= room]
        matches = [(at, lines) for at, lines, _ in sorted(standing)]
        aim = next((at for at, (n, _) in enumerate(page) if heading.line is not None and n >= heading.line), len(page))
        if matches:
            at, lines = min(matches, key=lambda match: abs(match[0] - aim)) if heading.line is not None else matches[0]
            placed.setdefault(at, []).append((heading, lines))
        elif heading.line is not None:
            placed.setdefault(aim, []).append((heading, 0))
    return placed


def _windows(page: _Lines, longest: int) -> Mapping[str, Sequence[tuple[int, int, int]]]:
    """Letters of a heading -> where they stand: an index in the page, the number of lines from there on, their characters."""
    windows: dict[str, list[tuple[int, int, int]]] = {}
    for at in range(len(page) if longest else 0):
        text = ""
        for lines, (_, line) in enumerate(page[at : at + _HEADING_LINES], start=1):
            text = f"{text} {line}".strip()
            if len(text) > longest:
                break
            for form in _forms(text):
                windows.setdefault(form, []).append((at, lines, len(text)))
    return windows


def _room(heading: str) -> int:
    """Characters of lines that may be a heading: its letters may stand among as many others."""
    return 2 * (max(map(len, _forms(heading)), default=0) + 20)


def _forms(heading: str) -> set[str]:
    """The letters and digits of a heading, with and without the number that it begins with."""
    bare = _NUMBER.sub("", heading, count=1) if len(heading) <= _LONGEST else heading
    return {_letters(heading), _letters(bare)} - {""}


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def _read(data: bytes) -> list[Page]:
    """The pages of a PDF.

    Raises:
        Unreadable: it is no PDF, needs a password, or holds too much text.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        with PdfDocument(data) as document:
            outline: dict[int, list[tuple[str, int, float | None]]] = {}
            for number, title, level, top in _outline(document):
                outline.setdefault(number, []).append((title, level, top))
            pages, characters = list[Page](), 0
            for number in range(len(document)):
                pages.append(_page(document, number, outline.get(number, [])))
                characters += sum(map(len, pages[-1].lines))
                if characters > LARGEST_TEXT:
                    raise Unreadable(f"it holds more than {LARGEST_TEXT:,} characters")
            return pages
    except PdfiumError as error:
        what = str(error)
        if "password" in what.lower():
            raise Unreadable("it needs a password") from error
        raise Unreadable(f"not a whole PDF ({what.partition(' (PDFium')[0].strip(' .')})") from error


def _page(document: "PdfDocument", number: int, headings: list[tuple[str, int, float | None]]) -> Page:
    page = document[number]
    text = page.get_textpage()
    raw: str = text.get_text_range()
    tops = _tops(text, raw) if any(top is not None for _, _, top in headings) else []
    page.close()  # and with it the text
    entries = [
        Entry(
            title,
            level,
            None if top is None else next((n for n, line in enumerate(tops) if line <= top + 2), len(tops)),
        )
        for title, level, top in headings
    ]
    return Page([_composed(line) for line in raw.replace("\r", "").split("\n")], entries)


def _tops(text: Any, raw: str) -> list[float]:
    """The upper edge of each line, in points from the page's bottom; that of the line before for an empty one."""
    tops, place = list[float](), 0
    for line in raw.split("\n"):
        boxes = (text.get_charbox(place + n) for n, char in enumerate(line) if char.isalnum())
        top = max((box[3] for _, box in zip(range(5), boxes, strict=False)), default=tops[-1] if tops else 1e9)
        tops.append(top)
        place += len(line) + 1
    return tops


def _composed(line: str) -> str:
    """The line with each accent that stands beside its letter put onto it: `Schr¨oder` is Schröder."""

    def compose(match: re.Match[str]) -> str:
        letter = {"ı": "i", "ȷ": "j"}.get(match[2], match[2])
        composed = unicodedata.normalize("NFC", letter + _ACCENTS[match[1]])
        return composed if len(composed) == 1 else match[0]

    return _APART.sub(compose, line)


def _outline(document: "PdfDocument") -> Iterator[tuple[int, str, int, float | None]]:
    """Page (from 0), title, level (from 1) and upper edge of each heading."""
    for _, entry in zip(range(_MOST), document.get_toc(max_depth=_DEEPEST), strict=False):
        aim = entry.get_dest()
        page, title = aim.get_index() if aim else None, entry.get_title().strip()
        if page is not None and title:
            mode, place = aim.get_view()
            # /XYZ left top zoom, /FitH top, /FitBH top, /FitR left bottom right top (PDF 32000-1, table 151)
            top = {1: place[1:2], 3: place[:1], 7: place[:1], 5: place[3:4]}.get(mode, [])
            yield page, title, entry.level + 1, top[0] if top and top[0] else None
