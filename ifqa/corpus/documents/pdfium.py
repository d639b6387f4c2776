"""The program that opens PDF files with PDFium, in a process of its own: a file that crashes or hangs PDFium ends that alone.

It reads from standard input: the length of a PDF in 8 bytes, then the PDF. It answers with a line of JSON: the lines of each
page, and the entries of the outline; or why there are none. It imports nothing of ifqa, so it starts within 0.1 s.
"""

import faulthandler
import json
import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

_HYPHEN = re.compile(r"[\x02\ufffe]\s*|(?<=[^\W\d_])-\r?\n(?=[a-z])")  # a word that goes on in the next line
_DEEPEST = 3  # levels of the outline
_MOST = 10_000  # entries of the outline


def read(data: bytes) -> dict[str, object]:
    """A PDF's `pages`, lists of lines, and its `outline`, (page from 0, title, level from 1) of each heading; or `why` none."""
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        with PdfDocument(data) as document:
            pages = [_HYPHEN.sub("", _text(document, number)).splitlines() for number in range(len(document))]
            return {"pages": pages, "outline": _outline(document)}
    except PdfiumError as error:
        what = str(error)
        if "password" in what.lower():
            return {"why": "it needs a password"}
        return {"why": f"not a whole PDF ({what.partition(' (PDFium')[0].strip(' .')})"}


def serve(reader: Callable[[bytes], object], seconds: float) -> None:
    """Answer until the input ends. A file that takes longer than `seconds` ends the process, also from within PDFium."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    with open(os.devnull, "w") as nowhere:
        while size := sys.stdin.buffer.read(8):
            data = sys.stdin.buffer.read(int.from_bytes(size, "big"))
            faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)
            answer = reader(data)
            faulthandler.cancel_dump_traceback_later()
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


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


if __name__ == "__main__":
    serve(read, float(sys.argv[1]))
