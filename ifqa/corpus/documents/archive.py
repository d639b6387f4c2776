"""Unpacks, within limits, the zip archives of XML that documents of Office, OpenDocument and
e-books are, and parses their XML.
"""

import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from xml.etree.ElementTree import Element, ParseError
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from ifqa.corpus.documents.decoding import UnreadableFile, xml_source

# Bytes of an unpacked file of an archive; its tree takes ten times the memory
LARGEST_PART = 1 << 25
LARGEST = 1 << 28  # bytes of all unpacked files
DEEPEST = 250  # elements within one another; readers go down by recursion
# A document type that only names where its definition is: it cannot define an entity
_NAMED_TYPE = re.compile(rb"\A(\s*(?:<\?xml[^<>]*>\s*)?)<!DOCTYPE\s[^<>\[\]]*>")
BROKEN = (BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, OSError, zlib.error)


class Archive:
    """A zip archive in memory.

    An archive within another one shares the limit of `outer`. Raises UnreadableFile if it is
    damaged, or a file is missing or too large.
    """

    def __init__(self, content: bytes, outer: "Archive | None" = None) -> None:
        # How Office packs an encrypted document, and its older kinds
        if content.startswith(b"\xd0\xcf\x11\xe0"):
            raise UnreadableFile("it needs a password, or is of a version of Office before 2007")
        try:
            self._zip = ZipFile(BytesIO(content))
        except BROKEN as error:
            raise UnreadableFile(f"not a complete zip archive ({error})") from error
        self._outer = outer
        self._remaining = outer.remaining if outer else LARGEST
        self.names = frozenset(self._zip.namelist())

    @property
    def remaining(self) -> int:
        """The bytes that may still be unpacked."""
        return self._remaining

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
        self._spend(len(content))
        return content

    def _spend(self, count: int) -> None:
        self._remaining -= count
        if self._outer:
            self._outer._spend(count)

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
        """Parse an XML file of the archive."""
        return parse_xml(self.read(name), f"{name} in it")


def parse_xml(content: bytes, what: str) -> Element:
    """Parse XML without entities of its own, which could expand without limit.

    `what` names it in the reason of UnreadableFile.
    """
    content = _NAMED_TYPE.sub(rb"\1", content, count=1)
    try:
        tree: Element = fromstring(xml_source(content), forbid_dtd=True)
    except DefusedXmlException as error:
        raise UnreadableFile(f"{what} declares a document type; wanted plain XML") from error
    except (ParseError, ValueError, LookupError) as error:  # the last two: an unknown encoding
        raise UnreadableFile(f"{what} is not XML ({error})") from error
    level = [tree]
    for _ in range(DEEPEST):
        level = [child for element in level for child in element]
        if not level:
            return tree
    raise UnreadableFile(f"the elements of {what} are nested too deeply")
