"""Reads documents of Word, PowerPoint and OpenDocument, and e-books: zip archives of XML, unpacked
up to a size limit.
"""

import posixpath
import zlib
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from itertools import chain, islice
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ifqa.corpus.documents.chunking import ENDED
from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, xml_source
from ifqa.corpus.documents.html import read_html

# Bytes of an unpacked file of an archive; its tree takes ten times the memory
LARGEST_PART = 1 << 25
LARGEST = 1 << 28  # bytes of all unpacked files
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SHOW = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_OPEN = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
_OPEN_START = "{urn:oasis:names:tc:opendocument:"
_TEXT, _TABLE, _DRAW, _PRESENTATION = (
    _OPEN % name for name in ("text", "table", "drawing", "presentation")
)
_PARAGRAPHS = (f"{_TEXT}p", f"{_TEXT}h", f"{_TABLE}table-row")
_SHOWN = {f"{_WORD}t", f"{_DRAWING}t"}  # the elements with text, except in OpenDocument
_APART = {f"{_WORD}{name}" for name in ("p", "tab", "ptab", "br", "cr")} | {
    f"{_DRAWING}p",
    f"{_DRAWING}br",
}
_APART |= {f"{_TEXT}{name}" for name in ("p", "h", "s", "tab", "line-break")}
_HIDDEN = {
    # Repeats the element before it
    "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback",
    *(f"{_TEXT}{name}" for name in ("note", "tracked-changes", "table-of-content", "page-number")),
    _OPEN % "office" + "annotation",
    _OPEN % "svg-compatible" + "title",
    _OPEN % "svg-compatible" + "desc",
}
# Boxes at a slide's edge
_EDGES = {"sldNum", "ftr", "dt", "hdr", "footer", "header", "date-time", "page-number"}
BROKEN = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, zlib.error)
_PAGES = ("application/xhtml+xml", "text/html")


class Archive:
    """A zip archive in memory.

    Raises UnreadableFile if it is damaged, or a file is missing or too large.
    """

    def __init__(self, content: bytes) -> None:
        # How Office packs an encrypted document, and its older kinds
        if content.startswith(b"\xd0\xcf\x11\xe0"):
            raise UnreadableFile("it needs a password, or is of a version of Office before 2007")
        try:
            self._zip = ZipFile(BytesIO(content))
        except BROKEN as error:
            raise UnreadableFile(f"not a complete zip archive ({error})") from error
        self._remaining = LARGEST
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """Unpack a file; the size that the archive declares is not trusted."""
        limit = min(LARGEST_PART, self._remaining)
        try:
            with self._zip.open(name) as handle:
                # the output of bzip2 and LZMA cannot be bounded; neither document format allows
                # them
                if self._zip.getinfo(name).compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                    raise UnreadableFile(
                        f"{name} in it is packed by another method than a document's"
                    )
                content = handle.read(limit + 1)
        except KeyError as error:
            raise UnreadableFile(f"there is no {name} in it") from error
        except BROKEN as error:
            raise UnreadableFile(f"{name} in it cannot be unpacked ({error})") from error
        if len(content) > limit:
            raise UnreadableFile(f"{name} in it unpacks to more than {limit:,} bytes")
        self._remaining -= len(content)
        return content

    def chunks(self, name: str, size: int) -> Iterator[bytes]:
        """Unpack a file in pieces, of an archive that `check` has passed."""
        try:
            with self._zip.open(name) as handle:
                while piece := handle.read(size):
                    yield piece
        except BROKEN as error:
            raise UnreadableFile(f"{name} in it cannot be unpacked ({error})") from error

    def check(self) -> None:
        """Refuse an archive that another library could not unpack within the limit.

        It stops at the declared sizes.
        """
        entries = self._zip.infolist()
        if any(entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED) for entry in entries):
            raise UnreadableFile("a part of it is packed by another method than a document's")
        if sum(entry.file_size for entry in entries) > LARGEST:
            raise UnreadableFile(f"it unpacks to more than {LARGEST:,} bytes")

    def tree(self, name: str) -> Element:
        """Parse an XML file without a document type, whose entities could expand without limit."""
        try:
            tree: Element = fromstring(xml_source(self.read(name)), forbid_dtd=True)
        except ParseError as error:
            raise UnreadableFile(f"{name} in it is not XML ({error})") from error
        except DefusedXmlException as error:
            raise UnreadableFile(
                f"{name} in it declares a document type; wanted plain XML"
            ) from error
        return tree


def read_docx(content: bytes) -> Iterator[TextRun]:
    """The paragraphs and table rows of a Word document, without deleted text.

    Notes follow the paragraph that refers to them.
    """
    archive = Archive(content)
    tree = archive.tree("word/document.xml")
    styles = _heading_styles(archive) if "word/styles.xml" in archive.names else {}
    notes = {kind: _read_notes(archive, kind) for kind in ("footnote", "endnote")}
    for number, element in enumerate(_outermost(tree, f"{_WORD}p", f"{_WORD}tr"), start=1):
        if element.tag == f"{_WORD}tr":
            yield TextRun(_row_text(element, f"{_WORD}tc"), number)
        else:
            style = _value(element.find(f"{_WORD}pPr/{_WORD}pStyle"))
            yield TextRun(
                _text(element), number, True, _outline_level(element) or styles.get(style, 0)
            )
        for kind, texts in notes.items():
            for reference in element.iter(f"{_WORD}{kind}Reference"):
                yield TextRun(texts.pop(reference.get(f"{_WORD}id"), ""), number)


def _read_notes(archive: Archive, kind: str) -> dict[str | None, str]:
    """Id -> text of the footnotes or endnotes."""
    part = f"word/{kind}s.xml"
    if part not in archive.names:
        return {}
    return {
        note.get(f"{_WORD}id"): _text(note) for note in archive.tree(part).iter(f"{_WORD}{kind}")
    }


def _outermost(element: Element, *tags: str) -> Iterator[Element]:
    """The outermost visible elements with these tags, in document order."""
    waiting = [element]
    while waiting:
        inner = waiting.pop()
        if inner.tag in tags:
            yield inner
        elif inner.tag not in _HIDDEN:
            waiting += reversed(inner)


def _text(element: Element) -> str:
    """The text of an element; a paragraph or a tab in it has a blank on both sides."""
    parts = list[str]()
    waiting = list[Element | str]([element])
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            parts.append(inner)
        elif inner is element or inner.tag not in _HIDDEN:
            mixed = inner.tag.startswith(_OPEN_START)
            edge = " " * (inner.tag in _APART)
            shown = (
                inner.text
                if mixed or inner.tag in _SHOWN
                else "-" * (inner.tag == f"{_WORD}noBreakHyphen")
            )
            pieces: list[Element | str] = [edge, shown or ""]
            for child in inner:
                pieces += [child, (child.tail or "") if mixed else ""]
            waiting += reversed([*pieces, edge])
    return "".join(parts)


def _row_text(row: Element, cell: str) -> str:
    return f"{'; '.join(filter(None, (_text(inner).strip() for inner in _outermost(row, cell))))}."


def _heading_styles(archive: Archive) -> dict[str, int]:
    """Id -> level of the heading styles.

    Their names are English in every language of Word; their ids are not.
    """
    levels = {}
    for style in archive.tree("word/styles.xml").iter(f"{_WORD}style"):
        name = _value(style.find(f"{_WORD}name")).lower()
        heading = (
            int(name[8:])
            if name[:8] == "heading " and name[8:].isdecimal()
            else int(name == "title")
        )
        if level := _outline_level(style) or heading:
            levels[style.get(f"{_WORD}styleId") or ""] = level
    return levels


def _outline_level(element: Element) -> int:
    """The outline level that a paragraph or a style sets; Word's 9 is body text."""
    level = _value(element.find(f"{_WORD}pPr/{_WORD}outlineLvl"))
    return int(level) + 1 if level in set("012345678") else 0


def _value(element: Element | None) -> str:
    return (element.get(f"{_WORD}val") or "") if element is not None else ""


def read_pptx(content: bytes) -> Iterator[TextRun]:
    """The slides of a PowerPoint presentation, each with its title as the heading, and with its
    notes and diagrams.
    """
    archive = Archive(content)
    targets = _relations(archive, "ppt/presentation.xml")
    slides = (
        slide.get(f"{_RELATION}id")
        for slide in archive.tree("ppt/presentation.xml").iter(f"{_SHOW}sldId")
    )
    for number, key in enumerate(slides, start=1):
        if key not in targets:
            raise UnreadableFile(f"slide {number} is missing in it")
        more = _relations(archive, targets[key][1]).values()
        parts = [
            targets[key][1],
            *(name for kind, name in more if kind in ("diagramData", "notesSlide")),
        ]
        yield from _with_title(
            run for part in parts for run in _slide_runs(archive.tree(part), number)
        )


def _with_title(runs: Iterator[TextRun]) -> Iterator[TextRun]:
    """The runs of a slide, each as a sentence.

    Without a title, its first paragraph is the heading.
    """
    filled = (replace(run, text=run.text.strip()) for run in runs if run.text.strip())
    yield from (replace(run, level=1) for run in islice(filled, 1))
    yield from (
        run if ENDED.search(run.text) else replace(run, text=f"{run.text}.") for run in filled
    )


def _relations(archive: Archive, name: str) -> dict[str | None, tuple[str, str]]:
    """Id -> kind and name of the parts that a part of an Office document refers to."""
    folder, _, base = name.rpartition("/")
    if (part := f"{folder}/_rels/{base}.rels") not in archive.names:
        return {}
    return {
        relation.get("Id"): (
            (relation.get("Type") or "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, relation.get("Target") or "")).lstrip(
                "/"
            ),
        )
        for relation in archive.tree(part)
    }


def _slide_runs(slide: Element, number: int) -> Iterator[TextRun]:
    shapes = []
    for shape in _outermost(slide, f"{_SHOW}sp", f"{_DRAWING}tr", f"{_DRAWING}p"):
        holder = shape.find(f"{_SHOW}nvSpPr/{_SHOW}nvPr/{_SHOW}ph")
        shapes.append(("" if holder is None else holder.get("type") or "", shape))
    for kind, shape in sorted(shapes, key=lambda pair: pair[0] not in ("title", "ctrTitle")):
        if kind in ("title", "ctrTitle"):
            yield TextRun(_text(shape), number)
        elif shape.tag == f"{_DRAWING}tr":
            yield TextRun(_row_text(shape, f"{_DRAWING}tc"), number)
        elif kind not in _EDGES:
            for paragraph in shape.iter(f"{_DRAWING}p"):
                yield TextRun(_text(paragraph), number)


def read_odt(content: bytes) -> Iterator[TextRun]:
    """The paragraphs and table rows of an OpenDocument text, without deleted text and the table of
    contents.
    """
    for number, element in enumerate(
        _outermost(Archive(content).tree("content.xml"), *_PARAGRAPHS), start=1
    ):
        yield from _open_runs(element, number)


def _open_runs(element: Element, number: int) -> Iterator[TextRun]:
    """A paragraph, heading or table row, and its notes."""
    if element.tag == f"{_TABLE}table-row":
        yield TextRun(_row_text(element, f"{_TABLE}table-cell"), number)
    else:
        level = element.get(f"{_TEXT}outline-level") or "1"
        level = level if level.isdecimal() else "1"
        yield TextRun(_text(element), number, True, int(level) if element.tag == f"{_TEXT}h" else 0)
    for body in element.iter(f"{_TEXT}note-body"):
        yield TextRun(_text(body), number)


def read_odp(content: bytes) -> Iterator[TextRun]:
    """The slides of an OpenDocument presentation, each with its title as the heading, and with its
    notes.
    """
    for number, page in enumerate(
        Archive(content).tree("content.xml").iter(f"{_DRAW}page"), start=1
    ):
        kinds = {frame: frame.get(f"{_PRESENTATION}class") for frame in page.iter(f"{_DRAW}frame")}
        titles = (TextRun(_text(frame), number) for frame, kind in kinds.items() if kind == "title")
        done = {
            part
            for frame, kind in kinds.items()
            if kind in {"title", *_EDGES}
            for part in frame.iter()
        }
        shown = (element for element in _outermost(page, *_PARAGRAPHS) if element not in done)
        yield from _with_title(
            chain(titles, (run for element in shown for run in _open_runs(element, number)))
        )


def read_epub(content: bytes) -> Iterator[TextRun]:
    """The text of a book in the order of its spine, without the table of contents.

    Its documents are the parts, from 1.
    """
    archive = Archive(content)
    root = archive.tree("META-INF/container.xml").find(".//{*}rootfile")
    package = (root.get("full-path") or "") if root is not None else ""
    if not package:
        raise UnreadableFile("its META-INF/container.xml names no book")
    book = archive.tree(package)
    read = set[str]()
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
        if name in read:  # some books list a document once for each heading
            continue
        read.add(name)
        for run in read_html(archive.read(name)):
            yield TextRun(run.text, number, run.opens, run.level)
