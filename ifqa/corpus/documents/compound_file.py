"""Reads the streams of a compound file, the container of Office before 2007 and of Outlook's
messages, in linear time.

Its sectors are chained by an allocation table, as clusters on an old disk; short streams are in
sectors of a stream of their own. A chain that returns to a sector, or leaves the file, is damaged.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct, error, unpack_from

from ifqa.corpus.documents.decoding import UnreadableFile

SIGNATURE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_LISTED = 109  # sectors of the allocation table that the header lists
_LAST = 0xFFFFFFFA  # sectors from this one mark the end of a chain, or that there is none
_NO_ENTRY = 0xFFFFFFFF
_ENTRY = Struct("<64sHBxIII36xIQ")  # name and its bytes, type, left, right, child; start, size
_STREAM = 2
_ROOT = 5
_SHORT_SECTOR = 64  # bytes
_DAMAGED = "not a complete file of Office or Outlook: its sectors are damaged"


@dataclass(frozen=True, slots=True)
class Entry:
    """A stream, or a storage, which has entries itself as a folder has files."""

    start: int  # the first sector of a stream
    size: int  # bytes of a stream
    is_stream: bool
    #: By their names in lower case, for which alone two names differ.
    entries: dict[str, "Entry"] = field(default_factory=dict)


class CompoundFile:
    """A compound file in memory.

    `root` has its entries. Raises UnreadableFile if it is damaged.
    """

    def __init__(self, content: bytes) -> None:
        if not content.startswith(SIGNATURE):
            raise UnreadableFile("not a file of Office or Outlook")
        self._content = content
        self._remaining = 2 * len(content)
        try:
            self._sector = 1 << _shift(unpack_from("<H", content, 30)[0], (9, 12))
            directory, shortest = unpack_from("<I4xI", content, 48)
            short_table = unpack_from("<I", content, 60)[0]
            self._table = self._read_table()
            entries = self._read_entries(directory)
        except error as damage:
            raise UnreadableFile(_DAMAGED) from damage
        self._shortest = shortest  # bytes of a stream in sectors of its own
        main = entries[0]
        self._short_table = _numbers(self._chain(short_table, None))
        self._short = self._chain(main.start, main.size)
        self.root = main

    def read(self, entry: Entry) -> bytes:
        """The bytes of a stream; of a damaged one those before the damage."""
        if entry.size < self._shortest:
            return self._short_chain(entry.start, entry.size)
        return self._chain(entry.start, entry.size)

    def find(self, *names: str) -> bytes | None:
        """The bytes of the stream at a path, or None if there is none."""
        entry = self.root
        for name in names:
            inner = entry.entries.get(name.lower())
            if inner is None:
                return None
            entry = inner
        return self.read(entry) if entry.is_stream else None

    def _read_table(self) -> "array[int]":
        """The allocation table: for each sector the next one of its chain."""
        sectors = list(unpack_from(f"<{_LISTED}I", self._content, 76))
        following, count = unpack_from("<II", self._content, 68)
        per_sector = self._sector // 4 - 1
        known = set[int]()
        while following < _LAST and following not in known and len(known) < count:
            known.add(following)
            *more, following = unpack_from(f"<{per_sector + 1}I", self._part(following))
            sectors += more
        used = dict.fromkeys(sector for sector in sectors if sector < _LAST)
        return _numbers(b"".join(map(self._part, used)))

    def _part(self, sector: int) -> bytes:
        """A sector.

        A file whose chains share sectors so that they have more than twice its bytes is hostile.
        """
        self._remaining -= self._sector
        if self._remaining < 0:
            raise UnreadableFile(_DAMAGED)
        # The header takes a sector, of whatever size
        start = (sector + 1) * self._sector
        return self._content[start : start + self._sector]

    def _chain(self, sector: int, size: int | None) -> bytes:
        """The bytes of a chain of sectors, up to `size` or its end."""
        parts = [self._part(each) for each in _follow(self._table, sector, size, self._sector)]
        return b"".join(parts)[:size]

    def _short_chain(self, sector: int, size: int) -> bytes:
        starts = (
            each * _SHORT_SECTOR for each in _follow(self._short_table, sector, size, _SHORT_SECTOR)
        )
        self._remaining -= size
        if self._remaining < 0:
            raise UnreadableFile(_DAMAGED)
        return b"".join(self._short[start : start + _SHORT_SECTOR] for start in starts)[:size]

    def _read_entries(self, directory: int) -> list[Entry]:
        """The entries of the directory; the first is the root, with the others below it."""
        content = self._chain(directory, None)
        raw = [_ENTRY.unpack_from(content, at) for at in range(0, len(content) - 127, 128)]
        if not raw or raw[0][2] != _ROOT:
            raise UnreadableFile(_DAMAGED)
        largest = len(self._content)
        entries = [
            # The upper half of the size is no number in files with small sectors
            Entry(start, min(size & 0xFFFFFFFF, largest), kind in (_STREAM, _ROOT))
            for _, _, kind, _, _, _, start, size in raw
        ]
        names = [
            name[: max(length - 2, 0)].decode("utf-16-le", "replace").lower()
            for name, length, *_ in raw
        ]
        tree = [(left, right, child) for _, _, _, left, right, child, _, _ in raw]
        for parent, inner in _descend(tree):
            entries[parent].entries.setdefault(names[inner], entries[inner])
        return entries


def _shift(power: int, allowed: tuple[int, ...]) -> int:
    if power not in allowed:
        raise UnreadableFile(_DAMAGED)
    return power


def _numbers(content: bytes) -> "array[int]":
    """Numbers of four bytes."""
    numbers = array("I", content[: len(content) // 4 * 4])
    if unpack_from("=I", b"\1\0\0\0")[0] != 1:
        numbers.byteswap()
    return numbers


def _follow(table: "array[int]", sector: int, size: int | None, step: int) -> Iterator[int]:
    """The sectors of a chain, of `step` bytes each, until it has `size` bytes."""
    known = set[int]()
    while sector < len(table) and sector not in known and (size is None or size > 0):
        known.add(sector)
        yield sector
        sector = table[sector]
        size = None if size is None else size - step


def _descend(tree: list[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """The entries of a directory, each with the storage that it is in, each once."""
    known = {0}
    waiting = [(0, tree[0][2])]
    while waiting:
        parent, number = waiting.pop()
        if number == _NO_ENTRY or number >= len(tree) or number in known:
            continue
        known.add(number)
        left, right, child = tree[number]
        yield parent, number
        waiting += [(parent, right), (number, child), (parent, left)]
