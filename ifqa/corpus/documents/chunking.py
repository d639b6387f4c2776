"""Splits a document into passages of about 100 words that end at a sentence and do not cross a
heading. A row of a table is one sentence, and so is an item of a list.

A passage's id is its locator. `handbook.pdf#31:page=12,13@412` is passage 31 of handbook.pdf: it
begins on page 12, and page 13 begins at its character 412. `notes.md#0:line=1-9` covers lines 1 to
9, and `costs.xlsx#0:sheet=May,row=2-9` rows of the sheet May. White space, `#` and `%` in the names
of file and sheet are percent-encoded, because an id of a TREC run has no white space.
"""

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from urllib.parse import quote, unquote_to_bytes

from ifqa.corpus.documents.decoding import TextRun, clean_text
from ifqa.corpus.documents.rows import row_pieces
from ifqa.corpus.sentences import count_words, piece_spans, split_sentences
from ifqa.formatting import printable_line
from ifqa.records import Passage

_UNITS = "page|line|paragraph|part|row|slide|cell|message|second"
_ID = re.compile(rf"(?s)(.+)#\d+:(?:sheet=(\S+),)?({_UNITS})=(\d+)(?:-(\d+))?((?:,\d+@\d+)*)")
_REFUSED = re.compile(r"[\s%#\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_SLACK = 1.2  # a section of up to this times `words` is one passage
_LONGEST_HEADING = 100  # characters of a heading in a title
_DEEPEST = 3  # headings in a title
ENDED = re.compile(r"[.!?:;。！？｡：；][\"”’')\]」』）】》〉〕］]*$")


@dataclass(slots=True)
class _Piece:
    """A run's text in a section."""

    text: str
    place: int  # its page, line or the like
    last: int  # the last line of several
    opens: bool  # whether it starts a paragraph
    apart: bool = False  # whether a line break is before and after its paragraph


def chunk_document(
    name: str, runs: Iterable[TextRun], unit: str, words: int = 100, overlap: int = 0
) -> Iterator[Passage]:
    """Split a document into passages, in order.

    A passage's title is the file's name and the headings above it; a section's text begins with its
    own heading. At most 1.2 times `words` words are one passage; a longer section is split into
    equal passages that end at the nearest sentence end. Each repeats whole sentences of up to
    `overlap` words from the previous passage. A row of up to `words` words is never split, and each
    piece of a longer one begins with the row's name. `unit` is the unit of the runs' places.
    """
    number = 0
    for headings, pieces, sheet in _sections(runs, words):
        title = " › ".join([clean_text(name), *headings])
        text = _join(pieces)
        starts = list(accumulate((len(piece.text) + 1 for piece in pieces[:-1]), initial=0))
        paragraphs = [
            start for start, piece in zip(starts, pieces, strict=True) if piece.opens or not start
        ]
        for start, end in _spans(text, _sentences(text, paragraphs, words), words, overlap):
            covered = range(bisect_right(starts, start) - 1, bisect_left(starts, end))
            places: list[tuple[int, int]] = []
            for n in covered:
                if not places or places[-1][0] != pieces[n].place:
                    places.append((pieces[n].place, max(starts[n] - start, 0)))
            if unit == "line":
                places.append((max(pieces[n].last for n in covered), end - start))
            yield Passage(passage_id(name, number, unit, places, sheet), title, text[start:end])
            number += 1


def _join(pieces: Sequence[_Piece]) -> str:
    """The text of a section, with a line break before and after a row or an item."""
    parts = list[str]()
    is_apart = False
    for piece in pieces:
        if parts:
            parts.append("\n" if piece.opens and (piece.apart or is_apart) else " ")
        parts.append(piece.text)
        if piece.opens:
            is_apart = piece.apart
    return "".join(parts)


def _sections(
    runs: Iterable[TextRun], words: int
) -> Iterator[tuple[tuple[str, ...], list[_Piece], str]]:
    """Headings above, pieces, with its own heading, and sheet of each section.

    Headings without text join the next section.
    """
    above = list[tuple[int, str]]()
    pieces = list[_Piece]()
    headings = tuple[str, ...]()
    sheet = ""
    bare = True  # no text but headings yet
    in_item = False
    for run in runs:
        text = clean_text(run.text)
        if not text:
            continue
        last = max(run.place, run.last)
        if in_item and (run.opens or run.level):
            _end_item(pieces[-1])
            in_item = False
        if run.outside and above and above[-1][0] >= run.outside:
            yield headings, pieces, run.sheet
            pieces = []
            while above and above[-1][0] >= run.outside:
                above.pop()
            headings = tuple(heading for _, heading in above[-_DEEPEST:])
        if not run.level:
            if run.row:
                pieces += [
                    _Piece(piece, run.place, last, True, True)
                    for piece in row_pieces(run.row, words)
                ]
            else:
                pieces.append(_Piece(text, run.place, last, run.opens or bare, run.item))
                in_item = in_item or run.item
            bare = False
            sheet = run.sheet
            continue
        if not bare:
            yield headings, pieces, sheet
            pieces = []
            bare = True
        while above and above[-1][0] >= run.level:
            above.pop()
        above.append((run.level, text[:_LONGEST_HEADING]))
        headings = tuple(heading for _, heading in above[-_DEEPEST:])
        pieces.append(_Piece(text if ENDED.search(text) else f"{text}.", run.place, last, True))
    if in_item:
        _end_item(pieces[-1])
    if pieces:
        yield headings, pieces, sheet


def _end_item(piece: _Piece) -> None:
    """End the last piece of an item like a sentence."""
    if not (ENDED.search(piece.text) or piece.text.endswith(",")):
        piece.text += "."


def _sentences(text: str, paragraphs: Sequence[int], longest: int) -> list[tuple[int, int]]:
    """Start and end of each sentence.

    None crosses a paragraph, and one of more than `longest` words is split.
    """
    spans: list[tuple[int, int]] = []
    for start, end in pairwise([*paragraphs, len(text)]):
        for sentence in split_sentences(text[start:end]):
            if len(sentence) <= 2 * longest:  # then it has at most `longest` words
                spans.append((start, start + len(sentence.rstrip())))
            else:
                pieces = piece_spans(sentence, longest)
                spans += [(start + first, start + last) for first, last in pieces]
            start += len(sentence)
    return spans


def _spans(
    text: str, within: Sequence[tuple[int, int]], words: int, overlap: int
) -> Iterator[tuple[int, int]]:
    """Start and end of each passage of a section, from the spans of its sentences."""
    counts = [count_words(text[start:end]) for start, end in within]
    behind = list(accumulate(counts, initial=0))  # words before each sentence, strictly increasing
    total = behind[-1]
    first = 0
    parts = 1 if total <= words * _SLACK else -(-total // words)
    for part in range(1, parts + 1):
        last = len(counts)
        if first == last:
            break
        if part < parts:
            target = total * part / parts
            after = min(bisect_left(behind, target, lo=first + 1), last)
            before = max(after - 1, first + 1)
            last = before if target - behind[before] <= behind[after] - target else after
        begin = first
        while begin and overlap and behind[first] - behind[begin - 1] <= overlap:
            begin -= 1
        yield within[begin][0], within[last - 1][1]
        first = last


@dataclass(frozen=True, slots=True)
class Locator:
    """A location in a document: the file's path relative to its folder, and its pages, lines or the
    like.
    """

    file: str
    unit: str
    first: int
    last: int
    sheet: str = ""  # of a workbook

    def __str__(self) -> str:
        # A name with a line break must not forge a line
        return f"{printable_line(self.file)}, {self.place}"

    @property
    def place(self) -> str:
        """The sheet, and the pages, lines or the like, in words."""
        if self.unit == "second":
            first = _clock_time(self.first)
            last = _clock_time(self.last)
            return first if first == last else f"{first}-{last}"
        unit, units = ("p.", "pp.") if self.unit == "page" else (self.unit, f"{self.unit}s")
        where = (
            f"{unit} {self.first}"
            if self.first == self.last
            else f"{units} {self.first}-{self.last}"
        )
        return f"sheet {printable_line(self.sheet)}, {where}" if self.sheet else where


def _clock_time(seconds: int) -> str:
    """A time from the start of a recording: 0:01:23."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def passage_id(
    file: str, number: int, unit: str, places: Sequence[tuple[int, int]], sheet: str = ""
) -> str:
    """The id of passage `number` of a file.

    `places`: pages or lines, and the offset in the passage at which each begins.
    """
    first = places[0][0]
    last = places[-1][0]
    where = f"{first}" if first == last else f"{first}-{last}"
    if unit == "page":
        where = ",".join([f"{first}", *(f"{place}@{start}" for place, start in places[1:])])
    within = f"sheet={encode_name(sheet)}," if sheet else ""
    return f"{encode_name(file)}#{number}:{within}{unit}={where}"


def encode_name(name: str) -> str:
    """The name of a file or sheet as in the ids of its passages."""
    return _REFUSED.sub(lambda match: quote(os.fsencode(match[0]), safe=""), name)


def _decode_name(name: str) -> str:
    return unquote_to_bytes(name).decode("utf-8", "replace")


def encoded_name(passage_id: str) -> str:
    """The file's name in an id, still encoded."""
    return passage_id.rpartition("#")[0]


def parse_locator(passage_id: str, at: int | None = None) -> Locator | None:
    """The locator in a passage's id, or of the page of its character `at`.

    None if the passage is not from a document.
    """
    match = _ID.fullmatch(passage_id)
    if match is None:
        return None
    file, sheet, unit, first, last, starts = match.groups()
    name = _decode_name(file)
    if unit != "page":
        return Locator(name, unit, int(first), int(last or first), _decode_name(sheet or ""))
    pages = [
        (int(first), 0),
        *((int(page), int(start)) for page, start in re.findall(r"(\d+)@(\d+)", starts)),
    ]
    reached = [page for page, start in pages if at is None or start <= at]
    return Locator(name, unit, reached[0 if at is None else -1], reached[-1])
