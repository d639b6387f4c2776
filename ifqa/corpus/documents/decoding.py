"""Decodes the bytes of a document; its text is a sequence of runs, each with its page or line."""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from unicodedata import category

from ifqa.corpus.documents.marks import write_marks
from ifqa.errors import IfqaError
from ifqa.formatting import CONTROLS

HIDDEN = "hidden or deleted piece"  # of text: what `Unread` calls it
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
_NULLS = 0.01  # share of null bytes from which a text without a mark may be UTF-16
_NO_TEXT = frozenset(("Cc", "Cn", "Co", "Cs"))  # categories of characters
_DECLARATION = 2_000  # bytes at the start of markup in which it may declare its encoding
_COMMENT = re.compile(rb"(?s)<!--.*?-->")
_LABEL = rb"[\"']?([\w.:+-]{2,40})"
_XML_DECLARATION = re.compile(rb"\s*<\?xml\b[^>]{0,200}?\bencoding\s*=\s*" + _LABEL)
_META = re.compile(rb"(?i)<meta\b[^>]*?\bcharset\s*=\s*" + _LABEL)
#: Its signs are escapes in encodings that do not extend ASCII, such as UTF-7 and Punycode.
_ASCII = rb"xn--mnchen-3ya.<+AOk-\x41>"
#: The codecs that are nearer to the WHATWG's decoders than those that webencodings names.
_CODECS = {"gbk": "gb18030", "iso-2022-jp": "iso2022_jp_ext"}
_READ_BY_EXPAT = ("utf-8", "utf-16-le", "utf-16-be")
#: Codec -> handler of errors, for characters that the WHATWG decodes and Python does not.
_HANDLERS = {
    **dict.fromkeys(("cp874", *(f"cp125{number}" for number in range(9))), "map-to-control"),
    **dict.fromkeys(("euc_jp", "iso2022_jp_ext"), "map-row-13"),
}
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
    last: int = 0  # the last line that it covers, if it covers several; 0 for `place` alone
    outside: int = 0  # the level from which headings above it are not its own; 0 if all are


@dataclass(frozen=True, slots=True)
class Unread:
    """Parts of a document that its reader leaves out on purpose, for the record of the file."""

    what: str  # one of them, such as "hidden row"
    count: int = 1


def with_ends(runs: Iterable[TextRun], ends: Mapping[int, int]) -> Iterator[TextRun]:
    """The runs of rows, each with the last line of its row, by the first."""
    for run in runs:
        yield replace(run, last=ends[run.place]) if run.place in ends else run


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
    return _BINARY.search(content) is not None and not _utf16_order(content)


def split_lines(text: str) -> list[str]:
    """The lines of a text as an editor counts them; `str.splitlines` also splits at form feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def decode_text(content: bytes, declared: str = "") -> str:
    """Decode a text: by its byte order mark, as UTF-8, in the declared encoding, or in a guessed
    one. UTF-16 is recognized without a mark too.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    sample = content[:_SAMPLE]
    if b"\0" in sample:
        encoding = _utf16_order(content)
        if not encoding:
            raise UnreadableFile("not a text file: it contains null bytes")
        return content.decode(encoding, "replace")
    # ISO-2022-JP writes Japanese in ASCII, between escapes
    if content.isascii() and (declared or b"\x1b$" in sample):
        text = _decode_declared(content, declared or "iso-2022-jp")
        if text:
            return text
    try:
        return content.decode()
    except UnicodeDecodeError:
        text = content.decode(errors="replace")
    if _is_nearly_whole(text):
        return text
    guessed = _guess_encoding(sample)
    return (
        _decode_declared(content, declared)
        or _decode_declared(content, guessed)
        or content.decode("latin-1")
    )


def decode_markup(content: bytes) -> str:
    """Decode HTML or XML, which may declare its encoding in its first lines."""
    start = _COMMENT.sub(b"", content[:_DECLARATION])
    declared = _XML_DECLARATION.match(start) or _META.search(start)
    return decode_text(content, declared[1].decode("ascii") if declared else "")


def xml_source(content: bytes) -> bytes | str:
    """XML for a parser: decoded if it declares an encoding that expat cannot read."""
    declared = _XML_DECLARATION.match(content[:_DECLARATION])
    if declared is None or _normalize(declared[1].decode("ascii")) in _READ_BY_EXPAT:
        return content
    return decode_markup(content)


def decode_labelled(content: bytes, label: str) -> str:
    """Decode a text whose encoding is declared outside of it, as that of a mail is.

    It may be UTF-16. A text that is declared to have one byte a character and is UTF-8 is read as
    UTF-8.
    """
    name = _normalize(label)
    # Printable ASCII is no text in UTF-16, which would have null bytes
    if name.startswith("utf-16") and (not content.isascii() or b"\0" in content):
        encoding = _utf16_order(content) or _utf16_order(content, name)
        if encoding:
            return content.decode(encoding, "replace").removeprefix("\ufeff")
    if len(_decode("ä".encode(), name, "replace")) == 1:  # its letters are of several bytes
        return decode_as(content, label) or decode_text(content, label)
    return decode_text(content, label)


def _utf16_order(content: bytes, declared: str = "") -> str:
    """The encoding of text in UTF-16: "utf-16-le" or "utf-16-be"; empty for other bytes.

    Without a byte order mark, ASCII's characters decide: their first or their second byte is null.
    A declared text needs none of them.
    """
    sample = content[: min(_SAMPLE, len(content) // 2 * 2)]
    nulls = {"utf-16-be": sample[::2].count(0), "utf-16-le": sample[1::2].count(0)}
    marks = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    if marked := marks.get(sample[:2]):
        orders = [marked]
    elif declared:
        orders = sorted(nulls, key=lambda order: (-nulls[order], order[-2:] != declared[-2:]))
    else:
        orders = (
            []
            if len(content) % 2
            else [
                order
                for order, other in (("utf-16-le", "utf-16-be"), ("utf-16-be", "utf-16-le"))
                if nulls[order] > max(len(sample) * _NULLS, nulls[other])
            ]
        )
    for order in orders:
        try:
            # By an incremental decoder, because the sample may end within a character
            text = codecs.getincrementaldecoder(order)().decode(sample)
        except UnicodeDecodeError:
            continue
        if not any(char not in "\t\n\f\r" and category(char) in _NO_TEXT for char in text):
            return order
    return ""


def _guess_encoding(sample: bytes) -> str:
    """Windows-1252 if most bytes are ASCII; otherwise their statistics decide."""
    if sum(byte > 127 for byte in sample) < _MULTIBYTE * len(sample):
        return "cp1252"
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_OTHER_ENCODINGS).best()
    return best.encoding if best else "cp1252"


def decode_as(content: bytes, encoding: str) -> str:
    """The text in an encoding that extends ASCII, so not UTF-16.

    Its label is read as browsers do: "iso-8859-1" is Windows-1252. Empty if the encoding is
    unknown or does not fit.
    """
    name = _normalize(encoding)
    return _decode(content, name, _HANDLERS.get(name, "strict"))


def _decode_declared(content: bytes, encoding: str) -> str:
    """As `decode_as`, but a few damaged characters become U+FFFD."""
    text = decode_as(content, encoding)
    if text:
        return text
    text = _decode(content, _normalize(encoding), "replace")
    return text if _is_nearly_whole(text) else ""


def _is_nearly_whole(text: str) -> bool:
    """Whether few of the characters beyond ASCII are U+FFFD, so that only they are damaged."""
    return sum(char > "\x7f" for char in text) > 10 * text.count("\ufffd")


def _decode(content: bytes, name: str, errors: str) -> str:
    """Decode by a name of `_normalize`; empty if it does not fit, or does not extend ASCII."""
    try:
        extends_ascii = _ASCII.decode(name or "ascii") == _ASCII.decode()
        return content.decode(name or "ascii", errors) if extends_ascii else ""
    except (LookupError, ValueError):  # a UnicodeDecodeError is a ValueError
        return ""


def _normalize(label: str) -> str:
    """Python's name of an encoding, by the label that a document gives it.

    A label that the WHATWG does not list is taken as Python's.
    """
    import webencodings

    try:
        encoding = webencodings.lookup(label)
    except ValueError:  # of half characters
        return ""
    # Browsers refuse the encodings whose name is "replacement". They read US-ASCII as Windows-1252;
    # here bytes that are not ASCII do not fit it, so that their encoding is guessed.
    if encoding is None or encoding.name == "replacement" or label.lower().endswith("ascii"):
        return label
    return _CODECS.get(encoding.name) or str(encoding.codec_info.name)


def _map_to_control(error: UnicodeError) -> tuple[str, int]:
    """Read a byte that Windows-125x leaves open as the control character of its number."""
    if not isinstance(error, UnicodeDecodeError) or not 0x80 <= error.object[error.start] < 0xA0:
        raise error
    return chr(error.object[error.start]), error.start + 1


def _map_row_13(error: UnicodeError) -> tuple[str, int]:
    """Read two bytes of JIS X 0208, such as those of "①", by Windows' Shift JIS, which has more."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    first, second = error.object[error.start : error.start + 2].ljust(2)
    row = first & 0x7F
    cell = second & 0x7F
    if row < 0x21 or (first ^ second) & 0x80:
        raise error
    lead = (row + 1) // 2 + (0x70 if row < 0x5F else 0xB0)
    trail = cell + (0x1F + (cell >= 0x60) if row % 2 else 0x7E)
    try:
        return bytes((lead, trail)).decode("cp932"), error.start + 2
    except ValueError:
        raise error from None


codecs.register_error("map-to-control", _map_to_control)
codecs.register_error("map-row-13", _map_row_13)
