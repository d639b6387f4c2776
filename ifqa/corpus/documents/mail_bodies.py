"""Reads the text of a mail's body, without the marks of quoted lines, signatures and repeated
lines.
"""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from email.message import Message

from ifqa.corpus.documents.decoding import (
    TextRun,
    UnreadableFile,
    decode_labelled,
    decode_markup,
    split_lines,
)
from ifqa.corpus.documents.html import html_runs
from ifqa.corpus.documents.mail_headers import read_people
from ifqa.corpus.documents.text_files import read_text

_QUOTED = re.compile(r"\s?>[>\s]*")
_PACKED = re.compile(r"[A-Za-z0-9+/=]{60,}|M[\x20-\x60]{60}")  # a line of base64 or uuencode
#: The headers that Outlook writes above the message replied to, in several languages.
_REPLIED = re.compile(
    r"(?m)^(?:-{3}.*\n\s*)?\*?(?:From|Von|Fra|Från|De|Da):(.*)\n((?:\*?\w[\w /]{1,20}:.*\n){1,6})"
)
_SENT = re.compile(
    r"(?m)^\W*(?:Sent|Date|Gesendet|Datum|Sendt|Dato|Skickat|Envoyé|Enviado|Inviato|Data)\b\W*(.*)"
)
_SIGNATURE = re.compile(
    r"(?ms)^-----BEGIN PGP SIGNATURE-----$.*?(?:^-----END PGP SIGNATURE-----$|\Z)"
)
_SIGNED = re.compile(r"(?m)^-----BEGIN PGP SIGNED MESSAGE-----\n(?:Hash: .*\n)?")
_ENCRYPTED = re.compile(r"(?ms)^-----BEGIN PGP MESSAGE-----$.*?(?:^-----END PGP MESSAGE-----$|\Z)")
_COLOUR = re.compile(r"<param>[^<]{0,200}</param>", re.I)
_COMMAND = re.compile(r"<(?:(<)|/?[A-Za-z][\w-]{0,60}>)")
_ADDRESS = re.compile(r"https?://\S+")
_ELSEWHERE = re.compile(r"html|browser|https?:", re.I)
_STUB = 600  # characters of a text that only tells where the message is
_TIMES = 4  # a text that is so many times shorter than the HTML is not the same text


def decode_body(part: Message) -> str:
    """The text of a part, in its declared encoding; empty if it is not text."""
    content = part.get_payload(decode=True)
    content = content if isinstance(content, bytes) else b""
    charset = part.get_content_charset("")
    try:
        if part.get_content_subtype() == "html" and not charset:
            return decode_markup(content)
        return decode_labelled(content, charset)
    except UnreadableFile:
        return ""


def plain_lines(part: Message) -> list[str]:
    """The lines of a plain or enriched part, with its marks of quotation."""
    text = "\n".join(split_lines(decode_body(part)))
    kind = part.get_content_subtype()
    if kind in ("enriched", "richtext"):
        text = _COMMAND.sub(lambda match: match[1] or "", _COLOUR.sub("", text))
        text = re.sub(r"\n(\n*)", lambda match: match[1] or " ", text)
    text = _ENCRYPTED.sub("A part is encrypted (PGP) and was not read.", text)
    lines = split_lines(_SIGNED.sub("", _SIGNATURE.sub("", text)))
    if _parameter(part, "format") == "flowed":
        return _join_flowed(lines, _parameter(part, "delsp") == "yes")
    return lines


def _parameter(part: Message, name: str) -> str:
    value = part.get_param(name)
    return value.lower() if isinstance(value, str) else ""


def _join_flowed(lines: Sequence[str], drops: bool) -> list[str]:
    """The paragraphs of a text whose lines go on after a blank at their end (RFC 3676).

    `drops` is whether that blank is no part of the text.
    """
    paragraphs = list[list[str]]()
    before = -1  # the depth of the line before, if it goes on
    for line in lines:
        depth = len(line) - len(line.lstrip(">"))
        text = line[depth:].removeprefix(" ")
        is_signature = text == "-- "
        goes_on = text.endswith(" ") and not is_signature
        if goes_on and drops:
            text = text[:-1]
        if depth == before and not is_signature:
            paragraphs[-1].append(text)
        else:
            paragraphs.append([f"{'>' * depth} " if depth else "", text])
        before = depth if goes_on else -1
    return ["".join(pieces) for pieces in paragraphs]


def plain_runs(lines: Iterable[str], known: Set[str]) -> Iterator[TextRun]:
    """The text of a plain part, without quoted lines that are `known` from an earlier message."""
    yield from read_text(_REPLIED.sub(_introduce_quoted, "\n".join(_unquote(lines, known))))


def unquoted(lines: Iterable[str]) -> Iterator[str]:
    """The lines as a later message may quote them."""
    return (_QUOTED.sub("", line, count=1).strip() for line in lines)


def _introduce_quoted(headers: re.Match[str]) -> str:
    sent = _SENT.search(headers[2])
    return (
        f"\n{read_people(headers[1].strip(' *'))} wrote"
        f"{f' on {sent[1].strip()}' if sent else ''}:\n\n"
    )


def _unquote(lines: Iterable[str], known: Set[str]) -> Iterator[str]:
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


def is_stub(plain: str, html: str) -> bool:
    """Whether a plain text stands for HTML that it does not tell: "This message is in HTML"."""
    is_short = len(plain) < _STUB
    if not is_short and len(html) < _TIMES * len(plain):  # then its text is no longer
        return False
    shown = " ".join(run.text for run in html_runs(html) if isinstance(run, TextRun))
    told = _words(plain)
    if _letters(shown) > _TIMES * _letters(_ADDRESS.sub("", plain)):
        return True
    is_foreign = len(told & _words(shown)) * 2 < len(told)
    return is_short and is_foreign and bool(shown.strip() and _ELSEWHERE.search(plain))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", _ADDRESS.sub("", text).lower()))


def _letters(text: str) -> int:
    return sum(map(len, re.findall(r"\w+", text)))
