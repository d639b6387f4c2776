"""The straight lines that are drawn on a page of a PDF: the rules of its tables."""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ifqa.corpus.documents.pdf_characters import Box, Characters

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_THIN = 2.5  # points of the thickest rule
_SHORTEST = 8.0  # points
_MOST_OBJECTS = 10_000  # of a page; a map has more
_MOST_RULES = 4_000  # of a page; a grid of 100 rows has fewer
_MOST_SEGMENTS = 400  # of a path; a drawing has more
_BESIDE = 30.0  # points from a table's text to the rules at its sides
_SAME = 3.0  # points between the two edges of a rule, or of two rules that are one


@dataclass(frozen=True, slots=True)
class Rules:
    """The horizontal and vertical rules of a page."""

    horizontal: tuple[Box, ...] = ()
    vertical: tuple[Box, ...] = ()

    def heights(self, box: Box) -> list[float]:
        """Where horizontal rules cross half of a box or more, from the top; at its edges, too."""
        half = (box[2] - box[0]) / 2
        room = box[3] - box[1] + 2 * _SAME
        crossing = [rule for rule in self.horizontal if box[1] - room < rule[1] < box[3] + room]
        crossing.sort(key=lambda rule: -rule[1])
        widths = [max(min(rule[2], box[2]) - max(rule[0], box[0]), 0.0) for rule in crossing]
        return _long_enough([rule[1] for rule in crossing], widths, half)

    def places(self, box: Box) -> list[float]:
        """Where vertical rules cross half of a box or more, from the left; at its edges, too."""
        half = (box[3] - box[1]) / 2
        crossing = [rule for rule in self.vertical if box[0] - _BESIDE < rule[0] < box[2] + _BESIDE]
        crossing.sort()
        heights = [max(min(rule[3], box[3]) - max(rule[1], box[1]), 0.0) for rule in crossing]
        return _long_enough([rule[0] for rule in crossing], heights, half)


def _long_enough(places: Sequence[float], lengths: Sequence[float], least: float) -> list[float]:
    """The places of rules, in order, that are as long together; those of one place are one rule."""
    rules: list[tuple[float, float]] = []
    for place, length in zip(places, lengths, strict=True):
        if rules and abs(rules[-1][0] - place) < _SAME:
            rules[-1] = rules[-1][0], rules[-1][1] + length
        else:
            rules.append((place, length))
    return [place for place, length in rules if length >= least]


def find_rules(page: "PdfPage", characters: Characters) -> Rules:
    """The rules of a page, with the edges of its boxes."""
    from pypdfium2 import raw

    boxes = list[Box]()
    for number in range(min(raw.FPDFPage_CountObjects(page.raw), _MOST_OBJECTS)):
        drawn = raw.FPDFPage_GetObject(page.raw, number)
        if raw.FPDFPageObj_GetType(drawn) == raw.FPDF_PAGEOBJ_PATH:
            boxes += map(characters.turn, _strokes(raw, drawn))
    boxes = boxes[:_MOST_RULES]
    return Rules(
        tuple(box for box in boxes if box[2] - box[0] >= _SHORTEST and box[3] - box[1] <= _THIN),
        tuple(box for box in boxes if box[3] - box[1] >= _SHORTEST and box[2] - box[0] <= _THIN),
    )


def _strokes(raw: Any, path: Any) -> Iterator[Box]:
    """The boxes of the straight strokes of a path."""
    edges = [ctypes.c_float() for _ in range(4)]
    raw.FPDFPageObj_GetBounds(path, *edges)
    left, bottom, right, top = (edge.value for edge in edges)
    if right - left <= _THIN or top - bottom <= _THIN:
        yield left, bottom, right, top
        return
    count = raw.FPDFPath_CountSegments(path)
    if not 0 < count <= _MOST_SEGMENTS:
        return
    matrix = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, matrix)
    start = before = (0.0, 0.0)
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, number)
        x = ctypes.c_float()
        y = ctypes.c_float()
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == raw.FPDF_SEGMENT_LINETO:
            yield _box(before, point)
        before = point
        if raw.FPDFPathSegment_GetClose(segment):
            yield _box(before, start)


def _box(first: tuple[float, float], second: tuple[float, float]) -> Box:
    return (
        min(first[0], second[0]),
        min(first[1], second[1]),
        max(first[0], second[0]),
        max(first[1], second[1]),
    )
