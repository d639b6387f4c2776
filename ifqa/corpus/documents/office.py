"""Reads Word documents (.docx) and e-books (.epub): zip archives of XML, unpacked up to a size limit."""

import posixpath
import zlib
from collections.abc import Iterator
from io import BytesIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, decode_text
from ifqa.corpus.documents.html import html_runs

LARGEST_PART = 1 << 25  # bytes of an unpacked file of an archive; its tree takes ten times the memory
LARGEST = 1 << 28  # bytes of all unpacked files of an archive
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # repeats the element before it
_BROKEN = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, zlib.error)
_PAGES = ("application/xhtml+xml", "text/html")


class _Archive:
    """A zip archive in memory; raises UnreadableFile if it is damaged, or a file is missing or too large."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = ZipFile(BytesIO(data))
        except _BROKEN as error:
            raise UnreadableFile(f"not a whole zip archive ({error})") from error
        self._remaining = LARGEST
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """The bytes of a file of the archive; the size that the archive declares is not trusted."""
        limit = min(LARGEST_PART, self._remaining)
        try:
            with self._zip.open(name) as handle:
                # the output of bzip2 and LZMA cannot be bounded; neither document format allows them
                if self._zip.getinfo(name).compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                    raise UnreadableFile(f"{name} in it is packed by another method than a document's")
                content = handle.read(limit + 1)
        except KeyError as error:
            raise UnreadableFile(f"there is no {name} in it") from error
        except _BROKEN as error:
            raise UnreadableFile(f"{name} in it cannot be unpacked ({error})") from error
        if len(content) > limit:
            raise UnreadableFile(f"{name} in it unpacks to more than {limit:,} bytes")
        self._remaining -= len(content)
        return content

    def tree(self, name: str) -> Element:
        """The XML of a file of the archive, without a document type: entities could expand without limit."""
        try:
            tree: Element = fromstring(self.read(name), forbid_dtd=True)
        except ParseError as error:
            raise UnreadableFile(f"{name} in it is not XML ({error})") from error
        except DefusedXmlException as error:
            raise UnreadableFile(f"{name} in it declares a document type; wanted plain XML") from error
        return tree


def read_docx(data: bytes) -> Iterator[TextRun]:
    """The paragraphs and table rows of a Word document; styles mark its headings. Deleted text is dropped.

    A footnote or an endnote follows the paragraph or row that refers to it.
    """
    archive = _Archive(data)
    tree = archive.tree("word/document.xml")
    styles = _heading_styles(archive) if "word/styles.xml" in archive.names else {}
    notes = {kind: _read_notes(archive, kind) for kind in ("footnote", "endnote")}
    for number, element in enumerate(_outermost(tree, f"{_WORD}p", f"{_WORD}tr"), start=1):
        if element.tag == f"{_WORD}tr":
            text = "; ".join(filter(None, (_text(cell).strip() for cell in _outermost(element, f"{_WORD}tc"))))
            yield TextRun(f"{text}.", number)
        else:
            yield TextRun(_text(element), number, True, _heading_level(element, styles))
        for kind, texts in notes.items():
            for reference in element.iter(f"{_WORD}{kind}Reference"):
                yield TextRun(texts.pop(reference.get(f"{_WORD}id"), ""), number)


def _read_notes(archive: _Archive, kind: str) -> dict[str | None, str]:
    """Id -> text of the document's footnotes or endnotes."""
    part = f"word/{kind}s.xml"
    if part not in archive.names:
        return {}
    return {note.get(f"{_WORD}id"): _text(note) for note in archive.tree(part).iter(f"{_WORD}{kind}")}


def _outermost(element: Element, *tags: str) -> Iterator[Element]:
    """The outermost elements with these tags, in document order."""
    waiting = [element]
    while waiting:
        inner = waiting.pop()
        if inner.tag in tags:
            yield inner
        elif inner.tag != _FALLBACK:
            waiting += reversed(inner)


def _text(element: Element) -> str:
    parts, waiting = list[str](), [element]
    while waiting:
        inner = waiting.pop()
        if inner.tag == f"{_WORD}t":
            parts.append(inner.text or "")
        elif inner.tag in (f"{_WORD}tab", f"{_WORD}br", f"{_WORD}cr") or (inner.tag == f"{_WORD}p" and parts):
            parts.append(" ")
        if inner.tag != _FALLBACK:
            waiting += reversed(inner)
    return "".join(parts)


def _heading_styles(archive: _Archive) -> dict[str, int]:
    """Id -> level of the heading styles. Their names are English in every language of Word; their ids are not."""
    levels = {}
    for style in archive.tree("word/styles.xml").iter(f"{_WORD}style"):
        named = style.find(f"{_WORD}name")
        name = (named.get(f"{_WORD}val") or "").lower() if named is not None else ""
        heading = int(name[8:]) if name[:8] == "heading " and name[8:].isdecimal() else int(name == "title")
        if level := _outline_level(style) or heading:
            levels[style.get(f"{_WORD}styleId") or ""] = level
    return levels


def _heading_level(paragraph: Element, styles: dict[str, int]) -> int:
    style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
    return _outline_level(paragraph) or (styles.get(style.get(f"{_WORD}val") or "", 0) if style is not None else 0)


def _outline_level(element: Element) -> int:
    """The outline level that a paragraph or a style sets; Word's 9 is body text."""
    level = element.find(f"{_WORD}pPr/{_WORD}outlineLvl")
    value = (level.get(f"{_WORD}val") or "") if level is not None else ""
    return int(value) + 1 if value in set("012345678") else 0


def read_epub(data: bytes) -> Iterator[TextRun]:
    """The text of a book in the order of its spine, without the table of contents; the documents are its parts, from 1.

    Raises:
        UnreadableFile: as `_Archive`, or it is not a book.
    """
    archive = _Archive(data)
    root = next(iter(archive.tree("META-INF/container.xml").findall(".//{*}rootfile")), None)
    package = (root.get("full-path") or "") if root is not None else ""
    if not package:
        raise UnreadableFile("its META-INF/container.xml names no book")
    book = archive.tree(package)
    read = set[str]()
    items = {element.get("id"): element for element in book.findall(".//{*}item")}
    for number, reference in enumerate(book.findall(".//{*}itemref"), start=1):
        item = items.get(reference.get("idref"))
        if item is None or item.get("media-type") not in _PAGES or "nav" in (item.get("properties") or "").split():
            continue
        href = unquote((item.get("href") or "").partition("#")[0])
        name = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
        if name in read:  # some books list a document once for each heading
            continue
        read.add(name)
        for run in html_runs(decode_text(archive.read(name))):
            yield TextRun(run.text, number, run.opens, run.level)
