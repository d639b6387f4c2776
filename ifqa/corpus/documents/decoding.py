"""The text of a document as runs: pieces of text that know their page or line."""

import codecs
from dataclasses import dataclass

from ifqa.errors import IfqaError
from ifqa.formatting import CONTROLS

_MULTIBYTE = 0.12  # share of bytes above 127 from which a text is hardly in a Latin script
#: Encodings that are tried by their statistics where a text is neither UTF-8 nor in a Latin script.
_OTHER_ENCODINGS = "cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 koi8_r cp932 euc_jp gb18030 big5 euc_kr".split()
_BYTE_ORDER_MARKS = [
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
_SAMPLE = 1 << 16  # bytes by which an encoding is guessed
_LETTERS = {0xAD: ""} | dict(enumerate("ff fi fl ffi ffl ft st".split(), start=0xFB00))  # soft hyphen, ligatures


class UnreadableFile(IfqaError):
    """Why a file is left out, in a few words. It is listed, and the other files are read."""


@dataclass(frozen=True, slots=True)
class TextRun:
    """A piece of a document's text on one page or line.

    Attributes:
        text: the text; white space is squeezed later.
        place: the number of its page, line, paragraph, part or row, from 1.
        opens: whether it begins a paragraph, else it continues the run before.
        level: of a heading, from 1; 0 for other text.
    """

    text: str
    place: int
    opens: bool = True
    level: int = 0


def clean_text(text: str) -> str:
    """The text with single blanks for white space, without ligatures, soft hyphens and what could steer a terminal."""
    if text.isascii() and text.isprintable():  # most is, and has none of these
        return " ".join(text.split())
    text = CONTROLS.sub(lambda match: " " if match[0] < "\xa0" or match[0] in "\u2028\u2029" else "", text)
    return " ".join(text.translate(_LETTERS).split())


def split_lines(text: str) -> list[str]:
    """The lines of a text as an editor counts them: `str.splitlines` also splits at form feeds and other separators."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def decode_text(data: bytes, declared: str = "") -> str:
    """The text of bytes, by their byte order mark, as UTF-8, in the encoding that the file declares, or in a likely one.

    A text that is none of these is read as Windows-1252 if most of it is ASCII; otherwise the statistics of its bytes decide.

    Raises:
        Unreadable: the bytes are no text.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if b"\0" in data[:_SAMPLE]:
        raise UnreadableFile("not a text: it holds null bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
    broken = text.count("\ufffd")
    if sum(char > "\x7f" for char in text) > 10 * broken:  # a cut or damaged character in a text in UTF-8
        return text
    return (
        _try_encoding(data, declared) or _try_encoding(data, _guess_encoding(data[:_SAMPLE])) or data.decode("latin-1")
    )


def _guess_encoding(sample: bytes) -> str:
    if sum(byte > 127 for byte in sample) < _MULTIBYTE * len(sample):
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_OTHER_ENCODINGS).best()
    return best.encoding if best else "cp1252"


def _try_encoding(data: bytes, encoding: str) -> str:
    """The text in an encoding; empty if it does not fit, or there is no such encoding of text that extends ASCII.

    A page whose declaration can be read as ASCII is not in UTF-16, though it may say so.
    """
    try:
        return data.decode(encoding or "ascii") if b"<".decode(encoding or "ascii") == "<" else ""
    except (LookupError, ValueError):  # a UnicodeDecodeError is a ValueError
        return ""
