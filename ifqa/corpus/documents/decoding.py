"""Decodes the bytes of a document; its text is a sequence of runs, each with its page or line."""

import codecs
import re
from dataclasses import dataclass

from ifqa.corpus.documents.marks import write_marks
from ifqa.errors import IfqaError
from ifqa.formatting import CONTROLS

_MULTIBYTE = 0.12  # share of bytes above 127 from which a text is unlikely to be in a Latin script
#: Candidates for a statistical guess.
_OTHER_ENCODINGS = (
    "cp1250 cp1251 cp1253 cp1254 cp1255 cp1256 koi8_r cp932 euc_jp gb18030 big5 euc_kr".split()
)
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
}
# After UTF-32, which starts alike
_BYTE_ORDER_MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1f\x7f]")
_SAMPLE = 1 << 16  # bytes from which an encoding is guessed
# Soft hyphen, ligatures
_LETTERS = {0xAD: ""} | dict(enumerate("ff fi fl ffi ffl ft st".split(), start=0xFB00))


class UnreadableFile(IfqaError):
    """A file cannot be read, for the short reason of the message.

    The build lists it and goes on.
    """


@dataclass(frozen=True, slots=True)
class TextRun:
    """A piece of a document's text on one page or line."""

    text: str  # for `clean_text`
    place: int  # the number of its page, line, slide or the like, from 1
    opens: bool = True  # whether it starts a paragraph; if not, it continues the previous run
    level: int = 0  # of a heading, from 1; 0 for other text
    sheet: str = ""  # the sheet of a workbook that it is on
    item: bool = False  # whether it starts an item of a list, which is to end like a sentence
    #: Of the row of a table: the name of the column (often empty) and the text of each filled cell.
    row: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """Parts of a document that its reader leaves out on purpose, for the record of the file."""

    what: str  # one of them, such as "hidden row"
    count: int = 1


def clean_text(text: str) -> str:
    """Collapse white space, write superscripts and the like in plain characters, replace ligatures,
    and remove soft hyphens and control characters.
    """
    if text.isascii() and text.isprintable():  # the common case
        return " ".join(text.split())
    text = CONTROLS.sub(
        lambda match: " " if match[0] < "\xa0" or match[0] in "\u2028\u2029" else "", text
    )
    return " ".join(write_marks(text.translate(_LETTERS)).split())


def is_binary(content: bytes) -> bool:
    """Whether bytes contain control characters that no text file has."""
    return _BINARY.search(content) is not None


def split_lines(text: str) -> list[str]:
    """The lines of a text as an editor counts them; `str.splitlines` also splits at form feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def decode_text(content: bytes, declared: str = "") -> str:
    """Decode a text: by its byte order mark, as UTF-8, in the declared encoding, or in a guessed
    one.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    sample = content[:_SAMPLE]
    if b"\0" in sample:
        raise UnreadableFile("not a text file: it contains null bytes")
    try:
        return content.decode()
    except UnicodeDecodeError:
        text = content.decode(errors="replace")
    # UTF-8 with a few damaged characters
    if sum(char > "\x7f" for char in text) > 10 * text.count("\ufffd"):
        return text
    return (
        decode_as(content, declared)
        or decode_as(content, _guess_encoding(sample))
        or content.decode("latin-1")
    )


def _guess_encoding(sample: bytes) -> str:
    """Windows-1252 if most bytes are ASCII; otherwise their statistics decide."""
    if sum(byte > 127 for byte in sample) < _MULTIBYTE * len(sample):
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_OTHER_ENCODINGS).best()
    return best.encoding if best else "cp1252"


def decode_as(content: bytes, encoding: str) -> str:
    """The text in an encoding that extends ASCII, so not UTF-16.

    Empty if the encoding is unknown or does not fit.
    """
    try:
        return (
            content.decode(encoding or "ascii") if b"<".decode(encoding or "ascii") == "<" else ""
        )
    except (LookupError, ValueError):  # a UnicodeDecodeError is a ValueError
        return ""
