"""Reads mails (.eml) and mailboxes (.mbox): who wrote to whom and when as a sentence, then the text
of each message.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from ifqa.corpus.documents.decoding import (
    TextRun,
    UnreadableFile,
    clean_text,
    decode_as,
    decode_text,
    split_lines,
)
from ifqa.corpus.documents.html import html_runs
from ifqa.corpus.documents.text_files import read_text

#: The line before each message of a mailbox.
_POSTMARK = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From \S[^\n]*\d\d:\d\d:\d\d[^\n]*\n")
_LONGEST = 2_000  # characters of a header
_NAMED = 5  # receivers, attachments
_QUOTED = re.compile(r"\s?>[>\s]*")
_PACKED = re.compile(r"[A-Za-z0-9+/=]{60,}|M[\x20-\x60]{60}")  # a line of base64 or uuencode
#: The headers that Outlook writes above the message replied to, in several languages.
_REPLIED = re.compile(
    r"(?m)^(?:-{3,}.*\n\s*)?\*?(?:From|Von|Fra|Från|De|Da):(.*)\n((?:\*?\w[\w /]{1,20}:.*\n){1,6})"
)
_SENT = re.compile(
    r"(?m)^\W*(?:Sent|Date|Gesendet|Datum|Sendt|Dato|Skickat|Envoyé|Enviado|Inviato|Data)\b\W*(.*)"
)
_SIGNATURE = re.compile(
    r"(?ms)^-----BEGIN PGP SIGNATURE-----$.*?(?:^-----END PGP SIGNATURE-----$|\Z)"
)


def read_mbox(content: bytes) -> Iterator[TextRun]:
    """The messages of a mailbox, counted from 1."""
    starts = [match.start() for match in _POSTMARK.finditer(content)] or [0]
    known = set[str]()
    for number, (start, end) in enumerate(
        zip(starts, [*starts[1:], len(content)], strict=True), start=1
    ):
        yield from read_message(
            re.sub(rb"(?m)^>(?=>*From )", b"", content[start:end]), number, known
        )


def read_message(content: bytes, number: int, known: set[str]) -> Iterator[TextRun]:
    """A message and those that it forwards.

    Lines in `known`, those of earlier messages, are not quoted again.
    """
    try:
        # By the policy `compat32`, which leaves headers unparsed
        message = message_from_bytes(content)
    except RecursionError as error:
        raise UnreadableFile(f"the parts of message {number} are nested too deeply") from error
    waiting = [(message, 1)]
    attached = list[str]()
    lines = list[str]()
    while waiting:
        # The level of its subject as a heading; 0 for a part that is no message
        part, level = waiting.pop()
        kind = part.get_content_type()
        name = _decode_header(part.get_filename() or "")
        if level:
            yield from _introduce(part, number, level)
        if part.is_multipart():
            waiting += [
                (inner, 2 * (kind == "message/rfc822")) for inner in reversed(_alternatives(part))
            ]
        elif name:
            attached.append(name)
        elif kind in ("text/plain", "text/html"):
            text = _decode_body(part)
            if kind == "text/plain":
                own = split_lines(_SIGNATURE.sub("", text))
                lines += own
                text = _REPLIED.sub(_introduce_quoted, "\n".join(_unquote(own, known)))
            runs: Iterable[TextRun] = html_runs(text) if kind == "text/html" else read_text(text)
            yield from (replace(run, place=number, level=0) for run in runs)
    known.update(_QUOTED.sub("", line, count=1).strip() for line in lines)
    if attached:
        yield TextRun(f"Attached: {_enumerate(attached)}.", number)


def _alternatives(part: Message) -> Sequence[Message]:
    """The parts of a part.

    Of the same text in several formats only the plain one, or the last that can be read.
    """
    inner = [each for each in part.get_payload() if isinstance(each, Message)]
    if part.get_content_type() != "multipart/alternative":
        return inner
    plain = [
        each
        for each in inner
        if each.get_content_type() == "text/plain" and _decode_body(each).strip()
    ]
    return (
        plain[:1]
        or [
            each for each in inner if each.is_multipart() or each.get_content_type() == "text/html"
        ][-1:]
    )


def _introduce(message: Message, number: int, level: int) -> Iterator[TextRun]:
    """The subject as a heading, and a sentence with sender, receivers and date."""
    headers = {name.lower(): str(value) for name, value in reversed(list(message.raw_items()))}
    subject = _decode_header(headers.get("subject", ""))
    sender, to, copies = (_people(headers.get(name, "")) for name in ("from", "to", "cc"))
    try:
        sent = parsedate_to_datetime(headers.get("date", ""))
        date = f" on {sent.day} {sent:%B %Y} at {sent:%H:%M}"
    except (ValueError, TypeError, IndexError, OverflowError):
        date = ""
    if subject or sender:
        yield TextRun(subject or f"Message from {sender}", number, True, level)
    if sender:
        people = f"{f' to {to}' if to else ''}{f', copy to {copies}' if copies else ''}"
        yield TextRun(f"{sender} wrote{people}{date}.", number)


def _introduce_quoted(headers: re.Match[str]) -> str:
    sent = _SENT.search(headers[2])
    return (
        f"\n{_people(headers[1].strip(' *'))} wrote{f' on {sent[1].strip()}' if sent else ''}:\n\n"
    )


def _decode_header(raw: str) -> str:
    text = decode_text(raw.replace("\0", "")[:_LONGEST].encode("utf-8", "surrogateescape"))
    try:
        return clean_text(str(make_header(decode_header(text))))
    except (HeaderParseError, LookupError, ValueError):
        return clean_text(text)


def _people(raw: str) -> str:
    """The people of an address header: "Nora Pike (nora@mill.example) and two@mill.example"."""
    try:
        pairs = getaddresses([raw[:_LONGEST]])
    except (RecursionError, IndexError, ValueError):
        pairs = []
    names = [
        f"{_decode_header(name)} ({address})" if name else _decode_header(address)
        for name, address in pairs
        if address
    ]
    return _enumerate(names) if names else _decode_header(raw)


def _enumerate(names: Sequence[str]) -> str:
    shown = [*names[:_NAMED], f"{len(names) - _NAMED} more"] if len(names) > _NAMED else names
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _decode_body(part: Message) -> str:
    content = part.get_payload(decode=True)
    content = content if isinstance(content, bytes) else b""
    try:
        return decode_as(content, part.get_content_charset("")) or decode_text(content)
    except UnreadableFile:  # not text
        return ""


def _unquote(lines: Iterable[str], known: set[str]) -> Iterator[str]:
    """The lines without marks of quotation, packed attachments and known quotations.

    Each quotation is a paragraph.
    """
    before = 0  # depth of the quotation
    for line in lines:
        mark = _QUOTED.match(line)
        depth, text = (mark[0].count(">"), line[mark.end() :]) if mark else (0, line)
        if depth != before or text.strip() == "--":
            yield ""
        before = depth
        if (
            text.strip() != "--"
            and not (mark and text.strip() in known)
            and not _PACKED.fullmatch(text.strip())
        ):
            yield text
