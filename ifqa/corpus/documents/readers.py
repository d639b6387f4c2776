"""Reads a document as passages: a reader for each kind of file, by its suffix."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ifqa.corpus.documents import html, markup, office, pdf, tables
from ifqa.corpus.documents.chunking import chunk_document
from ifqa.corpus.documents.decoding import TextRun, UnreadableFile, decode_text
from ifqa.corpus.documents.worker import Worker
from ifqa.corpus.passage_store import passage_line
from ifqa.errors import IfqaError

VERSION = 3  # raise it when passages of an earlier version must not be reused

#: Suffix -> the unit of its places, and the reader of its bytes and the named columns.
READERS: Mapping[str, tuple[str, Callable[[bytes, tuple[str, ...]], Iterable[TextRun]]]] = {
    ".txt": ("line", lambda data, _: markup.read_text(decode_text(data))),
    ".text": ("line", lambda data, _: markup.read_text(decode_text(data))),
    ".log": ("line", lambda data, _: markup.read_text(decode_text(data))),
    ".md": ("line", lambda data, _: markup.read_markdown(decode_text(data))),
    ".markdown": ("line", lambda data, _: markup.read_markdown(decode_text(data))),
    ".rst": ("line", lambda data, _: markup.read_rst(decode_text(data))),
    ".html": ("line", lambda data, _: html.read_html(data)),
    ".htm": ("line", lambda data, _: html.read_html(data)),
    ".xhtml": ("line", lambda data, _: html.read_html(data)),
    ".pdf": ("page", lambda data, _: pdf.read_pdf(data)),
    ".docx": ("paragraph", lambda data, _: office.read_docx(data)),
    ".epub": ("part", lambda data, _: office.read_epub(data)),
    ".csv": ("line", lambda data, columns: tables.read_csv(decode_text(data), columns)),
    ".tsv": ("line", lambda data, columns: tables.read_csv(decode_text(data), columns, "\t")),
    ".jsonl": ("line", lambda data, columns: tables.read_jsonl(decode_text(data), columns)),
}


@dataclass(frozen=True)
class Chunking:
    """How documents become passages: see `ifqa.corpus.documents.source.Documents`."""

    words: int = 100
    overlap: int = 0
    columns: tuple[str, ...] = ()


def read_passages(path: Path, name: str, expected: str, chunking: Chunking) -> tuple[bytes, int, int]:
    """The passages of a file as lines of a shard, with their number and their words.

    Args:
        path: the file.
        name: its path relative to its folder.
        expected: the SHA-256 of its bytes.
        cutting: how it becomes passages.

    Raises:
        UnreadableFile: the file cannot be read as a document.
        IfqaError: it changed since it was hashed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"cannot be read ({error.strerror})") from error
    if hashlib.sha256(data).hexdigest() != expected:
        raise IfqaError(f"{path} changed while it was being read; run the same command again")
    if not data.strip():
        raise UnreadableFile("empty")
    request = {"name": name, "suffix": path.suffix.lower(), **asdict(chunking)}
    facts, lines = WORKER.read(request, data)
    return lines, facts["passages"], facts["words"]


def read_request(request: Mapping[str, Any], data: bytes) -> tuple[dict[str, int], bytes]:
    """The passages of a document, in the process that reads documents (see `ifqa.corpus.documents.worker`).

    Args:
        request: the file's `name` relative to its folder, its `suffix`, and the fields of a `Chunking`.
        data: its bytes.

    Raises:
        UnreadableFile: it contains no text, or its reader fails.
    """
    unit, reader = READERS[request["suffix"]]
    lines, words = list[bytes](), 0
    runs = reader(data, tuple(request["columns"]))
    for passage in chunk_document(request["name"], runs, unit, request["words"], request["overlap"]):
        lines.append(passage_line(passage.id, passage.title, passage.text))
        words += len(passage.text.split())
    if not lines:
        raise UnreadableFile("no text in it")
    return {"passages": len(lines), "words": words}, b"".join(lines)


WORKER = Worker(f"{__name__}:{read_request.__name__}")
