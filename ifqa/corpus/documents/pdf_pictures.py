"""Tells pages of a PDF that show a picture, such as a scan, or letters that are drawn as shapes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_MOST_OBJECTS = 10_000  # of a page that are looked at
_MANY_SHAPES = 50  # of a drawing; the frame and the lines of an empty page are fewer


def has_picture(page: "PdfPage") -> bool:
    """Whether a page shows a picture, or as many shapes as a drawing has."""
    from pypdfium2 import raw

    count = min(raw.FPDFPage_CountObjects(page.raw), _MOST_OBJECTS)
    waiting = [raw.FPDFPage_GetObject(page.raw, number) for number in range(count)]
    shapes = 0
    seen = 0
    while waiting and seen < _MOST_OBJECTS:
        drawn = waiting.pop()
        seen += 1
        kind = raw.FPDFPageObj_GetType(drawn)
        shapes += kind == raw.FPDF_PAGEOBJ_PATH
        if kind == raw.FPDF_PAGEOBJ_IMAGE or shapes >= _MANY_SHAPES:
            return True
        if kind == raw.FPDF_PAGEOBJ_FORM:  # it has objects of its own
            count = min(raw.FPDFFormObj_CountObjects(drawn), _MOST_OBJECTS - seen)
            waiting += [raw.FPDFFormObj_GetObject(drawn, number) for number in range(count)]
    return False
