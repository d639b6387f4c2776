"""The characters of a page of a PDF with their boxes, in points, as the page is shown."""

import ctypes
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

#: left, bottom, right, top; the origin is below and left of the page
Box = tuple[float, float, float, float]

_NARROW = re.compile("[iljI.,;:'|!]")
_WIDE = re.compile("[mwMWABCDGHKNOQRUVXY]")
_SAME_WIDTH = 0.05  # of a wide character: the difference to a narrow one in a font of one width

NOWHERE: Box = (0.0, 0.0, 0.0, 0.0)


class Characters:
    """The characters of a page and their boxes."""

    def __init__(self, page: "PdfPage") -> None:
        from pypdfium2 import raw

        self._textpage = page.get_textpage()
        self.text: str = self._textpage.get_text_range()
        self._raw = raw
        self._handle = self._textpage.raw
        self._get_box = raw.FPDFText_GetLooseCharBox
        self._rectangle = raw.FS_RECTF()
        self._pointer = ctypes.byref(self._rectangle)
        self._is_mapped = len(self.text) != self._textpage.count_chars()
        self._rotation: int = page.get_rotation()
        self.width, self.height = page.get_size()

    def box(self, index: int) -> Box:
        """The box of a character of `text`, as high as its font."""
        if self._is_mapped:
            index = self._at(index)
        if not self._get_box(self._handle, index, self._pointer):
            return NOWHERE
        shape = self._rectangle
        box = shape.left, shape.bottom, shape.right, shape.top
        return self.turn(box) if self._rotation else box

    def baseline(self, index: int) -> float:
        """The height of a character's baseline above the bottom of the page."""
        x = ctypes.c_double()
        y = ctypes.c_double()
        self._raw.FPDFText_GetCharOrigin(self._handle, self._at(index), x, y)
        return self.turn((x.value, y.value, x.value, y.value))[1]

    def is_monospaced(self, start: int, end: int) -> bool | None:
        """Whether the characters of a piece of text all have the same width, as code has.

        None if it has no narrow and wide characters to compare.
        """
        text = self.text[start:end]
        narrow = _NARROW.search(text)
        wide = _WIDE.search(text)
        if not narrow or not wide:
            return None
        widths = list[float]()
        for place in (narrow.start(), wide.start()):
            left, _, right, _ = self.box(start + place)
            widths.append(right - left)
        return abs(widths[0] - widths[1]) < _SAME_WIDTH * widths[1]

    def _at(self, index: int) -> int:
        if not self._is_mapped:
            return index
        return max(int(self._raw.FPDFText_GetCharIndexFromTextIndex(self._handle, index)), 0)

    def turn(self, box: Box) -> Box:
        """A box of an unrotated page as it is on the page that is shown."""
        left, bottom, right, top = box
        if self._rotation == 90:
            return bottom, self.height - right, top, self.height - left
        if self._rotation == 180:
            return self.width - right, self.height - top, self.width - left, self.height - bottom
        if self._rotation == 270:
            return self.width - top, left, self.width - bottom, right
        return box
