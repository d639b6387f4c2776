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
LARGEST = 1 << 28  # bytes of all unpacked files
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"  # repeats the element before it
_BROKEN = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, zlib.error)
_PAGES = ("application/xhtml+xml", "text/html")


class _Archive:
    """A zip archive in memory; raises UnreadableFile if it is damaged, or a file is missing or too large."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = ZipFile(BytesIO(content))
        except _BROKEN as error:
            raise UnreadableFile(f"not a complete zip archive ({error})") from error
        self._remaining = LARGEST
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """Unpack a file; the size that the archive declares is not trusted."""
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
        """Parse an XML file without a document type, whose entities could expand without limit."""
        try:
            tree: Element = fromstring(self.read(name), forbid_dtd=True)
        except ParseError as error:
            raise UnreadableFile(f"{name} in it is not XML ({error})") from error
        except DefusedXmlException as error:
            raise UnreadableFile(f"{name} in it declares a document type; wanted plain XML") from error
        return tree


def read_docx(content: bytes) -> Iterator[TextRun]:
    """The paragraphs and table rows of a Word document, without deleted text. Notes follow the paragraph that refers to them."""
    archive = _Archive(content)
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
    """Id -> text of the footnotes or endnotes."""
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
        name = _value(style.find(f"{_WORD}name")).lower()
        heading = int(name[8:]) if name[:8] == "heading " and name[8:].isdecimal() else int(name == "title")
        if level := _outline_level(style) or heading:
            levels[style.get(f"{_WORD}styleId") or ""] = level
    return levels


def _heading_level(paragraph: Element, styles: dict[str, int]) -> int:
    return _outline_level(paragraph) or styles.get(_value(paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")), 0)


def _outline_level(element: Element) -> int:
    """The outline level that a paragraph or a style sets; Word's 9 is body text."""
    level = _value(element.find(f"{_WORD}pPr/{_WORD}outlineLvl"))
    return int(level) + 1 if level in set("012345678") else 0


def _value(element: Element | None) -> str:
    return (element.get(f"{_WORD}val") or "") if element is not None else ""


def read_epub(content: bytes) -> Iterator[TextRun]:
    """The text of a book in the order of its spine, without the table of contents; its documents are the parts, from 1."""
    archive = _Archive(content)
    root = archive.tree("META-INF/container.xml").find(".//{*}rootfile")
    package = (root.get("full-path") or "") if root is not None else ""
    if not package:
        raise UnreadableFile("its META-INF/container.xml names no book")
    book, read = archive.tree(package), set[str]()
    entries = {entry.get("id"): entry for entry in book.findall(".//{*}item")}
    for number, reference in enumerate(book.findall(".//{*}itemref"), start=1):
        entry = entries.get(reference.get("idref"))
        if entry is None or entry.get("media-type") not in _PAGES or "nav" in (entry.get("properties") or "").split():
            continue
        href = unquote((entry.get("href") or "").partition("#")[0])
        name = posixpath.normpath(posixpath.join(posixpath.dirname(package), href))
        if name in read:  # some books list a document once for each heading
            continue
        read.add(name)
        for run in html_runs(decode_text(archive.read(name))):
            yield TextRun(run.text, number, run.opens, run.level)
