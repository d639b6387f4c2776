"""Reads Wikimedia's dumps for random access (`…-multistream.xml.bz2`): bz2 streams of 100 pages each.

Each stream can be unpacked by itself, so all cores can work. Ten bytes open each stream; they occur in packed data by
chance once in 10^24 bytes. So a search for them finds the streams, and the published index file is not needed.
"""

import bz2
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from ifqa.corpus.wikipedia.dump import BLOCK
from ifqa.errors import IfqaError

_STREAM = re.compile(rb"BZh[1-9]1AY&SY")
_MAGIC = 10  # bytes
_PAGE = re.compile(rb"<(?:\w+:)?page[\s>]")
_CHUNK = 1 << 20
_BLOCK = 1 << 20  # bytes of XML unpacked at a time: about a block of bzip2, so that its tables stay in the cache
_LONGEST = 1 << 24  # bytes of a stream; streams of published dumps have about a tenth of that
_UNPACKED = 1 << 28  # bytes of XML in a block of streams; 4 MB of a published dump unpack to about 20 MB
_FROM_THE_FRONT = "unpack the file and name it without .bz2"


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


def header(path: Path) -> bytes | None:
    """The XML before the first page if a file is a multistream dump, else None.

    In a multistream dump the second stream begins with a page. Parallel packers also write many streams, but cut the
    XML anywhere.
    """
    with open(path, "rb") as handle:
        start = handle.read(2 * _LONGEST)
    second = _STREAM.search(start, _MAGIC, _LONGEST) if _STREAM.match(start) else None
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


def cut(path: Path, header: bytes, size: int) -> Iterator[Streams]:
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
            if len(buffer) > size + _LONGEST:
                raise IfqaError(
                    f"{path}, from byte {position:,}: a stream of over {_LONGEST >> 20} MB, which no published dump "
                    f"has; {_FROM_THE_FRONT}"
                )
    yield Streams(header, buffer, position == 0, True, f"{path}, from byte {position:,}")


def _unpack(data: bytes) -> Iterator[bytes]:
    # not bz2.open(): after the first stream it takes anything else for padding, and ends without an error
    decompressor, fresh, source = bz2.BZ2Decompressor(), True, BytesIO(data)
    chunk = source.read(BLOCK)
    while True:
        if out := decompressor.decompress(chunk, max_length=_BLOCK):
            yield out
        fresh = fresh and not chunk
        chunk = b""
        if decompressor.eof:
            chunk, decompressor, fresh = decompressor.unused_data, bz2.BZ2Decompressor(), True
        if not chunk and (fresh or decompressor.needs_input):
            chunk = source.read(BLOCK)
            if not chunk:
                break
    if not fresh:
        raise EOFError("the last stream has no end")
