"""What PDFium (the package pypdfium2) reads of a PDF: the lines of each page, and the entries of the outline."""

import re
from typing import TYPE_CHECKING

from ifqa.corpus.documents.text import Unreadable

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_HYPHEN = re.compile(r"[\x02\ufffe]\s*|(?<=[^\W\d_])-\r?\n(?=[a-z])")  # a word that goes on in the next line
_DEEPEST = 3  # levels of the outline
_MOST = 10_000  # entries of the outline


def read(data: bytes) -> tuple[list[list[str]], list[tuple[int, str, int]]]:
    """The lines of each page, and the page (from 0), title and level (from 1) of each entry of the outline.

    Raises:
        Unreadable: it is no PDF, or needs a password.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        with PdfDocument(data) as document:
            pages = [_HYPHEN.sub("", _text(document, number)).splitlines() for number in range(len(document))]
            return pages, _outline(document)
    except PdfiumError as error:
        what = str(error)
        if "password" in what.lower():
            raise Unreadable("it needs a password") from error
        raise Unreadable(f"not a whole PDF ({what.partition(' (PDFium')[0].strip(' .')})") from error


def _text(document: "PdfDocument", number: int) -> str:
    page = document[number]
    text: str = page.get_textpage().get_text_range()
    page.close()  # and with it the text
    return text


def _outline(document: "PdfDocument") -> list[tuple[int, str, int]]:
    found = []
    for _, entry in zip(range(_MOST), document.get_toc(max_depth=_DEEPEST), strict=False):
        aim = entry.get_dest()
        page = aim.get_index() if aim else None
        if page is not None and entry.get_title().strip():
            found.append((page, entry.get_title().strip(), entry.level + 1))
    return found
