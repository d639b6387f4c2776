"""Word documents (.docx) and electronic books (.epub): zip archives of XML, of which a bounded amount is unpacked."""

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

LARGEST_PART = 1 << 25  # bytes of an unpacked file of an archive; its tree takes ten times as much memory
LARGEST = 1 << 28  # bytes of all files of an archive that are unpacked
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # repeats what stands before it
_BROKEN = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, zlib.error)
_PAGES = ("application/xhtml+xml", "text/html")


class _Archive:
    """The files of a zip archive in memory; Unreadable if it is damaged, or a file is missing or unpacks to too much."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = ZipFile(BytesIO(data))
        except _BROKEN as error:
            raise UnreadableFile(f"not a whole zip archive ({error})") from error
        self._left = LARGEST
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """The bytes of a file of the archive; what the archive says of its size is not relied on."""
        most = min(LARGEST_PART, self._left)
        try:
            with self._zip.open(name) as handle:
                # what bzip2 and LZMA unpack to cannot be bounded; neither format allows them
                if self._zip.getinfo(name).compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                    raise UnreadableFile(f"{name} in it is packed by another method than a document's")
                data = handle.read(most + 1)
        except KeyError as error:
            raise UnreadableFile(f"there is no {name} in it") from error
        except _BROKEN as error:
            raise UnreadableFile(f"{name} in it cannot be unpacked ({error})") from error
        if len(data) > most:
            raise UnreadableFile(f"{name} in it unpacks to more than {most:,} bytes")
        self._left -= len(data)
        return data

    def tree(self, name: str) -> Element:
        """The XML of a file of the archive. One that declares a document type is refused: its entities can grow without end."""
        try:
            tree: Element = fromstring(self.read(name), forbid_dtd=True)
        except ParseError as error:
            raise UnreadableFile(f"{name} in it is not XML ({error})") from error
        except DefusedXmlException as error:
            raise UnreadableFile(f"{name} in it declares a document type; wanted plain XML") from error
        return tree


def read_docx(data: bytes) -> Iterator[TextRun]:
    """The paragraphs of a Word document, and the rows of its tables; headings by their styles. Deleted text is left out.

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
    """The elements of some tags, in their order; those within another are part of it."""
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
    """Id -> level of the styles that are headings. Their names are English in every language's Word, their ids are not."""
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
    """The level that a paragraph or a style sets itself; 9 of Word is that of text."""
    level = element.find(f"{_WORD}pPr/{_WORD}outlineLvl")
    value = (level.get(f"{_WORD}val") or "") if level is not None else ""
    return int(value) + 1 if value in set("012345678") else 0


def read_epub(data: bytes) -> Iterator[TextRun]:
    """The text of a book, in the order of its spine, whose documents are its parts from 1; without its table of contents.

    Raises:
        Unreadable: as `_Archive`; or it is no book.
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
        if name in read:  # some books name each heading of a document
            continue
        read.add(name)
        for run in html_runs(decode_text(archive.read(name))):
            yield TextRun(run.text, number, run.opens, run.level)
