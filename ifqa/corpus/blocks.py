"""Blocks: pieces of a source; a block becomes the same shard of passages in every run on every machine."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar, cast

from ifqa.corpus.store import passage_line
from ifqa.corpus.wikipedia.dump import Disambiguation, Page, Tally, parse_pages
from ifqa.corpus.wikipedia.multistream import Streams
from ifqa.corpus.wikipedia.splitter import split
from ifqa.corpus.wikipedia.wikitext import Profile, to_text
from ifqa.records import Passage

VERSION = 3  # raised when a block becomes other passages, so that older shards and corpora are not used again
PACKED = 1 << 22  # bytes of bz2 streams in a block: about 5,000 passages of enwiki
TEXT = 1 << 23  # characters of pages in a block
_EMPTY = 200  # characters added for each page: an empty page takes memory, too
PASSAGES = 20_000  # passages in a block, where the source is cut already

_Item = TypeVar("_Item", Page, Passage)


class BlockSettings(TypedDict, total=False):
    """How pages become passages: "words" and "wrap", for wikitext also "profile", for streams also "disambiguation".

    Empty for passages that are cut already.
    """

    profile: Profile
    disambiguation: Disambiguation
    words: int
    wrap: bool


@dataclass(frozen=True)
class Block:
    """Whole pages (packed, as wikitext or as plain text), or passages.

    Attributes:
        content: the streams, pages or passages.
        where: the file and the byte at which the block begins; opens error messages.
        read: bytes of input in the block.
        settings: how pages become passages; empty for passages.
        tally: pages that were left out while the block was read.
        number: the number of its shard.
    """

    content: Streams | list[Page] | list[Passage]
    where: str
    read: int
    settings: BlockSettings = field(default_factory=BlockSettings)
    tally: Tally = field(default_factory=Tally)
    number: int = 0

    def __str__(self) -> str:
        return self.where

    def key(self) -> str:
        """Hex SHA-256 of everything that decides the block's passages."""
        digest = hashlib.sha256(json.dumps([VERSION, self.settings, self.tally.left_out, self.tally.bad]).encode())
        if isinstance(self.content, Streams):
            digest.update(b"%d %d " % (self.content.first, self.content.last) + self.content.header)
            digest.update(self.content.data)
        else:
            for item in self.content:
                digest.update(f"{item.id}\n{item.title}\n{len(item.text)}\n{item.text}\n".encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Shard:
    """The passages of a block as lines of JSON, with counts of pages, passages and words, and the pages left out."""

    data: bytes
    pages: int
    passages: int
    words: int
    tally: Tally


def make_shard(block: Block) -> Shard:
    """Make the passages of a block.

    Raises:
        IfqaError: a stream of the block is damaged or unpacks to too much.
    """
    tally = Tally(Counter(block.tally.left_out), list(block.tally.bad))
    lines: list[bytes] = []
    pages = words = 0
    for passage in _passages(block):
        lines.append(passage_line(passage.id, passage.title, passage.text))
        words += len(passage.text.split())
    for page in _pages(block, tally):
        text = to_text(page.text, block.settings["profile"]) if "profile" in block.settings else page.text
        pieces = split(text, words=block.settings["words"], wrap=block.settings["wrap"])
        lines += [passage_line(f"{page.id}-{number}", page.title, piece) for number, piece in enumerate(pieces)]
        pages += 1
        if pieces:
            words += (len(pieces) - 1) * block.settings["words"] + pieces[-1].count(" ") + 1
        else:
            tally.left_out["empty"] += 1
    return Shard(b"".join(lines), pages, len(lines), words, tally)


def _passages(block: Block) -> Iterable[Passage]:
    return () if block.settings else cast(list[Passage], block.content)


def _pages(block: Block, tally: Tally) -> Iterable[Page]:
    content = block.content
    if isinstance(content, Streams):
        choice = block.settings["disambiguation"]
        return parse_pages(content.xml(), block.where, tally, disambiguation=choice, whole=content.last)
    return cast(list[Page], content) if block.settings else ()


def cut(
    items: Iterable[tuple[_Item, int]], where: str, settings: BlockSettings, tally: Tally | None = None
) -> Iterator[Block]:
    """Cut pages or passages, each with the bytes read so far, into blocks of 8 million characters or 20,000 passages.

    When a block is full, it takes the counts in `tally` with it.
    """
    tally = tally or Tally()
    content: list[_Item] = []
    size = start = position = 0
    limit = TEXT if settings else PASSAGES

    def block() -> Block:
        taken = Tally(Counter(tally.left_out), list(tally.bad))
        tally.left_out.clear()
        tally.bad.clear()
        return Block(content, f"{where}, from byte {start:,}", position - start, settings, taken)

    for item, position in items:
        content.append(item)
        size += len(item.text) + _EMPTY if settings else 1
        if size >= limit:
            yield block()
            content, size, start = [], 0, position
    if content or tally.left_out or tally.bad:
        yield block()
