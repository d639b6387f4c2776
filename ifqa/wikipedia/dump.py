"""Pages out of a MediaWiki dump (`enwiki-…-pages-articles.xml`, .bz2 with one stream or many, .gz, .xz).

The XML is fed to expat in blocks, so memory holds one page and one block whatever the dump's size. Any version of the
export schema is read: names are taken without their XML namespace, and where old dumps say neither `<ns>` nor
`<redirect>`, the title's prefix and the text's first word do.
"""

import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NoReturn, get_args
from xml.parsers import expat

from ifqa.errors import IfqaError
from ifqa.files import open_read, require

Disambiguation = Literal["keep", "drop"]

_BLOCK = 1 << 18
# (depth, name) of the elements whose text is wanted; revisions and contributors have an <id> too, further down.
_COLLECTED = {(3, "title"), (3, "ns"), (3, "id"), (4, "text"), (4, "namespace")}
_REDIRECT = re.compile(r"\s*#\s*redirect\b", re.IGNORECASE)
# {{disambiguation}}, {{hndis}}, {{place name disambiguation|…}}; not {{disambiguation needed}}, seen in articles
_DISAMBIGUATION = re.compile(
    r"\{\{\s*(?:[\w -]*(?:disambig|disambiguation|disamb|dab)|(?:hn|geo|road|school|number)dis)\s*[|}]|__DISAMBIG__",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Page:
    """An article: `text` is wikitext when it comes out of a dump, plain text when it comes out of an article file."""

    id: str
    title: str
    text: str


def read_pages(
    path: Path, *, disambiguation: Disambiguation = "keep", left_out: Counter[str] | None = None
) -> Iterator[Page]:
    """The articles of a dump, in its order: pages of the main namespace that are no redirects.

    Disambiguation pages are kept by default: the 6,394,490 pages that IfQA's authors count in the dump of 2022-05-01
    can only be reached with them (paper, section on retrieval; research notes D8). Pages that are passed over are
    counted in `left_out` under "redirect", "namespace" and "disambiguation".

    Raises:
        IfqaError: the file is missing, cut short, damaged or not a MediaWiki dump, or a page has no title or id; the
            message names the last page that was whole.
    """
    if disambiguation not in get_args(Disambiguation):
        raise IfqaError(f'disambiguation = {disambiguation!r} is not a setting; wanted "keep" or "drop"')
    counts: Counter[str] = Counter() if left_out is None else left_out
    for page in parse_pages(_blocks(path), str(path), counts):
        if disambiguation == "drop" and is_disambiguation(page):
            counts["disambiguation"] += 1
        else:
            yield page


def is_disambiguation(page: Page) -> bool:
    """Whether a page of wikitext says of itself that it only lists the articles its title may mean."""
    return page.title.endswith("(disambiguation)") or _DISAMBIGUATION.search(page.text) is not None


def parse_pages(blocks: Iterable[bytes], where: str, left_out: Counter[str]) -> Iterator[Page]:
    """The articles in blocks of XML that together make one `<mediawiki>` document; `where` opens error messages.

    Raises:
        IfqaError: reading a block fails, the XML is not whole or not a dump, or a page has no title or id.
    """
    reader = _Reader(where, left_out)
    source = iter(blocks)
    while True:
        try:
            block = next(source, b"")
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            reader.fail(f"compressed data ends or breaks ({error}); fetch the file again", error)
        try:
            reader.parser.Parse(block, not block)
        except IfqaError:
            yield from reader.pages  # they are whole; what breaks comes after them
            raise
        except LookupError as error:
            reader.fail(f"an encoding nobody knows ({error})", error)
        except expat.ExpatError as error:
            yield from reader.pages
            if not reader.is_dump:
                reader.fail("not a MediaWiki XML dump", error)
            what = expat.errors.messages[error.code]
            reader.fail(f"XML ends or breaks at line {error.lineno} ({what}); fetch the file again", error)
        yield from reader.pages
        reader.pages.clear()
        if not block:
            return


def _blocks(path: Path) -> Iterator[bytes]:
    if require(path, "dump").is_dir():
        raise IfqaError(f"{path} is a folder; wanted a dump file (.xml, .xml.bz2, .xml.gz or .xml.xz)")
    with open_read(path) as handle:
        while block := handle.read(_BLOCK):
            yield block


class _Reader:
    """expat's callbacks: `pages` fills up with the articles that have ended."""

    def __init__(self, where: str, left_out: Counter[str]) -> None:
        self.where, self.left_out = where, left_out
        self.pages: list[Page] = []
        self.is_dump = False
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.buffer_size = _BLOCK
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self._depth, self._number, self._last_title = 0, 0, ""
        self._namespaces: set[str] = set()  # names of the other namespaces, for dumps whose pages have no <ns>
        self._values: dict[str, str] = {}
        self._pieces: list[str] = []

    def fail(self, message: str, cause: Exception | None = None) -> NoReturn:
        """One line, which says how far the reading came."""
        reached = f" after page {self._number} ({self._last_title!r})" if self._number else ""
        raise IfqaError(f"{self.where}{reached}: {message}") from cause

    def _doctype(self, *_: object) -> None:
        self.fail("the XML declares a DTD, which no MediaWiki dump does; refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._depth += 1
        if self._depth == 1:
            if name != "mediawiki":
                self.fail(f"not a MediaWiki XML dump: the root element is <{name}>, wanted <mediawiki>")
            self.is_dump = True
        elif self._depth == 2:
            self._values = {}
        elif self._depth == 3 and name == "redirect":
            self._values["redirect"] = attributes.get("title", "")
        elif (self._depth, name) in _COLLECTED and not (name == "text" and self._is_other()):
            self.parser.CharacterDataHandler = self._pieces.append

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if self.parser.CharacterDataHandler is not None:
            self.parser.CharacterDataHandler = None
            value = "".join(self._pieces)
            self._pieces.clear()
            if name == "namespace":
                self._namespaces.add(value)
            else:
                self._values[name] = value
        elif self._depth == 2 and name == "page":
            self._end_page()
        self._depth -= 1

    def _is_other(self) -> bool:
        """Whether what is known of the page before its text rules it out, so that the text need not be kept."""
        prefix, colon, _ = self._title().partition(":")
        namespace = self._values.get("ns", "other" if colon and prefix in self._namespaces else "0")
        return namespace.strip() != "0" or "redirect" in self._values

    def _title(self) -> str:
        return self._values.get("title", "").strip()

    def _end_page(self) -> None:
        title, page_id = self._title(), self._values.get("id", "").strip()
        for what, value in (("title", title), ("id", page_id)):
            if not value or (what == "id" and len(value.split()) > 1):
                line = self.parser.CurrentLineNumber
                self.fail(f"page {self._number + 1} ({title!r}), which ends at line {line}, has no usable <{what}>")
        self._number, self._last_title = self._number + 1, title
        text = self._values.get("text", "")
        if self._is_other():
            self.left_out["redirect" if "redirect" in self._values else "namespace"] += 1
        elif _REDIRECT.match(text):
            self.left_out["redirect"] += 1
        else:
            self.pages.append(Page(page_id, title, text))
