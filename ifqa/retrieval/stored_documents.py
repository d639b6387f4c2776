"""The source 'lucene': passages that a Lucene index stores, such as those that Pyserini
publishes.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ifqa.corpus.work_units import FileRecords, KnownFiles, Source, WorkUnit, passage_units
from ifqa.errors import DamagedArtifact, FormatError
from ifqa.records import Passage
from ifqa.retrieval.jvm import load_jnius
from ifqa.retrieval.prebuilt import fingerprint_index, open_prebuilt
from ifqa.settings import PluginSettings


class StoredDocuments(Source):
    """The documents of a Lucene index, each a passage; those without text are left out.

    A document is a JSON object with its text in `contents` or `text`, and its title in `title` or,
    in quotation marks, in the first line, as in Pyserini's indexes of DPR's passages.
    """

    class Settings(PluginSettings):
        index: str
        """An index of Pyserini's list, such as "wikipedia-dpr-100w", or a folder with an index."""

    settings: Settings
    format = "lucene"
    takes = ("root",)

    def __init__(self, settings: Settings, *, root: Path = Path()) -> None:
        self.settings = settings
        self._folder = open_prebuilt(settings.index, root)

    def work_units(self, earlier: FileRecords | None = None) -> Iterator[WorkUnit]:
        return passage_units(read_stored(self._folder), str(self._folder))

    def identity(self, known: KnownFiles) -> dict[str, object]:
        return self.identity_settings() | {"files": [fingerprint_index(self._folder)]}

    def size(self) -> int:
        return sum(path.stat().st_size for path in self._folder.iterdir() if path.is_file())


def read_stored(folder: Path) -> Iterator[tuple[Passage, int]]:
    """The passages of an index, each with the share of the index's bytes read so far."""
    jnius = load_jnius()
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    try:
        reader = jnius.autoclass("io.anserini.index.IndexReaderUtils").getReader(
            str(folder.resolve())
        )
    except jnius.JavaException as error:
        raise DamagedArtifact(
            f"Lucene cannot read {folder} ({' '.join(str(error).split())[:200]})"
        ) from error
    try:
        count = int(reader.maxDoc())
        stored = reader.storedFields()
        for number in range(count):
            document = stored.document(number)
            passage = parse_stored_document(
                document.get("id"), document.get("raw") or document.get("contents"), folder
            )
            if passage.text.strip():
                yield passage, size * (number + 1) // count
    finally:
        reader.close()


def parse_stored_document(document_id: object, raw: object, folder: Path) -> Passage:
    """The passage of a stored document; FormatError if the index stores no text."""
    if not isinstance(document_id, str) or document_id.split() != [document_id]:
        raise FormatError(f"{folder}: found a document with the id {document_id!r:.80}")
    if not isinstance(raw, str):
        raise FormatError(
            f"{folder} does not store the text of its documents; wanted an index with it, such as "
            "wikipedia-dpr-100w, not its slim version"
        )
    record = _parse_object(raw)
    title = record.get("title")
    text = record.get("contents") or record.get("text") or ""
    if not isinstance(text, str):
        raise FormatError(f"{folder}: the text of {document_id} is a {type(text).__name__}")
    first, line_break, rest = text.partition("\n")
    if title is None and line_break and len(first) > 1 and first[0] == first[-1] == '"':
        title = first[1:-1].replace('""', '"')
        text = rest
    return Passage(document_id, title if isinstance(title, str) else "", text)


def _parse_object(raw: str) -> dict[str, Any]:
    """A document's JSON object; a text that is none is the text itself."""
    try:
        record = json.loads(raw)
    except ValueError:
        return {"contents": raw}
    return record if isinstance(record, dict) else {"contents": raw}
