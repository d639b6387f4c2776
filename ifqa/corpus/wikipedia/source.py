"""Sources of pages that become passages: dumps of a MediaWiki, and articles of plain text."""

import hashlib
import re
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

from pydantic import Field

from ifqa.corpus.source_files import SAMPLED, FileSource, files_below, in_order
from ifqa.corpus.store import hash_id, id_bytes, passage_line
from ifqa.corpus.wikipedia import multistream, wikitext
from ifqa.corpus.wikipedia.articles import read_articles
from ifqa.corpus.wikipedia.dump import BLOCK, Disambiguation, Page, parse_pages
from ifqa.corpus.wikipedia.multistream import Streams
from ifqa.corpus.wikipedia.wikitext import Profile, to_text
from ifqa.corpus.work_units import (
    NO_FILES,
    FileRecords,
    Known,
    QuestionsOf,
    Shard,
    Source,
    Tally,
    WorkUnit,
    hashed_text,
)
from ifqa.errors import IfqaError
from ifqa.settings import Positive
from ifqa.storage.files import unpack

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIPE = "-"  # the path of standard input
PACKED = 1 << 22  # bytes of bz2 streams in a unit: about 5,000 passages of enwiki
TEXT = 1 << 23  # characters of pages in a unit
_EMPTY = 200  # characters added for each page: an empty page takes memory, too


def split(text: str, words: int = 100, wrap: bool = True) -> list[str]:
    """Split an article into disjoint passages of `words` words; words are separated by white space.

    The last passage may be shorter. With `wrap` it is filled up with the article's first words, each used at most once
    more: an article of 130 words gives a second passage of its last 30 and first 70 words, an article of 19 words gives
    one passage of 38 words. IfQA's gold passages are cut this way (research notes D8: 4,202 of 4,223 have exactly 100
    words).

    Raises:
        IfqaError: `words` is less than 1.
    """
    if words < 1:
        raise IfqaError(f"passages of {words} words are impossible; wanted words >= 1")
    article = text.split()
    passages = [article[start : start + words] for start in range(0, len(article), words)]
    if wrap and passages:
        passages[-1] += article[: words - len(passages[-1])]
    return [" ".join(passage) for passage in passages]


@dataclass(frozen=True, kw_only=True)
class _PagesUnit(WorkUnit):
    """Whole pages. Its `settings` have a "profile" if they are wikitext."""

    @abstractmethod
    def pages(self, tally: Tally) -> Iterable[Page]:
        """The unit's pages; `tally` counts those that are left out."""

    def make_shard(self) -> Shard:
        tally, words, wrap = self.tally.copy(), self.settings["words"], self.settings["wrap"]
        lines: list[bytes] = []
        pages = count = 0
        for page in self.pages(tally):
            text = to_text(page.text, self.settings["profile"]) if "profile" in self.settings else page.text
            passages = split(text, words=words, wrap=wrap)
            lines += [
                passage_line(f"{page.id}-{number}", page.title, passage) for number, passage in enumerate(passages)
            ]
            pages += 1
            if passages:
                count += (len(passages) - 1) * words + passages[-1].count(" ") + 1
            else:
                tally.left_out["empty"] += 1
        return Shard(b"".join(lines), pages, len(lines), count, tally)


@dataclass(frozen=True, kw_only=True)
class _PageUnit(_PagesUnit):
    """Pages that this process has read."""

    content: Sequence[Page]

    def hashed(self) -> Iterator[bytes]:
        return (hashed_text(page.id, page.title, page.text) for page in self.content)

    def pages(self, tally: Tally) -> Iterable[Page]:
        return self.content


@dataclass(frozen=True, kw_only=True)
class _StreamsUnit(_PagesUnit):
    """Streams of a dump for random access, which the process that makes the shard unpacks and parses."""

    content: Streams

    def hashed(self) -> Iterator[bytes]:
        yield b"%d %d " % (self.content.first, self.content.last) + self.content.header
        yield self.content.data

    def pages(self, tally: Tally) -> Iterable[Page]:
        choice = self.settings["disambiguation"]
        return parse_pages(self.content.xml(), self.where, tally, disambiguation=choice, whole=self.content.last)


def _page_units(
    pages: Iterable[tuple[Page, int]], where: str, settings: Mapping[str, object], tally: Tally
) -> Iterator[_PageUnit]:
    """Units of 8 million characters of pages; each page comes with the bytes read so far.

    When a unit is full, it takes the counts in `tally` with it.
    """
    content: list[Page] = []
    size = start = position = 0

    def unit() -> _PageUnit:
        at, left_out = f"{where}, from byte {start:,}", tally.copy()
        tally.clear()
        return _PageUnit(content=content, where=at, read=position - start, settings=settings, tally=left_out)

    for page, position in pages:
        content.append(page)
        size += len(page.text) + _EMPTY
        if size >= TEXT:
            yield unit()
            content, size, start = [], 0, position
    if content or tally.left_out or tally.bad:
        yield unit()


@dataclass
class Dump(FileSource):
    """MediaWiki pages-articles dumps: .xml, plain or packed with bzip2 (one stream or many), gzip or xz.

    Args:
        path: a file; a folder or a pattern (`enwiki-*.xml-p*.bz2`) for several files, read in the order of the numbers
            in their names; "-" for standard input.
        profile: "ifqa" gives text like that of the IfQA release, "release" also repeats the release's losses.
        disambiguation: "keep" or "drop" disambiguation pages.
        words: words of a passage, split at white space.
        wrap: fill an article's last passage up to `words` with the article's first words.
    """

    format = "dump"
    needs = "the Wikipedia dump"
    names = re.compile(r".*\.xml(-p\d+p\d+)?(\.(bz2|gz|xz))?")
    wanted = "no dump (.xml, .xml.bz2, .xml.gz or .xml.xz)"

    profile: Profile = "ifqa"
    disambiguation: Disambiguation = "keep"
    words: Positive = 100
    wrap: bool = True

    @classmethod
    def open(cls, settings: Mapping[str, Any], root: Path, questions_of: QuestionsOf) -> Source:
        if settings["path"] == PIPE:
            return PipedDump(**settings)
        return super().open(settings, root, questions_of)

    def units_of(self, file: Path) -> Iterator[WorkUnit]:
        header = multistream.header(file)
        if header is not None:
            yield from map(self._streams_unit, multistream.cut(file, header, PACKED))
        else:
            with open(file, "rb") as handle:
                yield from self.in_turn(handle, str(file), handle.tell)

    def sample_of(self, file: Path) -> Iterator[WorkUnit]:
        header = multistream.header(file)
        if header is None:
            return super().sample_of(file)
        places = max(1, SAMPLED // len(self.files()))
        return map(self._streams_unit, multistream.sample(file, header, places))

    def in_turn(self, handle: BufferedReader, where: str, position: Callable[[], int]) -> Iterator[WorkUnit]:
        """Units of a dump that can only be read from its first byte on: this process unpacks and parses it."""
        tally = Tally()
        with unpack(handle) as xml:
            chunks = iter(lambda: xml.read(BLOCK), b"")
            pages = parse_pages(chunks, where, tally, disambiguation=self.disambiguation)
            yield from _page_units(((page, position()) for page in pages), where, self._splitting, tally)

    @property
    def _splitting(self) -> dict[str, object]:
        """How pages become passages. "text" is the version of `to_text`."""
        return {key: value for key, value in self.settings().items() if key != "format"}

    def _streams_unit(self, streams: Streams) -> WorkUnit:
        return _StreamsUnit(content=streams, where=streams.where, read=len(streams.data), settings=self._splitting)

    def settings(self) -> dict[str, object]:
        return super().settings() | {"text": wikitext.VERSION}

    def files_in(self, folder: Path) -> list[Path]:
        return in_order(file for file in folder.iterdir() if self.names.fullmatch(file.name))


@dataclass
class PipedDump(Dump):
    """A dump on standard input."""

    def work_units(self, earlier: FileRecords = NO_FILES) -> Iterator[WorkUnit]:
        """As `Source`.

        Raises:
            IfqaError: nothing is piped in.
        """
        if not _is_piped_in():
            raise IfqaError('path = "-": nothing is piped in; wanted something like: bzcat DUMP | ifqa passages CORPUS')
        self._pipe = pipe = Pipe(sys.stdin.buffer)
        return self.in_turn(BufferedReader(pipe), "standard input", lambda: pipe.count)

    def files(self) -> list[Path]:
        return []

    def size(self) -> None:
        return None

    def hashes(self, known: Known) -> list[str | None]:
        """As `FileSource`. The hash of what came is only in `known`, and None until it has been read."""
        return [str(known[PIPE][2]) if PIPE in known else None]

    def facts(self) -> dict[str, tuple[int, int, str]]:
        return {PIPE: self._pipe.facts()}

    def when_current(self, folder: Path) -> Iterator[str]:
        if _is_piped_in():
            yield f"{folder} came by a pipe; remove it to build it from another one"


@dataclass
class Articles(FileSource):
    """Articles of plain text: JSON lines, WikiExtractor's JSON, or parquet.

    Args:
        path: a file; a folder, whose subfolders are read too, or a pattern for several files.
        words, wrap: as for `Dump`.
        share: fraction of the articles to keep, above 0 and up to 1. The hash of its id decides whether an article is
            kept, so a larger share contains every smaller share.
    """

    format = "articles"
    needs = "articles"
    names = re.compile(r"[^.].*\.(jsonl(\.(bz2|gz|xz))?|parquet)|wiki_\d+(\.bz2)?")
    wanted = "no article file (.jsonl, also .xz, .gz, .bz2; .parquet; WikiExtractor's wiki_00)"

    words: Positive = 100
    wrap: bool = True
    share: Annotated[float, Field(gt=0, le=1)] = 1.0

    def units_of(self, file: Path) -> Iterator[WorkUnit]:
        tally, bound = Tally(), self.share * 2**64
        pages = (pair for pair in read_articles(file, tally) if hash_id(id_bytes(pair[0].id)) < bound)
        return _page_units(pages, str(file), {"words": self.words, "wrap": self.wrap}, tally)

    def files_in(self, folder: Path) -> list[Path]:
        return sorted(file for file in files_below(folder) if self.names.fullmatch(file.name))


class Pipe(RawIOBase):
    """Standard input. It can be read only once, so its bytes are counted and hashed while it is read."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._digest = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Read at most `len(buffer)` bytes into the buffer; returns how many."""
        room = memoryview(buffer)
        chunk = self._source.read(len(room))
        room[: len(chunk)] = chunk
        self._digest.update(chunk)
        self.count += len(chunk)
        return len(chunk)

    def facts(self) -> tuple[int, int, str]:
        """Bytes read so far, 0 for the time of change, and SHA-256, as in `Known`."""
        return self.count, 0, self._digest.hexdigest()


def _is_piped_in() -> bool:
    """Whether standard input is open and is not a terminal."""
    return sys.stdin is not None and not sys.stdin.isatty()
