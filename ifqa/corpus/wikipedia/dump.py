"""Reads the pages of a MediaWiki dump (`enwiki-…-pages-articles.xml`), and splits a multistream
dump for parallel work.

The XML is fed to expat in blocks, so memory holds one page and one block. Any version of the export
schema with `<ns>` works: XML namespaces are ignored.

Wikimedia's `…-multistream.xml.bz2` consist of bz2 streams of 100 pages, which can be decompressed
in parallel. Each stream starts with ten fixed bytes, which occur by chance once in 10^24 bytes; so
we search for them, and do not need the published index file.
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
from ifqa.errors import FormatError, IfqaError

BLOCK = 1 << 18  # bytes of XML fed at a time
LONGEST = 1 << 24  # characters of a page; MediaWiki's limit is 2 MB
# Limits against files built to exhaust memory
_UNTAGGED = 1 << 25  # bytes of XML without the end of a tag; a page of 2 MB of "&quot;" has 12 MB
_DEEPEST = 100  # nested tags; real dumps have five
# (depth, name) of the elements whose text is kept: a page's <id> is at 3, its revision's at 4, a
# contributor's deeper.
_COLLECTED = {(3, "title"), (3, "ns"), (3, "id"), (4, "text"), (4, "namespace"), (4, "id")}
_REDIRECT = re.compile(r"\s*#\s*redirect\b", re.IGNORECASE)

_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_MAGIC = 10  # bytes
_PAGE = re.compile(rb"<(?:\w+:)?page[\s>]")
_CHUNK = 1 << 20
# Bytes of XML unpacked at a time: about one bzip2 block, so its tables stay in the cache
_PIECE = 1 << 20
_LONGEST_STREAM = 1 << 24  # bytes of a stream; published dumps have about a tenth of that
# Bytes of XML in a block of streams; 4 MB of a published dump unpack to about 20 MB
_UNPACKED = 1 << 28
_FROM_THE_FRONT = "unpack the file and name it without .bz2"


@dataclass(frozen=True, slots=True)
class Page:
    """An article."""

    id: str
    title: str
    # Plain text, or wikitext in which the prefixes that only the dump's siteinfo knows are
    # translated to English
    text: str
    # The number of a dump's revision; None for an article of plain text
    revision: int | None = None


def parse_pages(
    blocks: Iterable[bytes], where: str, tally: SkippedPages, *, complete: bool = True
) -> Iterator[Page]:
    """The articles of a dump in order: pages of the main namespace that are not redirects.

    Disambiguation pages are kept: without them, the dump of 2022-05-01 does not reach the 6,394,490
    pages of the IfQA paper.

    Args:
        blocks: bytes of XML that together are one `<mediawiki>` document.
        where: the file and offset; opens error messages.
        tally: counts the skipped pages as "redirect", "namespace" and "bad", and lists the bad
            ones: pages without title or id, or with over 16 million characters.
        complete: whether the document must be complete; if not, it may end between two pages, as
            bz2 streams do.
    """
    reader = _PageParser(where, tally)
    source = iter(blocks)
    block = b"\0"
    while block:
        try:
            block = next(source, b"")
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            # From the system, not the decompressor
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = f"the compressed data is truncated or damaged ({error}); fetch the file again"
            raise reader.failure(reason) from error
        if not block and not complete and reader.depth == 1:
            return
        try:
            reader.feed(block)
        except IfqaError:
            yield from reader.pages  # they precede the damage
            raise
        except expat.ExpatError as error:
            yield from reader.pages
            reason = expat.errors.messages[error.code]
            broken = (
                f"the XML is truncated or damaged at line {error.lineno} ({reason}); "
                "fetch the file again"
            )
            raise reader.failure(
                broken if reader.is_dump else f"not a MediaWiki XML dump ({reason})"
            ) from error
        yield from reader.pages
        reader.pages.clear()


class _PageParser:
    """Appends each complete article to `pages`, in callbacks of expat."""

    def __init__(self, where: str, tally: SkippedPages) -> None:
        self.where = where
        self.tally = tally
        self.pages: list[Page] = []
        self.is_dump = False
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.buffer_size = BLOCK
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.depth = 0
        self._number = 0
        self._last_title = ""
        self._namespaces: dict[str, str] = {}  # name -> number
        # The dump's own link prefixes -> the English ones
        self._local_prefixes: dict[str, str] = {}
        self._fields: dict[str, str] = {}  # of the current page
        self._pieces: list[str] = []
        self._length = self._untagged = 0

    def feed(self, block: bytes) -> None:
        """Parse the next block; an empty block ends the document."""
        self._untagged += len(block)
        self.parser.Parse(block, not block)
        if self._untagged > _UNTAGGED:  # expat scans an unfinished tag again with each block
            where = f"{_UNTAGGED >> 20} MB from line {self.parser.CurrentLineNumber} on"
            raise self.failure(
                f"no tag ends in {where}, more than any page of a MediaWiki dump has; refused"
            )

    def failure(self, message: str) -> FormatError:
        """An error that names the last complete page."""
        position = f" after page {self._number} ({self._last_title!r})" if self._number else ""
        return FormatError(f"{self.where}{position}: {message}")

    def _doctype(self, *_: object) -> None:
        raise self.failure("the XML declares a DTD, which no MediaWiki dump does; refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self.depth += 1
        self._untagged = 0
        if self.depth > _DEEPEST:
            raise self.failure(
                f"over {_DEEPEST} nested tags at line {self.parser.CurrentLineNumber}; refused"
            )
        if self.depth == 1:
            self.is_dump = name == "mediawiki"
            if not self.is_dump:
                raise self.failure(
                    f"not a MediaWiki XML dump: the root element is <{name}>, wanted <mediawiki>"
                )
        elif self.depth == 2:
            self._fields = {}
        elif self.depth == 3 and name == "redirect":
            self._fields["redirect"] = ""
        elif (self.depth, name) in _COLLECTED and not (name == "text" and self._is_other()):
            self._fields["key"] = attributes.get("key", "")
            self.parser.CharacterDataHandler = self._collect

    def _end(self, name: str) -> None:
        self._untagged = 0
        name = name.rpartition(":")[2]
        if self.parser.CharacterDataHandler is not None:
            self.parser.CharacterDataHandler = None
            text = "".join(self._pieces)
            self._fields["revision" if (self.depth, name) == (4, "id") else name] = text
            self._pieces.clear()
            if self._length > LONGEST:
                self._fields["too long"] = name
            self._length = 0
            if name == "namespace":
                self._namespaces[text] = self._fields["key"]
                self._local_prefixes = find_local_prefixes(self._namespaces)
        elif self.depth == 2 and name == "page":
            self._end_page()
        self.depth -= 1

    def _collect(self, text: str) -> None:
        self._length += len(text)
        if self._length <= LONGEST:
            self._pieces.append(text)

    def _is_other(self) -> bool:
        """Whether the page is a redirect or in another namespace, so that its text is not
        needed.
        """
        return self._fields.get("ns", "0").strip() != "0" or "redirect" in self._fields

    def _end_page(self) -> None:
        page = self._fields
        title = page.get("title", "").strip()
        page_id = page.get("id", "").strip()
        text = page.get("text", "")
        self._number = self._number + 1
        self._last_title = title
        if self._is_other():
            self.tally.left_out["redirect" if "redirect" in page else "namespace"] += 1
        elif _REDIRECT.match(text):
            self.tally.left_out["redirect"] += 1
        elif not title or len(page_id.split()) != 1 or "too long" in page:
            reason = "no usable <title>" if not title else "no usable <id>"
            if "too long" in page:
                reason = f"<{page['too long']}> of more than {LONGEST:,} characters"
            self.tally.leave_out(page_id, title or f"page {self._number}", reason)
        else:
            text = translate_prefixes(text, self._local_prefixes) if self._local_prefixes else text
            revision = page.get("revision", "").strip()
            # Fits 64 bits
            is_number = revision.isascii() and revision.isdecimal() and len(revision) < 19
            self.pages.append(Page(page_id, title, text, int(revision) if is_number else 0))


@dataclass(frozen=True, slots=True)
class Streams:
    """Consecutive complete streams of a dump, with complete pages."""

    header: bytes  # the XML before the dump's first page
    packed: bytes
    first: bool
    last: bool
    where: str

    def xml(self) -> Iterator[bytes]:
        """The header and the pages as blocks of XML.

        Only the last streams of a dump end the document.

        Raises OSError or EOFError if a stream is damaged or truncated.
        """
        if not self.first:
            yield self.header
        size = 0
        for xml in _unpack(self.packed):
            size += len(xml)
            if size > _UNPACKED:
                problem = (
                    f"{self.where}: {len(self.packed):,} bytes unpack to over {_UNPACKED >> 20} MB"
                )
                raise FormatError(f"{problem}, more than in any published dump; {_FROM_THE_FRONT}")
            yield xml


def stream_header(path: Path) -> bytes | None:
    """The XML before the first page of a multistream dump, whose second stream begins with a page.

    None for any other file.

    Parallel compressors also write many streams, but split the XML anywhere.
    """
    with open(path, "rb") as handle:
        start = handle.read(2 * _LONGEST_STREAM)
    second = _STREAM.search(start, _MAGIC, _LONGEST_STREAM) if _STREAM.match(start) else None
    if second is None:
        return None
    try:
        opening = bz2.BZ2Decompressor().decompress(start, max_length=BLOCK)
        page = bz2.BZ2Decompressor().decompress(start[second.start() :], max_length=BLOCK)
    except OSError:  # damaged; reading it from the start reports where
        return None
    if b"<mediawiki" not in opening or not _PAGE.match(page.lstrip()):
        return None
    first = _PAGE.search(opening)
    return opening[: first.start()].rstrip() if first else opening


def split_streams(path: Path, header: bytes, size: int) -> Iterator[Streams]:
    """Split a multistream dump into groups of streams of at least `size` bytes."""
    position = 0
    buffer = b""
    searched = 0
    with open(path, "rb") as handle:
        while True:
            chunk = handle.read(_CHUNK)
            buffer += chunk
            while (match := _STREAM.search(buffer, max(size, searched - _MAGIC))) is not None:
                yield Streams(
                    header,
                    buffer[: match.start()],
                    position == 0,
                    False,
                    f"{path}, from byte {position:,}",
                )
                position += match.start()
                buffer = buffer[match.start() :]
                searched = 0
            searched = len(buffer)
            if not chunk:
                break
            if len(buffer) > size + _LONGEST_STREAM:
                problem = (
                    f"{path}, from byte {position:,}: a stream of over {_LONGEST_STREAM >> 20} MB"
                )
                raise FormatError(f"{problem}, which no published dump has; {_FROM_THE_FRONT}")
    yield Streams(header, buffer, position == 0, True, f"{path}, from byte {position:,}")


def _unpack(content: bytes) -> Iterator[bytes]:
    # not bz2.open(): it ignores garbage after the first stream
    source = BytesIO(content)
    stream = bz2.BZ2Decompressor()
    unfinished = False
    chunk = source.read(BLOCK)
    while chunk or not stream.needs_input:
        unfinished = True
        if xml := stream.decompress(chunk, max_length=_PIECE):
            yield xml
        chunk = b""
        if stream.eof:
            chunk = stream.unused_data
            stream = bz2.BZ2Decompressor()
            unfinished = False
        if not chunk and stream.needs_input:
            chunk = source.read(BLOCK)
    if unfinished:
        raise EOFError("the last stream is truncated")
