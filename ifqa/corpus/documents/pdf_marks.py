"""Finds superscripts and subscripts on a page of a PDF by their size and baseline."""

import re
from collections.abc import Callable, Iterator
from itertools import groupby

from ifqa.corpus.documents.marks import lowered, raised
from ifqa.corpus.documents.pdf_characters import Box, Characters

_WITH_DIGIT = re.compile(r"(?<!\S)[^\s\d]*+\d\S*")
_DIGIT = re.compile(r"\d")
_PART = re.compile(r"\d+|(?<=\d)[^\W\d_]+")  # that may be a mark, or have one at its end
_LONGEST = 40  # characters of a word that may have a mark
_SMALLER = 0.93  # heights of the text: that of a mark
_RAISE = 0.15  # heights of the text from its baseline up to that of a superscript
_DROP = 0.06  # and down to that of a subscript
_DIFFERENT = 0.04  # heights of the text by which a mark's box differs
_DESCENT = 0.2  # of the height of a box, below the baseline
_MOST = 12  # characters of a mark


def text_with_marks(characters: Characters, start: int, end: int, plain: int, box: Box) -> str:
    """The characters of a piece of a line, with its superscripts and subscripts marked.

    `plain` is the place of a character that is neither, and `box` its box. Only words with a digit
    are looked at.
    """
    text = characters.text[start:end]
    if not _DIGIT.search(text):
        return text
    parts = list[str]()
    position = 0
    for word in _WITH_DIGIT.finditer(text):
        for first, last, write in _marks(characters, start + word.start(), word[0], plain, box):
            before = text[position : first - start].rstrip()
            parts += [before, write(text[first - start : last - start])]
            if first == start:  # the number of a footnote
                parts.append(" ")
            position = last - start
    return "".join([*parts, text[position:]]) if parts else text


def mark_by_place(text: str, box: Box, reference: Box) -> str:
    """A piece of a line, marked if it is a superscript or subscript beside text at `reference`."""
    height = reference[3] - reference[1]
    shift = box[1] - reference[1] + _DESCENT * (box[3] - box[1] - height)
    write = _kind(box[3] - box[1], shift, height)
    return write(text) if write and len(text) <= _MOST else text


def _kind(size: float, shift: float, height: float) -> Callable[[str], str] | None:
    """How a piece of a height and a shift of its baseline is marked beside text of a height."""
    if height <= 0 or size <= 0 or size > _SMALLER * height:
        return None
    if shift > _RAISE * height:
        return raised
    return lowered if shift < -_DROP * height else None


def _marks(
    characters: Characters, start: int, word: str, plain: int, reference: Box
) -> Iterator[tuple[int, int, Callable[[str], str]]]:
    """Start, end and kind of each superscript or subscript in a word that starts at `start`.

    Numbers are looked at by their last digit, letters after a number by their first.
    """
    if len(word) > _LONGEST:
        return
    places = (start + _tested(part) for part in _PART.finditer(word))
    if not any(_differs(characters.box(place), reference) for place in places):
        return
    baseline = characters.baseline(plain)
    height = reference[3] - reference[1]
    kinds = list[tuple[int, Callable[[str], str] | None]]()
    for place in range(start, start + len(word)):
        box = characters.box(place)
        shift = characters.baseline(place) - baseline
        kinds.append((place, _kind(box[3] - box[1], shift, height)))
    for write, group in groupby(kinds, key=lambda pair: pair[1]):
        run = [place for place, _ in group]
        if write and len(run) <= _MOST:
            yield run[0], run[-1] + 1, write


def _tested(part: re.Match[str]) -> int:
    return part.end() - 1 if part[0].isdecimal() else part.start()


def _differs(box: Box, reference: Box) -> bool:
    height = reference[3] - reference[1]
    size = box[3] - box[1]
    return abs(size - height) + abs(box[1] - reference[1]) > _DIFFERENT * height
