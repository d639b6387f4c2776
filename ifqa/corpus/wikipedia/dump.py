"""Pages out of a MediaWiki dump (`enwiki-…-pages-articles.xml`).

The XML is fed to expat in blocks, so memory holds one page and one block whatever the dump's size; a page of more text
than MediaWiki allows is left out. Any version of the export schema is read: names are taken without their XML
namespace, and where old dumps say neither `<ns>` nor `<redirect>`, the title's prefix and the text's first word do.
"""

import codecs
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NoReturn
from xml.parsers import expat

from ifqa.corpus.wikipedia.namespaces import in_english, unknown_names
from ifqa.errors import IfqaError

Disambiguation = Literal["keep", "drop"]

BLOCK = 1 << 18  # bytes of XML fed at a time
LONGEST = 1 << 24  # characters of a page; MediaWiki itself takes 2 MB
# What only a file made to fill the memory holds. A page of 2 MB is 12 MB of XML if all of it is "&quot;"; real tags stand
# five deep.
_UNTAGGED = 1 << 25  # bytes of XML without the end of a tag
_DEEPEST = 100
# (depth, name) of the elements whose text is wanted; revisions and contributors have an <id> too, further down.
_COLLECTED = {(3, "title"), (3, "ns"), (3, "id"), (4, "text")}
_REDIRECT = re.compile(r"\s*#\s*redirect\b", re.IGNORECASE)
# {{disambiguation}}, {{hndis}}, {{place name disambiguation|…}}; not {{disambiguation needed}}, seen in articles
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:[\w -]*(?:disambig|disambiguation|disamb|dab)|(?:hn|geo|road|school|number)dis)\s*[|}]|__DISAMBIG__",
    re.IGNORECASE,
)
# What XML forbids: expat would refuse the whole dump for one such character in one page.
_FORBIDDEN = bytes(code for code in range(32) if code not in b"\t\n\r")
_FORBIDDEN_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_BROKEN = "\U0010fffd"  # stands for it until the page is whole: allowed in XML, and in no article
_BROKEN_ENTITY = re.compile(rf"&(?=[^;<]{{0,6}}{_BROKEN})")  # a bad byte may have hit "&quot;"
codecs.register_error("ifqa-broken", lambda error: (_BROKEN, getattr(error, "end", 0)))


@dataclass(frozen=True, slots=True)
class Page:
    """An article: `text` is plain text when it comes out of an article file, wikitext when it comes out of a dump.

    There its links name files and categories in English, if the dump's siteinfo has names for them that no table knows.
    """

    id: str
    title: str
    text: str


@dataclass
class Tally:
    """What a reading passed over: how many pages by reason, and each bad page with id, title and what is wrong."""

    left_out: Counter[str] = field(default_factory=Counter)
    bad: list[dict[str, str]] = field(default_factory=list)


def is_disambiguation(page: Page) -> bool:
    """Whether a page of wikitext says of itself that it only lists the articles its title may mean."""
    return page.title.endswith("(disambiguation)") or _DISAMBIGUATION.search(page.text) is not None


def parse_pages(
    blocks: Iterable[bytes], where: str, tally: Tally, *, disambiguation: Disambiguation = "keep", whole: bool = True
) -> Iterator[Page]:
    """The articles of a dump, in its order: pages of the main namespace that are no redirects.

    Disambiguation pages are kept by default: the 6,394,490 pages that IfQA's authors count in the dump of 2022-05-01
    can only be reached with them (paper, section on retrieval; research notes D8).

    Args:
        blocks: bytes of XML that together make one `<mediawiki>` document.
        where: what they are read from; it opens error messages.
        tally: counts the pages passed over, as "redirect", "namespace", "disambiguation" and "bad", and lists the bad
            ones: those without title or id and those of over 16 million characters, which are left out, and those
            with bytes that are no UTF-8 or characters that XML forbids, which stay, with U+FFFD in their place.
        disambiguation: "keep" or "drop" pages that only list the articles their title may mean.
        whole: whether the document must end; else it may stop between two pages, as it does between bz2 streams.

    Raises:
        IfqaError: reading a block fails, or the XML is not whole, not a dump, or endless in one place; the message names
            the last whole page.
    """
    reader = _Reader(where, tally, disambiguation)
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
            yield from reader.pages  # they are whole; what breaks comes after them
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
    """Puts a mark where bytes are no UTF-8, and where XML forbids a character, so that one page is bad and not all."""

    def __init__(self) -> None:
        self._rest = b""  # of a character or an entity that the end of a block cut

    def mend(self, block: bytes) -> bytes | str:
        """The whole characters there are so far; with b"" what is left."""
        data = self._rest + block if self._rest else block
        held, entity = b"", data.rfind(b"&", max(0, len(data) - 8))
        if block and entity >= 0 and b";" not in data[entity:]:  # it goes on in the next block
            data, held = data[:entity], data[entity:]
        text, used = codecs.utf_8_decode(data, "ifqa-broken", not block or bool(held))
        self._rest = data[used:] + held
        broken = any(char in text for char in (_BROKEN, "\ufffe", "\uffff"))
        if broken or len(data.translate(None, _FORBIDDEN)) < len(data):
            return _BROKEN_ENTITY.sub("&amp;", _FORBIDDEN_CHARACTERS.sub(_BROKEN, text))
        return data[:used]


class _Reader:
    """expat's callbacks: `pages` fills up with the articles that have ended."""

    def __init__(self, where: str, tally: Tally, disambiguation: Disambiguation) -> None:
        self.where, self.tally, self._disambiguation = where, tally, disambiguation
        self.pages: list[Page] = []
        self.began = self.is_dump = False
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.buffer_size = BLOCK
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.depth, self._number, self._last_title = 0, 0, ""
        # The other namespaces, name -> number, for dumps whose pages have no <ns>; and what to call them in links
        self._namespaces: dict[str, str] = {}
        self._renamed: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._pieces: list[str] = []
        self._length = 0
        self._untagged = 0

    def feed(self, data: bytes | str, last: bool) -> None:
        """Parse on.

        Raises:
            IfqaError, expat.ExpatError: what is there is no dump.
        """
        self._untagged += len(data)
        self.parser.Parse(data, last)
        if self._untagged > _UNTAGGED:  # expat keeps an unended tag, and reads it again with each block
            self.fail(
                f"no tag ends in {_UNTAGGED >> 20} MB from line {self.parser.CurrentLineNumber} on, more than any page "
                "of a MediaWiki dump has; refused"
            )

    def fail(self, message: str, cause: Exception | None = None) -> NoReturn:
        """One line, which says how far the reading came."""
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
        """Whether what is known of the page before its text rules it out, so that the text need not be kept."""
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
            if self._disambiguation == "drop" and is_disambiguation(page):
                self.tally.left_out["disambiguation"] += 1
            else:
                self.pages.append(page)

    def _note(self, reason: str) -> None:
        page_id, title = (self._values.get(key, "").strip().replace(_BROKEN, "\ufffd") for key in ("id", "title"))
        self.tally.bad.append({"id": page_id, "title": title or f"page {self._number}", "reason": reason})
