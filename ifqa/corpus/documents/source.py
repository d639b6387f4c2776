"""A folder of documents as a source of passages: its units of work, and a build's messages about
its files.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ifqa.corpus.documents import ocr
from ifqa.corpus.documents.decoding import UnreadableFile
from ifqa.corpus.documents.folder import FolderFile, scan_folder
from ifqa.corpus.documents.left_out import describe_left_out
from ifqa.corpus.documents.readers import CHANGED, VERSION, Chunking, read_passages
from ifqa.corpus.work_units import (
    BuildReport,
    FileRecord,
    KnownFiles,
    Shard,
    SkippedPages,
    Source,
    WorkUnit,
    find_input,
)
from ifqa.errors import ConfigError, MissingInput
from ifqa.formatting import pluralize
from ifqa.progress import bar, report
from ifqa.settings import Natural, PluginSettings, Positive
from ifqa.storage.files import sha256

_FILES, _SIZE = 256, 8_000_000  # files in a unit, and their bytes
_LISTED = 200  # skipped files in a unit; its line in the log has a length limit
_NAMED = 8  # files to name in a message


@dataclass(frozen=True)
class Document:
    """A file to read."""

    file: FolderFile
    sha256: str  # of its bytes; empty if they could not be read
    key: str  # as in `FileRecord`
    earlier: FileRecord | None = None  # of an earlier build from the same bytes and settings

    def read(self, chunking: Chunking, before: int) -> tuple[FileRecord, bytes]:
        """Its record and its passages, from an earlier build or read now.

        `before`: bytes of its task's documents before it.
        """
        file = self.file
        if self.earlier:
            return replace(self.earlier, modified=file.modified), read_lines(self.earlier)
        report(file.name, before)
        lines = b""
        facts: Mapping[str, Any] = {"passages": 0, "words": 0, "unread": ""}
        reason = ""

        def advance(share: float) -> None:
            report(file.name, before + share * file.size)

        try:
            lines, facts = read_passages(
                Path(file.path), file.name, file.size, self.sha256, chunking, advance
            )
        except UnreadableFile as error:
            reason = str(error)
        record = FileRecord(
            key=self.key,
            bytes=file.size,
            modified=file.modified,
            sha256="" if reason == CHANGED else self.sha256,  # so that it is read again
            length=len(lines),
            reason=reason,
            **facts,
        )
        return record, lines


def read_lines(record: FileRecord) -> bytes:
    """The passages of a document in a build, a line of JSON each."""
    if record.shard is None:
        return b""
    with open(record.shard, "rb") as shard:
        shard.seek(record.start)
        return shard.read(record.length)


@dataclass(frozen=True, kw_only=True)
class DocumentsUnit(WorkUnit):
    """Documents that become one shard, or a list of skipped files."""

    documents: tuple[Document, ...] = ()
    chunking: Chunking

    @property
    def is_current(self) -> bool:
        return all(document.earlier for document in self.documents)

    def content_to_hash(self) -> Iterator[bytes]:
        files = [(document.file.name, document.sha256) for document in self.documents]
        yield repr((VERSION, self.chunking.identity, files)).encode("utf-8", "surrogatepass")

    def make_shard(self) -> Shard:
        tally = self.tally.copy()
        lines = list[bytes]()
        records = list[FileRecord]()
        before = 0
        for document in self.documents:
            record, passages = document.read(self.chunking, before)
            before += document.file.size
            records.append(record)
            lines.append(passages)
            if record.reason:
                tally.leave_out(document.file.name, document.file.name, record.reason, "bad")
        count = sum(record.passages for record in records)
        words = sum(record.words for record in records)
        pages = sum(not record.reason for record in records)
        return Shard(b"".join(lines), pages, count, words, tally, tuple(records))


class Documents(Source):
    """A user's own documents.

    Read are .txt, .log, .md, .rst, .html, .mht, .pdf, .docx, .doc, .rtf, .odt, .pptx, .odp, .epub,
    .eml, .mbox, .msg, .vcf, .xlsx, .xls, .ods, .csv, .tsv, .json, .jsonl, .ipynb, and text without
    an ending such as README.
    """

    format = "documents"
    unit = "file"
    is_user_folder = True
    takes = ("root",)

    class Settings(PluginSettings):
        path: str
        """A folder with its subfolders, or a file."""
        include: Sequence[str] = ()
        """Patterns of files to read, such as "*.pdf" or "reports/*"; empty for all."""
        exclude: Sequence[str] = ()
        """Patterns of files and folders to skip."""
        words: Positive = 100
        """Approximate words of a passage; it ends at the end of a sentence."""
        overlap: Natural = 0
        """Words of whole sentences that a passage repeats from the previous passage; less than
        `words`.
        """
        columns: Sequence[str] = ()
        """The columns of tables to read; empty for all."""
        max_mb: Annotated[float, Field(gt=0)] = 50.0
        """Megabytes of the largest file to read."""
        ocr: bool = False
        """Whether ocrmypdf reads PDF files without text."""
        prefix: Annotated[str, Field(pattern=r"^[^/]*$")] = ""
        """A name before the path of each file, to tell the files of several folders apart; empty
        for none.
        """

    settings: Settings

    def __init__(self, settings: Settings, *, root: Path = Path()) -> None:
        self.settings = settings
        self.path = find_input(settings.path, root)
        self._hashes: dict[str, str] = {}

    def check(self) -> None:
        path = Path(self.path)
        if not path.exists():
            raise MissingInput(
                f"documents not found: there is no {path.absolute()}; name a folder, or a file"
            )
        overlap = self.settings.overlap
        words = self.settings.words
        if overlap >= words:
            raise ConfigError(
                f"overlap = {overlap}: wanted fewer words than a passage has, {words}"
            )
        if self.settings.ocr:
            ocr.require_program()

    @cached_property
    def scanned(self) -> list[FolderFile]:
        """The files of the folder, with those to skip."""
        settings = self.settings
        files = scan_folder(Path(self.path), settings.include, settings.exclude, settings.max_mb)
        return [replace(file, name=self.name_prefix + file.name) for file in files]

    @property
    def name_prefix(self) -> str:
        """What the names of its files begin with: `prefix` and a slash, or nothing."""
        prefix = self.settings.prefix
        return f"{prefix}/" if prefix else ""

    @property
    def chunking(self) -> Chunking:
        settings = self.settings
        return Chunking(settings.words, settings.overlap, tuple(settings.columns), settings.ocr)

    @cached_property
    def key_prefix(self) -> str:
        """The start of its files' keys: a hash of the folder and the settings."""
        settings = json.dumps(
            [VERSION, str(Path(self.path).absolute()), self.chunking.identity], sort_keys=True
        )
        return hashlib.sha256(settings.encode("utf-8", "surrogatepass")).hexdigest()[:16] + "/"

    def identity_settings(self) -> dict[str, object]:
        settings = super().identity_settings() | {"reader": VERSION}
        # Left out at their defaults, so that earlier builds stay current
        for name in ("ocr", "prefix"):
            if not settings[name]:
                del settings[name]
        return settings

    def documents(self, known: KnownFiles) -> Iterator[Document]:
        """The files to read, with their hashes.

        A file with its known size and time of change is not hashed again.
        """
        files = [file for file in self.scanned if not file.kind]
        for file in files:
            key = self.key_prefix + file.name
            if file.name not in self._hashes:
                self._hashes[file.name] = _hash_file(file, known.get(key, (0, 0, "")))
            yield Document(file, self._hashes[file.name], key)

    def work_units(self, earlier: Mapping[str, FileRecord] | None = None) -> Iterator[WorkUnit]:
        """Units of at most 256 files and 8 MB; the last units list the skipped files."""
        records = earlier or {}
        batch = list[Document]()
        for document in self.documents({key: record.facts for key, record in records.items()}):
            record = records.get(document.key)
            if record and record.sha256 == document.sha256 != "":
                document = replace(document, earlier=record)
            size = document.file.size + sum(batched.file.size for batched in batch)
            if batch and (len(batch) == _FILES or size > _SIZE):
                yield self._unit(batch)
                batch = []
            batch.append(document)
        if batch:
            yield self._unit(batch)
        skipped = [file for file in self.scanned if file.kind]
        for first in range(0, len(skipped), _LISTED):
            tally = SkippedPages()
            for file in skipped[first : first + _LISTED]:
                tally.leave_out(file.name, file.name, file.reason, file.kind)
            yield DocumentsUnit(chunking=self.chunking, where=self.path, read=0, tally=tally)

    def _unit(self, documents: Sequence[Document]) -> DocumentsUnit:
        where = documents[0].file.path + (
            f" and {len(documents) - 1} more" if len(documents) > 1 else ""
        )
        read = sum(document.file.size for document in documents)
        return DocumentsUnit(
            documents=tuple(documents), chunking=self.chunking, where=where, read=read
        )

    def identity(self, known: KnownFiles) -> dict[str, object]:
        digest = hashlib.sha256()
        with bar(f"checking {Path(self.path).name}", self.size(), unit="bytes") as advance:
            for document in self.documents(known):
                digest.update(
                    f"{document.sha256} {document.file.name}\n".encode("utf-8", "surrogatepass")
                )
                advance(document.file.size)
        return self.identity_settings() | {"files": [digest.hexdigest()]}

    def hashes(self, known: KnownFiles) -> dict[str, str]:
        return {document.key: document.sha256 for document in self.documents(known)}

    def size(self) -> int:
        return sum(file.size for file in self.scanned if not file.kind)

    def summary(self, build: BuildReport) -> Iterator[str]:
        yield f"{build.corpus}: {_describe_changes(build.before, build.after)}"
        yield from describe_left_out(build.bad, build.corpus)
        yield from _describe_unread(build.before, build.after)
        if any("kind" in file for file in build.bad):
            yield f"all skipped files, with reasons: {build.listed}"

    def explain_empty(self, build: BuildReport) -> str:
        is_chosen = self.settings.include or self.settings.exclude
        chosen = " that include and exclude allow" if is_chosen else ""
        return (
            "; ".join(describe_left_out(build.bad, build.corpus))
            or f"no file in {self.path}{chosen}"
        )


def _hash_file(file: FolderFile, before: Sequence[int | str]) -> str:
    """The SHA-256 of a file: that of `before` if size and time are the same.

    Bytes that were added since it was listed are left out. Empty if unreadable, as its reader
    reports why.
    """
    if (file.size, file.modified) == tuple(before[:2]) and before[2]:
        return str(before[2])
    try:
        return sha256(Path(file.path), file.size)
    except OSError:
        return ""


def _describe_changes(before: Mapping[str, FileRecord], after: Mapping[str, FileRecord]) -> str:
    """Describe which files are new, changed or removed since the previous build."""
    if not {key.partition("/")[0] for key in before} & {key.partition("/")[0] for key in after}:
        # There is no previous build with these settings
        return f"{pluralize(len(after), 'file')} read"
    new = after.keys() - before.keys()
    removed = before.keys() - after.keys()
    changed = {
        key for key in after.keys() & before.keys() if after[key].sha256 != before[key].sha256
    }
    parts = [
        _name_files("changed", changed),
        _name_files("new", new),
        _name_files("removed", removed),
    ]
    read = pluralize(len(changed) + len(new), "file")
    same = len(after) - len(changed) - len(new)
    return f"{read} read again, {same:,} unchanged{''.join(parts)}"


def _name_files(state: str, keys: Iterable[str]) -> str:
    names = sorted(key.partition("/")[2] for key in keys)
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"; {len(names):,} {state} ({', '.join(names[:_NAMED])}{more})" if names else ""


def _describe_unread(
    before: Mapping[str, FileRecord], after: Mapping[str, FileRecord]
) -> Iterator[str]:
    """The parts that were left out of new and changed files, in a few lines."""
    records = [record for key, record in after.items() if before.get(key) != record]
    told = [record for record in records if record.unread]
    for record in told[:_NAMED]:
        yield f"left out of {record.key.partition('/')[2]}: {record.unread}"
    if len(told) > _NAMED:
        yield f"left out: parts of {pluralize(len(told) - _NAMED, 'more file')}"
