"""Reads a document as passages, with a reader for each suffix."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ifqa.corpus.documents import (
    asciidoc_files,
    calendar_files,
    contacts,
    epub,
    html,
    latex_files,
    legacy_word,
    mail,
    markdown_files,
    ocr,
    open_document,
    org_files,
    outlook_message,
    pdf,
    rst_files,
    settings_files,
    slides,
    spreadsheets,
    subtitles,
    table_files,
    text_files,
    web_archive,
    word,
)
from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import TextRun, Unread, UnreadableFile, decode_text, is_binary
from ifqa.corpus.documents.worker import Worker, tell_share
from ifqa.corpus.passage_store import passage_line
from ifqa.corpus.sentences import LONGEST_WORD, count_words, cut_words
from ifqa.formatting import pluralize
from ifqa.protocols import ProgressCallback, no_progress

VERSION = 7  # raise it when passages of an earlier version must not be reused

CHANGED = "it changed while it was being read"  # the reason for a file of other bytes than listed

_MAILDIR = re.compile(r"\d{9,11}\.[\w=]{1,60}\.[\w.,=-]{1,100}?(?:[:;!]2,\w*)?")
_Reader = Callable[[bytes, tuple[str, ...]], Iterable[TextRun | Unread]]


def _of_text(read: Callable[[str], Iterable[TextRun | Unread]]) -> _Reader:
    return lambda content, _: read(decode_text(content))


def _read_plain(content: bytes, _: tuple[str, ...]) -> Iterable[TextRun]:
    if is_binary(content):
        raise UnreadableFile("not a text file: it contains control characters")
    return text_files.read_text(decode_text(content))


def _for_attached(columns: tuple[str, ...]) -> mail.ReadAttached:
    """The readers of documents that are attached to a mail."""

    def read(suffix: str, content: bytes) -> Iterable[TextRun | Unread] | None:
        if not suffix or suffix not in READERS:
            return None
        return READERS[suffix][1](content, columns)

    return read


def _of_bytes(read: Callable[[bytes], Iterable[TextRun | Unread]]) -> _Reader:
    return lambda content, _: read(content)


def _of_table(
    read: Callable[[str, tuple[str, ...]], Iterable[TextRun | Unread]], *more: str
) -> _Reader:
    return lambda content, columns: read(decode_text(content), columns, *more)


def _with_attached(
    read: Callable[[bytes, mail.ReadAttached], Iterable[TextRun | Unread]],
) -> _Reader:
    return lambda content, columns: read(content, _for_attached(columns))


#: Suffixes, the unit of their places, and the reader of a file's bytes and the named columns.
_KINDS: Sequence[tuple[str, str, _Reader]] = (
    (".txt .text .log", "line", _of_text(text_files.read_text)),
    (".md .markdown", "line", _of_text(markdown_files.read_markdown)),
    (".rst", "line", _of_text(rst_files.read_rst)),
    (".adoc .asciidoc", "line", _of_text(asciidoc_files.read_asciidoc)),
    (".org", "line", _of_text(org_files.read_org)),
    (".tex", "line", _of_text(latex_files.read_latex)),
    (".html .htm .xhtml", "line", _of_bytes(html.read_html)),
    (".mht .mhtml", "line", _of_bytes(web_archive.read_web_archive)),
    (".epub", "part", _of_bytes(epub.read_epub)),
    (".pdf", "page", _of_bytes(pdf.read_pdf)),
    (".docx .docm .dotx .dotm", "paragraph", _of_bytes(word.read_docx)),
    (".doc .dot .rtf", "paragraph", _of_bytes(legacy_word.read_word)),
    (".odt .ott .fodt", "paragraph", _of_bytes(open_document.read_odt)),
    (".pptx .pptm .ppsx .ppsm .potx .potm", "slide", _of_bytes(slides.read_pptx)),
    (".odp .otp .fodp", "slide", _of_bytes(open_document.read_odp)),
    (".xlsx .xlsm .xltx .xltm", "row", spreadsheets.read_xlsx),
    (".xls .xlsb .ods", "row", spreadsheets.read_old_workbook),
    (".csv", "line", _of_table(table_files.read_csv)),
    (".tsv", "line", _of_table(table_files.read_csv, "\t")),
    (".jsonl .ndjson", "line", _of_table(table_files.read_jsonl)),
    (".json", "line", _of_table(table_files.read_json)),
    (".ini .cfg .conf", "line", _of_text(settings_files.read_ini)),
    (".properties", "line", _of_text(settings_files.read_properties)),
    (".yaml .yml", "line", _of_text(settings_files.read_yaml)),
    (".toml", "line", _of_text(settings_files.read_toml)),
    (".srt .vtt", "second", _of_text(subtitles.read_subtitles)),
    (".ipynb", "cell", _of_text(text_files.read_notebook)),
    (".eml", "message", _with_attached(mail.read_eml)),
    (".mbox", "message", _with_attached(mail.read_mbox)),
    (".msg .oft", "message", _with_attached(outlook_message.read_outlook_message)),
    (".ics", "line", _of_text(calendar_files.read_calendar)),
    (".vcf", "line", _of_text(contacts.read_contacts)),
)
#: Suffix -> the unit of its places, and its reader.
READERS: Mapping[str, tuple[str, _Reader]] = {
    **{suffix: (unit, read) for suffixes, unit, read in _KINDS for suffix in suffixes.split()},
    "": ("line", _read_plain),
}


@dataclass(frozen=True)
class Chunking:
    """The settings of `ifqa.corpus.documents.source.Documents` that turn text into passages."""

    words: int = 100
    overlap: int = 0
    columns: tuple[str, ...] = ()
    ocr: bool = False

    @property
    def identity(self) -> dict[str, object]:
        """The settings; `ocr` only if it is true, so that earlier builds stay current."""
        return {name: setting for name, setting in asdict(self).items() if name != "ocr" or setting}


def read_passages(
    path: Path,
    name: str,
    size: int,
    expected: str,
    chunking: Chunking,
    advance: ProgressCallback = no_progress,
) -> tuple[bytes, Mapping[str, Any]]:
    """The passages of a file as lines of a shard, and the facts about them.

    The facts are the numbers of `passages` and `words`, and what was left `unread`, in words.
    `name` is the file's path relative to its folder. `size` and `expected` are the number and the
    SHA-256 of its bytes as it was listed; those that were added since, as to a log, are left for
    the next build. `advance` gets the share that is read so far. Raises UnreadableFile with the
    reason.
    """
    try:
        with path.open("rb") as handle:
            content = handle.read(size)
    except OSError as error:
        raise UnreadableFile(f"cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != expected:  # the build would differ from its manifest
        raise UnreadableFile(CHANGED)
    if not content.strip():
        raise UnreadableFile("empty")
    request = {"name": name, "suffix": suffix_of(name), **asdict(chunking)}
    may_be_scan = chunking.ocr and request["suffix"] == ".pdf"
    try:
        facts, lines = WORKER.read(request, content, advance)
    except UnreadableFile as error:
        if not (may_be_scan and str(error).startswith(pdf.NO_TEXT)):
            raise
        facts, lines = WORKER.read(request, ocr.add_text(content), advance)
        return lines, facts
    if may_be_scan and pdf.WITHOUT_TEXT in facts["unread"]:
        try:
            facts, lines = WORKER.read(request, ocr.add_text(content), advance)
        except UnreadableFile as error:  # the pages with text are read
            facts["unread"] += f" ({error})"
    return lines, facts


def suffix_of(name: str) -> str:
    """The suffix of a path in lower case, with its dot; empty if its name has none.

    That of a message of a maildir, "1780300000.M1P2.mill:2,S", is ".eml".
    """
    base = name.rpartition("/")[2]
    if _MAILDIR.fullmatch(base):
        return ".eml"
    stem, dot, suffix = base.rpartition(".")
    return (dot + suffix).lower() if stem else ""


def read_request(request: Mapping[str, Any], content: bytes) -> tuple[dict[str, Any], bytes]:
    """Read the passages of a document, in the process of `WORKER`.

    A request has a name, a suffix and a `Chunking`'s fields.
    """
    suffix = request["suffix"] or mail.mail_suffix(content)  # mailboxes often have no ending
    unit, reader = READERS[suffix]
    lines = list[bytes]()
    words = 0
    unread = Counter[str]()
    parts = reader(content, tuple(request["columns"]))
    runs = _cut_words(_tell_shares(_count_unread(parts, unread), len(content)), unread)
    for passage in chunk_document(
        request["name"], runs, unit, request["words"], request["overlap"]
    ):
        lines.append(passage_line(passage.id, passage.title, passage.text))
        words += count_words(passage.text)
    if not lines:
        raise UnreadableFile("no text in it")
    told = ", ".join(_count_parts(what, count) for what, count in sorted(unread.items()))
    return {"passages": len(lines), "words": words, "unread": told}, b"".join(lines)


def _count_unread(parts: Iterable[TextRun | Unread], unread: Counter[str]) -> Iterator[TextRun]:
    """The runs of a document; what was left out is added to `unread`."""
    for part in parts:
        if isinstance(part, Unread):
            unread[part.what] += part.count
        else:
            yield part


def _cut_words(runs: Iterable[TextRun], unread: Counter[str]) -> Iterator[TextRun]:
    """The runs with their overlong words cut, which are added to `unread`."""

    def cut(text: str) -> str:
        shown, count = cut_words(text)
        if count:
            unread["overlong word"] += count
        return shown

    for run in runs:
        if len(run.text) <= LONGEST_WORD:  # the common case
            yield run
        elif run.row:
            yield replace(run, row=tuple((cut(name), cut(value)) for name, value in run.row))
        else:
            yield replace(run, text=cut(run.text))


def _count_parts(what: str, count: int) -> str:
    """The number of parts with their noun: "2 formulas without a saved value"."""
    noun, without, rest = what.partition(" without ")
    return f"{pluralize(count, noun)}{without}{rest}"


def _tell_shares(runs: Iterable[TextRun], size: int) -> Iterator[TextRun]:
    """The runs of a file of `size` bytes, telling the share that is read.

    A section without a passage yet may be long.
    """
    read = 0
    for run in runs:
        yield run
        read += len(run.text)
        tell_share(min(read / size, 1))


WORKER = Worker(f"{__name__}:{read_request.__name__}")
