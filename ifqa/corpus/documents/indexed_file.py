"""The files that a built corpus of documents was read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ifqa.corpus.documents.chunking import encode_name
from ifqa.corpus.documents.source import Documents
from ifqa.corpus.work_units import FileRecord, FileRecords, Source


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A document of a built corpus."""

    top: Path  # the folder of documents
    name: str  # its path relative to the folder, with slashes
    record: FileRecord


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
