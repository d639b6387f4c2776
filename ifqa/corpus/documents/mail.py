"""Reads mails (.eml) and mailboxes (.mbox): who wrote to whom and when as a sentence, then the text
of each message, its invitations, and the documents attached to it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from email import message_from_bytes
from email.message import Message
from email.policy import Compat32

from ifqa.corpus.documents.calendar_files import read_calendar
from ifqa.corpus.documents.decoding import (
    TextRun,
    Unread,
    UnreadableFile,
    decode_labelled,
    decode_text,
)
from ifqa.corpus.documents.html import html_runs
from ifqa.corpus.documents.mail_bodies import (
    decode_body,
    is_stub,
    plain_lines,
    plain_runs,
    unquoted,
)
from ifqa.corpus.documents.mail_headers import (
    LONGEST,
    addresses,
    enumerate_names,
    read_file_name,
    read_header,
    read_people,
    write_moment,
)

MOST_ATTACHED = 1_000  # attached documents of a file that are read
DEEPEST = 10  # messages within one another
#: Reads an attached document by its suffix; None if there is no reader for it.
ReadAttached = Callable[[str, bytes], Iterable[TextRun | Unread] | None]

#: A line that may begin a message of a mailbox, above a header.
_POSTMARK = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]{1,300}\n(?=([!-9;-~]{1,80}):)")
_DATE = re.compile(
    rb"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [^\n]*"
    rb"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b"
)
_TIME = re.compile(rb"\d\d:\d\d")
_USUAL = frozenset(
    (
        b"from to cc date subject received return-path message-id delivered-to mime-version "
        b"content-type reply-to sender status x-status x-mozilla-status x-gm-thrid x-keywords"
    ).split()
)
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_LINE_ENDS = re.compile(rb"[\r\n]*")
#: What some programs write before the first header.
_BEFORE = re.compile(
    rb"(?i)(?:\xef\xbb\xbf)?\s*>?(?=From |(?:from|to|date|subject|received|return-path|message-id"
    rb"|delivered-to|mime-version|x-[\w-]{1,40}):)"
)
_LENGTH = re.compile(rb"(?im)^content-length:[ \t]*(\d{1,12})[ \t]*\r?$")
_HEADER = re.compile(rb"([!-9;-~]{1,80}):")
_PARAMETERS = 40  # of a header that describes a part
_SNIFFED = 4_000  # bytes of a file that tell whether it is a mail

_MESSAGES = ("message/rfc822", "message/global", "message/news")
_PICTURES = ("image", "audio", "video", "font")
#: Parts that say nothing to a reader.
_SILENT = frozenset(
    (
        "application/pgp-signature application/pkcs7-signature application/x-pkcs7-signature "
        "application/pgp-encrypted application/pgp-keys text/rfc822-headers text/x-amp-html "
        "text/watch-html text/x-moz-deleted text/css text/javascript text/vcard text/x-vcard "
        "text/directory"
    ).split()
)
_TNEF = ("application/ms-tnef", "application/vnd.ms-tnef")
_SMIME = ("application/pkcs7-mime", "application/x-pkcs7-mime")
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
#: Kind of content -> the suffix of an attached document whose name has none that is read.
_SUFFIXES = {
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/json": ".json",
    "application/msword": ".doc",
    "application/rtf": ".rtf",
    "application/vnd.ms-excel": ".xls",
    "application/vnd.ms-outlook": ".msg",
    "application/mbox": ".mbox",
    "application/x-ipynb+json": ".ipynb",
    f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.presentationml.presentation": ".pptx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx",
    f"{_OPEN}.text": ".odt",
    f"{_OPEN}.presentation": ".odp",
    f"{_OPEN}.spreadsheet": ".ods",
    "text/calendar": ".ics",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/rtf": ".rtf",
    "text/tab-separated-values": ".tsv",
    "text/x-rst": ".rst",
    **dict.fromkeys(_MESSAGES, ".eml"),
}


class _Policy(Compat32):
    """Leaves headers as they are, but cuts long ones, whose parameters take quadratic time."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        if name.lower().startswith("content-"):
            value = ";".join(value.split(";", _PARAMETERS)[:_PARAMETERS])
        return name, value[:LONGEST]

    def header_fetch_parse(self, name: str, value: str) -> str:
        return value  # the default loses bytes that are not ASCII


_POLICY = _Policy()


@dataclass(slots=True)
class _Reading:
    """What the messages of a file share."""

    read_attached: ReadAttached
    known: set[str] = field(default_factory=set)  # the lines of earlier messages, not quoted again
    attached: int = 0  # documents read so far


@dataclass(slots=True)
class _Contents:
    """The parts of a message, by what is made of them."""

    bodies: list[Message] = field(default_factory=list)
    calendars: list[Message] = field(default_factory=list)
    attached: list[tuple[str, Message]] = field(default_factory=list)  # each with its name
    messages: list[Message] = field(default_factory=list)
    sealed: str = ""  # why the message cannot be read


def read_mbox(content: bytes, read_attached: ReadAttached) -> Iterator[TextRun | Unread]:
    """The messages of a mailbox, counted from 1, with the documents attached to them."""
    reading = _Reading(read_attached)
    for number, message in enumerate(_split_mailbox(content), start=1):
        yield from _message_runs(_parse(message, f"message {number}"), number, 1, reading)


def read_eml(content: bytes, read_attached: ReadAttached) -> Iterator[TextRun | Unread]:
    """A message, those that it forwards, and the documents attached to it."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16
        content = decode_text(content).encode()
    yield from _message_runs(_parse(content, "message 1"), 1, 1, _Reading(read_attached))


def mail_suffix(content: bytes) -> str:
    """The suffix of a mailbox or a mail without an ending; empty for another file."""
    start = content[:_SNIFFED]
    if _postmarks(start, 0) == 0:
        return ".mbox"
    names = set[bytes]()
    for line in start.split(b"\n"):
        if not line.strip():
            break
        match = _HEADER.match(line)
        if match:
            names.add(match[1].lower())
        elif not names or line[:1] not in b" \t":
            return ""
    is_mail = b"from" in names and names & {b"date", b"received", b"message-id"}
    return ".eml" if is_mail else ""


def _split_mailbox(content: bytes) -> Iterator[bytes]:
    """The messages of a mailbox, without the marks before lines "From "."""
    start = 0
    while start < len(content):
        blank = _BLANK_LINE.search(content, start)
        body = blank.end() if blank else len(content)
        length = _LENGTH.search(content, start, body)
        end = body + int(length[1]) if length else -1
        if not _ends_message(content, end):
            end = _postmarks(content, blank.start() if blank else len(content))
        end = end if end > start else len(content)
        yield re.sub(rb"(?m)^>(?=>*From )", b"", content[start:end])
        # The lines between two messages belong to neither
        between = _LINE_ENDS.match(content, end)
        start = between.end() if between else end


def _ends_message(content: bytes, end: int) -> bool:
    """Whether a message ends where its header Content-Length says: before a postmark or nothing."""
    rest = content[end : end + 400].lstrip(b"\r\n") if 0 < end <= len(content) else b"?"
    return not rest or rest.startswith(b"From ")


def _postmarks(content: bytes, start: int) -> int:
    """The position of the first postmark from `start` on, or -1.

    A line of a body that begins with "From " is none: a postmark has a date, and a header follows.
    """
    for match in _POSTMARK.finditer(content, start):
        line = match[0]
        if _DATE.search(line) or (_TIME.search(line) and match[1].lower() in _USUAL):
            return match.start()
    return -1


def _parse(content: bytes, what: str) -> Message:
    before = _BEFORE.match(content)
    try:
        return message_from_bytes(content[before.end() :] if before else content, policy=_POLICY)
    except RecursionError as error:
        raise UnreadableFile(f"the parts of {what} are nested too deeply") from error


def _message_runs(
    message: Message, number: int, depth: int, reading: _Reading
) -> Iterator[TextRun | Unread]:
    """A message, its attached documents, and the messages within it.

    `number` is that of the message of the file, `depth` that of the messages around it, from 1.
    """
    contents = _contents(message)
    yield from _introduce(message, contents, number, depth)
    if contents.sealed:
        yield TextRun(f"The message {contents.sealed} and was not read.", number)
        yield Unread("encrypted part")
    lines = list[str]()
    for body in contents.bodies:
        if body.get_content_type() == "text/html":
            parts: Iterable[TextRun | Unread] = html_runs(decode_body(body))
        else:
            own = plain_lines(body)
            lines += own
            parts = plain_runs(own, reading.known)
        yield from (_place(part, number) for part in parts)
    yield from _invitations(contents.calendars, {line.strip() for line in lines}, number)
    reading.known.update(unquoted(lines))
    yield from _attached_runs(contents, number, depth, reading)
    for inner in contents.messages:
        if depth < DEEPEST:
            yield from _message_runs(inner, number, depth + 1, reading)
        else:
            yield Unread("message within a message")


def _place(part: TextRun | Unread, number: int, level: int = 0) -> TextRun | Unread:
    """A run of a part of message `number`; a heading gets a level, or is text."""
    if isinstance(part, Unread):
        return part
    return replace(
        part,
        place=number,
        level=level if part.level else 0,
        outside=level if part.outside else 0,
    )


def _contents(message: Message) -> _Contents:
    """Sort the parts of a message by what is made of them."""
    contents = _Contents()
    waiting = [message]
    while waiting:
        part = waiting.pop()
        kind = part.get_content_type()
        if kind == "multipart/encrypted":
            contents.sealed = "is encrypted (PGP)"
        elif part.is_multipart() and kind in _MESSAGES:
            contents.messages += _inner_messages(part)
        elif kind == "multipart/alternative":
            waiting += reversed(_alternatives(part))
        elif part.is_multipart():
            # Of the other kinds of message, such as receipts, the text before them tells all
            is_receipt = kind.startswith("message/")
            waiting += [] if is_receipt else reversed(_children(part))
        else:
            _add_leaf(contents, part, kind)
    return contents


def _inner_messages(part: Message) -> list[Message]:
    """The message of a part; some programs pack it in base64, which its parser does not expect."""
    inner = _children(part)
    if inner and not inner[0].keys() and "base64" in str(part.get("content-transfer-encoding")):
        inner[0]["Content-Transfer-Encoding"] = "base64"
        content = inner[0].get_payload(decode=True)
        return [_parse(content, "a message")] if isinstance(content, bytes) else []
    return inner


def _children(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, Message)] if part.is_multipart() else []


def _add_leaf(contents: _Contents, part: Message, kind: str) -> None:
    name = read_file_name(part)
    if kind in _SILENT:
        return
    if kind in _SMIME:
        is_signed = str(part.get_param("smime-type", "")).lower() == "signed-data"
        sealed = "is packed with its signature (S/MIME)" if is_signed else "is encrypted (S/MIME)"
        contents.sealed = contents.sealed or sealed
    elif kind == "text/calendar" or (name and _suffix(name, kind) == ".ics"):
        contents.calendars.append(part)
        if name:
            contents.attached.append((name, part))
    elif name:
        contents.attached.append((name, part))
    elif kind in _TNEF:
        contents.attached.append(("winmail.dat", part))
    elif _is_body(kind):
        contents.bodies.append(part)
    elif kind in _SUFFIXES:
        contents.attached.append((f"unnamed{_SUFFIXES[kind]}", part))


def _is_body(kind: str) -> bool:
    """Whether a part without a name is text of the message.

    So is a part that should have several and lacks the boundary between them.
    """
    if kind in ("text/plain", "text/html"):
        return True
    return kind.startswith(("text/", "multipart/")) and kind not in _SUFFIXES


def _alternatives(part: Message) -> list[Message]:
    """Of the same text in several formats the plain one, or the HTML if that only stands for it.

    And the invitations and documents beside them.
    """
    children = _children(part)
    plain = next((each for each in children if _is_plain(each) and decode_body(each).strip()), None)
    rich = next((each for each in reversed(children) if _html_of(each)), None)
    chosen: Message | None
    if plain and rich:
        html = _html_of(rich)
        is_standing = html is not None and is_stub(decode_body(plain), decode_body(html))
        chosen = rich if is_standing else plain
    else:
        parts = (each for each in children if each.is_multipart())
        chosen = plain or rich or next(parts, None)
    beside = [
        leaf
        for each in children
        if each is not chosen
        for leaf in (_leaves(each) if each.is_multipart() else [each])
        if _is_document(leaf)
    ]
    return [*([chosen] if chosen else []), *beside]


def _is_plain(part: Message) -> bool:
    return part.get_content_type() in ("text/plain", "text/enriched", "text/richtext")


def _html_of(part: Message, depth: int = 3) -> Message | None:
    """The HTML of a part, which may be packed with its pictures or with attachments."""
    if part.get_content_type() == "text/html":
        return part
    if not depth or part.get_content_maintype() != "multipart":
        return None
    return next(filter(None, (_html_of(each, depth - 1) for each in _children(part))), None)


def _leaves(part: Message) -> Iterator[Message]:
    waiting = [part]
    while waiting:
        inner = waiting.pop()
        if inner.get_content_maintype() == "multipart":
            waiting += reversed(_children(inner))
        else:
            yield inner


def _is_document(part: Message) -> bool:
    kind = part.get_content_type()
    if kind == "text/calendar" or kind in _MESSAGES:
        return True
    is_text = kind in ("text/plain", "text/html") and not read_file_name(part)
    return not is_text and part.get_content_maintype() not in _PICTURES and kind not in _SILENT


def _introduce(message: Message, contents: _Contents, number: int, level: int) -> Iterator[TextRun]:
    """The subject as a heading, and sentences with sender, receivers and date."""
    charset = next(filter(None, (body.get_content_charset("") for body in contents.bodies)), "")
    headers = {name.lower(): str(value) for name, value in reversed(list(message.raw_items()))}
    subject = read_header(headers.get("subject", ""), charset)
    sender, to, copies, blind = (
        read_people(headers.get(name, ""), charset) for name in ("from", "to", "cc", "bcc")
    )
    if subject or sender:
        yield TextRun(subject or f"Message from {sender}", number, True, level)
    if not sender:
        return
    people = "".join(
        f"{words} {names}"
        for words, names in ((" to", to), (", copy to", copies), (", blind copy to", blind))
        if names
    )
    moment = write_moment(message)
    yield TextRun(f"{sender} wrote{people}{f' {moment}' if moment else ''}.", number)
    if answers := _other_addresses(headers):
        yield TextRun(f"Replies go to {read_people(answers, charset)}.", number)


def _other_addresses(headers: Mapping[str, str]) -> str:
    """The header Reply-To if it names somebody whom the sentence about the message does not."""
    answers = headers.get("reply-to", "")
    told = {
        address.lower()
        for name in ("from", "to", "cc")
        if answers
        for _, address in addresses(headers.get(name, ""))
    }
    is_other = any(address.lower() not in told for _, address in addresses(answers))
    return answers if is_other else ""


def _invitations(parts: Iterable[Message], told: set[str], number: int) -> Iterator[TextRun]:
    """The events of calendars, each once, without the lines that the message has `told`."""
    done = set[str]()
    for part in parts:
        try:
            runs = list(read_calendar(decode_body(part)))
        except UnreadableFile:  # it is named as attached, if it has a name
            continue
        text = "\n".join(run.text for run in runs)
        if text in done:  # Outlook and others attach the invitation again as a file
            continue
        done.add(text)
        for run in runs:
            if run.text.strip() not in told:
                words = f"{run.text}." if run.level else run.text
                yield TextRun(words, number)


def _attached_runs(
    contents: _Contents, number: int, depth: int, reading: _Reading
) -> Iterator[TextRun | Unread]:
    """The names of the attached files, then the text of those that are documents.

    The heading of each is its name, below the message's.
    """
    refused = list[str]()
    documents = list[tuple[str, list[TextRun | Unread]]]()
    unread = 0
    for name, part in contents.attached:
        try:
            runs = _read_attached(name, part, contents, reading)
        except UnreadableFile as error:
            refused.append(f"{name} ({error})")
            runs = None
        if runs:
            documents.append((name, runs))
        unread += runs is None
    if contents.attached:
        names = enumerate_names([name for name, _ in contents.attached])
        yield TextRun(f"Attached: {names}.", number)
    if refused:
        yield TextRun(f"Not read: {enumerate_names(refused)}.", number)
    if unread:
        yield Unread("attachment", unread)
    for name, runs in documents:
        yield TextRun(name, number, True, depth + 1)
        # All of its headings are of one level, so that its name stays in the title
        yield from (_place(run, number, depth + 2) for run in runs)


def _read_attached(
    name: str, part: Message, contents: _Contents, reading: _Reading
) -> list[TextRun | Unread] | None:
    """The text of an attached document; None if it is none that is read.

    The messages of an attached mail or mailbox are added to those of `contents`, which are read
    later. Raises UnreadableFile with the reason.
    """
    kind = part.get_content_type()
    suffix = _suffix(name, kind)
    if kind in _TNEF or name.lower() == "winmail.dat":
        raise UnreadableFile("a message in Outlook's own format, TNEF")
    if suffix == ".ics":
        return []  # read as an invitation
    content = part.get_payload(decode=True)
    content = content if isinstance(content, bytes) else b""
    if suffix == ".eml":
        contents.messages.append(_parse(content, name))
        return []
    if suffix == ".mbox":
        contents.messages += [_parse(message, name) for message in _split_mailbox(content)]
        return []
    if part.get_content_maintype() == "text" and (charset := part.get_content_charset("")):
        content = decode_labelled(content, charset).encode("utf-8", "replace")
    runs = reading.read_attached(suffix, content)
    if runs is None and kind in _SUFFIXES:  # as for "minutes.v2", a PDF
        runs = reading.read_attached(_SUFFIXES[kind], content)
    if runs is None:
        return None
    reading.attached += 1
    if reading.attached > MOST_ATTACHED:
        raise UnreadableFile(f"after {MOST_ATTACHED:,} others")
    return list(runs)


def _suffix(name: str, kind: str) -> str:
    """The suffix by which an attached document is read."""
    stem, dot, suffix = name.rpartition(".")
    return (dot + suffix).lower() if stem and len(suffix) <= 5 else _SUFFIXES.get(kind, "")
