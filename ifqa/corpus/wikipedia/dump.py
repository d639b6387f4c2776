"""Reads the pages of a MediaWiki dump (`enwiki-…-pages-articles.xml`).

The XML is fed to expat in blocks, so memory holds one page and one block for a dump of any size. A page of more text
than MediaWiki allows is left out. Any version of the export schema works: names are read without their XML namespace,
and old dumps without `<ns>` and `<redirect>` are read by the title's prefix and the text's first word.
"""

import codecs
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn
from xml.parsers import expat

from ifqa.corpus.wikipedia.cleanup import in_english, unknown_names
from ifqa.corpus.work_units import Tally
from ifqa.errors import IfqaError

BLOCK = 1 << 18  # bytes of XML fed at a time
LONGEST = 1 << 24  # characters of a page; MediaWiki itself takes 2 MB
# Beyond these bounds a file was made to fill the memory. A page of 2 MB is 12 MB of XML if all of it is "&quot;"; real
# tags are nested five deep.
_UNTAGGED = 1 << 25  # bytes of XML without the end of a tag
_DEEPEST = 100
# (depth, name) of the elements whose text is kept; revisions and contributors have an <id>, too, but deeper.
_COLLECTED = {(3, "title"), (3, "ns"), (3, "id"), (4, "text")}
_REDIRECT = re.compile(r"\s*#\s*redirect\b", re.IGNORECASE)
# XML forbids these characters: expat would refuse the whole dump for one of them in one page.
_FORBIDDEN = bytes(code for code in range(32) if code not in b"\t\n\r")
_FORBIDDEN_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BROKEN = "\U0010fffd"  # stands for a forbidden character until the page is whole: XML allows it, no article has it
_BROKEN_ENTITY = re.compile(rf"&(?=[^;<]{{0,6}}{_BROKEN})")  # a bad byte may be inside "&quot;"
codecs.register_error("ifqa-broken", lambda error: (_BROKEN, getattr(error, "end", 0)))


@dataclass(frozen=True, slots=True)
class Page:
    """An article: `text` is plain text if it comes from an article file, wikitext if it comes from a dump.

    In wikitext, links to files and categories have their English prefix if only the dump's siteinfo knows the prefix.
    """

    id: str
    title: str
    text: str


def parse_pages(blocks: Iterable[bytes], where: str, tally: Tally, *, whole: bool = True) -> Iterator[Page]:
    """The articles of a dump in order: pages of the main namespace that are not redirects.

    Disambiguation pages are kept: without them, the dump of 2022-05-01 cannot have the 6,394,490 pages that
    IfQA's authors count (paper, section on retrieval; research notes D8).

    Args:
        blocks: bytes of XML that together are one `<mediawiki>` document.
        where: the place they are read from; opens error messages.
        tally: counts the pages that are left out as "redirect", "namespace" and "bad", and lists the
            bad pages. Pages without title or id or of over 16 million characters are left out. Pages with bytes that
            are not UTF-8 or characters that XML forbids are kept and listed, with U+FFFD for these bytes.
        whole: whether the document must end; if not, it may stop between two pages, as it does between bz2 streams.

    Raises:
        IfqaError: reading a block fails, or the XML is not whole, is not a dump, or has an element without end; the
            message names the last whole page.
    """
    reader = _Reader(where, tally)
    clean = _Cleaner()
    source = iter(blocks)
    while True:
        try:
            block = next(source, b"")
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if isinstance(error, OSError) and error.errno is not None:  # not the data's fault
                raise
            reader.fail(f"compressed data ends or breaks ({error}); fetch the file again", error)
        if not block and not whole and reader.depth == 1:
            return
        reader.began = reader.began or bool(block)
        try:
            reader.feed(clean.mend(block), not block)
        except IfqaError:
            yield from reader.pages  # these are whole: the damage comes after them
            raise
        except expat.ExpatError as error:
            yield from reader.pages
            if not reader.is_dump:
                reader.fail("not a MediaWiki XML dump" if reader.began else "nothing is in it", error)
            what = expat.errors.messages[error.code]
            reader.fail(f"XML ends or breaks at line {error.lineno} ({what}); fetch the file again", error)
        yield from reader.pages
        reader.pages.clear()
        if not block:
            return


class _Cleaner:
    """Puts a mark for bytes that are not UTF-8 and characters that XML forbids, so that only their page is bad."""

    def __init__(self) -> None:
        self._rest = b""  # the start of a character or an entity that the end of a block cut

    def mend(self, block: bytes) -> bytes | str:
        """The whole characters so far, mended; b"" as the block returns the rest."""
        data = self._rest + block if self._rest else block
        held, entity = b"", data.rfind(b"&", max(0, len(data) - 8))
        if block and entity >= 0 and b";" not in data[entity:]:  # it continues in the next block
            data, held = data[:entity], data[entity:]
        text, used = codecs.utf_8_decode(data, "ifqa-broken", not block or bool(held))
        self._rest = data[used:] + held
        broken = any(char in text for char in (_BROKEN, "\ufffe", "\uffff"))
        if broken or len(data.translate(None, _FORBIDDEN)) < len(data):
            return _BROKEN_ENTITY.sub("&amp;", _FORBIDDEN_CHARACTERS.sub(_BROKEN, text))
        return data[:used]


class _Reader:
    """expat's callbacks; they append each article to `pages` when it ends."""

    def __init__(self, where: str, tally: Tally) -> None:
        self.where, self.tally = where, tally
        self.pages: list[Page] = []
        self.began = self.is_dump = False
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.buffer_size = BLOCK
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.depth, self._number, self._last_title = 0, 0, ""
        # Namespaces by name -> number, for pages without <ns>; and English names for links, by the dump's own names
        self._namespaces: dict[str, str] = {}
        self._renamed: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._pieces: list[str] = []
        self._length = 0
        self._untagged = 0

    def feed(self, data: bytes | str, last: bool) -> None:
        """Parse the next block.

        Raises:
            IfqaError, expat.ExpatError: the data is not a dump.
        """
        self._untagged += len(data)
        self.parser.Parse(data, last)
        if self._untagged > _UNTAGGED:  # expat keeps a tag that has not ended, and reads it again with each block
            self.fail(
                f"no tag ends in {_UNTAGGED >> 20} MB from line {self.parser.CurrentLineNumber} on, more than any page "
                "of a MediaWiki dump has; refused"
            )

    def fail(self, message: str, cause: Exception | None = None) -> NoReturn:
        """Raise a one-line error that names the last whole page."""
        reached = f" after page {self._number} ({self._last_title!r})" if self._number else ""
        raise IfqaError(f"{self.where}{reached}: {message}") from cause

    def _doctype(self, *_: object) -> None:
        self.fail("the XML declares a DTD, which no MediaWiki dump does; refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self.depth += 1
        self._untagged = 0
        if self.depth > _DEEPEST:
            self.fail(f"over {_DEEPEST} tags within one another at line {self.parser.CurrentLineNumber}; refused")
        if self.depth == 1:
            if name != "mediawiki":
                self.fail(f"not a MediaWiki XML dump: the root element is <{name}>, wanted <mediawiki>")
            self.is_dump = True
        elif self.depth == 2:
            self._values = {}
        elif self.depth == 3 and name == "redirect":
            self._values["redirect"] = attributes.get("title", "")
        elif (self.depth, name) == (4, "namespace"):
            self._values["key"] = attributes.get("key", "")
            self.parser.CharacterDataHandler = self._collect
        elif (self.depth, name) in _COLLECTED and not (name == "text" and self._is_other()):
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
            if name == "namespace":
                self._namespaces[value] = self._values["key"]
                self._renamed = unknown_names(self._namespaces)
            else:
                self._values[name] = value
        elif self.depth == 2 and name == "page":
            self._end_page()
        self.depth -= 1

    def _collect(self, text: str) -> None:
        self._length += len(text)
        if self._length <= LONGEST:
            self._pieces.append(text)

    def _is_other(self) -> bool:
        """Whether namespace or redirect already rule the page out, so that its text need not be kept."""
        prefix, colon, _ = self._title().partition(":")
        namespace = self._values.get("ns", "other" if colon and prefix in self._namespaces else "0")
        return namespace.strip() != "0" or "redirect" in self._values

    def _title(self) -> str:
        return self._values.get("title", "").strip()

    def _end_page(self) -> None:
        title, page_id, text = self._title(), self._values.get("id", "").strip(), self._values.get("text", "")
        self._number, self._last_title = self._number + 1, title
        if self._is_other():
            self.tally.left_out["redirect" if "redirect" in self._values else "namespace"] += 1
        elif not title or len(page_id.split()) != 1 or "too long" in self._values:
            too_long = f"<{self._values.get('too long')}> of more than {LONGEST:,} characters"
            missing = "no usable <title>" if not title else "no usable <id>"
            self._note(too_long if "too long" in self._values else missing)
            self.tally.left_out["bad"] += 1
        elif _REDIRECT.match(text):
            self.tally.left_out["redirect"] += 1
        else:
            page = Page(page_id, title, text)
            if _BROKEN in title or _BROKEN in text:
                self._note("kept with U+FFFD for bytes that are no UTF-8 or characters that XML forbids")
                page = Page(page_id, title.replace(_BROKEN, "\ufffd"), text.replace(_BROKEN, "\ufffd"))
            if self._renamed:
                page = Page(page.id, page.title, in_english(page.text, self._renamed))
            self.pages.append(page)

    def _note(self, reason: str) -> None:
        page_id, title = (self._values.get(key, "").strip().replace(_BROKEN, "\ufffd") for key in ("id", "title"))
        self.tally.note(page_id, title or f"page {self._number}", reason)
