"""The files that a built corpus of documents was read from."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ifqa.corpus.documents.chunking import encode_name
from ifqa.corpus.documents.readers import suffix_of
from ifqa.corpus.documents.source import Documents, read_lines
from ifqa.corpus.passage_store import parse_passage
from ifqa.corpus.work_units import FileRecord, FileRecords, Source
from ifqa.errors import MissingInput
from ifqa.records import Passage


def _convert(suffix: str) -> str:
    return f"LibreOffice converts it: soffice --headless --convert-to {suffix} FILE"


#: Kind of a file left out, start of its reason or its suffix -> what would help.
_MENDS = {
    "no text on": "a scan without text: ocrmypdf IN OUT adds it, or start with --ocr",
    "it needs a password": "save a copy without the password",
    "not a complete PDF": "open it and save it again, or fetch it again",
    "cannot be read (File name too long": "give its folders shorter names",
    "large": "raise max_mb in the corpus file, indexes/NAME.toml",
    "closed": "allow your user to read it",
    "link": "put the file itself into the folder",
    "hidden": "rename it without the dot, if it should be read",
    "it is of a version of Word before 97": _convert("docx"),
    **dict.fromkeys((".pages", ".wps", ".wpd", ".sxw", ".abw"), _convert("docx")),
    **dict.fromkeys((".numbers", ".wks", ".sxc"), _convert("xlsx")),
    **dict.fromkeys((".ppt", ".pps", ".key", ".sxi"), _convert("pptx")),
    **dict.fromkeys(
        (".png", ".jpg", ".tif"), "a picture: ocrmypdf IN OUT.pdf makes a PDF with its text"
    ),
}


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A document of a built corpus."""

    top: Path  # the folder of documents
    name: str  # its path relative to the folder, with slashes
    record: FileRecord

    def passages(self) -> list[Passage]:
        """Its passages, in order, from the index."""
        lines = read_lines(self.record).splitlines(keepends=True)
        return [parse_passage(line, f"{self.record.shard}: {self.name}") for line in lines]

    def open(self) -> BinaryIO:
        """Open the file.

        MissingInput unless its bytes are those that were indexed, and no link below `top` leads to
        it.
        """
        path = self.top / self.name
        with suppress(OSError):
            linked = path.resolve(strict=True) != self.top.resolve() / self.name
            if not linked and path.is_file() and path.stat().st_size == self.record.bytes:
                handle = open(path, "rb", opener=_open_unlinked)  # noqa: SIM115 - closed by the caller
                if hashlib.file_digest(handle, "sha256").hexdigest() == self.record.sha256:
                    handle.seek(0)
                    return handle
                handle.close()
        raise MissingInput(f"{self.name} has changed since it was indexed; open it in its folder")


def _open_unlinked(path: str, flags: int) -> int:
    """Open neither a link nor a pipe that replaced the file meanwhile."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def indexed_files(sources: Sequence[Source], records: FileRecords) -> Mapping[str, IndexedFile]:
    """The files that passages were read from, by their names as in the ids of the passages."""
    files: dict[str, IndexedFile] = {}
    for source in sources:
        if isinstance(source, Documents):
            top = Path(source.path)
            top = top if top.is_dir() else top.parent
            for key, record in records.items():
                name = key.removeprefix(source.key_prefix)
                if name != key and record.passages:
                    files[encode_name(name)] = IndexedFile(top, name, record)
    return files


def mend(file: Mapping[str, str]) -> str:
    """What would help to read a file that was left out, from its line of bad_pages.jsonl.

    Often empty.
    """
    marks = (file["kind"], suffix_of(file["id"]) if file["kind"] == "other" else "")
    return next(
        (hint for mark, hint in _MENDS.items() if mark in marks or file["reason"].startswith(mark)),
        "",
    )
