"""Draws a page of a PDF with a part of its text marked, in a process of its own.

The picture is a PNG of a bounded number of pixels and bytes.
"""

import ctypes
import struct
import sys
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from ifqa.corpus.documents.chunking import parse_locator
from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.worker import Worker
from ifqa.records import Passage

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_SECONDS = 20.0  # to draw a page
_MEMORY = 3 << 29  # bytes of address space of the process
_WIDTH = 1_000  # pixels of a picture, at most
_PIXELS = 1_500_000  # of a picture, at most
_BYTES = 3_000_000  # of a picture, at most; a larger one is drawn again, smaller
_LARGEST_SCALE = 4.0  # pixels per point: a stamp-sized page is not blown up
_CHARACTERS = 200_000  # of a page that are looked at
_LONGEST = 2_000  # characters of a text to mark
_CONTEXT = 60  # letters before the text that tell it from the same words elsewhere on the page
_FEWEST = 8  # letters of a part of the text that is marked alone
_ENDS = frozenset(".,;:!?)”’")
_GREEN, _BLUE = 0.94, 0.42  # the light of these colours that a mark lets through

_Box = tuple[int, int, int, int]  # left, top, right, bottom, in pixels


@dataclass(frozen=True, slots=True)
class PagePart:
    """The part of a passage's sentence that stands on a page."""

    page: int  # from 1
    before: str  # the passage's text on the page before it
    text: str


def page_parts(passage: Passage, start: int, end: int) -> Iterator[PagePart]:
    """The parts of a passage's text from `start` to `end`, one for each page.

    None unless the passage's places are pages.
    """
    text = passage.text
    span = range(len(text))
    start = max(start, 0)
    end = min(end, len(text))
    if start >= end or _page_at(passage.id, 0) is None:
        return

    def page_at(at: int) -> int:
        return _page_at(passage.id, at) or 0

    for page in range(page_at(start), page_at(end - 1) + 1):
        first = bisect_left(span, page, key=page_at)
        after = bisect_left(span, page + 1, key=page_at)
        begin = max(start, first)
        part = text[begin : min(end, after)]
        if part.strip():
            yield PagePart(page, text[first:begin], part)


def _page_at(passage_id: str, at: int) -> int | None:
    locator = parse_locator(passage_id, at)
    return locator.last if locator and locator.unit == "page" else None


def draw_page(content: bytes, part: PagePart) -> bytes:
    """The page of a PDF as a PNG, with the part of a sentence marked where it stands.

    Raises UnreadableFile with the reason if it cannot be drawn.
    """
    request = {
        "page": part.page,
        "before": part.before[-_LONGEST:],
        "text": part.text[:_LONGEST],
    }
    _, picture = WORKER.read(request, content)
    return picture


def draw_request(request: Mapping[str, Any], content: bytes) -> tuple[dict[str, int], bytes]:
    """Draw a page, in the process of `WORKER`.

    A request has the fields of a `PagePart`.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        with PdfDocument(content) as document:
            if not 1 <= request["page"] <= len(document):
                raise UnreadableFile(f"it has no page {request['page']}")
            document.init_forms()  # to show the values of filled forms
            page = document[request["page"] - 1]
            return {}, _picture(page, request["before"], request["text"])
    except PdfiumError as error:
        raise UnreadableFile(f"cannot be drawn ({error})") from error


def _picture(page: "PdfPage", before: str, text: str) -> bytes:
    width, height = page.get_size()
    if not (isfinite(width) and isfinite(height) and min(width, height) > 0):
        raise UnreadableFile("its page has no size")
    scale = min(_WIDTH / width, sqrt(_PIXELS / (width * height)), _LARGEST_SCALE)
    characters = _marked_characters(page, before, text)
    while True:
        bitmap = page.render(scale=scale, rev_byteorder=True)  # three bytes a pixel: RGB
        pixels = bytearray(bitmap.buffer)
        for box in _boxes(page, characters, bitmap.width, bitmap.height):
            _mark(pixels, bitmap.stride, box)
        picture = _png(pixels, bitmap.width, bitmap.height, bitmap.stride)
        if len(picture) <= _BYTES:
            return picture
        scale /= 1.5


def _marked_characters(page: "PdfPage", before: str, text: str) -> list[int]:
    """The indices of the page's characters that are the text's."""
    from pypdfium2 import raw

    textpage = page.get_textpage()
    characters = "".join(
        chr(min(raw.FPDFText_GetUnicode(textpage, index), sys.maxunicode))
        for index in range(min(textpage.count_chars(), _CHARACTERS))
    )
    letters: list[str] = []
    indices: list[int] = []
    for index, character in enumerate(characters):
        for letter in _letters(character):
            letters.append(letter)
            indices.append(index)
    marked = list[int]()
    for start, end in _find_text("".join(letters), before, text):
        marked += indices[start:end]
        # Also the mark at its end
        after = marked[-1] + 1
        if characters[after : after + 1] in _ENDS:
            marked.append(after)
    return marked


def _letters(text: str) -> str:
    """The letters and digits of a text, without accents and case: what is compared.

    Our text may have other spaces, hyphens and accents than the page.
    """
    return "".join(filter(str.isalnum, normalize("NFKD", text).casefold()))


def _find_text(page: str, before: str, text: str) -> list[tuple[int, int]]:
    """Where a text stands in a page's letters: as a whole, or else its longer parts.

    Between its parts there may be a running head, or a column in another order.
    """
    words = [letters for word in text.split() if (letters := _letters(word))]
    whole = "".join(words)
    if not whole:
        return []
    context = _letters(before)[-_CONTEXT:]
    if (at := page.find(context + whole)) >= 0:
        return [(at + len(context), at + len(context) + len(whole))]
    if (at := page.find(whole)) >= 0:
        return [(at, at + len(whole))]
    return _find_parts(page, words)


def _find_parts(page: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Where the longest runs of words stand in a page's letters, if they are long enough."""
    spans: list[tuple[int, int]] = []
    first = 0
    reached = 0
    while first < len(words):
        run = words[first]
        last = first + 1
        while last < len(words) and run + words[last] in page:
            run += words[last]
            last += 1
        at = page.find(run, reached)
        if at < 0:
            at = page.find(run)
        if at >= 0 and len(run) >= _FEWEST:
            reached = at + len(run)
            spans.append((at, reached))
        first = last
    return spans


def _boxes(page: "PdfPage", characters: Sequence[int], width: int, height: int) -> Iterator[_Box]:
    """The boxes of characters in a picture of the page, one for each piece of a line."""
    from pypdfium2 import PdfiumError, raw

    textpage = page.get_textpage()
    line: _Box | None = None
    for index in characters:
        try:
            left, bottom, right, top = textpage.get_charbox(index, loose=True)
        except PdfiumError:
            continue
        corners = []
        for x, y in ((left, top), (right, bottom)):
            across = ctypes.c_int()
            down = ctypes.c_int()
            raw.FPDF_PageToDevice(page, 0, 0, width, height, 0, x, y, across, down)
            corners.append((across.value, down.value))
        xs, ys = zip(*corners, strict=True)
        box = (max(min(xs), 0), max(min(ys), 0), min(max(xs) + 1, width), min(max(ys) + 1, height))
        if line and _is_beside(line, box):
            line = (
                min(line[0], box[0]),
                min(line[1], box[1]),
                max(line[2], box[2]),
                max(line[3], box[3]),
            )
            continue
        if line:
            yield line
        line = box
    if line:
        yield line


def _is_beside(line: _Box, box: _Box) -> bool:
    """Whether a character goes on with a line: at its height, and after a gap of a few spaces."""
    height = max(line[3] - line[1], 1)
    common = min(line[3], box[3]) - max(line[1], box[1])
    return 2 * common > min(height, box[3] - box[1]) and -height < box[0] - line[2] < 2 * height


_DIMMED = {
    1: bytes(int(_GREEN * light) for light in range(256)),
    2: bytes(int(_BLUE * light) for light in range(256)),
}


def _mark(pixels: bytearray, stride: int, box: _Box) -> None:
    """Colour a box as a highlighter does: dark letters stay, white paper gets yellow."""
    left, top, right, bottom = box
    for row in range(top, bottom):
        for channel, dimmed in _DIMMED.items():
            part = slice(row * stride + 3 * left + channel, row * stride + 3 * right, 3)
            pixels[part] = pixels[part].translate(dimmed)


def _png(pixels: bytearray, width: int, height: int, stride: int) -> bytes:
    """Rows of RGB pixels, each of `stride` bytes, as a PNG."""
    rows = (b"\0" + pixels[row * stride : row * stride + 3 * width] for row in range(height))
    parts = [
        _png_part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        _png_part(b"IDAT", zlib.compress(b"".join(rows))),
        _png_part(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _png_part(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)


WORKER = Worker(f"{__name__}:{draw_request.__name__}", _SECONDS, _MEMORY)
