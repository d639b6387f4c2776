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


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A document of a built corpus."""

    top: Path  # the folder of documents
    path: str  # relative to the folder, with slashes
    name: str  # the path as answers show it, with the prefix of its source
    record: FileRecord

    @property
    def is_pdf(self) -> bool:
        return suffix_of(self.name) == ".pdf"

    def passages(self) -> list[Passage]:
        """Its passages, in order, from the index."""
        lines = read_lines(self.record).splitlines(keepends=True)
        return [parse_passage(line, f"{self.record.shard}: {self.name}") for line in lines]

    def open(self) -> BinaryIO:
        """Open the file.

        MissingInput unless its bytes are those that were indexed, and no link below `top` leads to
        it.
        """
        path = self.top / self.path
        with suppress(OSError):
            linked = path.resolve(strict=True) != self.top.resolve() / self.path
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
            start = source.key_prefix + source.name_prefix
            for key, record in records.items():
                path = key.removeprefix(start)
                if path != key and record.passages:
                    name = source.name_prefix + path
                    files[encode_name(name)] = IndexedFile(top, path, name, record)
    return files
