"""Cuts a document into passages of about 100 words that end at sentences, each below one heading."""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from ifqa.corpus.documents.places import Unit, passage_id
from ifqa.corpus.documents.text import Run, clean
from ifqa.corpus.sentences import sentences
from ifqa.records import Passage

_SLACK = 1.2  # a section of up to this times `words` is one passage
_LONGEST = 100  # characters of a heading in a title
_DEEPEST = 3  # headings in a title
_ENDED = re.compile(r"[.!?:;][\"”’')\]]*$")


class _Section:
    """The text below one heading, and where its paragraphs and its pages or lines begin."""

    def __init__(self, headings: Iterable[str] = ()) -> None:
        self.headings = tuple(headings)
        self.text = ""
        self.paragraphs: list[int] = []
        self.places: list[tuple[int, int]] = []

    def add(self, text: str, place: int, opens: bool) -> None:
        start = len(self.text) + bool(self.text)
        self.text += f" {text}" if self.text else text
        if opens or not self.paragraphs:
            self.paragraphs.append(start)
        if not self.places or self.places[-1][0] != place:
            self.places.append((place, start))

    def sentences(self, longest: int) -> list[tuple[int, int]]:
        """Start and end of each sentence; none goes beyond a paragraph, and one of more than `longest` words is cut."""
        found: list[tuple[int, int]] = []
        for start, end in zip(self.paragraphs, [*self.paragraphs[1:], len(self.text)], strict=True):
            place = start
            for sentence in sentences(self.text[start:end]):
                found += _pieces(sentence, place, longest)
                place += len(sentence)
        return found

    def places_of(self, start: int, end: int) -> list[tuple[int, int]]:
        """The pages or lines of a part of the text, each with its first character in that part."""
        within = [(place, at - start) for place, at in self.places if start < at < end]
        first = next(place for place, at in reversed(self.places) if at <= start)
        return [(first, 0), *within]


def cut(name: str, runs: Iterable[Run], unit: Unit, words: int = 100, overlap: int = 0) -> Iterator[Passage]:
    """The passages of a document, in its order.

    A passage's title is the file's name with the headings above the passage; a section's text begins with its own heading, as an
    article's does. A section of up to 1.2 times `words` words is one passage; a longer one is cut into equal passages, each up
    to the nearest end of a sentence.

    Args:
        name: the file's path below its folder.
        runs: its text.
        unit: what the runs' places count.
        words: words of a passage.
        overlap: words of whole sentences at a passage's end with which the next one begins as well.
    """
    number = 0
    for section in _sections(runs):
        title = " › ".join([clean(name), *section.headings])
        for start, end in _spans(section, words, overlap):
            places = section.places_of(start, end)
            yield Passage(passage_id(name, number, unit, places), title, section.text[start:end])
            number += 1


def _sections(runs: Iterable[Run]) -> Iterator[_Section]:
    """The sections that hold more than their heading."""
    above: list[tuple[int, str]] = []
    section, bare = _Section(), True
    for run in runs:
        text = clean(run.text)
        if not text:
            continue
        if not run.level:
            section.add(text, run.place, run.opens or bare)
            bare = False
            continue
        if not bare:
            yield section
        above = [one for one in above if one[0] < run.level]
        above.append((run.level, text[:_LONGEST]))
        if not bare or not section.text:
            section = _Section()
        section.headings, bare = tuple(heading for _, heading in above[-_DEEPEST:]), True
        section.add(text if _ENDED.search(text) else f"{text}.", run.place, True)
    if section.text:
        yield section


def _spans(section: _Section, words: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Start and end of each passage of a section."""
    several = section.sentences(words)
    counts = [len(section.text[start:end].split()) for start, end in several]
    total = sum(counts)
    parts = 1 if total <= words * _SLACK else -(-total // words)
    behind = list(accumulate(counts, initial=0))
    first = 0
    for part in range(1, parts + 1):
        aim = total * part / parts
        last = (
            min(range(first, len(several)), key=lambda n: abs(behind[n + 1] - aim)) + 1
            if first < len(several)
            else first
        )
        last = len(several) if part == parts else last
        if last <= first:
            continue
        begin = first
        while begin and overlap and behind[first] - behind[begin - 1] <= overlap:
            begin -= 1
        yield several[begin][0], several[last - 1][1]
        first = last


def _pieces(sentence: str, place: int, longest: int) -> Iterator[tuple[int, int]]:
    """Start and end of a sentence without the blanks behind it, or of each `longest` words of a longer one."""
    found = [match.span() for match in re.finditer(r"\S+", sentence)]
    for first in range(0, len(found), longest):
        some = found[first : first + longest]
        yield place + some[0][0], place + some[-1][1]
