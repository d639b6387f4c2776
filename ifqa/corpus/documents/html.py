"""Reads the text of an HTML page without menus, headers, footers and scripts, in linear time."""

import re
from collections.abc import Iterator
from dataclasses import replace

from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile, decode_markup
from ifqa.corpus.documents.html_page import FRAME, HIDDEN, Page
from ifqa.corpus.documents.html_tokens import find_unclosed, parse_attributes, tokenize

_FRAMESET = re.compile(r"<frameset\b", re.I)
_FRAME = re.compile(r"<i?frame\s([^<>]*)", re.I)
_SHORTEST = 100  # words of a page of frames that is read
_NAMED_FRAMES = 3


def read_html(content: bytes) -> Iterator[TextRun | Unread]:
    """The text of an HTML file in its declared encoding, and what of it is struck out or hidden.

    Raises UnreadableFile for a page of frames, whose text is in other files.
    """
    text = decode_markup(content)
    page = _parse(text)
    runs = _runs(page)
    if _FRAMESET.search(text) and sum(len(run.text.split()) for run in runs) < _SHORTEST:
        sources = [parse_attributes(frame).get("src", "") for frame in _FRAME.findall(text)]
        named = ", ".join(list(filter(None, sources))[:_NAMED_FRAMES])
        raise UnreadableFile(f"a page of frames, whose text is in other files: {named or 'none'}")
    yield from runs
    if page.unread:
        yield Unread(HIDDEN, page.unread)


def html_runs(text: str) -> list[TextRun]:
    """The text of HTML, with headings, lists, tables and lines: of its `main` element if it has
    text, else without the menus.

    Text that is struck out or hidden is left out. A page of nothing but menus or forms is read.
    """
    return _runs(_parse(text))


def _runs(page: Page) -> list[TextRun]:
    runs = list[TextRun]()
    for run in page.runs():
        if run.level == FRAME:  # a frame within a frame is not read
            inner = _parse(run.text).runs()
            runs += [
                replace(each, place=run.place, last=0) for each in inner if each.level != FRAME
            ]
        else:
            runs.append(run)
    return runs


def _parse(text: str) -> Page:
    page = Page()
    for token in tokenize(text):
        page.add(token)
    if not page.is_open:
        return page
    # The end tag of what is not read is missing, so it would hold the rest of the page
    page = Page(find_unclosed(tokenize(text)))
    for token in tokenize(text):
        page.add(token)
    return page
