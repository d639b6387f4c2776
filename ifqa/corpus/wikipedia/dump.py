"""Reads the pages of a MediaWiki dump (`enwiki-…-pages-articles.xml`), and cuts one that was packed for random access.

The XML is fed to expat in blocks, so memory holds one page and one block for a dump of any size. A page of more text
than MediaWiki allows is left out. Any version of the export schema with `<ns>` works: names are read without their XML namespace.

Wikimedia's `…-multistream.xml.bz2` are bz2 streams of 100 pages each. Each stream can be unpacked by itself, so all cores can
work. Ten bytes open each stream; they occur in packed data by chance once in 10^24 bytes. So a search for them finds the
streams, and the published index file is not needed.
"""

import bz2
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from xml.parsers import expat

from ifqa.corpus.wikipedia.wikitext import find_local_prefixes, translate_prefixes
from ifqa.corpus.work_units import SkippedPages
from ifqa.errors import IfqaError

BLOCK = 1 << 18  # bytes of XML fed at a time
LONGEST = 1 << 24  # characters of a page; MediaWiki itself takes 2 MB
# Beyond these bounds a file was made to fill the memory. A page of 2 MB is 12 MB of XML if all of it is "&quot;"; real
# tags are nested five deep.
_UNTAGGED = 1 << 25  # bytes of XML without the end of a tag
_DEEPEST = 100
# (depth, name) of the elements whose text is kept; revisions and contributors have an <id>, too, but deeper.
_COLLECTED = {(3, "title"), (3, "ns"), (3, "id"), (4, "text"), (4, "namespace")}
_REDIRECT = re.compile(r"\s*#\s*redirect\b", re.IGNORECASE)

_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_MAGIC = 10  # bytes
_PAGE = re.compile(rb"<(?:\w+:)?page[\s>]")
_CHUNK = 1 << 20
_PIECE = 1 << 20  # bytes of XML unpacked at a time: about a block of bzip2, so that its tables stay in the cache
_LONGEST_STREAM = 1 << 24  # bytes of a stream; streams of published dumps have about a tenth of that
_UNPACKED = 1 << 28  # bytes of XML in a block of streams; 4 MB of a published dump unpack to about 20 MB
_FROM_THE_FRONT = "unpack the file and name it without .bz2"


@dataclass(frozen=True, slots=True)
class Page:
    """An article: `text` is plain text if it comes from an article file, wikitext if it comes from a dump.

    In wikitext, links to files and categories have their English prefix if only the dump's siteinfo knows the prefix.
    """

    id: str
    title: str
    text: str


def parse_pages(blocks: Iterable[bytes], where: str, tally: SkippedPages, *, whole: bool = True) -> Iterator[Page]:
    """The articles of a dump in order: pages of the main namespace that are not redirects.

    Disambiguation pages are kept: without them, the dump of 2022-05-01 cannot have the 6,394,490 pages that
    IfQA's authors count (paper, section on retrieval; research notes D8).

    Args:
        blocks: bytes of XML that together are one `<mediawiki>` document.
        where: the place they are read from; opens error messages.
        tally: counts the pages that are left out as "redirect", "namespace" and "bad", and lists the bad ones: those without
            title or id or of over 16 million characters.
        whole: whether the document must end; if not, it may stop between two pages, as it does between bz2 streams.

    Raises:
        IfqaError: reading a block fails, or the XML is not whole, is not a dump, or has an element without end; the
            message names the last whole page.
    """
    reader = _PageParser(where, tally)
    source = iter(blocks)
    block = b"\0"
    while block:
        try:
            block = next(source, b"")
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:  # not the data's fault
                raise
            raise reader.failure(
                f"the compressed data is truncated or damaged ({error}); fetch the file again"
            ) from error
        if not block and not whole and reader.depth == 1:
            return
        try:
            reader.feed(block)
        except IfqaError:
            yield from reader.pages  # these are whole: the damage comes after them
            raise
        except expat.ExpatError as error:
            yield from reader.pages
            what = expat.errors.messages[error.code]
            broken = f"XML ends or breaks at line {error.lineno} ({what}); fetch the file again"
            raise reader.failure(broken if reader.is_dump else f"not a MediaWiki XML dump ({what})") from error
        yield from reader.pages
        reader.pages.clear()


class _PageParser:
    """expat's callbacks; they append each article to `pages` when it ends."""

    def __init__(self, where: str, tally: SkippedPages) -> None:
        self.where, self.tally = where, tally
        self.pages: list[Page] = []
        self.is_dump = False
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.buffer_size = BLOCK
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.depth, self._number, self._last_title = 0, 0, ""
        self._namespaces: dict[str, str] = {}  # name -> number
        self._renamed: dict[str, str] = {}  # the dump's own prefixes of links -> the English ones
        self._values: dict[str, str] = {}
        self._pieces: list[str] = []
        self._length = 0
        self._untagged = 0

    def feed(self, data: bytes) -> None:
        """Parse the next block; an empty one is the end.

        Raises:
            IfqaError, expat.ExpatError: the data is not a dump.
        """
        self._untagged += len(data)
        self.parser.Parse(data, not data)
        if self._untagged > _UNTAGGED:  # expat keeps a tag that has not ended, and reads it again with each block
            raise self.failure(
                f"no tag ends in {_UNTAGGED >> 20} MB from line {self.parser.CurrentLineNumber} on, more than any page "
                "of a MediaWiki dump has; refused"
            )

    def failure(self, message: str) -> IfqaError:
        """A one-line error that names the last whole page."""
        reached = f" after page {self._number} ({self._last_title!r})" if self._number else ""
        return IfqaError(f"{self.where}{reached}: {message}")

    def _doctype(self, *_: object) -> None:
        raise self.failure("the XML declares a DTD, which no MediaWiki dump does; refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self.depth += 1
        self._untagged = 0
        if self.depth > _DEEPEST:
            line = self.parser.CurrentLineNumber
            raise self.failure(f"over {_DEEPEST} tags within one another at line {line}; refused")
        if self.depth == 1:
            self.is_dump = name == "mediawiki"
            if not self.is_dump:
                raise self.failure(f"not a MediaWiki XML dump: the root element is <{name}>, wanted <mediawiki>")
        elif self.depth == 2:
            self._values = {}
        elif self.depth == 3 and name == "redirect":
            self._values["redirect"] = ""
        elif (self.depth, name) in _COLLECTED and not (name == "text" and self._is_other()):
            self._values["key"] = attributes.get("key", "")
            self.parser.CharacterDataHandler = self._collect

    def _end(self, name: str) -> None:
        self._untagged = 0
        name = name.rpartition(":")[2]
        if self.parser.CharacterDataHandler is not None:
            self.parser.CharacterDataHandler = None
            value = "".join(self._pieces)
            self._pieces.clear()
            if self._length > LONGEST:
                self._values["too long"] = name
            self._length = 0
            self._values[name] = value
            if name == "namespace":
                self._namespaces[value] = self._values["key"]
                self._renamed = find_local_prefixes(self._namespaces)
        elif self.depth == 2 and name == "page":
            self._end_page()
        self.depth -= 1

    def _collect(self, text: str) -> None:
        self._length += len(text)
        if self._length <= LONGEST:
            self._pieces.append(text)

    def _is_other(self) -> bool:
        """Whether namespace or redirect already rule the page out, so that its text need not be kept."""
        return self._values.get("ns", "0").strip() != "0" or "redirect" in self._values

    def _end_page(self) -> None:
        values = self._values
        title, page_id, text = values.get("title", "").strip(), values.get("id", "").strip(), values.get("text", "")
        self._number, self._last_title = self._number + 1, title
        if self._is_other():
            self.tally.left_out["redirect" if "redirect" in values else "namespace"] += 1
        elif _REDIRECT.match(text):
            self.tally.left_out["redirect"] += 1
        elif not title or len(page_id.split()) != 1 or "too long" in values:
            reason = "no usable <title>" if not title else "no usable <id>"
            if "too long" in values:
                reason = f"<{values['too long']}> of more than {LONGEST:,} characters"
            self.tally.leave_out(page_id, title or f"page {self._number}", reason)
        else:
            self.pages.append(Page(page_id, title, translate_prefixes(text, self._renamed) if self._renamed else text))


@dataclass(frozen=True, slots=True)
class Streams:
    """Consecutive whole streams of a dump, with whole pages. `header` is the XML before the dump's first page."""

    header: bytes
    data: bytes
    first: bool
    last: bool
    where: str

    def xml(self) -> Iterator[bytes]:
        """The header and the pages as blocks of XML; only the last streams of a dump end the document.

        Raises:
            IfqaError: the streams unpack to so much that their passages would fill the memory.
            OSError: a stream is damaged.
            EOFError: the last one ends too early.
        """
        if not self.first:
            yield self.header
        size = 0
        for xml in _unpack(self.data):
            size += len(xml)
            if size > _UNPACKED:
                raise IfqaError(
                    f"{self.where}: {len(self.data):,} bytes unpack to over {_UNPACKED >> 20} MB, more than in "
                    f"any published dump; {_FROM_THE_FRONT}"
                )
            yield xml


def stream_header(path: Path) -> bytes | None:
    """The XML before the first page if a file is a multistream dump, else None.

    In a multistream dump the second stream begins with a page. Parallel packers also write many streams, but cut the
    XML anywhere.
    """
    with open(path, "rb") as handle:
        start = handle.read(2 * _LONGEST_STREAM)
    second = _STREAM.search(start, _MAGIC, _LONGEST_STREAM) if _STREAM.match(start) else None
    if second is None:
        return None
    try:
        opening = bz2.BZ2Decompressor().decompress(start, max_length=BLOCK)
        page = bz2.BZ2Decompressor().decompress(start[second.start() :], max_length=BLOCK)
    except OSError:  # damaged; reading it from the front says where
        return None
    if b"<mediawiki" not in opening or not _PAGE.match(page.lstrip()):
        return None
    first = _PAGE.search(opening)
    return opening[: first.start()].rstrip() if first else opening


def split_streams(path: Path, header: bytes, size: int) -> Iterator[Streams]:
    """Cut a multistream dump into pieces of as few streams as make `size` bytes.

    Raises:
        IfqaError: a stream is longer than in any published dump.
    """
    position, buffer, searched = 0, b"", 0
    with open(path, "rb") as handle:
        while True:
            chunk = handle.read(_CHUNK)
            buffer += chunk
            while (match := _STREAM.search(buffer, max(size, searched - _MAGIC))) is not None:
                yield Streams(header, buffer[: match.start()], position == 0, False, f"{path}, from byte {position:,}")
                position += match.start()
                buffer, searched = buffer[match.start() :], 0
            searched = len(buffer)
            if not chunk:
                break
            if len(buffer) > size + _LONGEST_STREAM:
                raise IfqaError(
                    f"{path}, from byte {position:,}: a stream of over {_LONGEST_STREAM >> 20} MB, which no published dump "
                    f"has; {_FROM_THE_FRONT}"
                )
    yield Streams(header, buffer, position == 0, True, f"{path}, from byte {position:,}")


def _unpack(data: bytes) -> Iterator[bytes]:
    # not bz2.open(): after the first stream it takes anything else for padding, and ends without an error
    source, stream, begun = BytesIO(data), bz2.BZ2Decompressor(), False
    chunk = source.read(BLOCK)
    while chunk or not stream.needs_input:
        begun = True
        if xml := stream.decompress(chunk, max_length=_PIECE):
            yield xml
        chunk = b""
        if stream.eof:
            chunk, stream, begun = stream.unused_data, bz2.BZ2Decompressor(), False
        if not chunk and stream.needs_input:
            chunk = source.read(BLOCK)
    if begun:
        raise EOFError("the last stream has no end")
