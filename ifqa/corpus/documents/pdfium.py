"""What PDFium (the package pypdfium2) reads of a PDF: the lines of each page, and the entries of the outline."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ifqa.corpus.documents.text import Unreadable

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


def read(data: bytes) -> list[Page]:
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
