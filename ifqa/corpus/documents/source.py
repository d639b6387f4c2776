"""A folder of a user's documents as a source of passages: its units of work, and what a build says of its files."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ifqa.corpus.documents import pdf
from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.folder import FolderFile, scan_folder, suffix_of
from ifqa.corpus.documents.readers import VERSION, Chunking, read_passages
from ifqa.corpus.work_units import (
    NO_FILES,
    BuildReport,
    FileRecord,
    FileRecords,
    KnownFiles,
    Shard,
    SkippedPages,
    Source,
    WorkUnit,
    read_passage_lines,
)
from ifqa.errors import IfqaError
from ifqa.formatting import pluralize
from ifqa.settings import Natural, Positive
from ifqa.storage.files import sha256

_FILES, _SIZE = 256, 8_000_000  # files in a unit, and their bytes
_LISTED = 200  # names left out in a unit, which is a line of the log, whose length is bounded
_NAMED = 8  # files whose names are said
_KINDS = {
    "hidden": "hidden",
    "link": "links",
    "other": "of kinds that are not read",
    "special": "pipes or devices",
    "ifqa": "written by ifqa",
}


@dataclass(frozen=True)
class Document:
    """A file to read."""

    file: FolderFile
    sha256: str  # of its bytes; empty if they could not be read
    key: str  # as a `FileRecord` has it
    earlier: FileRecord | None = None  # its passages, if an earlier build made them from the same bytes and settings

    def read(self, chunking: Chunking) -> tuple[FileRecord, bytes]:
        """The record of the file, and its passages: those of an earlier build, or read from it now.

        Raises:
            IfqaError: it changed since it was hashed, so the build would not be what its manifest says.
        """
        file = self.file
        if self.earlier:
            return replace(self.earlier, modified=file.modified), read_passage_lines(self.earlier)
        lines, passages, words, reason = b"", 0, 0, ""
        try:
            lines, passages, words = read_passages(Path(file.path), file.name, self.sha256, chunking)
        except UnreadableFile as error:
            reason = str(error)
        return FileRecord(self.key, file.size, file.modified, self.sha256, len(lines), passages, words, reason), lines


@dataclass(frozen=True, kw_only=True)
class DocumentsUnit(WorkUnit):
    """Files that become a shard together; none in a unit that lists what is left out."""

    documents: tuple[Document, ...] = ()
    chunking: Chunking

    @property
    def is_current(self) -> bool:
        return all(document.earlier for document in self.documents)

    def hashed(self) -> Iterator[bytes]:
        files = [(document.file.name, document.sha256) for document in self.documents]
        yield repr((VERSION, asdict(self.chunking), files)).encode("utf-8", "surrogatepass")

    def make_shard(self) -> Shard:
        tally, records, data = self.tally.copy(), list[FileRecord](), list[bytes]()
        for document in self.documents:
            record, lines = document.read(self.chunking)
            records.append(record)
            data.append(lines)
            if record.reason:
                tally.leave_out(document.file.name, document.file.name, record.reason, "bad")
        passages, words = sum(record.passages for record in records), sum(record.words for record in records)
        pages = sum(not record.reason for record in records)
        return Shard(b"".join(data), pages, passages, words, tally, tuple(records))


@dataclass
class Documents(Source):
    """A user's own documents: .txt, .md, .rst, .html, .pdf (with pypdfium2), .docx, .epub, .csv, .tsv, .jsonl, .log.

    Args:
        path: a folder, which is read with all folders below it, or a file.
        include: patterns such as "*.pdf" or "reports/*"; a file that fits none is not read. Empty: all.
        exclude: patterns of files and folders that are not read.
        words: words of a passage, about; it ends at the end of a sentence.
        overlap: words of whole sentences that a passage shares with the one before; less than `words`.
        columns: the columns of tables that are read. Empty: all.
        max_mb: megabytes of the largest file that is read.
    """

    format = "documents"
    unit = "file"
    is_user_folder = True

    path: str
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    words: Positive = 100
    overlap: Natural = 0
    columns: Sequence[str] = ()
    max_mb: Annotated[float, Field(gt=0)] = 50.0
    _hashes: dict[str, str] = field(default_factory=dict, init=False, repr=False)

    def check(self) -> None:
        """Refuse a folder that is not there, or an overlap as long as a passage."""
        if not Path(self.path).exists():
            raise IfqaError(f"documents not found: there is no {Path(self.path).absolute()}; name a folder, or a file")
        if self.overlap >= self.words:
            raise IfqaError(f"overlap = {self.overlap}: wanted fewer words than a passage has, {self.words}")

    @cached_property
    def scanned(self) -> list[FolderFile]:
        """The files of the folder, and what is left out."""
        return list(scan_folder(Path(self.path), self.include, self.exclude, self.max_mb))

    @property
    def chunking(self) -> Chunking:
        """How its documents become passages."""
        return Chunking(self.words, self.overlap, tuple(self.columns))

    def settings(self) -> dict[str, object]:
        """As `Source`, with the version of the readers: passages of an earlier one are made anew."""
        return super().settings() | {"reader": VERSION}

    def documents(self, known: KnownFiles) -> Iterator[Document]:
        """The files to read, with their hashes; those of a known size and time of change are not hashed again.

        Raises:
            IfqaError: one is a PDF, and pypdfium2 is not installed.
        """
        settings = json.dumps([VERSION, str(Path(self.path).absolute()), asdict(self.chunking)], sort_keys=True)
        folder = hashlib.sha256(settings.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        files = [file for file in self.scanned if not file.kind]
        for file in [file for file in files if suffix_of(file.name) == ".pdf"][:1]:
            pdf.require_library(file.path)
        for file in files:
            key = f"{folder}/{file.name}"
            if file.name not in self._hashes:
                self._hashes[file.name] = _hash_file(file, known.get(key, (0, 0, "")))
            yield Document(file, self._hashes[file.name], key)

    def work_units(self, earlier: FileRecords = NO_FILES) -> Iterator[WorkUnit]:
        """Units of at most 256 files or 8 MB of them; the last ones list what is left out."""
        waiting: list[Document] = []
        for document in self.documents({key: record.facts for key, record in earlier.items()}):
            record = earlier.get(document.key)
            if record and record.sha256 == document.sha256 != "":
                document = replace(document, earlier=record)
            size = sum(before.file.size for before in waiting) + document.file.size
            if waiting and (len(waiting) == _FILES or size > _SIZE):
                yield self._unit(waiting)
                waiting = []
            waiting.append(document)
        if waiting:
            yield self._unit(waiting)
        left_out = [file for file in self.scanned if file.kind]
        for first in range(0, len(left_out), _LISTED):
            tally = SkippedPages()
            for file in left_out[first : first + _LISTED]:
                tally.leave_out(file.name, file.name, file.reason, file.kind)
            yield DocumentsUnit(chunking=self.chunking, where=self.path, read=0, tally=tally)

    def _unit(self, documents: Sequence[Document]) -> DocumentsUnit:
        where = documents[0].file.path + (f" and {len(documents) - 1} more" if len(documents) > 1 else "")
        read = sum(document.file.size for document in documents)
        return DocumentsUnit(documents=tuple(documents), chunking=self.chunking, where=where, read=read)

    def fingerprint(self, known: KnownFiles) -> dict[str, object]:
        """As `Source`. The files are known by their names and bytes."""
        digest = hashlib.sha256()
        for document in self.documents(known):
            digest.update(f"{document.sha256} {document.file.name}\n".encode("utf-8", "surrogatepass"))
        return self.settings() | {"files": [digest.hexdigest()]}

    def size(self) -> int:
        return sum(file.size for file in self.scanned if not file.kind)

    def summary(self, build: BuildReport) -> Iterator[str]:
        yield f"{build.corpus}: {_describe_changes(build.before, build.after)}"
        yield from _describe_skipped(build.bad)
        if any("kind" in file for file in build.bad):
            yield f"all that is left out, with reasons: {build.listed}"

    def explain_empty(self, build: BuildReport) -> str:
        return "; ".join(_describe_skipped(build.bad)) or f"no file in {self.path}"


def _hash_file(file: FolderFile, before: Sequence[int | str]) -> str:
    """The SHA-256 of a file, or that of `before` if nothing changed; empty if it cannot be read: its reader says why."""
    if (file.size, file.modified) == tuple(before[:2]) and before[2]:
        return str(before[2])
    try:
        return sha256(Path(file.path))
    except OSError:
        return ""


def _describe_changes(before: FileRecords, after: FileRecords) -> str:
    """Which files were read, new, changed or removed since the build before; both by their keys."""
    if not {key.partition("/")[0] for key in before} & {key.partition("/")[0] for key in after}:
        return f"{pluralize(len(after), 'file')} read"  # nothing was built before, or with other settings
    new, gone = after.keys() - before.keys(), before.keys() - after.keys()
    changed = {key for key in after.keys() & before.keys() if after[key].sha256 != before[key].sha256}
    parts = [_name_files("changed", changed), _name_files("new", new), _name_files("removed", gone)]
    read, same = pluralize(len(changed) + len(new), "file"), len(after) - len(changed) - len(new)
    return f"{read} read again, {same:,} unchanged{''.join(parts)}"


def _name_files(what: str, keys: Iterable[str]) -> str:
    names = sorted(key.partition("/")[2] for key in keys)
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"; {len(names):,} {what} ({', '.join(names[:_NAMED])}{more})" if names else ""


def _describe_skipped(bad: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """What was left out, in a few lines."""
    files = [file for file in bad if "kind" in file]
    counts = Counter(file["kind"] for file in files)
    groups = [f"{counts[kind]:,} {what}" for kind, what in _KINDS.items() if counts[kind]]
    if groups:
        yield f"left out: {', '.join(groups)}"
    named = [file for file in files if file["kind"] not in _KINDS]
    for file in named[:_NAMED]:
        yield f"left out: {file['id']}: {file['reason']}"
    if len(named) > _NAMED:
        yield f"left out: {pluralize(len(named) - _NAMED, 'more file')}"
