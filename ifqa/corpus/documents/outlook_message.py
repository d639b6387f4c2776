"""Reads messages that Outlook saved (.msg), as the mails that they were.

A message is a compound file with a stream for each property of it, of its receivers and of its
attachments, as Microsoft's [MS-OXMSG] describes it. It is written as a mail, so that one reader
decides what of a mail is read.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.encoders import encode_base64
from email.header import Header
from email.message import Message
from email.mime.base import MIMEBase
from email.mime.message import MIMEMessage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.parser import HeaderParser
from email.utils import format_datetime
from struct import unpack_from

from ifqa.corpus.documents import mail
from ifqa.corpus.documents.compound_file import SIGNATURE, CompoundFile, Entry
from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile, clean_text
from ifqa.corpus.documents.rtf import is_rtf, read_rtf, unwrap_html
from ifqa.corpus.documents.rtf_events import decode_page

_PROPERTIES = "__properties_version1.0"
_NAMES = "__nameid_version1.0"
_RECEIVER, _ATTACHMENT = "__recip_version1.0_#", "__attach_version1.0_#"
#: Bytes before the properties of a file, of an attached message, and of a receiver or attachment.
_FILE_HEADER = 32
_MESSAGE_HEADER = 24
_PART_HEADER = 8
# Types of properties
_TEXT = "001f"
_OLD_TEXT = "001e"
_BYTES = "0102"
_STORAGE = "000d"
_SUBJECT = "0037"
_HEADERS = "007d"
_BODY = "1000"
_RTF = "1009"
_HTML = "1013"
#: The names and the addresses of the sender, the best first.
_SENDER_NAMES = ("0c1a", "0042")
_SENDER_ADDRESSES = ("5d01", "5d02", "0c1f", "0065")
_SHOWN_RECEIVERS = {"To": "0e04", "Cc": "0e03"}
_NAME = "3001"
_ADDRESSES = ("39fe", "3003")
_KIND = 0x0C15
_KINDS = {1: "To", 2: "Cc"}
_SENT = 0x0039
_DELIVERED = 0x0E06
_TEXT_PAGE = 0x3FFD
_HTML_PAGE = 0x3FDE
_DATA = "3701"
_FILE_NAMES = ("3707", "3704", "3001")
_MEDIA_TYPE = "370e"
_CONTENT_ID = "3712"
# Of an appointment
_PLACE = 0x8208
_START = 0x820D
_END = 0x820E
_DEEPEST = 10  # messages within messages
_LONGEST = 1_000  # characters of a header
_CHARSETS = {65001: "utf-8", 20127: "us-ascii", 28591: "iso-8859-1", 932: "shift_jis"}
_CHARSETS |= {936: "gbk", 949: "euc-kr", 950: "big5", 50220: "iso-2022-jp", 20866: "koi8-r"}
_CHARSETS |= {number: f"windows-{number}" for number in range(1250, 1259)}
_CHARSETS |= {28590 + number: f"iso-8859-{number}" for number in range(2, 16)}
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)  # of Windows' times, in units of 100 ns
#: What a dictionary of compressed RTF has at first.
_COMMON_RTF = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript "
    rb"\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    b"\r\n"
    rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW = 4096  # bytes of the dictionary


def read_outlook_message(
    content: bytes, read_attached: mail.ReadAttached
) -> Iterator[TextRun | Unread]:
    """A message, its attachments and those that it forwards, as `mail.read_eml` reads them.

    Some programs give mails in plain text this suffix; they are read too.
    """
    if content.startswith(SIGNATURE):
        content = as_mail(content)
    elif b":" not in content[:1000].partition(b"\n")[0]:
        raise UnreadableFile("not a message of Outlook, nor a mail")
    yield from mail.read_eml(content, read_attached)


def as_mail(content: bytes) -> bytes:
    """The mail that a message was, with its attachments."""
    file = CompoundFile(content)
    if _PROPERTIES not in file.root.entries:
        raise UnreadableFile("not a message of Outlook: it has no properties")
    message = _write_mail(_Storage(file, file.root, _FILE_HEADER), _named_properties(file), 0)
    return message.as_bytes()


class _Storage:
    """The properties of a message, a receiver or an attachment."""

    def __init__(self, file: CompoundFile, entry: Entry, header: int, page: int = 1252) -> None:
        self.file = file
        self.entry = entry
        self._numbers = _read_numbers(self._read(_PROPERTIES) or b"", header)
        self.page = self.number(_TEXT_PAGE) or self.number(_HTML_PAGE) or page

    def _read(self, name: str) -> bytes | None:
        entry = self.entry.entries.get(name)
        return self.file.read(entry) if entry and entry.is_stream else None

    def number(self, property_: int) -> int:
        """A number, or a time; 0 if there is none."""
        return self._numbers.get(property_, 0)

    def content(self, name: str) -> bytes:
        return self._read(f"__substg1.0_{name}{_BYTES}") or b""

    def text(self, *names: str) -> str:
        """The first of these texts that is not empty."""
        for name in names:
            content = self._read(f"__substg1.0_{name}{_TEXT}")
            if content:
                return content.decode("utf-16-le", "ignore").replace("\0", "")
            content = self._read(f"__substg1.0_{name}{_OLD_TEXT}")
            if content:
                return decode_page(content, self.page).replace("\0", "")
        return ""

    def parts(self, prefix: str) -> Iterator["_Storage"]:
        for name, entry in sorted(self.entry.entries.items()):
            if name.startswith(prefix) and not entry.is_stream:
                yield _Storage(self.file, entry, _PART_HEADER, self.page)

    def attached_message(self) -> "_Storage | None":
        entry = self.entry.entries.get(f"__substg1.0_{_DATA}{_STORAGE}")
        if entry is None or _PROPERTIES not in entry.entries:
            return None
        return _Storage(self.file, entry, _MESSAGE_HEADER, self.page)


def _read_numbers(content: bytes, header: int) -> dict[int, int]:
    """The properties with values of up to eight bytes, such as times, by their numbers."""
    numbers = dict[int, int]()
    for at in range(header, len(content) - 15, 16):
        kind, property_, value = unpack_from("<HH4xQ", content, at)
        # Types of numbers of two and four bytes, truth, and times
        width = {0x02: 0xFFFF, 0x03: 0xFFFFFFFF, 0x0B: 0xFFFF, 0x40: (1 << 64) - 1}.get(kind)
        if width is not None:
            numbers[property_] = value & width
    return numbers


def _named_properties(file: CompoundFile) -> Mapping[int, int]:
    """Name of a property of appointments and the like -> its number in this file."""
    table = file.find(_NAMES, "__substg1.0_00030102") or b""
    names = dict[int, int]()
    for at in range(0, len(table) - 7, 8):
        name, kind, index = unpack_from("<IHH", table, at)
        if not kind & 1:  # else the name is a text
            names.setdefault(name, 0x8000 + index)
    return names


def _write_mail(storage: _Storage, names: Mapping[int, int], depth: int) -> Message:
    mixed = MIMEMultipart("mixed")
    _write_headers(mixed, storage)
    bodies = MIMEMultipart("alternative")
    for body in (_write_event(storage, names), *_write_bodies(storage)):
        if body is not None:
            bodies.attach(body)
    if bodies.get_payload():
        mixed.attach(bodies)
    for attachment in storage.parts(_ATTACHMENT):
        inner = attachment.attached_message()
        if inner is None:
            mixed.attach(_write_attachment(attachment))
        elif depth < _DEEPEST:
            mixed.attach(MIMEMessage(_write_mail(inner, names, depth + 1)))
    return mixed


def _write_headers(message: Message, storage: _Storage) -> None:
    message["Subject"] = _encode(storage.text(_SUBJECT))
    sender = _write_person(storage.text(*_SENDER_NAMES), storage, _SENDER_ADDRESSES)
    if sender:
        message["From"] = sender
    receivers = dict[str, list[str]]()
    for receiver in storage.parts(_RECEIVER):
        person = _write_person(receiver.text(_NAME), receiver, _ADDRESSES)
        if person:
            receivers.setdefault(_KINDS.get(receiver.number(_KIND), ""), []).append(person)
    for header, shown in _SHOWN_RECEIVERS.items():
        people = receivers.get(header) or [
            _encode(name) for name in storage.text(shown).split(";") if name.strip()
        ]
        if people:
            message[header] = ", ".join(people)
    if date := _write_date(storage):
        message["Date"] = date


def _write_date(storage: _Storage) -> str:
    """When the message was sent, in the sender's zone if the message has its headers."""
    header = HeaderParser().parsestr(storage.text(_HEADERS).lstrip())["Date"]
    date = " ".join(str(header or "").split())
    if date and date.isascii():
        return date
    moment = _moment(storage.number(_SENT) or storage.number(_DELIVERED))
    return format_datetime(moment) if moment else ""


def _write_person(name: str, storage: _Storage, addresses: tuple[str, ...]) -> str:
    """A name and an address of the internet; Exchange has others too."""
    address = next((text for each in addresses if "@" in (text := storage.text(each).strip())), "")
    name = name.strip().strip("'")
    if not address.isascii() or not address or any(map(str.isspace, address)):
        return _encode(name or address)
    return f"{_encode(name)} <{address}>" if name and name != address else address


def _encode(text: str) -> str:
    """The text of a header, as one word, because names have blanks and commas."""
    text = clean_text(text)[:_LONGEST]
    is_plain = text.isascii() and text.isalnum()
    return text if is_plain else Header(text, "utf-8", maxlinelen=10_000).encode(linesep="")


def _moment(time: int) -> datetime | None:
    try:
        return _EPOCH + timedelta(microseconds=time // 10) if time else None
    except OverflowError:
        return None


def _write_bodies(storage: _Storage) -> Iterator[Message]:
    """The body as plain text and HTML, as far as the message has them."""
    plain = storage.text(_BODY)
    html = _write_html(storage)
    rtf = b"" if plain.strip() and html else decompress_rtf(storage.content(_RTF))
    if is_rtf(rtf):
        wrapped = unwrap_html(rtf)
        if wrapped and html is None:
            html = MIMEText(wrapped, "html", "utf-8")
        elif not plain.strip():
            runs = (run for run in read_rtf(rtf) if isinstance(run, TextRun))
            plain = "\n\n".join(run.text for run in runs)
    if plain.strip():
        yield MIMEText(plain, "plain", "utf-8")
    if html is not None:
        yield html


def _write_html(storage: _Storage) -> Message | None:
    text = storage.text(_HTML)
    if text.strip():
        return MIMEText(text, "html", "utf-8")
    content = storage.content(_HTML)
    if not content.strip():
        return None
    part = _write_part("text/html", content)
    charset = _CHARSETS.get(storage.number(_HTML_PAGE))
    if charset:
        part.set_param("charset", charset)
    return part


def _write_part(media_type: str, content: bytes) -> Message:
    main, _, sub = media_type.partition("/")
    part = MIMEBase(main, sub)
    part.set_payload(content)
    # As it is, because encoding a large attachment and decoding it again takes seconds
    part["Content-Transfer-Encoding"] = "binary"
    return part


def _write_attachment(attachment: _Storage) -> Message:
    media_type = attachment.text(_MEDIA_TYPE).strip().lower()
    main, _, sub = media_type.partition("/")
    is_known = main.isalnum() and sub.replace("-", "").replace(".", "").replace("+", "").isalnum()
    is_part = main in ("multipart", "message")
    part = MIMEBase("application", "octet-stream")
    if media_type.isascii() and is_known and not is_part:
        part = MIMEBase(main, sub)
    name = clean_text(attachment.text(*_FILE_NAMES))[:_LONGEST]
    identifier = attachment.text(_CONTENT_ID)
    shown = "inline" if identifier and main == "image" else "attachment"
    filename = {"filename": ("utf-8", "", name)} if name else {}
    part.add_header("Content-Disposition", shown, **filename)
    part.set_payload(attachment.content(_DATA))
    encode_base64(part)
    return part


def _write_event(storage: _Storage, names: Mapping[int, int]) -> Message | None:
    """The appointment that the message is, or invites to."""
    start, end = (_moment(storage.number(names.get(each, 0))) for each in (_START, _END))
    if start is None:
        return None
    place = storage.text(f"{names.get(_PLACE, 0):04x}")
    lines = [
        "BEGIN:VCALENDAR",
        "BEGIN:VEVENT",
        f"SUMMARY:{_escape(storage.text(_SUBJECT))}",
        f"DTSTART:{start:%Y%m%dT%H%M%SZ}",
        f"DTEND:{end or start:%Y%m%dT%H%M%SZ}",
        f"LOCATION:{_escape(place)}",
        "END:VEVENT",
        "END:VCALENDAR",
    ]
    return MIMEText("\r\n".join(lines), "calendar", "utf-8")


def _escape(text: str) -> str:
    """A text of a calendar."""
    text = clean_text(text)
    for char in "\\;,":
        text = text.replace(char, f"\\{char}")
    return text


def decompress_rtf(content: bytes) -> bytes:
    """RTF that Exchange compressed, by [MS-OXRTFCP]: references to the 4,096 bytes before.

    Damaged content gives what is before the damage.
    """
    if len(content) < 16:
        return b""
    size, kind = unpack_from("<4xI4s", content)
    if kind == b"MELA":
        return content[16 : 16 + size]
    if kind != b"LZFu":
        return b""
    output = bytearray(_COMMON_RTF)
    end = len(_COMMON_RTF) + size
    at = 16
    while at < len(content) and len(output) < end:
        flags = content[at]
        at += 1
        for bit in range(8):
            if at + 1 >= len(content) and (flags >> bit & 1 or at >= len(content)):
                break
            if not flags >> bit & 1:
                output.append(content[at])
                at += 1
                continue
            reference = content[at] << 8 | content[at + 1]
            at += 2
            # The distance back in the window, which is written round and round
            distance = (len(output) - (reference >> 4)) % _WINDOW
            if distance == 0:  # the end
                return bytes(output[len(_COMMON_RTF) : end])
            if distance > len(output):
                return bytes(output[len(_COMMON_RTF) : end])
            for _ in range((reference & 15) + 2):
                output.append(output[-distance])
    return bytes(output[len(_COMMON_RTF) : end])
