"""The text of PDF files, by PDFium (the package pypdfium2): pages, headings, and no lines that every page repeats."""

import atexit
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ifqa.corpus.documents.text import Run, Unreadable
from ifqa.errors import IfqaError
from ifqa.workers.signals import no_interrupts

_PROGRAM = Path(__file__).with_name("pdfium.py")
_SECONDS = 300.0  # for a file; a manual of 1,000 pages takes a few
_EDGE = 2  # lines at a page's top and bottom that may be its header or footer
_FEW = 4  # pages from which on a repeated line is a header or footer
_CHAPTER = 3  # pages from which on a repeated line that begins or ends with a number is the header of a chapter
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+[^\W\d_a-z][^.!?;:]{2,70}")
_ENDED = re.compile(r"[.!?:;][\"”’')\]]*$")
_BULLET = re.compile(r"[-•‣▪◦*]\s")


class Opener:
    """A process that opens PDF files one after another. It starts with the first one, and anew after one that ended it."""

    def __init__(self, program: Path = _PROGRAM, seconds: float = _SECONDS) -> None:
        self._program, self._seconds = program, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        atexit.register(self.close)

    def read(self, data: bytes) -> Mapping[str, Any]:
        """The pages and the outline of a PDF, as `ifqa.corpus.documents.pdfium.read` gives them.

        Raises:
            Unreadable: it has none, or the process ended over it.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.close()
                self._process = self._started()
            started, line = time.monotonic(), None
            try:
                line = _asked(self._process, data)
                code = 0 if line else self._process.wait()
            finally:
                if not line:  # it ended, or the question was interrupted
                    self.close()
        if not line:
            late = time.monotonic() - started >= self._seconds
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise Unreadable(f"PDFium took longer than {self._seconds:g} s" if late else f"PDFium crashed ({how})")
        answer: dict[str, Any] = json.loads(line)
        if "why" in answer:
            raise Unreadable(answer["why"])
        return answer

    def close(self) -> None:
        """End the process, if it runs."""
        if self._process is not None:
            self._process.kill()
            with suppress(BrokenPipeError):  # some of a file was not sent yet
                self._process.communicate()
            self._process = None

    def _started(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-P", str(self._program), str(self._seconds)]  # -P: its folder hides no package
        settings = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with no_interrupts():  # the parent decides; the process ends with its input
            return subprocess.Popen(command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _asked(process: "subprocess.Popen[bytes]", data: bytes) -> bytes:
    """The line that answers a PDF; empty if the process ended."""
    assert process.stdin
    assert process.stdout
    with suppress(BrokenPipeError):  # the missing answer tells
        process.stdin.write(len(data).to_bytes(8, "big"))
        process.stdin.write(data)
        process.stdin.flush()
    line = process.stdout.readline()
    return line if line.endswith(b"\n") else b""


_OPENER = Opener()


def read_pdf(data: bytes, opener: Opener = _OPENER) -> Iterator[Run]:
    """The lines of a PDF with their pages. Headings are those of its outline, or lines that begin with a section's number.

    Raises:
        Unreadable: it is no PDF, needs a password, holds no text, or PDFium crashes or takes too long over it.
    """
    found = opener.read(data)
    outline: dict[int, list[tuple[str, int]]] = {}
    for page, title, level in found["outline"]:
        outline.setdefault(page, []).append((title, level))
    pages = _without_edges([[line.strip() for line in page if line.strip()] for page in found["pages"]])
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
