"""The text of PDF files, by PDFium (the package pypdfium2): pages, headings, and no lines that every page repeats."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec

from ifqa.corpus.documents import pdfium
from ifqa.corpus.documents.text import Run, Unreadable
from ifqa.errors import IfqaError

_EDGE = 2  # lines at a page's top and bottom that may be its header or footer
_FEW = 4  # pages from which on a repeated line is a header or footer
_CHAPTER = 3  # pages from which on a repeated line that begins or ends with a number is the header of a chapter
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[^\W\d_a-z][^.!?;:]{2,70}")
_ENDED = re.compile(r"[.!?:;][\"”’')\]]*$")
_BULLET = re.compile(r"[-•‣▪◦*]\s")


def read_pdf(data: bytes) -> Iterator[Run]:
    """The lines of a PDF with their pages. Headings are those of its outline, or lines that begin with a section's number.

    Raises:
        Unreadable: it is no PDF, needs a password, or holds no text.
    """
    texts, entries = pdfium.read(data)
    outline: dict[int, list[tuple[str, int]]] = {}
    for page, title, level in entries:
        outline.setdefault(page, []).append((title, level))
    pages = _without_edges([[line.strip() for line in page if line.strip()] for page in texts])
    if not any(pages):
        raise Unreadable(f"no text on its {len(pages)} pages: if they were scanned, run OCR on the file first")
    return _runs(pages, outline)


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


def _without_edges(pages: Sequence[list[str]]) -> list[list[str]]:
    """The pages without page numbers, and without lines at the top or bottom of half of them, or of a chapter's pages."""
    seen = Counter(one for page in pages for one in {_shape(line) for line in (*page[:_EDGE], *page[-_EDGE:])})
    repeated = {one for one, count in seen.items() if one == "#" or (len(pages) >= _FEW and count * 2 >= len(pages))}
    repeated |= {one for one, count in seen.items() if count >= _CHAPTER and (one[0] == "#" or one[-1] == "#")}
    return [
        [line for n, line in enumerate(page) if _EDGE <= n < len(page) - _EDGE or _shape(line) not in repeated]
        for page in pages
    ]


def _shape(line: str) -> str:
    """A line with `#` for each number."""
    return re.sub(r"\d+", "#", line)


def _runs(pages: Sequence[Sequence[str]], outline: dict[int, list[tuple[str, int]]]) -> Iterator[Run]:
    before = ""
    for number, page in enumerate(pages):
        waiting = list(outline.get(number, ()))
        for title, level in [one for one in waiting if not any(_same(one[0], line) for line in page)]:
            yield Run(
                title, number + 1, True, level
            )  # it is set otherwise on the page; its text begins at the top at the latest
        for line in page:
            heading = next((one for one in waiting if _same(one[0], line)), None)
            numbered = _NUMBERED.fullmatch(line) if not outline and (not before or _ENDED.search(before)) else None
            if heading:
                waiting.remove(heading)
                yield Run(line, number + 1, True, heading[1])
            elif numbered:
                yield Run(line, number + 1, True, numbered[1].count(".") + 1)
            else:
                yield Run(line, number + 1, not before or bool(_BULLET.match(line)))
            before = "." if heading or numbered else line


def _same(title: str, line: str) -> bool:
    return len(line) < 2 * len(title) + 12 and _letters(title) == _letters(line)


def _letters(text: str) -> str:
    """The letters and digits of a heading, without the number that it begins with."""
    return re.sub(r"\W+", "", re.sub(r"^\W*(?:\d+\.?)+\s+", "", text)).casefold()
