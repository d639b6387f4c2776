"""Indexes of Lucene that Pyserini publishes: found by name, fetched and verified, and opened.

They are kept where Pyserini keeps them, so that both tools share one copy: in the folder
PYSERINI_CACHE, or ~/.cache/pyserini. Beside an index, `NAME.ifqa.json` has its fingerprint and
whether its download was verified.
"""

import hashlib
import importlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ifqa.errors import DamagedArtifact, FormatError, MissingInput
from ifqa.protocols import Requirement
from ifqa.retrieval.jvm import load_jnius
from ifqa.settings import StoredModel, parse_stored
from ifqa.storage.archives import unpack
from ifqa.storage.artifacts import report_full_disk
from ifqa.storage.download import RemoteFile, download_all
from ifqa.storage.files import read_json, write_json

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "PYSERINI_CACHE"
_ARCHIVE = ".tar.gz"


class _Mark(StoredModel):
    """`NAME.ifqa.json`."""

    verified: bool  # the archive had the published MD5 when ifqa fetched it
    fingerprint: str


@dataclass(frozen=True)
class PrebuiltIndex:
    """An entry of Pyserini's list."""

    name: str
    url: str
    file: str
    md5: str
    size: int | None  # bytes of the archive

    @property
    def folder(self) -> Path:
        """Where Pyserini unpacks it (pyserini/util.py:263-267)."""
        stem = self.file.partition(_ARCHIVE)[0]
        return cache_folder() / f"{stem}.{self.md5}"

    @property
    def mark(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.ifqa.json")


def cache_folder() -> Path:
    """Pyserini's folder of indexes (pyserini/util.py:248-252)."""
    home = os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "pyserini"
    return Path(home) / "indexes"


def list_prebuilt() -> Mapping[str, Mapping[str, Any]]:
    """Pyserini's list of inverted indexes; starts the JVM, which has a part of the list."""
    load_jnius()
    module = importlib.import_module("pyserini.prebuilt_index_info")
    listed: Mapping[str, Mapping[str, Any]] = module.TF_INDEX_INFO
    return listed


def open_prebuilt(name: str, root: Path = Path()) -> Path:
    """The folder of a published index, or a folder with a Lucene index below `root`.

    An index whose download ifqa has not verified is named in a line. Raises MissingInput if it is
    not there, DamagedArtifact if it is another than when it was first opened.
    """
    folder = root / name
    if folder.is_dir():
        _segments_file(folder)
        return folder
    index = _listed(name)
    if not index.folder.is_dir():
        raise MissingInput(f"{index.folder} is not there; fetch it with: ifqa data {name}")
    fingerprint = fingerprint_index(index.folder)
    if not index.mark.exists():
        write_json(index.mark, _Mark(verified=False, fingerprint=fingerprint).model_dump())
    mark = parse_stored(_Mark, read_json(index.mark), str(index.mark), "remove the file")
    if mark.fingerprint != fingerprint:
        raise DamagedArtifact(
            f"{index.folder} has changed since it was first opened; remove it and "
            f"{index.mark.name}, then: ifqa data {name}"
        )
    if not mark.verified:
        logger.info(f"{index.folder}: not verified, because ifqa did not fetch it")
    return index.folder


def prebuilt_requirement(name: str, root: Path = Path()) -> Requirement:
    """What a build from a published index needs."""
    try:
        open_prebuilt(name, root)
    except (MissingInput, DamagedArtifact, FormatError) as error:
        return Requirement(f"index {name}", str(error))
    return Requirement(f"index {name}")


def fetch_prebuilt(name: str) -> Iterator[str]:
    """Download an index of Pyserini's list, verify its MD5, and unpack it; yields a message."""
    index = _listed(name)
    if index.folder.is_dir():
        open_prebuilt(name)
        yield f"{index.folder}: already there"
        return
    archive = cache_folder() / f"{index.folder.name}{_ARCHIVE}"
    cache_folder().mkdir(parents=True, exist_ok=True)
    remote = RemoteFile(index.url, archive, index.size, "md5", index.md5)
    download_all([remote], cache_folder())
    draft = index.folder.with_name(f".{index.folder.name}.partial")
    shutil.rmtree(draft, ignore_errors=True)
    with report_full_disk(index.folder):
        unpack(archive, draft, "remove it and run the same command again")
    found = _index_folder(draft, archive)
    mark = _Mark(verified=True, fingerprint=fingerprint_index(found))
    write_json(index.mark, mark.model_dump())
    found.rename(index.folder)
    shutil.rmtree(draft, ignore_errors=True)
    archive.unlink()
    yield f"{index.folder}: fetched from {index.url}, MD5 {index.md5}"


def fingerprint_index(folder: Path) -> str:
    """SHA-256 over the names and sizes of an index's files, and over its list of segments.

    The list has an id and a checksum of each segment; reading all files would take minutes.
    """
    digest = hashlib.sha256(_segments_file(folder).read_bytes())
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != "write.lock":
            digest.update(f"{path.name} {path.stat().st_size}\n".encode())
    return digest.hexdigest()


def _listed(name: str) -> PrebuiltIndex:
    entry = list_prebuilt().get(name)
    if entry is None:
        raise MissingInput(
            f"{name!r} is neither a folder nor an index of Pyserini's list; wanted one, such as "
            "wikipedia-dpr-100w"
        )
    url = str(entry["urls"][0])
    file = str(entry.get("filename") or url.rpartition("/")[2])
    size = entry.get("size compressed (bytes)")
    return PrebuiltIndex(name, url, file, str(entry["md5"]), int(size) if size else None)


def _segments_file(folder: Path) -> Path:
    files = sorted(folder.glob("segments_*"))
    if not files:
        raise FormatError(f"{folder} has no file segments_*; wanted a Lucene index")
    return files[-1]


def _index_folder(folder: Path, archive: Path) -> Path:
    """The folder with the index in an unpacked archive."""
    found = sorted(path.parent for path in folder.rglob("segments_*"))
    if len(found) != 1:
        raise FormatError(f"{archive} holds {len(found)} Lucene indexes; wanted one")
    return found[0]
