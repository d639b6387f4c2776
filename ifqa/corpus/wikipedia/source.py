"""Sources of Wikipedia pages: MediaWiki dumps, and articles of plain text."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ifqa.corpus.passage_store import hash_id, id_bytes, passage_line
from ifqa.corpus.repeated_pages import page_revisions
from ifqa.corpus.wikipedia import wikitext
from ifqa.corpus.wikipedia.dump import (
    BLOCK,
    LONGEST,
    Page,
    Streams,
    parse_pages,
    split_streams,
    stream_header,
)
from ifqa.corpus.wikipedia.wikitext import Profile, to_text
from ifqa.corpus.work_units import (
    FileSettings,
    FileSource,
    Shard,
    SkippedPages,
    WorkUnit,
    sort_files,
    text_to_hash,
    walk_files,
)
from ifqa.errors import FormatError, IfqaError
from ifqa.formats.tables import read_parquet
from ifqa.settings import Positive
from ifqa.storage.files import (
    read_jsonl,
    require_file,
    text_field,
    typed_field,
    unicode_text,
    unpack,
)

PACKED = 1 << 22  # bytes of bz2 streams in a unit: about 5,000 passages of enwiki
TEXT = 1 << 23  # characters of pages in a unit
_EMPTY = 200  # characters added for each page: an empty page takes memory too
_COLUMNS = ["id", "title", "text"]


def split_article(text: str, words: int = 100, wrap: bool = True) -> list[str]:
    """Split an article into disjoint passages of `words` words, separated by white space.

    With `wrap`, the last passage is filled up with the article's first words, each repeated at most
    once: of 130 words, the second passage has the last 30 and the first 70; 19 words become a
    passage of 38. IfQA's gold passages are split this way: 4,202 of 4,223 have exactly 100 words.
    """
    article = text.split()
    passages = [article[start : start + words] for start in range(0, len(article), words)]
    if wrap and passages:
        passages[-1] += article[: words - len(passages[-1])]
    return [" ".join(passage) for passage in passages]


@dataclass(frozen=True, kw_only=True)
class _PagesUnit(WorkUnit):
    """Complete pages, or streams of a dump that the worker decompresses.

    `settings` has a "profile" for wikitext.
    """

    content: Sequence[Page] | Streams

    def content_to_hash(self) -> Iterator[bytes]:
        if isinstance(self.content, Streams):
            yield b"%d %d " % (self.content.first, self.content.last) + self.content.header
            yield self.content.packed
        else:
            yield from (text_to_hash(page.id, page.title, page.text) for page in self.content)

    def make_shard(self) -> Shard:
        tally = self.tally.copy()
        words = self.settings["words"]
        lines = list[bytes]()
        pages: Iterable[Page]
        if isinstance(self.content, Streams):
            pages = parse_pages(self.content.xml(), self.where, tally, complete=self.content.last)
        else:
            pages = self.content
        number = count = 0
        revisions: list[tuple[str, int]] = []
        for page in pages:
            number += 1
            text = (
                to_text(page.text, self.settings["profile"])
                if "profile" in self.settings
                else page.text
            )
            passages = split_article(text, words, self.settings["wrap"])
            lines += [
                passage_line(f"{page.id}-{n}", page.title, passage)
                for n, passage in enumerate(passages)
            ]
            if passages:
                count += (len(passages) - 1) * words + passages[-1].count(" ") + 1
                if page.revision is not None:
                    revisions.append((page.id, page.revision))
            else:
                tally.left_out["empty"] += 1
        return Shard(
            b"".join(lines), number, len(lines), count, tally, revisions=page_revisions(revisions)
        )


def _page_units(
    pages: Iterable[tuple[Page, int]], where: str, settings: dict[str, object], tally: SkippedPages
) -> Iterator[_PagesUnit]:
    """Units of 8 million characters, from pages with the bytes read so far.

    A unit takes the counts of `tally` over.
    """
    content: list[Page] = []
    size = start = position = 0

    def unit() -> _PagesUnit:
        at = f"{where}, from byte {start:,}"
        left_out = tally.copy()
        tally.left_out.clear()
        tally.bad.clear()
        return _PagesUnit(
            content=content, where=at, read=position - start, settings=settings, tally=left_out
        )

    for page, position in pages:
        content.append(page)
        size += len(page.text) + _EMPTY
        if size >= TEXT:
            yield unit()
            content = []
            size = 0
            start = position
    if content or tally.left_out or tally.bad:
        yield unit()


class Dump(FileSource):
    """MediaWiki pages-articles dumps: .xml, plain or compressed with bzip2 (one stream or many),
    gzip or xz.
    """

    class Settings(FileSettings):
        path: str
        """A file, or a folder or pattern (`enwiki-*.xml-p*.bz2`), read in the order of the numbers
        in the names.
        """
        profile: Profile = "ifqa"
        """"ifqa" yields text like that of the IfQA release; "release" also reproduces the release's
        losses.
        """
        words: Positive = 100
        """Words of a passage, split at white space."""
        wrap: bool = True
        """Whether an article's last passage is filled up to `words` with the article's first
        words.
        """

    format = "dump"
    needs = "the Wikipedia dump"
    names = re.compile(r".*\.xml(-p\d+p\d+)?(\.(bz2|gz|xz))?")
    wanted = "no dump (.xml, .xml.bz2, .xml.gz or .xml.xz)"

    settings: Settings

    def read_units(self, file: Path) -> Iterator[WorkUnit]:
        settings = self.identity_settings()
        header = stream_header(file)
        tally = SkippedPages()
        del settings["format"]
        if header is not None:
            for streams in split_streams(file, header, PACKED):
                size = len(streams.packed)
                yield _PagesUnit(content=streams, where=streams.where, read=size, settings=settings)
            return
        with open(file, "rb") as handle, unpack(handle) as xml:
            pages = parse_pages(iter(lambda: xml.read(BLOCK), b""), str(file), tally)
            yield from _page_units(
                ((page, handle.tell()) for page in pages), str(file), settings, tally
            )

    def identity_settings(self) -> dict[str, object]:
        # A former setting, which identities contain
        former = {"profile": self.settings.profile, "disambiguation": "keep"}
        return former | super().identity_settings() | {"text": wikitext.VERSION}

    def list_folder(self, folder: Path) -> list[Path]:
        return sort_files(file for file in folder.iterdir() if self.names.fullmatch(file.name))


class Articles(FileSource):
    """Articles of plain text: JSON lines, WikiExtractor's JSON, or parquet."""

    class Settings(FileSettings):
        path: str
        """A file, a folder with its subfolders, or a pattern."""
        words: Positive = 100
        """Words of a passage, split at white space."""
        wrap: bool = True
        """Whether an article's last passage is filled up to `words` with the article's first
        words.
        """
        share: Annotated[float, Field(gt=0, le=1)] = 1.0
        """Fraction of the articles to keep, chosen by the hash of their ids: a larger share
        contains every smaller one.
        """

    format = "articles"
    needs = "articles"
    names = re.compile(r"[^.].*\.(jsonl(\.(bz2|gz|xz))?|parquet)|wiki_\d+(\.bz2)?")
    wanted = "no article file (.jsonl, also .xz, .gz, .bz2; .parquet; WikiExtractor's wiki_00)"

    settings: Settings

    def read_units(self, file: Path) -> Iterator[WorkUnit]:
        settings = self.settings
        tally = SkippedPages()
        bound = settings.share * 2**64
        pages = (
            (page, at)
            for page, at in read_articles(file, tally)
            if hash_id(id_bytes(page.id)) < bound
        )
        return _page_units(
            pages, str(file), {"words": settings.words, "wrap": settings.wrap}, tally
        )

    def list_folder(self, folder: Path) -> list[Path]:
        return sorted(file for file in walk_files(folder) if self.names.fullmatch(file.name))


def read_articles(file: Path, tally: SkippedPages) -> Iterator[tuple[Page, int]]:
    """The articles of a file, each with the number of bytes read so far.

    Each article has an `id` (text or a number), a `title` and a `text`, which may be empty. An
    article with an unusable value, or with more than 16 million characters, is skipped; `tally`
    counts it and lists its line.
    """
    if not require_file(file, "articles").stat().st_size:
        raise FormatError(f"{file} is empty; fetch it again, or remove it")
    with open(file, "rb") as handle:
        if file.suffix == ".parquet":
            records = read_parquet(file, handle, _COLUMNS)
        else:
            records = (
                (number, record, handle.tell()) for number, record in read_jsonl(file, handle)
            )
        for number, record, position in records:
            where = f"{file}:{number}"
            if missing := [key for key in _COLUMNS if key not in record]:
                keys = ", ".join(map(repr, record)) or "no keys"
                raise FormatError(f"{where}: key {missing[0]!r} is missing; found {keys}")
            try:
                page = _parse_page(record, where)
            except IfqaError as error:
                title = str(record["title"]).encode("utf-8", "replace").decode()
                tally.leave_out(str(record["id"])[:100], title[:200], str(error))
            else:
                yield page, position


def _parse_page(record: dict[str, object], where: str) -> Page:
    if type(record["id"]) is int:
        record["id"] = str(record["id"])
    page_id = text_field(record, "id", where)
    title = text_field(record, "title", where)
    text = unicode_text(typed_field(record, "text", str, where), "text", where)
    if page_id.split() != [page_id]:
        raise FormatError(f"{where}: id {page_id!r} holds white space; wanted an id without any")
    if len(text) > LONGEST:
        raise FormatError(f"{where}: a text of more than {LONGEST:,} characters")
    return Page(page_id, title, text)
