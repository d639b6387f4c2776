"""Blocks: pieces of a source; a block becomes the same shard of passages in every run on every machine."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypedDict, TypeVar, cast

from ifqa.corpus.documents.reading import Documents, passages_of
from ifqa.corpus.documents.text import Unreadable
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
    """How pages become passages: "words" and "wrap", for wikitext also "profile" and "text", for streams also "disambiguation".

    "text" is the version of `to_text`. Empty for passages that are cut already.
    """

    profile: Profile
    text: int
    disambiguation: Disambiguation
    words: int
    wrap: bool


@dataclass(frozen=True)
class Block:
    """Whole pages (packed, as wikitext or as plain text), passages, or files of a user's documents.

    Attributes:
        content: the streams, pages, passages or files.
        where: the file and the byte at which the block begins; opens error messages.
        read: bytes of input in the block.
        settings: how pages become passages; empty for passages and files.
        tally: pages that were left out while the block was read.
        number: the number of its shard.
    """

    content: Streams | list[Page] | list[Passage] | Documents
    where: str
    read: int
    settings: BlockSettings = field(default_factory=BlockSettings)
    tally: Tally = field(default_factory=Tally)
    number: int = 0

    def __str__(self) -> str:
        return self.where

    @property
    def is_made(self) -> bool:
        """Whether it takes no work: all of its files have passages from an earlier build."""
        return isinstance(self.content, Documents) and all(file.made for file in self.content.files)

    def key(self) -> str:
        """Hex SHA-256 of everything that decides the block's passages."""
        digest = hashlib.sha256(json.dumps([VERSION, self.settings, self.tally.left_out, self.tally.bad]).encode())
        if isinstance(self.content, Streams):
            digest.update(b"%d %d " % (self.content.first, self.content.last) + self.content.header)
            digest.update(self.content.data)
        elif isinstance(self.content, Documents):
            digest.update(self.content.key().encode("utf-8", "surrogatepass"))
        else:
            for item in self.content:
                digest.update(f"{item.id}\n{item.title}\n{len(item.text)}\n{item.text}\n".encode())
        return digest.hexdigest()


class FileMade(TypedDict):
    """A file of a shard: its identity, and how many bytes of the shard are its passages; `reason` if it was left out."""

    key: str
    bytes: int
    modified: int
    sha256: str
    length: int
    passages: int
    words: int
    reason: str


@dataclass(frozen=True)
class Shard:
    """The passages of a block as lines of JSON, with counts of pages, passages and words, and the pages left out.

    `files` are facts of each file of a user's documents, in the order of their passages; empty for other blocks.
    """

    data: bytes
    pages: int
    passages: int
    words: int
    tally: Tally
    files: tuple[FileMade, ...] = ()


def make_shard(block: Block) -> Shard:
    """Make the passages of a block.

    Raises:
        IfqaError: a stream of the block is damaged or unpacks to too much, or a file changed meanwhile.
    """
    if isinstance(block.content, Documents):
        return _shard_of_files(block.content, block.tally)
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


def _shard_of_files(documents: Documents, left_out: Tally) -> Shard:
    tally, lines, made = Tally(Counter(left_out.left_out), list(left_out.bad)), list[bytes](), list[FileMade]()
    for file in documents.files:
        data, passages, words, reason = b"", 0, 0, ""
        try:
            found = passages_of(file, documents.cutting)
            data, passages, words = found.data, found.passages, found.words
        except Unreadable as error:
            reason = str(error)
            tally.left_out["bad"] += 1
            tally.bad.append({"id": file.name, "title": file.name, "kind": "bad", "reason": reason})
        lines.append(data)
        made.append(
            {"key": file.key, "bytes": file.size, "modified": file.modified, "sha256": file.sha256, "length": len(data),
             "passages": passages, "words": words, "reason": reason}
        )  # fmt: skip
    passages, words = sum(one["passages"] for one in made), sum(one["words"] for one in made)
    read = sum(not one["reason"] for one in made)
    return Shard(b"".join(lines), read, passages, words, tally, tuple(made))


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
