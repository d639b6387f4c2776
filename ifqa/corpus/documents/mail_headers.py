"""Reads the headers of a mail: people, names of files, and moments with their zones."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from ifqa.corpus.documents.decoding import (
    UnreadableFile,
    clean_text,
    decode_labelled,
    decode_text,
)

LONGEST = 2_000  # characters of a header
_NAMED = 5  # people, attachments
_ZONE_NAME = re.compile(r":\d\d\s+\(?([A-Z]{2,5})\)?\s*$")
_POSTMARK_DATE = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? .*")


def read_header(raw: str, charset: str = "") -> str:
    """The text of a header, with its encoded words.

    `charset` is that of the message's text, for bytes that are neither encoded nor UTF-8.
    """
    return clean_text(
        "".join(_read_words(_read_bytes(raw.replace("\0", "")[:LONGEST], charset), charset))
    )


def _read_words(text: str, charset: str) -> Iterable[str]:
    try:
        words = decode_header(text)
    except (HeaderParseError, ValueError):
        return (text,)
    return (
        word if isinstance(word, str) else _decode(word, encoding, charset)
        for word, encoding in words
    )


def _read_bytes(raw: str, charset: str) -> str:
    """A header as the parser gives it, where a byte beyond ASCII is half of a surrogate pair."""
    return raw if raw.isascii() else _decode(raw.encode("utf-8", "surrogateescape"), None, charset)


def _decode(word: bytes, encoding: str | None, charset: str) -> str:
    try:
        if encoding:
            return decode_labelled(word, encoding)
        return decode_text(word, charset)
    except UnreadableFile:  # null bytes
        return word.decode("ascii", "replace")


def read_file_name(part: Message) -> str:
    """The name of an attached file; empty if it has none."""
    for header, key in (("content-disposition", "filename"), ("content-type", "name")):
        value = part.get_param(key, header=header)
        if isinstance(value, tuple):  # by RFC 2231, with an encoding of its own
            encoding, _, escaped = value
            return clean_text(_decode(escaped.encode("raw-unicode-escape"), encoding, ""))
        if value:
            return read_header(str(value))
    return ""


def read_people(raw: str, charset: str = "") -> str:
    """The people of an address header: "Nora Pike (nora@mill.example) and two@mill.example"."""
    pairs = addresses(raw)
    names = [
        f"{read_header(name, charset)} ({address})" if name else read_header(address, charset)
        for name, address in pairs
    ]
    return enumerate_names(names) if names else read_header(raw, charset)


def addresses(raw: str) -> Sequence[tuple[str, str]]:
    """Each name, often empty, and address of an address header."""
    try:
        return [pair for pair in getaddresses([raw[:LONGEST]]) if pair[1]]
    except (RecursionError, IndexError, ValueError):
        return []


def enumerate_names(names: Sequence[str], most: int = _NAMED) -> str:
    """At most `most` names in words, and how many more there are."""
    shown = [*names[:most], f"{len(names) - most} more"] if len(names) > most else names
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def write_moment(message: Message) -> str:
    """When a message was sent: "on 1 June 2026 at 09:56 (UTC+05:30, 04:26 UTC)".

    UTC is told too, so that an answer from another zone is not dated before the mail that it
    answers. Without a date that can be read, the first server's counts, then a mailbox's.
    """
    received = [str(value) for name, value in message.raw_items() if name.lower() == "received"]
    postmark = _POSTMARK_DATE.search((message.get_unixfrom() or "")[:LONGEST])
    dates = [
        *(str(value) for name, value in message.raw_items() if name.lower() == "date"),
        *(value.rpartition(";")[2] for value in received[-1:]),
        *([postmark[0]] if postmark else []),
    ]
    return next(filter(None, map(_write_date, dates)), "")


def _write_date(raw: str) -> str:
    raw = raw.strip()
    try:
        sent = parsedate_to_datetime(raw)
        utc = sent.astimezone(UTC) if sent.utcoffset() else None
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""
    if utc is None:
        name = _ZONE_NAME.search(raw)
        zone = name[1] if name else ""
        if sent.tzinfo or "-0000" in raw:
            zone = "UTC"
        return f"{write_time(sent)}{f' ({zone})' if zone else ''}"
    moment = f"{utc:%H:%M}" if utc.date() == sent.date() else write_time(utc).removeprefix("on ")
    offset = f"{sent:%z}"
    return f"{write_time(sent)} (UTC{offset[:3]}:{offset[3:5]}, {moment} UTC)"


def write_time(moment: datetime) -> str:
    """A date and a time in words."""
    return f"on {moment.day} {moment:%B %Y} at {moment:%H:%M}"
