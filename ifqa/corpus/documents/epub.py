"""Reads e-books (.epub)."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from ifqa.corpus.documents.archive import Archive
from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile, decode_markup
from ifqa.corpus.documents.html import html_runs

_PAGES = ("application/xhtml+xml", "text/html")


def read_epub(content: bytes) -> Iterator[TextRun | Unread]:
    """The text of a book in the order of its spine, without the table of contents.

    Its documents are the parts, from 1. Missing ones are told, unless all are missing.
    """
    archive = Archive(content)
    root = archive.tree("META-INF/container.xml").find(".//{*}rootfile")
    package = (root.get("full-path") or "") if root is not None else ""
    if not package:
        raise UnreadableFile("its META-INF/container.xml names no book")
    book = archive.tree(package)
    read = set[str]()
    missing = list[str]()
    in_any_case = {name.casefold(): name for name in archive.names}
    entries = {entry.get("id"): entry for entry in book.findall(".//{*}item")}
    for number, reference in enumerate(book.findall(".//{*}itemref"), start=1):
        entry = entries.get(reference.get("idref"))
        if (
            entry is None
            or entry.get("media-type") not in _PAGES
            or "nav" in (entry.get("properties") or "").split()
        ):
            continue
        href = unquote((entry.get("href") or "").partition("#")[0])
        name = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
        if name not in archive.names:
            name = in_any_case.get(name.casefold(), name)
        if name in read:  # some books list a document once for each heading
            continue
        if name not in archive.names:
            missing.append(name)
            continue
        read.add(name)
        for run in html_runs(decode_markup(archive.read(name))):
            yield replace(run, place=number)
    if missing and not read:
        raise UnreadableFile(f"there is no {missing[0]} in it")
    if missing:
        yield Unread("missing part", len(missing))
