"""Parses Rich Text Format into its text and control words.

A file is groups in braces. A control word within one changes the format until the group ends, or
makes it a destination, whose text is no part of the document or another part of it.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.symbols import is_symbol_font, plain_symbols

STORIES = frozenset(("footnote", "shptxt", "dptxbxtext"))  # text apart from its paragraph
LABELS = frozenset(("listtext", "pntext"))  # the number or bullet of an item
ENDS = frozenset(("par", "sect", "page", "column"))  # of a paragraph
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,40})(-?[0-9]{1,9})? ?|\\'([0-9a-fA-F]{2})|\\(.?)|([{}])|[^\\{}]+", re.DOTALL
)
_LINES = re.compile(rb"[\r\n\0]+")
_DEEPEST = 10_000  # groups
_DESTINATIONS = STORIES | LABELS | {"fonttbl", "stylesheet", "htmltag"}
#: Destinations that are not read: running heads, pictures, instructions of fields, and data.
_SKIPPED = frozenset(
    (
        "aftncn aftnsep aftnsepc annotation atnauthor atnid colortbl comment falt filetbl fldinst "
        "footer footerf footerl footerr formfield ftncn ftnsep ftnsepc header headerf headerl "
        "headerr info listoverridetable listtable mmathPict nonesttables nonshppict objdata pict "
        "private1 revtbl rsidtbl rxe shprslt sp tc txe xe"
    ).split()
)
#: Destinations that are read, though a reader that does not know them shall skip them.
_OPTIONAL = frozenset("do dptxbxtext footnote htmltag pntext shpgrp shpinst shptxt".split())
_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "lbr": "\n",
    "emdash": "—",
    "endash": "–",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
    "bullet": "•",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "nestcell": "; ",
}
_SYMBOLS = {b"~": "\xa0", b"_": "-", b"\t": "\t"}
_SYMBOL_CHARSET = 2  # of fonts whose letters are signs
#: Character sets of fonts -> code pages.
_CODE_PAGES = {
    77: 10000,
    78: 10001,
    128: 932,
    129: 949,
    130: 1361,
    134: 936,
    136: 950,
    161: 1253,
    162: 1254,
    163: 1258,
    177: 1255,
    178: 1256,
    186: 1257,
    204: 1251,
    222: 874,
    238: 1250,
    254: 437,
    255: 850,
}
_MACINTOSH = {10000: "mac_roman", 10001: "shift_jis", 10006: "mac_greek", 10007: "mac_cyrillic"}
_MACINTOSH |= {10029: "mac_latin2", 10081: "mac_turkish", 1361: "johab"}
_FAMILIES = {"ansi": 1252, "mac": 10000, "pc": 437, "pca": 850}


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination; two of the same name differ."""

    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Format:
    """What holds until the group ends."""

    destination: Destination = Destination("", 0)
    #: Whether the group is not read; one with a fallback for older readers has the text in it.
    skipped: Literal["", "group", "fallback"] = ""
    replacements: int = 1  # characters after each of Unicode, for readers that do not know it
    font: int = 0
    hidden: bool = False
    struck: bool = False
    deleted: bool = False
    moved: bool = False
    script: Literal["", "raised", "lowered"] = ""
    outside_html: bool = False  # not of the HTML that is wrapped
    style: int = 0
    level: int = -1  # of a heading, from 1; 0 for other text; -1 if the style decides
    in_table: bool = False

    @property
    def is_shown(self) -> bool:
        """Whether text is neither hidden nor crossed out, deleted or moved to another place."""
        return not (self.hidden or self.struck or self.deleted or self.moved)


@dataclass(frozen=True, slots=True)
class Event:
    """Text, a control word, or the begin or end of a destination, with the format there."""

    kind: Literal["text", "word", "begin", "end"]
    text: str  # or the name of the word or destination
    number: int | None
    format: Format


@dataclass(slots=True)
class _Font:
    charset: int = 0
    page: int = 0  # its code page; 0 for the document's
    name: str = ""


def _is_on(number: int | None) -> bool:
    return number != 0


def _outline_level(number: int | None) -> int:
    return number + 1 if number is not None and 0 <= number < 9 else 0


#: Control words that change the format.
_CHANGES: dict[str, Callable[[Format, int | None], Format]] = {
    "v": lambda format, number: replace(format, hidden=_is_on(number)),
    "strike": lambda format, number: replace(format, struck=_is_on(number)),
    "striked": lambda format, number: replace(format, struck=_is_on(number)),
    "deleted": lambda format, number: replace(format, deleted=_is_on(number)),
    "mvf": lambda format, number: replace(format, moved=_is_on(number)),
    "super": lambda format, number: replace(format, script="raised" if _is_on(number) else ""),
    "sub": lambda format, number: replace(format, script="lowered" if _is_on(number) else ""),
    "up": lambda format, number: replace(format, script="raised" if _is_on(number) else ""),
    "dn": lambda format, number: replace(format, script="lowered" if _is_on(number) else ""),
    "nosupersub": lambda format, _: replace(format, script=""),
    "htmlrtf": lambda format, number: replace(format, outside_html=_is_on(number)),
    "uc": lambda format, number: replace(format, replacements=max(number or 0, 0)),
    "f": lambda format, number: replace(format, font=number or 0),
    "s": lambda format, number: replace(format, style=number or 0),
    "outlinelevel": lambda format, number: replace(format, level=_outline_level(number)),
    "intbl": lambda format, number: replace(format, in_table=_is_on(number)),
    "itap": lambda format, number: replace(format, in_table=bool(number)),
    "pard": lambda format, _: replace(format, style=0, level=-1, in_table=False),
}


class Parser:
    """The events of a file."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._format = Format()
        self._outer = list[Format]()
        self._destinations = 0
        self._page = 1252
        self._default_font = 0
        self._fonts = dict[int, _Font]()
        self._bytes = bytearray()  # not decoded yet: a character may have two
        self._is_optional = False  # whether \* was before
        self._skip = 0  # replacements of a character that are still to come
        self._high = ""  # the first half of a character that is written in two

    def events(self) -> Iterator[Event]:
        position = 0
        while match := _TOKEN.match(self._content, position):
            position = match.end()
            word, number, code, symbol, brace = match.groups()
            if word == b"bin":
                position += max(int(number or 0), 0)
            elif word:
                yield from self._take_word(word.decode("ascii"), int(number) if number else None)
            elif brace:
                yield from self._flush()
                yield from self._close() if brace == b"}" else self._open()
            elif symbol is not None:
                yield from self._take_symbol(symbol)
            else:
                self._add(bytes([int(code, 16)]) if code else _LINES.sub(b"", match[0]))
        yield from self._flush()

    def _open(self) -> tuple[()]:
        if len(self._outer) == _DEEPEST:
            raise UnreadableFile(f"its groups are nested more than {_DEEPEST:,} deep")
        self._outer.append(self._format)
        self._is_optional = False
        self._skip = 0
        return ()

    def _close(self) -> Iterator[Event]:
        ended = self._format
        if self._outer:
            self._format = self._outer.pop()
        self._skip = 0
        if ended.destination != self._format.destination:
            yield Event("end", ended.destination.name, None, ended)

    def _add(self, content: bytes) -> None:
        """Add bytes of text, less those that stand for a character of Unicode."""
        skipped = min(self._skip, len(content))
        self._skip -= skipped
        if not self._format.skipped:
            self._bytes += content[skipped:]

    def _flush(self) -> Iterator[Event]:
        """The text of the bytes before a change of the format."""
        if not self._bytes:
            return
        content = bytes(self._bytes)
        self._bytes.clear()
        if self._format.destination.name == "fonttbl":
            font = self._fonts.setdefault(self._format.font, _Font())
            font.name = (font.name + decode_page(content, self._page))[:100]
        else:
            yield Event("text", self._decode(content), None, self._format)

    def _decode(self, content: bytes) -> str:
        font = self._fonts.get(self._format.font, _Font())
        if font.charset == _SYMBOL_CHARSET:
            name = font.name.strip().rstrip(";")
            return plain_symbols(content.decode("latin-1"), name) if is_symbol_font(name) else ""
        return decode_page(content, font.page or self._page)

    def _take_symbol(self, symbol: bytes) -> Iterator[Event]:
        if symbol == b"*":
            self._is_optional = True
        elif symbol in (b"\r", b"\n"):
            yield from self._take_word("par", None)
        elif symbol in (b"\\", b"{", b"}"):
            self._add(symbol)
        elif symbol in _SYMBOLS:
            yield from self._write(_SYMBOLS[symbol])

    def _write(self, text: str) -> Iterator[Event]:
        """The text of a control word, which may be the replacement of a character itself."""
        yield from self._flush()
        if self._skip:
            self._skip -= 1
        elif not self._format.skipped:
            yield Event("text", text, None, self._format)

    def _take_word(self, name: str, number: int | None) -> Iterator[Event]:
        is_optional = self._is_optional
        self._is_optional = False
        if name == "u":
            yield from self._take_unicode(number or 0)
        elif name in _CHARACTERS:
            yield from self._write(_CHARACTERS[name])
        else:
            yield from self._flush()
            if is_optional or name in _SKIPPED or name in _DESTINATIONS or name == "upr":
                yield from self._begin(name, is_optional)
            elif not self._format.skipped:
                self._change(name, number)
                yield Event("word", name, number, self._format)

    def _begin(self, name: str, is_optional: bool) -> Iterator[Event]:
        """Make the group a destination."""
        format = self._format
        if format.skipped:
            if name == "ud" and format.skipped == "fallback":
                self._format = replace(format, skipped="")
        elif name == "upr":
            self._format = replace(format, skipped="fallback")
        elif name in _SKIPPED or (is_optional and name not in _OPTIONAL):
            self._format = replace(format, skipped="group")
        elif name in _DESTINATIONS:
            self._destinations += 1
            self._format = replace(format, destination=Destination(name, self._destinations))
            yield Event("begin", name, None, self._format)

    def _take_unicode(self, number: int) -> Iterator[Event]:
        yield from self._flush()
        code = number & 0xFFFF
        self._skip = self._format.replacements
        if self._format.skipped:
            return
        if 0xD800 <= code < 0xDC00:
            self._high = chr(code)
            return
        pair = self._high + chr(code) if 0xDC00 <= code < 0xE000 else chr(code)
        self._high = ""
        if 0xF000 <= code < 0xF100:  # the characters of fonts such as Symbol
            font = self._fonts.get(self._format.font, _Font())
            is_sign = font.charset == _SYMBOL_CHARSET
            text = self._decode(bytes([code - 0xF000])) if is_sign else ""
        else:
            text = pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
        yield Event("text", text, None, self._format)

    def _change(self, name: str, number: int | None) -> None:
        """Change the format, or what the file says about its fonts and encoding."""
        if name in _CHANGES:
            self._format = _CHANGES[name](self._format, number)
        elif name == "plain":
            self._format = replace(
                self._format,
                hidden=False,
                struck=False,
                deleted=False,
                moved=False,
                script="",
                font=self._default_font,
            )
        elif name == "deff":
            self._default_font = number or 0
            self._format = replace(self._format, font=number or 0)
        elif name == "ansicpg":
            self._page = number or self._page
        elif name in _FAMILIES:
            self._page = _FAMILIES[name]
        elif name in ("fcharset", "cpg"):
            font = self._fonts.setdefault(self._format.font, _Font())
            if name == "fcharset":
                font.charset = number or 0
                font.page = font.page or _CODE_PAGES.get(font.charset, 0)
            else:
                font.page = number or font.page


def decode_page(content: bytes, page: int) -> str:
    """The text in a code page of Windows or the Macintosh; Windows-1252 if it is unknown."""
    if content.isascii():
        return content.decode("ascii")
    name = _MACINTOSH.get(page, f"cp{page}")
    try:
        codecs.lookup(name)
    except LookupError:
        name = "cp1252"
    return content.decode(name, "ignore")
