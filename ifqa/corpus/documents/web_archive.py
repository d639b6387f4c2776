"""Reads web pages that a browser saved as one file (.mht, .mhtml)."""

import re
from collections.abc import Iterable
from email import message_from_bytes
from email.message import Message

from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile, decode_as, decode_text
from ifqa.corpus.documents.html import html_runs, read_html

_START = re.compile(rb"(?:\A|\n)(?:MIME-Version:|Content-Type: *multipart/related)", re.I)


def is_web_archive(content: bytes) -> bool:
    """Whether bytes begin as a page with its pictures, in the parts of a mail, does."""
    return content[:1].isalpha() and _START.search(content[:2000]) is not None


def read_web_archive(content: bytes) -> Iterable[TextRun | Unread]:
    """The page of an archive: its first part of HTML. Its lines are counted."""
    try:
        parts = message_from_bytes(content).walk()
        page = next((part for part in parts if part.get_content_type() == "text/html"), None)
    except RecursionError as error:
        raise UnreadableFile("its parts are nested too deeply") from error
    if page is None:
        raise UnreadableFile("there is no page in it")
    return _read_page(page)


def _read_page(page: Message) -> Iterable[TextRun | Unread]:
    decoded = page.get_payload(decode=True)
    content = decoded if isinstance(decoded, bytes) else b""
    charset = page.get_content_charset("")
    if not charset:
        return read_html(content)
    return html_runs(decode_as(content, charset) or decode_text(content, charset))
