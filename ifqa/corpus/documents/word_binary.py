"""Parses the binary format of Word 97 to 2003, as Microsoft's [MS-DOC] describes it.

A document is a compound file with a stream of text and of formats, and a stream of tables that say
where they are. Text is numbered by characters (positions), formats by the bytes of the text (places
in the stream); the piece table maps one to the other.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import error, unpack_from

from ifqa.corpus.documents.compound_file import CompoundFile
from ifqa.corpus.documents.decoding import UnreadableFile

#: Properties of a paragraph, a run of characters or a row: the number of each, and its bytes.
Properties = Mapping[int, bytes]

_PAGE = 512  # bytes of a page of formats
_WORD_97 = 0xC1  # the first version with this format
_MAGIC = (0xA5EC, 0xA5DC)
_ENCRYPTED, _OTHER_TABLE = 0x0100, 0x0200
_OPERANDS = (
    1,
    1,
    2,
    4,
    2,
    2,
    0,
    3,
)  # bytes, by the upper bits of a property's number; 0: it varies
_TABLE = 0xD608  # the edges of a row's cells: its size has two bytes
_TABS = 0xC615
_ELSEWHERE = (0x6645, 0x6646)  # the properties are in the stream Data
#: Numbers of tables, by their order in the file's header.
STYLES = 1
NOTES = 2
NOTE_TEXTS = 3
CHARACTERS = 12
PARAGRAPHS = 13
FONTS = 15
PIECES = 33
SHAPES = 40
ENDNOTES = 46
ENDNOTE_TEXTS = 47
BOX_TEXTS = 56
LISTS = 73
LIST_USES = 74
_Read = Callable[[bytes, int], Properties]
_DAMAGED = "not a complete Word document: its tables are damaged"


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int  # the position of its first character
    end: int
    place: int  # of its first byte
    width: int  # bytes of a character


class WordFile:
    """The text of a document of Word 97 to 2003, and its properties.

    Raises UnreadableFile if it is encrypted, damaged, or of another version.
    """

    def __init__(self, content: bytes) -> None:
        compound = CompoundFile(content)
        main = compound.find("WordDocument")
        if main is None:
            raise UnreadableFile("not a Word document: there is no stream WordDocument in it")
        self._main = main
        try:
            magic, version, flags = unpack_from("<HH6xH", main)
            if magic not in _MAGIC or version < _WORD_97:
                raise UnreadableFile("it is of a version of Word before 97")
            if flags & _ENCRYPTED:
                raise UnreadableFile("it needs a password")
            self._tables = compound.find("1Table" if flags & _OTHER_TABLE else "0Table") or b""
            self._data = compound.find("Data") or b""
            self._elsewhere = dict[int, Properties]()
            self._remaining = len(self._data)
            #: Characters of the stories: body, notes, heads, macros, comments, endnotes, boxes.
            self.lengths = unpack_from("<7I", main, 76)
            self._pieces = list(self._read_pieces())
            self.text = "".join(map(self._decode, self._pieces))
        except error as damage:
            raise UnreadableFile(_DAMAGED) from damage
        self._starts = [piece.start for piece in self._pieces]

    def table(self, number: int) -> bytes:
        """The bytes of a table; empty if the document has none."""
        try:
            start, size = unpack_from("<II", self._main, 154 + 8 * number)
        except error:
            return b""
        # The levels of the lists follow their table
        return self._tables[start : start + size] if number != LISTS else self._tables[start:]

    def _read_pieces(self) -> Iterator[_Piece]:
        table = self.table(PIECES)
        at = 0
        while table[at : at + 1] == b"\1":  # properties of pieces
            at += 3 + unpack_from("<H", table, at + 1)[0]
        if table[at : at + 1] != b"\2":
            raise UnreadableFile(_DAMAGED)
        starts, records = split_table(table[at + 5 :], 8)
        remaining = len(self._main)  # no byte has two characters
        for start, end, record in zip(starts, starts[1:], records, strict=False):
            place = unpack_from("<I", record, 2)[0]
            width = 1 if place & 0x40000000 else 2
            place = (place & 0x3FFFFFFF) // (3 - width)
            remaining -= end - start
            if end < start or remaining < 0:
                raise UnreadableFile(_DAMAGED)
            yield _Piece(start, end, place, width)

    def _decode(self, piece: _Piece) -> str:
        """The text of a piece, with a character for each position."""
        count = piece.end - piece.start
        content = self._main[piece.place : piece.place + count * piece.width]
        if piece.width == 1:
            return content.decode("cp1252", "replace").ljust(count)
        text = content.decode("utf-16-le", "replace")
        if len(text) * 2 < len(content):  # a pair of surrogates is one character, but two positions
            text = "".join(map(chr, unpack_from(f"<{len(content) // 2}H", content)))
        return text.ljust(count)[:count]

    def place_of(self, position: int) -> int:
        """The place of a character's bytes."""
        piece = self._pieces[max(bisect_right(self._starts, position) - 1, 0)]
        return piece.place + (position - piece.start) * piece.width

    def positions_of(self, runs: "Runs") -> Iterator[tuple[int, int, Properties]]:
        """The positions that runs are on: first, end, and properties, in the order of the text."""
        for piece in self._pieces:
            last = piece.place + (piece.end - piece.start) * piece.width
            for start, end, properties in runs.between(piece.place, last):
                first = piece.start + (max(start, piece.place) - piece.place) // piece.width
                after = piece.start + (min(end, last) - piece.place) // piece.width
                yield first, after, properties

    def character_runs(self) -> "Runs":
        return Runs(self._runs(CHARACTERS, 1, _character_bytes))

    def paragraph_runs(self) -> "Runs":
        """The paragraphs; 0 is the property of their style's number."""
        return Runs(self._runs(PARAGRAPHS, 13, self._paragraph_bytes))

    def _runs(self, table: int, step: int, read: _Read) -> Iterator[tuple[int, int, Properties]]:
        _, numbers = split_table(self.table(table), 4)
        pages = dict.fromkeys(unpack_from("<I", number)[0] & 0x3FFFFF for number in numbers)
        for number in pages:
            page = self._main[number * _PAGE : (number + 1) * _PAGE]
            if len(page) < _PAGE:
                continue
            count = page[_PAGE - 1]
            if 4 * (count + 1) + step * count >= _PAGE:
                continue
            places = unpack_from(f"<{count + 1}I", page)
            for run in range(count):
                at = 2 * page[4 * (count + 1) + step * run]
                properties = read(page, at) if at else {}
                if places[run] < places[run + 1]:
                    yield places[run], places[run + 1], properties

    def _paragraph_bytes(self, page: bytes, at: int) -> Properties:
        size = 2 * page[at] - 1
        if size < 0:
            at += 1
            size = 2 * page[at]
        return self.paragraph_properties(page[at + 1 : at + 1 + size])

    def paragraph_properties(self, content: bytes) -> Properties:
        """Properties with the number of the paragraph's style before them."""
        properties = dict(parse_properties(content[2:]))
        for number in _ELSEWHERE:
            if len(properties.get(number, b"")) == 4:
                properties |= self._properties_elsewhere(unpack_from("<I", properties[number])[0])
        return properties | {0: content[:2]}

    def _properties_elsewhere(self, at: int) -> Properties:
        """The properties at a place of the stream Data, such as the edges of a wide row."""
        if at not in self._elsewhere:
            size = unpack_from("<H", self._data, at)[0] if at + 2 <= len(self._data) else 0
            self._remaining -= size
            if self._remaining < 0:  # they overlap
                raise UnreadableFile(_DAMAGED)
            self._elsewhere[at] = _parse_list(self._data[at + 2 : at + 2 + size])
        return self._elsewhere[at]


class Runs:
    """Runs of properties, by the places of their first bytes."""

    def __init__(self, runs: Iterator[tuple[int, int, Properties]]) -> None:
        self._runs = list[tuple[int, int, Properties]]()
        before = 0
        for run in sorted(runs, key=lambda run: run[:2]):
            if run[0] >= before:  # runs do not overlap, but in a damaged file
                self._runs.append(run)
                before = run[1]
        self._starts = [start for start, _, _ in self._runs]

    def at(self, place: int) -> Properties:
        index = bisect_right(self._starts, place) - 1
        if index < 0 or self._runs[index][1] <= place:
            return {}
        return self._runs[index][2]

    def between(self, first: int, end: int) -> Iterator[tuple[int, int, Properties]]:
        index = max(bisect_right(self._starts, first) - 1, 0)
        while index < len(self._runs) and self._runs[index][0] < end:
            if self._runs[index][1] > first:
                yield self._runs[index]
            index += 1


def _character_bytes(page: bytes, at: int) -> Properties:
    return parse_properties(page[at + 1 : at + 1 + page[at]])


@lru_cache(maxsize=4096)
def parse_properties(content: bytes) -> Properties:
    """The properties in a list of a run; of two with the same number the last."""
    return _parse_list(content)


def _parse_list(content: bytes) -> Properties:
    properties = dict[int, bytes]()
    at = 0
    while at + 2 < len(content):
        number = content[at] + 256 * content[at + 1]
        at += 2
        size = _OPERANDS[number >> 13]
        if number == _TABLE:
            size = content[at] + 256 * (content[at + 1] if at + 1 < len(content) else 0) - 1
            at += 2
        elif number == _TABS and content[at] == 255:
            deleted = content[at + 1] if at + 1 < len(content) else 0
            size = 2 + 4 * deleted
            size += 3 * (content[at + size] if at + size < len(content) else 0)
        elif not size:
            size = content[at]
            at += 1
        properties[number] = content[at : at + max(size, 0)]
        at += max(size, 0)
    return properties


def split_table(table: bytes, size: int) -> tuple[Sequence[int], Sequence[bytes]]:
    """The positions and the records of `size` bytes in a table, which has one position more."""
    count = max(len(table) - 4, 0) // (4 + size)
    if not count:
        return (), ()
    positions = unpack_from(f"<{count + 1}I", table)
    first = 4 * (count + 1)
    records = [table[at : at + size] for at in range(first, first + count * size, size or 1)]
    return positions, records
